"""Rows over a Euclidean norm, scaled down to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BLOCK = 65_536
"""Rows that are scaled at once."""


def shorten(rows: Array, norm: float) -> None:
    """Scale rows of floats over a Euclidean norm down to it, in place; NaN becomes 0, infinities the largest floats.

    Notes
    -----
    The exact norm of what is left is at most `norm`, and no entry grows: with d entries a row, the computed norm is off
    by less than (d + 8) units in the last place, which are taken off the target (summation errors: Higham, 2002,
    equation 4.4), and squares cannot overflow, because entries are divided by the largest first.
    """
    flat = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
    target = norm * (1 - (flat.shape[1] + 8) * np.finfo(np.float64).eps)
    for start in range(0, len(flat), BLOCK):
        block = flat[start : start + BLOCK]
        block[:] = _toward_zero(_shortened(np.nan_to_num(block.astype(np.float64), nan=0.0), target), block.dtype)


def _shortened(rows: Array, target: float) -> Array:
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    unit = rows / np.where(largest > 0, largest, 1.0)
    length = np.sqrt((unit * unit).sum(axis=1, keepdims=True))
    scaled = np.minimum(np.abs(unit) * (target / np.maximum(length, 1.0)), np.abs(rows))
    return np.where(largest * length > target, np.copysign(scaled, rows), rows)


def _toward_zero(values: Array, dtype: Any) -> Array:
    """Cast without growing: rounding to the nearest narrower float may."""
    cast = values.astype(dtype)
    return np.where(np.abs(cast) > np.abs(values), np.nextafter(cast, dtype.type(0)), cast)


__all__ = ["shorten"]
