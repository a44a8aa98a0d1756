"""A noised curvature matrix, made positive definite: post-processing, free.

Which parameters a row meets one at a time: of many of them a few sums of a curvature are released, not all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pymc_dp.inspection.rows import Array

if TYPE_CHECKING:
    from pymc_dp.gradients.interface import Part


MOST_FULL = 200
"""Parameters up to which all of a curvature is released, and intervals were calibrated."""
LEAST_LEVELS = 10
"""Entries of an array of which a row meets one; those of a shorter array are taken as any other parameters."""
LEAST_PART = 0.2
"""Of the squared norm of a row, what is of parameters that all rows meet."""

Places = npt.NDArray[np.int64]
Blocks = tuple[Places, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """Slots of the parameters: one for all entries of an array of which a row meets one, one for each other parameter.

    Attributes
    ----------
    slots : (d,) array of int
        From 0, without gaps.
    groups : (d,) array of int
        Alike for parameters that are indexed alike: intercept and slope of a group. Of parameters that are alone in
        their slots -1.
    """

    slots: Places
    groups: Places

    @property
    def count(self) -> int:
        """Number of slots."""
        return int(self.slots.max()) + 1

    @cached_property
    def shared(self) -> npt.NDArray[np.bool_]:
        """Whether a slot is that of an array, (count,)."""
        found = np.zeros(self.count, dtype=bool)
        found[self.slots[self.groups >= 0]] = True
        return found

    @cached_property
    def together(self) -> npt.NDArray[np.bool_]:
        """Pairs of parameters that coordinates may mix, (d, d): of one group, or both without one. In blocks."""
        return np.asarray(self.groups[:, None] == self.groups)

    def summed(self, values: Array) -> Array:
        """Return the sums of values over the parameters of each slot, (count,)."""
        return np.bincount(self.slots, weights=values, minlength=self.count)

    def pooled(self, values: Array) -> Array:
        """Return the mean over its slot for each parameter, (d,)."""
        return np.asarray((self.summed(values) / np.bincount(self.slots))[self.slots])

    def averaged(self, matrix: Array) -> Array:
        """Return a matrix in blocks, each of which is the mean block of all groups that are indexed alike."""
        slots = np.eye(self.count)[self.slots]
        own, ones = (slots.T @ np.where(self.together, one, 0.0) @ slots for one in (matrix, np.ones_like(matrix)))
        mean = own / np.maximum(ones, 1.0)
        return np.where(self.together, mean[np.ix_(self.slots, self.slots)], 0.0)

    def raised(self, squares: Array) -> Array:
        """Return factors of coordinates, (d,), by which those that all rows meet get a part of the norm of a row.

        Parameters
        ----------
        squares : (d,) array
            Mean squares of coordinates, in any unit.

        Notes
        -----
        Beside 500 intercepts, three slopes would be 1/170 of the squared norm, and get as much noise, relative to what
        rows say about them, as each of the intercepts, which are known from few rows. A fifth of it makes the noise on
        intercepts larger by an eighth.
        """
        alone = self.groups < 0
        own, others = float(squares[alone].sum()), float(squares[~alone].sum())
        wanted = others * LEAST_PART / (1 - LEAST_PART)
        factor = math.sqrt(wanted / own) if 0 < own < wanted else 1.0
        return np.where(alone, factor, 1.0)


def levels_of(parts: Sequence[Part], met: npt.NDArray[np.bool_]) -> Levels | None:
    """Return the slots of a model's parameters; None where all of a curvature is released.

    Parameters
    ----------
    parts : sequence of Part
    met : (n_rows, d) array of bool
        Which parameters rows have met that are made up: nothing here depends on a private value.

    Notes
    -----
    An entry of ``alpha[group]`` meets no other entry of alpha in any row, and one of ``beta[group]`` only that of its
    own group. Privacy does not depend on that: a row in which it is otherwise is within the limits all the same
    (`kernel.walks.Collapsed`).
    """
    if met.shape[1] <= MOST_FULL:
        return None
    slots, groups = np.zeros(met.shape[1], dtype=np.int64), np.full(met.shape[1], -1)
    families = list[tuple[int, int, Places]]()
    count = started = 0
    for part in parts:
        own, place = _arrays(part.shape, met[:, part.start : part.start + part.size])
        here = slice(part.start, part.start + part.size)
        slots[here] = own + count
        if place is not None:
            for array in range(int(own.max()) + 1):
                inside = np.flatnonzero(own == array) + part.start
                hits = np.where(met[:, inside].any(axis=1), met[:, inside].argmax(axis=1), -1)
                known = (begin for begin, size, other in families if size == len(inside) and _alike(hits, other))
                begin = next(known, None)
                if begin is None:
                    begin, started = started, started + len(inside)
                families.append((begin, len(inside), hits))
                groups[inside] = begin + np.arange(len(inside))
        count += int(own.max()) + 1
    return Levels(slots=slots, groups=groups) if (groups >= 0).any() else None


def _arrays(shape: tuple[int, ...], met: npt.NDArray[np.bool_]) -> tuple[Places, Places | None]:
    """Return the array that each entry belongs to, and its place there; each is alone if rows meet several of one."""
    size = int(np.prod(shape, dtype=int))
    for own, count in _cuts(shape):
        if size // count < LEAST_LEVELS:
            continue
        together = np.zeros((len(met), count), dtype=np.int64)
        for array in range(count):
            together[:, array] = met[:, own == array].sum(axis=1)
        if together.max() == 1:
            return own, np.arange(size)
    return np.arange(size), None


def _cuts(shape: tuple[int, ...]) -> Iterator[tuple[Places, int]]:
    """Yield ways to cut an array along some of its axes, the fewest pieces first."""
    indices: Any = np.indices(shape).reshape(len(shape), int(np.prod(shape, dtype=int)))
    ways = [axes for some in range(len(shape)) for axes in combinations(range(len(shape)), some)]
    for axes in sorted(ways, key=lambda axes: int(np.prod([shape[axis] for axis in axes], dtype=int))):
        lengths = [shape[axis] for axis in axes]
        own = np.ravel_multi_index([indices[axis] for axis in axes], lengths) if axes else np.zeros_like(indices[0])
        yield np.asarray(own), int(np.prod(lengths, dtype=int))


def _alike(one: Places, other: Places) -> bool:
    """Whether two arrays are indexed alike wherever a row meets both."""
    both = (one >= 0) & (other >= 0)
    return bool(both.any() and (one[both] == other[both]).all())


GRID, SEARCHING = 60, 200
"""Values between which the distribution of a diagonal is looked for, and rounds of that search."""
LEAST = 0.01
"""The least of these values, over the largest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Collapsed:
    """Noised sums of a curvature, where not all of it is released.

    Attributes
    ----------
    pairs : (s, s) array
        Sums over all entries of two slots; 0 on the diagonal for slots that are shared.
    diagonal : (d,) array
        The diagonal, of parameters of shared slots; 0 for others.
    """

    pairs: Array
    diagonal: Array


Noised = Array | Collapsed


@dataclass(frozen=True, kw_only=True, eq=False)
class Curvature:
    """A symmetric positive definite matrix.

    Attributes
    ----------
    matrix : (d, d) array
    unresolved : int
        Directions whose curvature is lost in the noise: they share what is left of the trace.
    """

    matrix: Array
    unresolved: int


def estimated(noised: Noised, deviation: float, levels: Levels | None, blocks: Blocks = ()) -> Curvature:
    """Estimate a curvature from what was released of it.

    Parameters
    ----------
    noised : (d, d) array or Collapsed
    deviation : float
        Of the noise off the diagonal; on it, that is √2 times as large.
    levels : Levels or None
        None where all of it was released.
    blocks : tuple of arrays of int
        Places of parameters that no row relates to those of another block; none: all are one.

    Notes
    -----
    Of the sums K over slots and the diagonal m: a row meets one entry of an array, so that entries of two arrays, or of
    an array and of another parameter, meet as often as these entries are met at all: in proportion to m, or to its root
    and that of the other within a group. With W the matrix of what meets within groups and Z the indicators of slots,

        H = E K Eᵀ + W - W Z (Zᵀ W Z)⁻¹ Zᵀ W,   E = W Z (Zᵀ W Z)⁻¹,

    has the sums K and is positive definite: what is between arrays is of low rank.
    """
    if isinstance(noised, Collapsed):
        assert levels is not None
        return _spread(noised, deviation, levels)
    if len(blocks) < 2:
        return shrunk(noised, deviation)
    matrix, unresolved = np.zeros_like(noised), 0
    for inside in blocks:
        found = shrunk(noised[np.ix_(inside, inside)], deviation)
        matrix[np.ix_(inside, inside)] = found.matrix
        unresolved += found.unresolved
    return Curvature(matrix=matrix, unresolved=unresolved)


def _spread(noised: Collapsed, deviation: float, levels: Levels) -> Curvature:
    own = np.ones(len(levels.slots))
    for slot in np.flatnonzero(levels.shared):
        inside = levels.slots == slot
        own[inside] = positive(noised.diagonal[inside], math.sqrt(2) * deviation)
    totals = np.where(levels.shared, levels.summed(own), np.diag(noised.pairs))
    sums = shrunk(noised.pairs + np.diag(totals - np.diag(noised.pairs)), deviation)
    root = np.sqrt(np.diag(sums.matrix))
    related = (sums.matrix / np.outer(root, root))[np.ix_(levels.slots, levels.slots)]
    size = np.sqrt(np.where(levels.groups >= 0, own, np.diag(sums.matrix)[levels.slots]))
    within = np.where(levels.together, related * np.outer(size, size), 0.0)
    slots = np.eye(levels.count)[levels.slots]
    met = within @ slots
    each = np.linalg.solve(slots.T @ met, met.T).T
    matrix = each @ sums.matrix @ each.T + within - each @ met.T
    return Curvature(matrix=(matrix + matrix.T) / 2, unresolved=sums.unresolved)


def positive(noised: Array, deviation: float) -> Array:
    """Estimate positive numbers of one distribution, which is not known, from noised ones.

    Notes
    -----
    The distribution that makes the noised numbers likeliest, on a grid, by expectation and maximisation; then the
    posterior mean of each number. Where noise is larger than what they differ by, all are their mean; where there is
    none, each is itself to a twenty-fifth of the largest, half of what values on the grid differ by there.

    References
    ----------
    Kiefer, Wolfowitz (1956), doi 10.1214/aoms/1177728066; Jiang, Zhang (2009), doi 10.1214/08-AOS638 (empirical Bayes).
    """
    top = max(float(noised.max()), float(noised.mean()), deviation)
    grid = np.geomspace(LEAST * top, top, GRID)
    near = -0.5 * ((noised[:, None] - grid) / max(deviation, (1 - LEAST) * top / GRID)) ** 2
    near = np.exp(near - near.max(axis=1, keepdims=True))
    weights = np.full(GRID, 1 / GRID)
    for _ in range(SEARCHING):
        joint = near * weights
        weights = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    joint = near * weights
    return np.asarray((joint @ grid) / joint.sum(axis=1))


def shrunk(noised: Array, deviation: float) -> Curvature:
    """Estimate a positive semidefinite matrix from one with symmetric normal noise.

    Parameters
    ----------
    noised : (d, d) array
        Symmetric.
    deviation : float
        Standard deviation s of the noise off the diagonal; on it, that is √2 s.

    Notes
    -----
    Noise alone has eigenvalues up to 2 s √k in a space of k dimensions. What is above that edge is resolved, and the
    edge is that of the *other* directions, which is found by repetition: with the edge of all d at once, the smallest
    resolved curvature of a well-separated table was lost. A resolved eigenvalue l is e + k s²/e on average, so that e =
    (l + √(l² - 4 k s²)) / 2, and its direction keeps a share 1 - k s²/e² of it. The rest share what is left of the
    trace, at least s / (4 √k) each.

    References
    ----------
    Benaych-Georges, Nadakuditi (2011), doi 10.1016/j.aim.2011.02.007 (eigenvalues of a matrix of low rank and noise).
    """
    values, vectors = np.linalg.eigh((noised + noised.T) / 2)
    size = count = len(values)
    while True:
        resolved = values > max(2 * deviation * math.sqrt(count), deviation)
        if size - int(resolved.sum()) == count:
            break
        count = size - int(resolved.sum())
    square = count * deviation**2
    held = values[resolved]
    found = (held + np.sqrt(np.maximum(held**2 - 4 * square, 0.0))) / 2
    kept = np.empty(size)
    kept[resolved] = found * np.maximum(1 - square / found**2, 0.0)
    if count:
        rest = (values.sum() - found.sum()) / count
        kept[~resolved] = max(rest, deviation / (4 * math.sqrt(count)), np.finfo(float).tiny)
    return Curvature(matrix=(vectors * kept) @ vectors.T, unresolved=count)


def blocks_of(related: npt.NDArray[np.bool_]) -> Blocks:
    """Return which parameters are related, also by others: the places of each block, in order."""
    from scipy.sparse.csgraph import connected_components  # a tenth of a second, for who releases gradients

    count, labels = connected_components(related, directed=False)
    return tuple(np.flatnonzero(labels == label) for label in range(count))


__all__ = [
    "LEAST_LEVELS",
    "MOST_FULL",
    "Blocks",
    "Collapsed",
    "Curvature",
    "Levels",
    "Noised",
    "blocks_of",
    "estimated",
    "levels_of",
    "positive",
    "shrunk",
]
