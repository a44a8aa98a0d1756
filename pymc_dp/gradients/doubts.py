"""What speaks against a posterior, by released numbers alone: a walk that has not arrived, or says nothing."""

from __future__ import annotations

import numpy as np

from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.private_model import Quadratic
from pymc_dp.gradients.walk import Found

FARTHEST = 4.0
"""Standard deviations, root mean square over parameters, from a walk's end to the posterior mean where it arrived."""
LEARNED = 0.05
"""Least share by which variances fall from the prior to the posterior, mean over directions, where rows say anything.
"""


def doubts(found: Found, prior: Prior, *, local: bool) -> list[str]:
    """Say why the posterior should not be relied on, beside χ² (`agreement`): nothing if there is no reason.

    Parameters
    ----------
    found : Found
    prior : Prior
        Of the path, in the same coordinates.
    local : bool
        Whether the posterior is within a trust region around the end of the walk.

    Notes
    -----
    The log-likelihood is known where the walk ended, and its gradient there leads to the posterior. Where the walk has
    arrived, that is no farther than noise moves both. χ² does not see it: gradients on the way agree with a quadratic
    if they are all far from its middle. **Guarantee.** Post-processing.
    """
    lost = ["all directions of the curvature are lost in its noise"] * (found.unresolved == len(found.end))
    if local:
        return lost
    try:
        mean, covariance = Quadratic.of(found, np.ones(len(found.end))).posterior(prior.mean, prior.precision)
        away = mean - found.end
        far = float(np.sqrt(away @ np.linalg.solve(covariance, away) / len(away)))
    except np.linalg.LinAlgError:
        return ["what was released is too large or too small for floats"]
    says = list[str]()
    if not far <= FARTHEST:
        says.append(
            f"the walk has not arrived: the log-likelihood is known where it ended, and the posterior is {far:.3g} "
            "standard deviations from there"
        )
    if not 1 - float(np.trace(prior.precision @ covariance)) / len(away) >= LEARNED:
        says.append("what was released says next to nothing of the parameters, and the posterior is about the prior")
    return says or lost


__all__ = ["doubts"]
