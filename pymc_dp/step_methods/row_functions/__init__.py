"""The log-likelihood of one row as a function, built in one way for all samplers, and sums of it that keep a bound."""

from pymc_dp.step_methods.row_functions.builder import RowFunction, vectorised
from pymc_dp.step_methods.row_functions.limits import Limit, RatioLimit

__all__ = ["Limit", "RatioLimit", "RowFunction", "vectorised"]
