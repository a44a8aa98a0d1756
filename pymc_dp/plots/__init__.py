"""Figures, in the backend that `arviz.plots` uses: of a budget, a release, a plan and a rehearsal."""

from pymc_dp.plots._budget import budget
from pymc_dp.plots._rehearsal import rehearsal
from pymc_dp.plots._release import release
from pymc_dp.plots._tradeoff import tradeoff

__all__ = ["budget", "rehearsal", "release", "tradeoff"]
