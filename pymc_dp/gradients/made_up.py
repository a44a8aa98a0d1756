"""What is computed of the factors of curvatures of made-up rows, (n_rows, q, d)."""

from __future__ import annotations

import numpy as np

from pymc_dp.inspection.rows import Array

LARGEST, EVENING = 3.0, 4
"""How large a curvature of a made-up row may be over the mean on the way, and rounds in which that is brought about."""
IDLE = 1e-9
"""Share of the curvature, of parameters that are alone, below which a direction has none."""


def idle(factors: Array) -> Array:
    """Return directions along which curvatures of rows are 0, (d, k), of parameters that are met; rows count alike."""
    with np.errstate(all="ignore"):
        alike = finite(factors / np.sqrt((factors**2).sum(axis=(1, 2), keepdims=True)))
        flat = alike.reshape(-1, alike.shape[2])
        size = np.sqrt((flat**2).sum(axis=0))
        met = np.flatnonzero(size)
        values, vectors = np.linalg.eigh(flat[:, met].T @ flat[:, met] / np.outer(size[met], size[met]))
    found = np.zeros((len(size), int((values < IDLE).sum())))
    found[met] = vectors[:, : found.shape[1]] / size[met, None]
    return np.asarray(np.linalg.qr(found)[0])


def median(values: Array, weights: Array) -> float:
    """Return the median of what is > 0, by weight; 0 where nothing is."""
    kept = np.isfinite(values) & (values > 0) & (weights > 0)
    order = np.argsort(values[kept])
    below = np.cumsum(weights[kept][order])
    return float(values[kept][order][np.searchsorted(below, below[-1] / 2)]) if len(below) else 0.0


def evened(factors: Array) -> Array:
    """Return factors of curvatures none of which is much larger than the mean: rows of a table are clipped as well."""
    squares = (factors**2).sum(axis=1)
    for _ in range(EVENING):
        mean = squares.mean(axis=0)
        sizes = np.divide(squares, mean, out=np.zeros_like(squares), where=mean > 0).sum(axis=1)
        kept = np.minimum(1.0, LARGEST * sizes.mean() / np.maximum(sizes, np.finfo(float).tiny))
        squares, factors = squares * kept[:, None], factors * np.sqrt(kept)[:, None, None]
    return factors


def finite(values: Array) -> Array:
    """Return values, with 0 for what is no number."""
    return np.where(np.isfinite(values), values, 0.0)


__all__ = ["evened", "finite", "idle", "median"]
