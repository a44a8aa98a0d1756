"""Every name that the kernel still takes from the rest of the package, in one place: they are to move into it."""

from __future__ import annotations

from pymc_dp.draws.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal
from pymc_dp.release.level_threshold import tail
from pymc_dp.release.regression_sensitivity import _Blocks as RegressionBlocks

__all__ = [
    "RegressionBlocks",
    "tail",
    "truncated_beta",
    "truncated_dirichlet",
    "truncated_gamma",
    "truncated_normal",
]
