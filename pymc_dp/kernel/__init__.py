"""The trusted kernel: everything that leaves private rows is one of its operations, paid for before a row is read.

Trusted are this package and what `_outside` names, NumPy, Numba, PyTensor's compilation of a graph of one row, OpenDP's
noise, dp_accounting, and the operating system's entropy. Not trusted are row maps (what a row is worth at some
parameters), samplers, models, ranges, centres and grids: whatever they do, what leaves costs what was charged.
"""

from pymc_dp.kernel.account import Account, Grant, LedgerAccount, Pool
from pymc_dp.kernel.choices import choice_event
from pymc_dp.kernel.exact import OneParameter, Probabilities
from pymc_dp.kernel.gram import Regression
from pymc_dp.kernel.metric import choose_per_unit, rounding
from pymc_dp.kernel.operations import Kernel
from pymc_dp.kernel.rowmap import Columns, RowMap
from pymc_dp.kernel.shapes import Ball, Curve, Interval, MHot, Move, OneHot, Products, Psd, Shape
from pymc_dp.kernel.table import Column, Table

__all__ = [
    "Account",
    "Ball",
    "Column",
    "Columns",
    "Curve",
    "Grant",
    "Interval",
    "Kernel",
    "LedgerAccount",
    "MHot",
    "Move",
    "OneHot",
    "OneParameter",
    "Pool",
    "Probabilities",
    "Products",
    "Psd",
    "Regression",
    "RowMap",
    "Shape",
    "Table",
    "choice_event",
    "choose_per_unit",
    "rounding",
]
