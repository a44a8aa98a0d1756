"""A released curvature at other points than that of its release: public made-up rows say how it changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pymc_dp.inspection.rows import Array

MOST_SCALED = 100.0
"""How far rows of made-up tables may raise or lower the square root of a curvature on the way."""
HELD = 0.1
"""Share of a released curvature that stays: from one that is next to nothing steps would be huge."""
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
    white, back = _whitening(curvature)
    own = white.T @ first @ white
    values, vectors = np.linalg.eigh((own + own.T) / 2)
    if not values.mean() > 0:
        return lambda _: curvature
    turn = white @ (vectors / np.sqrt(np.maximum(values, LEAST_CURVATURE * values.mean()))) @ vectors.T
    rest = np.eye(len(values)) - turn.T @ first @ turn

    def elsewhere(at: Array) -> Array:
        now = bend(at)
        ratio = _ratio(np.diag(now), np.diag(first))
        values, vectors = np.linalg.eigh(turn.T @ now @ turn + rest)
        turned = back @ vectors
        kept = (1 - HELD) * np.clip(values, ratio.min(), ratio.max()) + HELD
        found = (turned * kept) @ turned.T
        return np.asarray((found + found.T) / 2)

    return elsewhere


def remembered(bend: Callable[[Array], Array] | None) -> Callable[[Array], Array] | None:
    """Return a function of a point that is asked for the last one again: it takes as long as a pass over rows."""
    if bend is None:
        return None
    last = dict[bytes, Array]()

    def at(point: Array) -> Array:
        key = point.tobytes()
        if key not in last:
            found = bend(point)
            last.clear()
            last[key] = found
        return last[key]

    return at


def raised(curvature: Array, other: Array) -> Array:
    """Return a curvature that is in each direction as large as another, where that is larger. Both (d, d)."""
    white, back = _whitening(curvature)
    values, vectors = np.linalg.eigh(white.T @ other @ white)
    turn = back @ vectors
    found = (turn * np.maximum(values, 1.0)) @ turn.T
    return np.asarray((found + found.T) / 2)


def _whitening(curvature: Array) -> tuple[Array, Array]:
    """Return W with Wᵀ H W the identity, and the transpose of its inverse."""
    values, vectors = np.linalg.eigh(curvature)
    root = np.sqrt(np.maximum(values, np.finfo(float).tiny))
    return vectors / root, vectors * root


def _scaled(curvature: Array, now: Array, first: Array) -> Array:
    factor = np.sqrt(_ratio(now, first))
    return np.asarray(curvature * np.outer(factor, factor))


def _ratio(now: Array, first: Array) -> Array:
    with np.errstate(all="ignore"):
        ratio = np.nan_to_num(now / first, nan=1.0)
    return np.clip(ratio, MOST_SCALED**-2, MOST_SCALED**2)


__all__ = ["carried", "raised", "remembered"]
