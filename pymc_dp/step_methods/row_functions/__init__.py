"""The log-likelihood of one row as a function, built in one way for all samplers, and sums of it that keep a bound."""

from pymc_dp.step_methods.row_functions.bounds import Bound, References
from pymc_dp.step_methods.row_functions.node_bounds import NodeBound
from pymc_dp.step_methods.row_functions.nodes import Layout, Nodes, diameter_of

__all__ = [
    "Bound",
    "Layout",
    "NodeBound",
    "Nodes",
    "References",
    "diameter_of",
]
