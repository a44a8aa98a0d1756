"""A noised curvature matrix, made positive definite: post-processing, free."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_dp.gradients.levels import Levels
from pymc_dp.inspection.rows import Array

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


def estimated(noised: Noised, deviation: float, levels: Levels | None) -> Curvature:
    """Estimate a curvature from what was released of it.

    Parameters
    ----------
    noised : (d, d) array or Collapsed
    deviation : float
        Of the noise off the diagonal; on it, that is √2 times as large.
    levels : Levels or None
        None where all of it was released.

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
    return shrunk(noised, deviation)


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


__all__ = ["Collapsed", "Curvature", "Noised", "estimated", "positive", "shrunk"]
