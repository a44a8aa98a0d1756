"""The releases of a walk: noised sums of the kernel, read in the units of the walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, final

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.curvature import Collapsed, Noised
from pymc_dp.gradients.left_out import RowCounts
from pymc_dp.gradients.misfit import Residuals
from pymc_dp.gradients.moments import Moments
from pymc_dp.gradients.schedule import Limits, Schedule, curvature_of, gradient_of
from pymc_dp.gradients.weighted import WeightedParts
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.walk_kinds import MATRIX
from pymc_dp.kernel.walks import Walk

Rows = Any


class Parts(Protocol):
    """What rows add, as floats: block functions of the kernel, which are trusted to map each row, or person, alone."""

    def scores(self, rows: Rows, at: Array, limits: Limits) -> Any:
        """Return clipped scores over C of rows or persons, (n, d), in the coordinates of the limits."""

    def factors(self, rows: Rows, at: Array, limits: Limits) -> Any:
        """Return factors of clipped curvatures over √C_F, (n, q, d)."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NoisedSums:
    """Every release of a walk over the rows.

    Attributes
    ----------
    parts : Parts
    walk : Walk
        Over the rows, of the sums of the schedule.
    schedule : Schedule
    passed : callable
        Called after every release, for a progress bar.
    weighted : WeightedParts, optional
        The `parts`, where rows are weighed.

    Notes
    -----
    **Guarantee.** That of `Walk`: sums and noise are the kernel's, and what is computed of them here is free.
    """

    parts: Parts
    walk: Walk
    schedule: Schedule
    passed: Callable[[], None] = lambda: None
    weighted: WeightedParts | None = None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.schedule.sums)}

    def _made(self, name: str, block: Callable[[Rows], Array]) -> tuple[Array, float]:
        """Return a noised sum in whole units, and the scale of its noise."""
        if name not in self._places:
            raise PrivacyError("A sum is asked for that was not paid; this is an error of pymc_dp.")
        found = self.walk.made(self._places[name], block)
        self.passed()
        return found, self.schedule.sums[name].scale

    @property
    def largest(self) -> float:
        """The largest weight, in units of which sums are made; 1 where rows are not weighed."""
        return 1.0 if self.weighted is None else self.weighted.largest

    def weights(self) -> tuple[float, float]:
        """Return the noised sum of the weights, and the standard deviation of its noise."""
        (total,), scale = self._made(
            "weights", lambda rows: np.column_stack([np.zeros(len(rows[0])), self._shares(rows)])
        )
        unit = self.largest / UNITS
        return float(total) * unit, scale * unit

    def moments(self, moments: Moments) -> tuple[Array, float]:
        """Return noised sums of moments of columns, and the standard deviation of their noise."""
        return self._beside("moments", moments.rows)

    def left_out(self, counts: RowCounts) -> tuple[Array, float]:
        """Return noised counts of rows that are kept and left out, and the standard deviation of their noise."""
        return self._beside("left out", counts.rows)

    def fit(self, residuals: Residuals, at: Array, limits: Limits) -> tuple[Array, float]:
        """Return noised sums of the check of the fit, and the standard deviation of their noise."""
        return self._beside("fit", lambda rows: residuals.rows(rows, at, limits))

    def _beside(self, name: str, block: Callable[[Rows], Array]) -> tuple[Array, float]:
        """Return a noised sum of vectors of norm 1 at most, and the standard deviation of its noise."""
        found, scale = self._made(name, block)
        return found / UNITS, scale / UNITS

    def norms(self, at: Array, limits: Limits, edges: Array) -> tuple[Array, float]:
        """Return the noised histogram of the norms of scores, and the standard deviation of its noise.

        Parameters
        ----------
        at : (d,) array
        limits : Limits
            Whose coordinates norms are in; nothing is clipped.
        edges : (BINS,) array
            Where bins begin; the last one has no end.

        Notes
        -----
        A row counts by its weight, in units of the sums, and one whose norm is no number does not count.
        """
        free = replace(limits, clip_norm=UNLIMITED, clip_curvature=UNLIMITED, weighing=False)
        plain: Parts = self.parts if self.weighted is None else self.weighted.parts

        def placed(rows: Rows) -> Array:
            norms = np.linalg.norm(plain.scores(rows, at, free) * UNLIMITED, axis=1)
            places = np.where(~np.isfinite(norms), 0, np.searchsorted(edges, norms, side="right")) - 1
            shares = np.ones(len(norms)) if self.weighted is None else self._shares(rows)
            return np.column_stack([places, shares])

        found, scale = self._made("norms", placed)
        unit = self.largest / UNITS
        return found * unit, scale * unit

    def _shares(self, rows: Rows) -> Array:
        assert self.weighted is not None
        return self.weighted.shares(rows)

    def squares(self, at: Array, limits: Limits) -> tuple[Array, float]:
        """Return the noised sum of the outer products of scores, and the deviation off its diagonal."""
        found, _ = self._made("squares", lambda rows: self.parts.scores(rows, at, limits)[:, None])
        return found * self._square(limits), self.squares_deviation(limits)

    def squares_deviation(self, limits: Limits) -> float:
        """Return the standard deviation of the noise off the diagonal of a sum of outer products."""
        return float(self.schedule.sums["squares"].scale / np.sqrt(2) * self._square(limits))

    def _square(self, limits: Limits) -> float:
        return (limits.clip_norm * self.largest) ** 2 / MATRIX

    def curvature(self, stage: int, at: Array, limits: Limits) -> tuple[Noised, float]:
        """Return the noised sum of curvatures, and the standard deviation of the noise off its diagonal."""
        levels = limits.levels
        if self.schedule.units.levels is not levels:
            raise PrivacyError("Other sums of a curvature are asked for than were paid; this is an error of pymc_dp.")
        found, _ = self._made(curvature_of(stage), lambda rows: self.parts.factors(rows, at, limits))
        unit, deviation = limits.clip_curvature * self.largest / MATRIX, self.deviation(stage, limits)
        if levels is None:
            return found * unit, deviation
        pairs, own = found[: levels.count**2].reshape(levels.count, levels.count), found[levels.count**2 :]
        return Collapsed(pairs=pairs * unit, diagonal=own * unit), deviation

    def gradient(self, stage: int, step: int, at: Array, limits: Limits) -> Array:
        """Return the noised sum of scores."""
        found, _ = self._made(gradient_of(stage, step), lambda rows: self.parts.scores(rows, at, limits))
        return found * (limits.clip_norm * self.largest / UNITS)

    def deviation(self, stage: int, limits: Limits) -> float:
        """Return the standard deviation of the noise off the diagonal of a curvature."""
        scale = self.schedule.sums[curvature_of(stage)].scale
        return float(scale / np.sqrt(2) * (limits.clip_curvature * self.largest / MATRIX))

    def variance(self, stage: int, limits: Limits) -> float:
        """Return the variance that a gradient would have that is paid all of its stage's share."""
        return self.schedule.gradient_variance(stage) * (limits.clip_norm * self.largest / UNITS) ** 2


__all__ = ["NoisedSums", "Parts"]
