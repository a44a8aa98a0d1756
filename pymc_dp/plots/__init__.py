"""Figures, in the backend that `arviz.plots` uses: what was spent, what was released, what each ε would buy."""

from pymc_dp.plots._budget import budget
from pymc_dp.plots._release import release
from pymc_dp.plots._tradeoff import tradeoff

__all__ = ["budget", "release", "tradeoff"]
