"""Boxes of a branch and bound, and how they are cut in two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dp.intervals.interval import Array


@dataclass
class Boxes:
    """Boxes with their bounds, how much each scalar may still change the value, and where to look for a large one."""

    low: Array
    high: Array
    upper: Array
    effect: Array
    centre: Array

    def take(self, places: Array) -> Boxes:
        """Return some of them."""
        return Boxes(*(part[places] for part in vars(self).values()))

    def joined(self, other: Boxes) -> Boxes:
        """Return these and others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Boxes(*(np.concatenate(pair) for pair in pairs))


def halves(low: Array, high: Array, effect: Array, integer: Array) -> tuple[Array, Array, Array]:
    """Cut boxes in two along the scalar of the largest effect, one pair after the other; tell which cannot be cut.

    Parameters
    ----------
    low, high, effect : (n_boxes, n_scalars) arrays
    integer : (n_scalars,) bool array
        Scalars that are cut between whole numbers.
    """
    axis = np.argmax(effect, axis=1)
    rows = np.arange(len(axis))
    left_end, right_end = low[rows, axis], high[rows, axis]
    between = middle(left_end, right_end)
    whole = integer[axis]
    left = np.where(whole, np.floor(between), between)
    right = np.where(whole, left + 1, between)
    stuck = (effect[rows, axis] <= 0) | (~whole & ((between <= left_end) | (between >= right_end)))
    stuck |= left_end >= right_end
    kept = ~stuck
    lows, highs = low[kept].repeat(2, axis=0), high[kept].repeat(2, axis=0)
    pairs = np.arange(kept.sum()) * 2
    highs[pairs, axis[kept]] = left[kept]
    lows[pairs + 1, axis[kept]] = right[kept]
    return lows, highs, stuck


def middle(low: Array, high: Array) -> Array:
    """Halve an interval; by ratios where it spans several, and away from infinite ends."""
    with np.errstate(all="ignore"):
        plain = low / 2 + high / 2
        ratio = np.where(low > 0, np.sqrt(low) * np.sqrt(high), -np.sqrt(-low) * np.sqrt(-high))
        wide = ((low > 0) & (high > 8 * low)) | ((high < 0) & (low < 8 * high))
        above = np.where(low < 0, 0.0, np.maximum(2 * low, 1.0))
        below = np.where(high > 0, 0.0, np.minimum(2 * high, -1.0))
    found = np.where(wide & np.isfinite(ratio), ratio, plain)
    found = np.where(np.isinf(high) & np.isfinite(low), np.where(low < 0, 0.0, above), found)
    found = np.where(np.isinf(low) & np.isfinite(high), np.where(high > 0, 0.0, below), found)
    return np.where(np.isinf(low) & np.isinf(high), 0.0, found)


__all__ = ["Boxes", "halves", "middle"]
