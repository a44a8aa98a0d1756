"""A noised curvature matrix, made positive definite: post-processing, free."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pymc_dp.inspection.rows import Array


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


__all__ = ["Curvature", "shrunk"]
