"""A released curvature at other points than that of its release: public made-up rows say how it changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pymc_dp.inspection.rows import Array

MOST_SCALED = 100.0
"""How far rows of made-up tables may raise or lower the square root of a curvature on the way."""
LEAST_CURVATURE = 0.01
"""Of made-up rows, over the mean of all directions: below that they do not say how a direction bends."""


def carried(curvature: Array, begun: Array, bend: Callable[[Array], Array] | None) -> Callable[[Array], Array]:
    """Return a curvature as a function of a point, (d, d).

    Parameters
    ----------
    curvature : (d, d) array
        H, positive definite, released where a stage begins.
    begun : (d,) array
        There.
    bend : callable or None
        Curvature of public made-up rows at a point: (d, d), or its diagonal (d,). None: it stays as it is.

    Notes
    -----
    Made-up rows have other covariates than those of the table, and so another curvature S. In coordinates in which H is
    the identity, T = S^-1/2 where the stage begins makes theirs the identity too, and T S T is taken for H elsewhere.
    If each row has a weight that changes from point to point, no direction changes by less or more than these weights
    do, which is not so of the diagonal alone: with correlated covariates H was off by several times.
    """
    if bend is None:
        return lambda _: curvature
    first = bend(begun)
    if first.ndim == 1:
        return lambda at: _scaled(curvature, bend(at), first)
    values, vectors = np.linalg.eigh(curvature)
    root = np.sqrt(np.maximum(values, np.finfo(float).tiny))
    white, back = vectors / root, vectors * root
    own = white.T @ first @ white
    values, vectors = np.linalg.eigh((own + own.T) / 2)
    if not values.mean() > 0:
        return lambda _: curvature
    turn = (vectors / np.sqrt(np.maximum(values, LEAST_CURVATURE * values.mean()))) @ vectors.T
    kept = (1 + MOST_SCALED**-2) * np.eye(len(values)) - turn @ own @ turn
    turn = white @ turn

    def elsewhere(at: Array) -> Array:
        found = back @ (turn.T @ bend(at) @ turn + kept) @ back.T
        return np.asarray((found + found.T) / 2)

    return elsewhere


def _scaled(curvature: Array, now: Array, first: Array) -> Array:
    with np.errstate(all="ignore"):
        ratio = np.sqrt(now / first)
    factor = np.clip(np.nan_to_num(ratio, nan=1.0), 1 / MOST_SCALED, MOST_SCALED)
    return np.asarray(curvature * np.outer(factor, factor))


__all__ = ["carried"]
