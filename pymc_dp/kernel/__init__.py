"""The trusted kernel: everything that leaves private rows is one of its operations, paid for before a row is read.

It imports nothing else of the package. Trusted are NumPy, Numba, PyTensor's compilation of a graph of one row, OpenDP's
noise, dp_accounting, and the operating system's entropy. Not trusted are row maps (what a row is worth at some
parameters), samplers, models, ranges, centres and grids: whatever they do, what leaves costs what was charged.

Names are imported when they are first used, so that its errors, events and checks can be had without compilers.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pymc_dp.kernel.account import Account as Account
    from pymc_dp.kernel.account import Grant as Grant
    from pymc_dp.kernel.account import LedgerAccount as LedgerAccount
    from pymc_dp.kernel.account import Pool as Pool
    from pymc_dp.kernel.ball import NormalInBall as NormalInBall
    from pymc_dp.kernel.choices import choice_event as choice_event
    from pymc_dp.kernel.gram import Regression as Regression
    from pymc_dp.kernel.metric import choose_per_unit as choose_per_unit
    from pymc_dp.kernel.metric import rounding as rounding
    from pymc_dp.kernel.metric import steepest_per_unit as steepest_per_unit
    from pymc_dp.kernel.operations import Kernel as Kernel
    from pymc_dp.kernel.rowmap import Columns as Columns
    from pymc_dp.kernel.rowmap import RowMap as RowMap
    from pymc_dp.kernel.shapes import Ball as Ball
    from pymc_dp.kernel.shapes import Curve as Curve
    from pymc_dp.kernel.shapes import Interval as Interval
    from pymc_dp.kernel.shapes import MHot as MHot
    from pymc_dp.kernel.shapes import Move as Move
    from pymc_dp.kernel.shapes import OneHot as OneHot
    from pymc_dp.kernel.shapes import Products as Products
    from pymc_dp.kernel.shapes import Shape as Shape
    from pymc_dp.kernel.table import Column as Column
    from pymc_dp.kernel.table import Table as Table

_NAMES = {
    "account": ("Account", "Grant", "LedgerAccount", "Pool"),
    "ball": ("NormalInBall",),
    "choices": ("choice_event",),
    "gram": ("Regression",),
    "metric": ("choose_per_unit", "rounding", "steepest_per_unit"),
    "operations": ("Kernel",),
    "rowmap": ("Columns", "RowMap"),
    "shapes": ("Ball", "Curve", "Interval", "MHot", "Move", "OneHot", "Products", "Shape"),
    "table": ("Column", "Table"),
}
_SOURCES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_SOURCES)


def __getattr__(name: str) -> object:
    if name not in _SOURCES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"{__name__}.{_SOURCES[name]}"), name)
    return value
