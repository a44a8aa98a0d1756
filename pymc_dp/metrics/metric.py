"""Distances between rows: what they have in common, and their sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final, override

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import DomainError
from pymc_dp.kernel.relations import PER_UNIT

ROUNDING = 1 + 1e-12
"""Room for the rounding of a few operations."""


@final
@dataclass(frozen=True, kw_only=True)
class Extent:
    """What the values of one column in one row can be, after they were clamped.

    Attributes
    ----------
    low, high : float
        Ends of every value; infinite where there is none.
    size : int
        Values per row.
    norm : float or None
        Greatest Euclidean norm of all values of a row.

    Examples
    --------
    >>> Extent(low=0.0, high=2.0, size=4).l1, Extent(low=0.0, high=2.0, size=4, norm=1.0).l2
    (8.0, 2.0)
    """

    low: float
    high: float
    size: int = 1
    norm: float | None = None

    @property
    def l1(self) -> float:
        """Greatest sum of absolute differences between two rows."""
        box = product_up(difference_up(self.high, self.low), self.size)
        return box if self.norm is None else min(box, 2 * math.sqrt(self.size) * self.norm * ROUNDING)

    @property
    def l2(self) -> float:
        """Greatest Euclidean distance between two rows."""
        box = difference_up(self.high, self.low) * (1.0 if self.size == 1 else math.sqrt(self.size) * ROUNDING)
        return box if self.norm is None else min(box, 2 * self.norm)


class Metric(ABC):
    """A distance ρ between two rows; between two tables with equally many rows it is the sum over rows.

    Metrics of different columns add up: ``L1("age") + Hamming({"sex": 5})``.

    Examples
    --------
    >>> from pymc_dp.metrics import L1
    >>> years = L1({"age": 0.2})  # one unit is five years
    >>> years.distance({"age": np.array([30.0, 40.0])}, {"age": np.array([40.0, 40.0])}).tolist()
    [2.0, 0.0]
    >>> years.diameter({"age": Extent(low=20.0, high=70.0)})
    10.0
    """

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns that it is about; none where it is about whole rows."""

    @property
    def parts(self) -> tuple[Metric, ...]:
        """The metrics that it is a sum of."""
        return (self,)

    @abstractmethod
    def diameter(self, extents: Mapping[str, Extent]) -> float:
        """Return an upper bound on the distance of any two rows, given what each private column can be."""

    @abstractmethod
    def distance(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> np.ndarray:
        """Return ρ row by row, in units of ρ.

        Parameters
        ----------
        first, second : mapping of str to (n_rows, ...) array
            Private columns of two tables, by name, as they are used: clamped to the domain.

        Returns
        -------
        (n_rows,) array
        """

    def __add__(self, other: Metric) -> Metric:
        if not isinstance(other, Metric):
            return NotImplemented
        return Sum(parts=(*self.parts, *other.parts))

    @property
    def relation(self) -> str:
        """What a ledger calls a guarantee per unit of this metric."""
        return f"{PER_UNIT}{self}"


@final
@dataclass(frozen=True, init=False)
class Sum(Metric):
    """A sum of metrics of different columns; written ``one + other``.

    Examples
    --------
    >>> from pymc_dp.metrics import L1, Hamming
    >>> both = L1({"age": 0.2}) + Hamming({"sex": 5})
    >>> both.columns, both.diameter({"age": Extent(low=20.0, high=70.0), "sex": Extent(low=0.0, high=1.0)})
    (('sex', 'age'), 15.0)
    """

    summands: tuple[Metric, ...]

    def __init__(self, *, parts: tuple[Metric, ...]) -> None:
        names = [name for part in parts for name in part.columns]
        if any(not part.columns for part in parts):
            raise DomainError("Hamming() already covers whole rows; name its columns where metrics are added.")
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise DomainError(f"Metrics that are added must have different columns; {twice} occur twice.")
        object.__setattr__(self, "summands", tuple(sorted(parts, key=repr)))

    @property
    @override
    def columns(self) -> tuple[str, ...]:
        return tuple(name for part in self.summands for name in part.columns)

    @property
    @override
    def parts(self) -> tuple[Metric, ...]:
        return self.summands

    @override
    def diameter(self, extents: Mapping[str, Extent]) -> float:
        return sum_up(part.diameter(extents) for part in self.summands)

    @override
    def distance(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> np.ndarray:
        return np.sum([part.distance(first, second) for part in self.summands], axis=0)

    def __str__(self) -> str:
        return " + ".join(map(str, self.summands))

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.summands))

    def __reduce__(self) -> tuple[object, ...]:
        return _added, self.summands


def _added(*parts: Metric) -> Metric:
    return Sum(parts=parts)


def checked_weight(name: str, given: object) -> float:
    """Return units of ρ per unit of something, > 0."""
    weight = _validate.number(name, given)
    if not 1e-100 < weight < 1e100:
        raise DomainError(
            f"{name} must be > 0, in (1e-100, 1e100), got {weight}. What may be known to anyone goes into "
            "Domain(public=...) instead."
        )
    return weight


def sum_up(values: Iterable[float]) -> float:
    """Return a sum of numbers >= 0, each read as the decimal that it prints, rounded up."""
    given = list(values)
    return _up(sum(map(_decimal, given))) if all(map(math.isfinite, given)) else math.inf


def product_up(one: float, two: float) -> float:
    """Return such a product, of numbers > 0."""
    return _up(_decimal(one) * _decimal(two)) if math.isfinite(one) and math.isfinite(two) else math.inf


def difference_up(high: float, low: float) -> float:
    """Return such a difference."""
    return _up(_decimal(high) - _decimal(low)) if math.isfinite(high) and math.isfinite(low) else math.inf


def _decimal(value: float) -> Fraction:
    return Fraction(repr(float(value)))


def _up(value: Fraction | int) -> float:
    result = float(value)
    while math.isfinite(result) and _decimal(result) < value:
        result = math.nextafter(result, math.inf)
    return result


__all__ = [
    "ROUNDING",
    "Extent",
    "Metric",
    "Sum",
    "checked_weight",
    "product_up",
    "sum_up",
]
