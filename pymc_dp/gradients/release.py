"""The releases of a walk: whole numbers summed over the rows, noised, and read in the units of the walk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from os import cpu_count
from threading import Lock
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt

from pymc_dp.errors import PrivacyError
from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.curvature import Collapsed, Levels, Noised
from pymc_dp.gradients.integers import (
    CURVATURE_UNITS,
    MOST_ROWS,
    SCORE_UNITS,
    Integers,
    add_collapsed,
    add_counts,
    add_curvatures,
    add_scores,
    joined,
    symmetric,
)
from pymc_dp.gradients.left_out import RowCounts
from pymc_dp.gradients.misfit import Residuals
from pymc_dp.gradients.moments import Moments
from pymc_dp.gradients.schedule import BINS, Limits, Schedule, Units
from pymc_dp.gradients.weighted import WeightedParts
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.noise import GAUSSIAN

Rows = Any
Add = Callable[[Array, Integers], None]
MOST_ENTRIES = 2**26
"""Of the curvatures of all threads together."""


class Parts(Protocol):
    """What rows add, as floats; any function of a row, its place in a chunk aside, will do."""

    def scores(self, rows: Rows, at: Array, limits: Limits) -> Any:
        """Return clipped scores over C of rows or persons, (n, d), in the coordinates of the limits."""

    def factors(self, rows: Rows, at: Array, limits: Limits) -> Any:
        """Return factors of clipped curvatures over √C_F, (n, q, d)."""


def units(dimension: int, neighbours: str, levels: Levels | None = None) -> Units:
    """Return what one row, or a person, can add to the sums of `NoisedSums`."""
    return Units(
        gradient=SCORE_UNITS,
        curvature=CURVATURE_UNITS,
        dimension=dimension,
        neighbours=neighbours,
        collapsed=None if levels is None else levels.entries,
    )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NoisedSums:
    """Every release of a walk over the rows.

    Attributes
    ----------
    parts : Parts
    chunks : callable
        Returns the rows, some at a time, the same for every pass: arrays, or functions that return them.
    schedule : Schedule
    passed : callable
        Called after every release, for a progress bar.
    threads : int
        That go through chunks side by side.
    weighted : WeightedParts, optional
        The `parts`, where rows are weighed.

    Notes
    -----
    **Guarantee.** Each release is the sum over the rows of vectors of whole numbers of bounded norm, with discrete
    Gaussian noise: `Schedule.event` is what all of them cost, whatever `parts` returns, for `integers` enforces the
    norm on the whole numbers that are summed. Arithmetic hardened. One row, or person, enters its own vector alone if
    `parts` is made row by row, or person by person. Sums of whole numbers depend neither on chunks nor on which thread
    was first.
    """

    parts: Parts
    chunks: Callable[[], Iterable[Rows]]
    schedule: Schedule
    passed: Callable[[], None] = lambda: None
    threads: int = field(default_factory=lambda: cpu_count() or 1)
    weighted: WeightedParts | None = None

    @property
    def largest(self) -> float:
        """The largest weight, in units of which sums are made; 1 where rows are not weighed."""
        return 1.0 if self.weighted is None else self.weighted.largest

    def weights(self) -> tuple[float, float]:
        """Return the noised sum of the weights, and the standard deviation of its noise."""
        weighted = self._weighted

        def add(shares: Array, total: Integers) -> None:
            add_counts(np.zeros(len(shares), dtype=np.int64), shares, total)

        whole = self._summed(weighted.shares, add, (1,), self.threads)
        self.passed()
        (total,) = GAUSSIAN.add(whole, self.schedule.weights_scale)
        unit = self.largest / SCORE_UNITS
        return float(total) * unit, self.schedule.weights_scale * unit

    def moments(self, moments: Moments) -> tuple[Array, float]:
        """Return noised sums of moments of columns, and the standard deviation of their noise."""
        extras = self.schedule.extras
        return self._beside(moments.rows, moments.count, extras.columns, extras.moments)

    def left_out(self, counts: RowCounts) -> tuple[Array, float]:
        """Return noised counts of rows that are kept and left out, and the standard deviation of their noise."""
        extras = self.schedule.extras
        return self._beside(counts.rows, counts.count, extras.left_out, extras.counts)

    def fit(self, residuals: Residuals, at: Array, limits: Limits) -> tuple[Array, float]:
        """Return noised sums of the check of the fit, and the standard deviation of their noise."""
        extras = self.schedule.extras
        return self._beside(lambda rows: residuals.rows(rows, at, limits), residuals.count, extras.fit, extras.checks)

    def _beside(self, part: Callable[[Rows], Array], count: int, share: float, paid: int) -> tuple[Array, float]:
        """Return a noised sum of vectors of norm 1 at most, if as many numbers are paid for, and its deviation."""
        self._require(share * (paid == count))
        scale = self.schedule.scale_of(share)
        return self._noised_sum(part, (count,), scale) / SCORE_UNITS, scale / SCORE_UNITS

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
        self._require(self.schedule.extras.norms)
        free = replace(limits, clip_norm=UNLIMITED, clip_curvature=UNLIMITED, weighing=False)
        plain: Parts = self.parts if self.weighted is None else self.weighted.parts

        def placed(rows: Rows) -> Array:
            norms = np.linalg.norm(plain.scores(rows, at, free) * UNLIMITED, axis=1)
            places = np.where(~np.isfinite(norms), 0, np.searchsorted(edges, norms, side="right")) - 1
            shares = np.ones(len(norms)) if self.weighted is None else self.weighted.shares(rows)
            return np.column_stack([places, shares])

        def add(found: Array, total: Integers) -> None:
            add_counts(found[:, 0].astype(np.int64), found[:, 1], total)

        total = self._summed(placed, add, (BINS,), self.threads)
        self.passed()
        scale, unit = self.schedule.norms_scale, self.largest / SCORE_UNITS
        return GAUSSIAN.add(total, scale) * unit, scale * unit

    def squares(self, at: Array, limits: Limits) -> tuple[Array, float]:
        """Return the noised sum of the outer products of scores, and the deviation off its diagonal."""
        self._require(self.schedule.extras.squares)
        total = self._summed(
            lambda rows: self.parts.scores(rows, at, limits)[:, None], add_curvatures, (len(at),) * 2, self.threads
        )
        self.passed()
        unit = (limits.clip_norm * self.largest) ** 2 / CURVATURE_UNITS
        return _noised(total, self.schedule.squares_scale) * unit, self.squares_deviation(limits)

    def squares_deviation(self, limits: Limits) -> float:
        """Return the standard deviation of the noise off the diagonal of a sum of outer products."""
        unit = (limits.clip_norm * self.largest) ** 2 / CURVATURE_UNITS
        return float(self.schedule.squares_scale / np.sqrt(2) * unit)

    @property
    def _weighted(self) -> WeightedParts:
        self._require(self.schedule.extras.weights if self.weighted is not None else 0.0)
        assert self.weighted is not None
        return self.weighted

    @staticmethod
    def _require(share: float) -> None:
        if not share:
            raise PrivacyError("A sum is asked for that was not paid; this is an error of pymc_dp.")

    def curvature(self, stage: int, at: Array, limits: Limits) -> tuple[Noised, float]:
        """Return the noised sum of curvatures, and the standard deviation of the noise off its diagonal."""
        levels, size = limits.levels, len(at)
        if self.schedule.units.collapsed != (None if levels is None else levels.entries):
            raise PrivacyError("Other sums of a curvature are asked for than were paid; this is an error of pymc_dp.")
        shape = (size, size) if levels is None else (levels.count**2 + size,)
        add: Add = add_curvatures if levels is None else partial(add_collapsed, levels=levels)
        room = MOST_ENTRIES // math.prod(shape)
        total = self._summed(lambda rows: self.parts.factors(rows, at, limits), add, shape, room)
        self.passed()
        scale = self.schedule.curvature_scale(stage)
        unit = limits.clip_curvature * self.largest / CURVATURE_UNITS
        deviation = self.deviation(stage, limits)
        if levels is None:
            return _noised(total, scale) * unit, deviation
        count = levels.count
        inside, own, grouped = total[: count**2].reshape(count, count), np.zeros(size), levels.groups >= 0
        own[grouped] = GAUSSIAN.add(total[count**2 :][grouped], scale)
        return Collapsed(pairs=_noised(inside, scale, ~levels.shared) * unit, diagonal=own * unit), deviation

    def gradient(self, stage: int, step: int, at: Array, limits: Limits) -> Array:
        """Return the noised sum of scores."""
        scale = self.schedule.gradient_scale(stage, step)
        noised = self._noised_sum(lambda rows: self.parts.scores(rows, at, limits), (len(at),), scale)
        return noised * (limits.clip_norm * self.largest / SCORE_UNITS)

    def deviation(self, stage: int, limits: Limits) -> float:
        """Return the standard deviation of the noise off the diagonal of a curvature."""
        return float(
            self.schedule.curvature_scale(stage) / np.sqrt(2) * (limits.clip_curvature * self.largest / CURVATURE_UNITS)
        )

    def variance(self, stage: int, limits: Limits) -> float:
        """Return the variance that a gradient would have that is paid all of its stage's share."""
        return self.schedule.gradient_variance(stage) * (limits.clip_norm * self.largest / SCORE_UNITS) ** 2

    def _noised_sum(self, part: Callable[[Rows], Any], shape: tuple[int, ...], scale: float) -> Array:
        """Return a noised sum of scores, in whole numbers."""
        total = self._summed(part, add_scores, shape, self.threads)
        self.passed()
        return GAUSSIAN.add(total, scale)

    def _summed(
        self,
        part: Callable[[Rows], Any],
        add: Add,
        shape: tuple[int, ...],
        room: int,
    ) -> Integers:
        """Sum over all rows, in one pass. **Private**."""
        chunks, found = _Shared(self.chunks()), list[Integers]()
        first = chunks.take(2)
        threads = max(1, min(self.threads, room)) if len(first) > 1 else 1
        with ThreadPoolExecutor(threads) as pool:
            work = [pool.submit(_added, part, add, shape, first[k::threads], chunks) for k in range(threads)]
            try:
                for one in as_completed(work):
                    found += one.result()
            except BaseException:
                chunks.stop()
                raise
        return joined(found)


def _noised(total: Integers, scale: float, diagonal: npt.NDArray[np.bool_] | None = None) -> Array:
    """Return a noised symmetric matrix, without the entries of its diagonal that are not released."""
    upper = np.triu_indices(len(total), 1)
    kept = slice(None) if diagonal is None else diagonal
    own = np.zeros(len(total))
    own[kept] = GAUSSIAN.add(np.ascontiguousarray(np.diag(total)[kept]), scale)
    noised = np.diag(own)
    noised[upper] = GAUSSIAN.add(total[upper], scale / np.sqrt(2))
    return symmetric(noised)


def _added(
    part: Callable[[Rows], Any],
    add: Add,
    shape: tuple[int, ...],
    first: Sequence[Rows],
    rest: _Shared,
) -> list[Integers]:
    """Sum over some rows, and over as many more as are left when it is done with these."""
    found, left = [np.zeros(shape, dtype=np.int64)], MOST_ROWS
    with np.errstate(all="ignore"):  # a warning could depend on a row
        for chunk in chain(first, rest):
            own = part(chunk() if callable(chunk) else chunk)
            if len(own) > left:
                found.append(np.zeros(shape, dtype=np.int64))
                left = MOST_ROWS
            left -= len(own)
            add(own, found[-1])
    return found


class _Shared:
    """Chunks that several threads take, each one once."""

    def __init__(self, chunks: Iterable[Rows]) -> None:
        self._chunks, self._lock = iter(chunks), Lock()

    def take(self, count: int) -> list[Rows]:
        """Return the next ones, as far as there are any."""
        with self._lock:
            return list(islice(self._chunks, count))

    def stop(self) -> None:
        """Leave the rest where it is."""
        with self._lock:
            self._chunks = iter(())

    def __iter__(self) -> Iterator[Rows]:
        while found := self.take(1):
            yield found[0]


__all__ = ["NoisedSums", "Parts", "units"]
