"""The columns of a row and the public set that the values of each are clamped to, whatever a row holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.tensor.basic import get_underlying_scalar_constant_value
from pytensor.tensor.exceptions import NotScalarConstantError

from pymc_dp.inspection.rows import Array, array_leaves
from pymc_dp.inspection.stated import statement_of

Bounds = tuple[float, float]
Outside = Literal["first", "nearest"]
Implied = tuple[float, Outside]
"""Greatest value that a model gives a column a meaning for, the least being 0, and where values outside go."""
BLOCK = 65_536
"""Rows that are scaled at once."""
LIMITS = {"binomial": (0,), "beta_binomial": (0,), "hypergeometric": (0, 2)}
"""Distributions of counts, and which of their parameters no count exceeds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowColumn:
    """An array of the table: axis 0 counts rows.

    Attributes
    ----------
    name : str
    leaf : Variable
        The constant or shared variable that holds it.
    bounds : (low, high) or None
        Where every value is clamped to, NaN going to the middle; numbers that the dtype of the column can hold. None:
        any number is held, NaN going to 0 and infinities to the largest floats, for proofs know of numbers only.
    outside : {"first", "nearest"}
        Where values outside the bounds go: to the low one (an index, a category) or to the nearest one.
    norm : float or None
        Greatest Euclidean norm of a row; longer rows are scaled down to it.
    public : bool
        Whether the values of the column need no protection. Without bounds in the domain, they are then the range of
        the values held.
    aliases : tuple of str
        What else it is called in the model.
    """

    name: str
    leaf: Variable
    bounds: Bounds | None
    outside: Outside = "nearest"
    norm: float | None = None
    public: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def integer(self) -> bool:
        """Whether values are whole numbers."""
        return np.dtype(self.leaf.type.dtype).kind in "iub"

    @property
    def limited(self) -> bool:
        """Whether something keeps private values from being numbers of any size."""
        return self.public or self.integer or self.bounds is not None or self.norm is not None

    def clamped(self, values: Array) -> Array:
        """Return a contiguous copy of `values` with the dtype of the column, within its bounds and its norm.

        No warning is given, whatever the values: it would show them.
        """
        with np.errstate(all="ignore"):
            held = np.array(self._within(values), dtype=self.leaf.type.dtype, order="C")
            if self.bounds is not None and held.dtype.kind == "f":
                low, high = self.bounds
                np.clip(held, low, high, out=held)  # NaN stays
                np.copyto(held, low / 2 + high / 2, where=np.isnan(held))
            if self.norm is not None:
                shorten(held, self.norm)
        return held

    def _within(self, values: Array) -> Array:
        kind = np.dtype(self.leaf.type.dtype).kind
        if self.bounds is None and kind == "f":
            return np.nan_to_num(values)
        if self.bounds is None or kind in "bf":
            return values
        low, high = self.bounds
        if self.outside == "first":
            return np.where((values >= int(low)) & (values <= int(high)), values, int(low))
        return np.clip(values, int(low), int(high))


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


def fitted(bounds: Bounds, dtype: Any) -> Bounds | None:
    """Bounds moved inwards to values of a dtype; None where it has none between them."""
    low, high = bounds
    if dtype.kind in "iub":
        least, most = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        ends: Bounds = max(math.ceil(low), least), min(math.floor(high), most)
        return ends if ends[0] <= ends[1] else None
    with np.errstate(over="ignore"):
        first, last = dtype.type(low), dtype.type(high)
    if float(first) < low:
        first = np.nextafter(first, dtype.type(np.inf))
    if float(last) > high:
        last = np.nextafter(last, dtype.type(-np.inf))
    return (float(first), float(last)) if first <= last else None


def implied_by(rv: Variable) -> list[Implied]:
    """Return the range of what a random variable may be, where it is 0..n with n known beforehand."""
    statement = statement_of(rv)
    if statement is not None:
        least, most = statement.values or (None, None)
        return [(float(most), "nearest")] if most is not None and least == 0 else []
    name, op = getattr(rv.owner.op, "name", None), rv.owner.op
    if name == "bernoulli":
        return [(1.0, "first")]
    if name == "categorical":
        levels = op.dist_params(rv.owner)[0].type.shape[-1]
        return [(float(levels - 1), "first")] if levels else []
    parameters = op.dist_params(rv.owner) if name in LIMITS else ()
    ends = [_constant(parameters[place]) for place in LIMITS.get(str(name), ())]
    known = [end for end in ends if end is not None and end >= 0]
    return [(min(known), "nearest")] if known else []


def _constant(parameter: Variable) -> float | None:
    """Value of a constant of one element. An array of equal numbers may be a column, whose values must not be read."""
    if list(array_leaves([parameter], single=True)):
        return None
    try:
        return float(get_underlying_scalar_constant_value(parameter))
    except NotScalarConstantError:
        return None


__all__ = ["Bounds", "Implied", "Outside", "RowColumn", "fitted", "implied_by", "shorten"]
