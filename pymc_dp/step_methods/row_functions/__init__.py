"""The log-likelihood of one row as a function, built in one way for all samplers, and sums of it that keep a bound."""

from pymc_dp.step_methods.row_functions.bounds import Bound, RangeBound, References
from pymc_dp.step_methods.row_functions.limits import Limit
from pymc_dp.step_methods.row_functions.node_bounds import NodeBound
from pymc_dp.step_methods.row_functions.nodes import Layout, Nodes, diameter_of

__all__ = [
    "Bound",
    "Layout",
    "Limit",
    "NodeBound",
    "Nodes",
    "RangeBound",
    "References",
    "diameter_of",
]
