"""A descent with momentum: where the walk begins if the log-likelihood is not concave, as that of a neural net."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.schedule import Limits
from pymc_dp.gradients.simulated import Simulated
from pymc_dp.gradients.walk import Releases
from pymc_dp.inspection.rows import Array

MOMENTUM = 0.9
AVERAGED = 0.2
"""Share of the positions, the last ones, whose mean is where the descent ends."""
FARTHEST = 3.0
"""Root mean square of the prior's standard deviations that a descent may go: with few rows noise would drive it on."""
TRUST = 25.0
"""Precision of the trust region over that of the prior: its radius is a fifth of the prior's standard deviation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Descent:
    """Public constants of a descent, in the coordinates η / D.

    Attributes
    ----------
    start : (d,) array
        A draw from the prior, whose mean may be a saddle: there all hidden units of a net are alike.
    rate : float
        Size of a step along the mean gradient of a row.
    limits : Limits
        C of the scores.
    n_rows : int
        How many rows, or persons, there are, or may be.
    """

    start: Array
    rate: float
    limits: Limits
    n_rows: int

    @classmethod
    def of(cls, simulated: Simulated, prior: Prior, n_rows: int) -> Descent:
        """Choose them by made-up rows. Reads no private value.

        Notes
        -----
        C is the median norm of the scores of rows that are made up from the prior, and the rate is 1 over the largest
        curvature of a row's mean log-likelihood, its median over the prior, and of the prior's part of it: with
        momentum β a descent is stable up to 2 (1 + β) over that. So nothing is tuned on the table. Of persons, both are
        as of `rows_of_one` rows.
        """
        size, steepest = simulated.steepness
        rows = simulated.rows.interface.inspection.domain.rows_of_one
        size, steepest = size * rows**0.5, steepest * rows
        held = float(np.linalg.eigvalsh(prior.precision)[-1]) / max(n_rows, 1)
        limits = Limits(scale=simulated.scale, clip_norm=size, clip_curvature=UNLIMITED)
        start = simulated.parameters[0] / simulated.scale
        return cls(start=start, rate=1 / (steepest + held), limits=limits, n_rows=n_rows)

    def end(self, shares: tuple[float, ...], prior: Prior, releases: Releases) -> Array:
        """Release the gradients of the first stage, and return where they lead, (d,).

        Parameters
        ----------
        shares : tuple of float
            Of each step, in what the stage is paid.
        prior : Prior
            Its slope is added.
        releases : Releases

        Notes
        -----
        **Guarantee.** Post-processing of `releases`: a fixed number of gradients, each of all rows, with Gaussian noise
        of scales that are fixed in advance. No step is rejected, and none depends on a row but through them.

        References
        ----------
        Polyak (1964), doi 10.1016/0041-5553(64)90137-5 (momentum).
        """
        at, speed = self.start, np.zeros(len(self.start))
        passed = list[Array]()
        for step in range(len(shares)):
            slope = (
                self.limits.score(releases.gradient(0, step, at, self.limits)) + prior.weighted - prior.precision @ at
            )
            speed = MOMENTUM * speed + self.rate * slope / max(self.n_rows, 1)
            inside = _within(at + speed, prior)
            at, speed = inside, inside - at
            passed.append(at)
        return np.asarray(np.mean(passed[-max(1, round(AVERAGED * len(passed))) :], axis=0))


def _within(at: Array, prior: Prior) -> Array:
    """Return the position, or where the way there from the prior's mean leaves the ellipsoid that holds the prior."""
    off = at - prior.mean
    length = float(np.sqrt(off @ prior.precision @ off))
    farthest = FARTHEST * np.sqrt(len(at))
    return at if length <= farthest else prior.mean + off * (farthest / length)


def trusted(prior: Prior, centre: Array) -> Prior:
    """Return a trust region: a normal around a position, as wide as a fifth of the prior in all directions."""
    return Prior(mean=centre, precision=TRUST * prior.precision)


__all__ = ["Descent", "trusted"]
