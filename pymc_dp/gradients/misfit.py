"""Whether rows are as the model says: noised counts of how large residuals are, less what the model expects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numba
import numpy as np

from pymc_dp.gradients.row_parts import ROOM, Expected, RowParts
from pymc_dp.gradients.schedule import Limits
from pymc_dp.gradients.tails import FEW_VALUES
from pymc_dp.inspection.rows import Array
from pymc_dp.rows.persons import Grouped

EDGES = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
"""Where bins of norms of scores begin, over the root mean square that the model expects of the row."""
SQUARES = np.array([0.33, 2.2, 6.2, 12.2, 24.0, 55.0, 110.0])
"""Square of such a norm in each bin, about."""
ROUNDED = 1e-9
"""By how much bins begin earlier: where all norms are alike, as those of signs, rounding would choose between two."""
SEEN, LEVEL = 4.0, 2.6
"""Standard deviations of noise above which a count of a bin of large norms counts, and of what else is said."""
NEAR = 4
"""Bins whose counts always count; those of the others do together, each as one of the first of them."""


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """What was released of the fit of rows to the model.

    Attributes
    ----------
    dispersion, deviation : float
        Sum of squared norms of scores over what the model expects, and the standard deviation of the noise on it.
    at_bounds : (float, float)
        Shares of rows at the low and at the high bound of the response beyond what the model expects.
    share_deviation : float
        Of the noise on these.
    """

    dispersion: float
    deviation: float
    at_bounds: tuple[float, float]
    share_deviation: float


@dataclass(frozen=True, kw_only=True)
class Residuals:
    """What rows add to the check of the fit.

    Attributes
    ----------
    parts : RowParts

    Notes
    -----
    A row adds 1 to the bin of the norm of its score, over the root mean square that the model expects of this row, less
    the chance of each bin. If the model is right the mean of that is 0, whatever columns are. Then 1 where a single
    response with many values is at its low bound, and at its high one, less the chance of that. A person adds the mean
    over the rows that are kept.

    **Guarantee.** The norm of what a row adds, over 2, is at most 1, which the kernel enforces.
    """

    parts: RowParts
    count: ClassVar[int] = len(EDGES) + 2
    """Numbers that are released."""

    def rows(self, chunk: Sequence[Array] | Grouped, at: Array, limits: Limits) -> Array:
        """Return what rows add, or persons, (n, count)."""
        if not isinstance(chunk, Grouped):
            return self._of(chunk, at, limits)
        found, lengths = self._of(chunk.columns, at, limits), np.diff(chunk.edges)
        return np.add.reduceat(found, chunk.edges[:-1], axis=0) / lengths[:, None] if len(lengths) else found[:0]

    def _of(self, columns: Sequence[Array], at: Array, limits: Limits) -> Array:
        found, start = list[Array](), 0
        for block in self.parts.turned(columns, at, limits):
            size = len(block.observed)
            own = np.zeros((size, self.count))
            own[:, : len(EDGES)] = self._binned(block)
            own[:, len(EDGES) :] = self._at_bounds([one[start : start + size] for one in columns], block)
            found.append(own * (ROOM / 2))
            start += size
        return np.concatenate(found) if found else np.zeros((0, self.count))

    def _binned(self, block: Expected) -> Array:
        (one, *more) = self.parts.rows.interface.responses
        between = not more and one.values is None and one.entries == 1 and not one.together
        given = block.responses.weights, block.responses.scores, block.gram, block.observed
        ends = EDGES * (1 - ROUNDED)
        arrays = [np.ascontiguousarray(part, dtype=np.float64) for part in given]
        cells = np.arange(len(block.observed)) if block.cells is None else block.cells
        found = np.zeros((len(block.observed), len(EDGES)))
        _bin(*arrays, cells, ends, between, found)
        return found

    def _at_bounds(self, columns: Sequence[Array], block: Expected) -> Array:
        found = np.zeros((len(block.observed), 2))
        (one, *more) = self.parts.rows.interface.responses
        if more or one.entries > 1 or one.column.bounds is None or columns[one.place].ndim > 1:
            return found
        if one.values is not None and one.count <= FEW_VALUES:
            return found
        low, high = one.column.bounds
        values = np.asarray(columns[one.place], dtype=np.float64)
        if low != 0:
            found[:, 0] = values <= low
        found[:, 1] = values >= high
        if one.values is not None:
            found[:, 0] = 0.0
            last = block.of_rows(block.responses.weights[:, -1]) / block.of_rows(block.responses.weights.sum(axis=1))
            found[:, 1] -= np.clip(last, 0.0, 1.0)
        return found


def misfit_of(released: Array, deviation: float, rows: float) -> Misfit:
    """Return what a noised sum of `Residuals` says.

    Parameters
    ----------
    released : (count,) array
        In units of `Residuals.rows`.
    deviation : float
        Of the noise on it.
    rows : float
        How many there are, or may be.
    """
    counts, noise = released * 2 / ROOM, deviation * 2 / ROOM
    own, ends = counts[: len(EDGES)], counts[len(EDGES) :]
    squares, outer = SQUARES.copy(), np.arange(len(EDGES)) >= NEAR
    squares[outer & ~(own > SEEN * noise)] = SQUARES[NEAR]
    if not own[outer].sum() > LEVEL * noise * math.sqrt(outer.sum()):
        squares[outer] = 0.0
    dispersion = 1 + float(own @ squares) / max(rows, 1.0)
    spread = noise * math.sqrt(float((squares**2).sum())) / max(rows, 1.0)
    low, high = (float(one) / max(rows, 1.0) for one in ends)
    return Misfit(
        dispersion=dispersion, deviation=spread, at_bounds=(low, high), share_deviation=noise / max(rows, 1.0)
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _bin(weights, scores, gram, observed, cells, edges, between, found):  # type: ignore[no-untyped-def]
    """Write, for each row, its bin less the chances of all bins: of nodes, or of what lies between two in order."""
    n_cells, n_nodes, count = scores.shape
    n_bins = len(edges)
    chances, roots, sizes = np.zeros((n_cells, n_bins)), np.zeros(n_cells), np.zeros(n_nodes)
    for cell in range(n_cells):
        mass = square = 0.0
        for node in range(n_nodes):
            norm = 0.0
            for i in range(count):
                for j in range(count):
                    norm += scores[cell, node, i] * gram[cell, i, j] * scores[cell, node, j]
            sizes[node] = np.sqrt(norm) if norm > 0.0 else 0.0
            mass += weights[cell, node]
            square += weights[cell, node] * norm
        root = roots[cell] = np.sqrt(square / mass)
        for node in range(n_nodes):
            if not between:
                place = _bin_of(sizes[node] / root, edges)
                chances[cell, place] += weights[cell, node] / mass
                continue
            if node + 1 == n_nodes:
                break
            first, last = sizes[node] / root, sizes[node + 1] / root
            share = (weights[cell, node] + weights[cell, node + 1]) / 2 / mass
            low, high = (first, last) if first <= last else (last, first)
            for place in range(n_bins):
                start = edges[place]
                end = edges[place + 1] if place + 1 < n_bins else np.inf
                inside = min(high, end) - max(low, start)
                if high > low:
                    if inside > 0.0:
                        chances[cell, place] += share * inside / (high - low)
                elif start <= low < end:
                    chances[cell, place] += share
        if between:  # halves of the outermost nodes
            for node in (0, n_nodes - 1):
                chances[cell, _bin_of(sizes[node] / root, edges)] += weights[cell, node] / 2 / mass
    for row in range(len(observed)):
        cell, norm = cells[row], 0.0
        for i in range(count):
            for j in range(count):
                norm += observed[row, i] * gram[cell, i, j] * observed[row, j]
        ratio = np.sqrt(norm) / roots[cell] if norm > 0.0 else 0.0
        if not (ratio >= 0.0 and roots[cell] > 0.0 and np.isfinite(roots[cell])):
            found[row, :] = np.nan  # adds nothing
            continue
        for place in range(n_bins):
            found[row, place] = -chances[cell, place]
        found[row, _bin_of(ratio, edges)] += 1.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _bin_of(value, edges):  # type: ignore[no-untyped-def]
    place = 0
    for at in range(1, len(edges)):
        if value >= edges[at]:
            place = at
    return place


__all__ = ["LEVEL", "Misfit", "Residuals", "misfit_of"]
