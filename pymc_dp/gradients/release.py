"""The releases of a walk: whole numbers summed over the rows, noised, and read in the units of the walk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from pymc_dp.gradients.integers import (
    CURVATURE_UNITS,
    MOST_ROWS,
    SCORE_UNITS,
    Integers,
    add_curvatures,
    add_scores,
    symmetric,
)
from pymc_dp.gradients.schedule import Schedule, Units
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms import gaussian

Rows = Any


class Parts(Protocol):
    """What rows add, as floats; any function of a row, its place in a chunk aside, will do.

    Attributes
    ----------
    clip_norm, clip_curvature : float
        C and C_F: of what the largest row adds, in the coordinates of the walk.
    """

    @property
    def clip_norm(self) -> float:
        """C."""

    @property
    def clip_curvature(self) -> float:
        """C_F."""

    def scores(self, rows: Rows, at: Array) -> Array:
        """Return clipped scores over C, (n_rows, d)."""

    def factors(self, rows: Rows, at: Array) -> Array:
        """Return factors of clipped curvatures over √C_F, (n_rows, q, d)."""


def units(dimension: int, neighbours: str) -> Units:
    """Return what one row can add to the sums of `NoisedSums`."""
    return Units(gradient=SCORE_UNITS, curvature=CURVATURE_UNITS, dimension=dimension, neighbours=neighbours)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NoisedSums:
    """Every release of a walk over the rows.

    Attributes
    ----------
    parts : Parts
    chunks : callable
        Returns the rows, some at a time: the same for every pass.
    schedule : Schedule
    passed : callable
        Called after every pass, for a progress bar.

    Notes
    -----
    **Guarantee.** Each release is the sum over the rows of vectors of whole numbers of bounded norm, with discrete
    Gaussian noise: `Schedule.event` is what all of them cost, whatever `parts` returns, for `integers` enforces the
    norm on the whole numbers that are summed. Arithmetic hardened. One row enters its own vector alone if `parts` is
    made row by row.
    """

    parts: Parts
    chunks: Callable[[], Iterable[Rows]]
    schedule: Schedule
    passed: Callable[[], None] = lambda: None

    def curvature(self, stage: int, at: Array) -> tuple[Array, float]:
        """Return the noised sum of curvatures, and the standard deviation of the noise off its diagonal."""
        total = self._summed(self.parts.factors, add_curvatures, at, (len(at), len(at)))
        scale, unit = self.schedule.curvature_scale(stage), self.parts.clip_curvature / CURVATURE_UNITS
        upper = np.triu_indices(len(at), 1)
        noised = np.diag(gaussian.add_noise(np.ascontiguousarray(np.diag(total)), scale))
        noised[upper] = gaussian.add_noise(total[upper], scale / np.sqrt(2))
        return symmetric(noised) * unit, float(scale / np.sqrt(2) * unit)

    def gradient(self, stage: int, step: int, at: Array) -> Array:
        """Return the noised sum of scores."""
        total = self._summed(self.parts.scores, add_scores, at, (len(at),))
        scale = self.schedule.gradient_scale(stage, step)
        return gaussian.add_noise(total, scale) * (self.parts.clip_norm / SCORE_UNITS)

    def variance(self, stage: int) -> float:
        """Return the variance that a gradient would have that is paid all of its stage's share."""
        return self.schedule.gradient_variance(stage) * (self.parts.clip_norm / SCORE_UNITS) ** 2

    def _summed(
        self,
        part: Callable[[Rows, Array], Array],
        add: Callable[[Array, Integers], None],
        at: Array,
        shape: tuple[int, ...],
    ) -> Integers:
        """Sum over all rows. **Private**."""
        total, left = np.zeros(shape, dtype=np.int64), MOST_ROWS
        with np.errstate(all="ignore"):  # a warning could depend on a row
            for rows in self.chunks():
                found = part(rows, at)[:left]
                left -= len(found)
                add(found, total)
        self.passed()
        return total


__all__ = ["NoisedSums", "Parts", "units"]
