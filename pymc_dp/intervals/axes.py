"""Intervals along axes of an array: sums, products, extremes, softmax and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_dp.intervals.interval import (
    INFINITE,
    LARGEST,
    NAN,
    Interval,
    attains,
    down,
    flag,
    interval,
    multiply,
    quiet,
    settled,
    up,
)
from pymc_dp.intervals.logic import is_false, is_true, truth
from pymc_dp.intervals.monotone import LIBM

Axis = int | tuple[int, ...] | None

SHARE_ERROR = 1e-12
"""Relative error allowed to shares e^a / (e^a + ...) for gaps up to 745 and up to 1000 terms."""


def _flags(x: Interval, axis: Axis) -> Any:
    return np.bitwise_or.reduce(x.flags, axis=axis)


@quiet
def total(x: Interval, axis: Axis) -> Interval:
    """Sum along axes, exact for whole numbers below 2^53.

    The error of a sum of n floats in any order is below n u / (1 - n u) times the sum of sizes [Higham 2002, 4.2].
    """
    low, slack = _rounded_sum(x.low, axis)
    high, slack_high = (low, slack) if x.low is x.high else _rounded_sum(x.high, axis)
    below, above = np.minimum(low, LARGEST) - slack, np.maximum(high, -LARGEST) + slack_high
    flags = _flags(x, axis)
    if (flags & INFINITE).any():
        below = np.fmax(np.where(np.isinf(x.low).any(axis), low, below), -np.inf)
        above = np.fmin(np.where(np.isinf(x.high).any(axis), high, above), np.inf)
        clash = attains(x, np.inf).any(axis) & attains(x, -np.inf).any(axis)
        flags = flags | flag(clash, NAN)
    return interval(below, above, flags)


def _rounded_sum(terms: Any, axis: Axis) -> tuple[Any, Any]:
    result, size = np.sum(terms, axis), np.sum(np.abs(terms), axis)
    exact = (terms == np.rint(terms)).all(axis) & (size < 2.0**53)
    n_terms = np.size(terms) // max(np.size(result), 1)
    return result, np.where(exact | (n_terms == 1), 0.0, n_terms * 2.0**-52 * size)


def _axes(n_axes: int, axis: Axis) -> tuple[int, ...]:
    return tuple(range(n_axes)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def _flattened(x: Interval, axis: Axis) -> Interval:
    """The axes in question as one last axis."""
    axes = _axes(x.low.ndim, axis)
    last = tuple(range(-len(axes), 0))
    kept = x.low.ndim - len(axes)
    moved = (np.moveaxis(part, axes, last) for part in (x.low, x.high, x.flags))
    return Interval(*(part.reshape(*part.shape[:kept], -1) for part in moved))


def _unflattened(part: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    axes = _axes(len(shape), axis)
    last = tuple(range(-len(axes), 0))
    moved = np.moveaxis(np.empty(shape, dtype=bool), axes, last).shape
    return np.moveaxis(part.reshape(moved), last, axes)


@quiet
def product(x: Interval, axis: Axis) -> Interval:
    """Product along axes, by halves."""
    x = _flattened(x, axis)
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        pairs = multiply(x[..., :half], x[..., half : 2 * half])
        x = _joined(pairs, x[..., 2 * half :])
    return x[..., 0] if x.shape[-1] else Interval.point(np.ones(x.shape[:-1]))


def _joined(x: Interval, y: Interval) -> Interval:
    parts = zip((x.low, x.high, x.flags), (y.low, y.high, y.flags), strict=True)
    return Interval(*(np.concatenate(pair, axis=-1) for pair in parts))


def maximum(x: Interval, axis: Axis) -> Interval:
    """Greatest entry along axes."""
    return settled(np.max(x.low, axis), np.max(x.high, axis), _flags(x, axis))


def minimum(x: Interval, axis: Axis) -> Interval:
    """Least entry along axes."""
    return settled(np.min(x.low, axis), np.min(x.high, axis), _flags(x, axis))


def all_true(x: Interval, axis: Axis) -> Interval:
    """Whether all entries along axes are true."""
    return truth(is_true(x).all(axis), ~is_false(x).any(axis))


def any_true(x: Interval, axis: Axis) -> Interval:
    """Whether any entry along axes is true."""
    return truth(is_true(x).any(axis), ~is_false(x).all(axis))


@quiet
def logsumexp(x: Interval, axis: Axis) -> Interval:
    """Log of the sum of exponentials along axes, which rises in every entry."""
    low, slack = _log_sum(x.low, axis)
    high, slack_high = (low, slack) if x.low is x.high else _log_sum(x.high, axis)
    below = np.maximum(np.minimum(low, LARGEST) - slack, np.max(x.low, axis))
    above = np.where(high == -np.inf, high, high + slack_high)
    infinite = attains(x, np.inf).any(axis) | attains(x, -np.inf).all(axis)
    return interval(below, above, _flags(x, axis) & NAN | flag(infinite, INFINITE))


def _log_sum(terms: Any, axis: Axis) -> tuple[Any, Any]:
    top = np.clip(np.max(terms, axis, keepdims=True), -LARGEST, LARGEST)
    scaled = np.sum(np.exp(terms - top), axis)
    top = top.reshape(np.shape(scaled))
    result = top + np.log(scaled)
    n_terms = np.size(terms) // max(np.size(result), 1)
    return result, LIBM * (np.abs(top) + np.abs(result) + 1) + n_terms * 2.0**-52


@quiet
def softmax(x: Interval, axis: Axis) -> Interval:
    """Shares e^x / sum of e^x along axes: each rises in its own entry and falls in the others."""
    low, high = _shares(x, axis, lambda top, rest: np.exp(-top) / (np.exp(-top) + rest))
    return interval(np.fmax(low, 0.0), np.fmin(high, 1.0), _share_flags(x, axis))


@quiet
def log_softmax(x: Interval, axis: Axis) -> Interval:
    """Logarithms of the shares."""
    low, high = _shares(x, axis, lambda top, rest: -(top + np.log1p(rest + np.expm1(-top))))
    infinite = flag(attains(x, -np.inf), INFINITE)
    return interval(np.fmax(low, -np.inf), np.fmin(high, 0.0), _share_flags(x, axis) | infinite)


def _share_flags(x: Interval, axis: Axis) -> Any:
    lost = attains(x, np.inf).any(axis, keepdims=True) | attains(x, -np.inf).all(axis, keepdims=True)
    flags = np.bitwise_or.reduce(x.flags & NAN, axis=axis, keepdims=True) | flag(lost, NAN)
    return np.broadcast_to(flags, x.shape)


def _shares(x: Interval, axis: Axis, function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Ends of a decreasing function of the others' gaps; own entry against all others at the opposite end."""
    flat = _flattened(x, axis)
    low = down(function(*_gaps(flat.low, flat.high, np.inf)), SHARE_ERROR)
    high = up(function(*_gaps(flat.high, flat.low, -np.inf)), SHARE_ERROR)
    return _unflattened(low, x.shape, axis), _unflattened(high, x.shape, axis)


def _gaps(own: Any, others: Any, lost: float) -> tuple[Any, Any]:
    """Per entry: the greatest gap by which another exceeds it (at least 0), and the others' terms relative to that."""
    gaps = others[..., None, :] - own[..., :, None]
    gaps = np.where(np.isnan(gaps), lost, gaps)
    gaps = np.where(np.eye(own.shape[-1], dtype=bool), -np.inf, gaps)
    top = np.clip(np.max(gaps, axis=-1), 0.0, LARGEST)
    return top, np.exp(gaps - top[..., None]).sum(axis=-1)
