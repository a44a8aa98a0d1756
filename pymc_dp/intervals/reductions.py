"""Sums, products, extremes and logical combinations over axes of an expression."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.tensor.math import All, Max, Min, Prod, Sum
from pytensor.tensor.math import Any as AnyTrue

from pymc_dp.intervals import rules
from pymc_dp.intervals.expression import Expression, reduced
from pymc_dp.intervals.interval import Interval, unknown


def reduction_of(name: str, axes: tuple[int, ...], given: Expression) -> Expression:
    """Return a named reduction over axes, which do not count the axis of boxes."""
    places = tuple(axis + 1 if axis >= 0 else axis for axis in axes)
    value, slopes = _REDUCERS[name]
    return reduced(
        name,
        lambda x: value(x, places),
        lambda x, out, slope: slopes(x, out, slope, places),
        given,
        axes,
    )


def _sum_slopes(x: Interval, out: Interval, slope: Interval, places: tuple[int, ...]) -> Interval:
    return rules.total(slope.broadcast_to((max(slope.shape[0], x.shape[0]), *x.shape[1:])), places)


def _extreme_slopes(x: Interval, out: Interval, slope: Interval, places: tuple[int, ...]) -> Interval:
    """Slopes of a largest or least entry lie between those of the entries."""
    wide = slope.broadcast_to((max(slope.shape[0], x.shape[0]), *x.shape[1:]))
    return Interval(
        wide.low.min(axis=places),
        wide.high.max(axis=places),
        np.bitwise_or.reduce(wide.flags, axis=places[0]) if len(places) == 1 else wide.flags.max(axis=places),
    )


def _no_slopes(x: Interval, out: Interval, slope: Interval, places: tuple[int, ...]) -> Interval:
    """Nothing is known but where the result is constant on the box."""
    decided = (out.low == out.high) & (out.flags == 0)
    nothing = unknown(out.shape)
    return Interval(
        np.where(decided, 0.0, nothing.low),
        np.where(decided, 0.0, nothing.high),
        np.where(decided, 0, nothing.flags).astype(np.uint8),
    )


_REDUCERS: dict[str, tuple[Any, Any]] = {
    "Sum": (rules.total, _sum_slopes),
    "Prod": (rules.product, _no_slopes),
    "Max": (rules.maximum, _extreme_slopes),
    "Min": (rules.minimum, _extreme_slopes),
    "All": (rules.all_true, _no_slopes),
    "Any": (rules.any_true, _no_slopes),
}
REDUCTIONS: tuple[tuple[Any, str], ...] = (
    (Sum, "Sum"),
    (Prod, "Prod"),
    (Max, "Max"),
    (Min, "Min"),
    (All, "All"),
    (AnyTrue, "Any"),
)

__all__ = ["REDUCTIONS", "reduction_of"]
