"""What a row adds to a gradient and to a curvature where it is weighed: never more than one that has full weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.choice import Gradients
from pymc_dp.gradients.curvature import MOST_FULL
from pymc_dp.gradients.interface import Interface
from pymc_dp.gradients.row_parts import RowParts
from pymc_dp.gradients.schedule import Limits
from pymc_dp.inspection.rows import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedParts:
    """Scores and factors of rows, as `RowParts` has them, times their shares: weights over the largest that counts.

    Attributes
    ----------
    parts : RowParts
    place : int
        Of the column of weights.
    largest : float
        Public bound on a weight, > 0.

    Notes
    -----
    A score is clipped before it is weighed: by limits that do not see the weight, so that clipped scores stay centred
    in the population where a row is in the sample with a probability that depends on its response.

    **Guarantee.** A share is in [0, 1], so that what a row adds is within the same limits as without weights; that is
    enforced by the kernel on whole numbers, whatever a weight is. What is summed is in units of the largest weight, and
    so is the noise.
    """

    parts: RowParts
    place: int
    largest: float

    def scores(self, rows: Sequence[Array], at: Array, limits: Limits) -> Array:
        """Return weighted scores in units of C times the largest weight."""
        return self.parts.scores(rows, at, limits) * self.shares(rows)[:, None]

    def factors(self, rows: Sequence[Array], at: Array, limits: Limits) -> Array:
        """Return factors in units of √C_F, times the root of the share."""
        return self.parts.factors(rows, at, limits) * np.sqrt(self.shares(rows))[:, None, None]

    def shares(self, rows: Sequence[Array]) -> Array:
        """Return weights over the largest, in [0, 1], or NaN: of such a row nothing is added."""
        return np.clip(np.asarray(rows[self.place], dtype=np.float64) / self.largest, 0.0, 1.0)


def check_weighted(choice: Gradients, interface: Interface) -> None:
    """Refuse what was not worked out for weighted rows, before anything is spent."""
    if choice.local or choice.conservative:
        raise ArgumentError(
            "With Domain(weights=...), dp.Gradients takes neither momentum_steps, whose steps are not weighed, nor "
            "conservative, because the variance of the scores is released. Leave them out."
        )
    if interface.size > MOST_FULL:
        raise ArgumentError(
            f"With Domain(weights=...), dp.Gradients releases the variance of all scores, of at most {MOST_FULL} "
            f"parameters, and the likelihood has {interface.size}. Use fewer levels or covariates."
        )


def check_robust(choice: Gradients, interface: Interface) -> None:
    """Refuse what the variance of scores is not released for, before anything is spent."""
    if choice.local:
        raise ArgumentError(
            "dp.Gradients takes either robust=True or momentum_steps, whose intervals claim nothing. Leave one out."
        )
    if interface.size > MOST_FULL:
        raise ArgumentError(
            f"With robust=True, dp.Gradients releases the variance of all scores, of at most {MOST_FULL} parameters, "
            f"and the likelihood has {interface.size}. Use fewer levels or covariates."
        )


__all__ = ["WeightedParts", "check_robust", "check_weighted"]
