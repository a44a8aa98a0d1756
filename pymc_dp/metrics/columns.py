"""Distances in columns of numbers, and counts of columns that differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final, override

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import DomainError
from pymc_dp.kernel.relations import ROW, l1_text, named, times
from pymc_dp.metrics.metric import ROUNDING, Extent, Metric, checked_weight, product_up, sum_up

Weights = str | Iterable[str] | Mapping[str, float]


def _weights(name: str, given: Weights) -> Mapping[str, float]:
    if isinstance(given, str):
        given = {given: 1.0}
    elif not isinstance(given, Mapping):
        given = dict.fromkeys(_validate.names("columns", given), 1.0)
    if not given:
        raise DomainError(f"columns of {name} must be one column or more, got none. Write dp.metrics.{name}('age').")
    found = {}
    for column, weight in given.items():
        if not isinstance(column, str) or not column:
            raise DomainError(f"columns of {name} are called by name, got {_validate.shown(column)}. Write a text.")
        found[column] = checked_weight(f"columns[{column!r}]", weight)
    return MappingProxyType(dict(sorted(found.items())))


@dataclass(frozen=True, init=False, repr=False)
class _Weighted(Metric):
    """A metric with a weight for each of its columns."""

    weights: Mapping[str, float]

    def __init__(self, columns: Weights) -> None:
        object.__setattr__(self, "weights", _weights(type(self).__name__, columns))

    @property
    @override
    def columns(self) -> tuple[str, ...]:
        return tuple(self.weights)

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.weights.items())))

    def __repr__(self) -> str:
        plain = all(weight == 1 for weight in self.weights.values())
        names = list(self.weights)
        shown: Any = dict(self.weights) if not plain else names[0] if len(names) == 1 else names
        return f"{type(self).__name__}({shown!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (dict(self.weights),)

    def _differences(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[np.ndarray]:
        """Weighted differences of each column, as (n_rows, size) arrays."""
        return [
            weight * (_flat(first[name]).astype(np.float64) - _flat(second[name]).astype(np.float64))
            for name, weight in self.weights.items()
        ]


def _flat(values: Any) -> np.ndarray:
    array = np.asarray(values)
    return array.reshape(len(array), -1)


@final
class L1(_Weighted):
    """``Σ w |x - y|``: weighted absolute differences of columns of numbers.

    Parameters
    ----------
    columns : str, iterable of str, or mapping of str to float
        Names of numeric columns, and units of ρ per unit of each (1 by default).

    Examples
    --------
    >>> L1({"age": 0.2})  # ρ = 1 between people who are 5 years apart
    L1({'age': 0.2})
    >>> print(L1({"age": 0.2}).distance({"age": [30.0]}, {"age": [40.0]}))
    [2.]
    """

    @override
    def diameter(self, extents: Mapping[str, Extent]) -> float:
        return sum_up(product_up(weight, extents[name].l1) for name, weight in self.weights.items())

    @override
    def distance(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> np.ndarray:
        return np.sum([np.abs(item).sum(axis=1) for item in self._differences(first, second)], axis=0)

    def __str__(self) -> str:
        return l1_text(self.weights)


@final
class L2(_Weighted):
    """``√(Σ (w (x - y))²)``: the Euclidean distance in columns of numbers.

    Parameters
    ----------
    columns : str, iterable of str, or mapping of str to float
        Names of numeric columns, and units of ρ per unit of each (1 by default).

    Examples
    --------
    >>> print(L2(["x", "y"]))
    √(Δx² + Δy²)
    """

    @override
    def diameter(self, extents: Mapping[str, Extent]) -> float:
        sides = [product_up(weight, extents[name].l2) for name, weight in self.weights.items()]
        return sides[0] if len(sides) == 1 else math.hypot(*sides) * ROUNDING

    @override
    def distance(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> np.ndarray:
        return np.sqrt(np.sum([(item**2).sum(axis=1) for item in self._differences(first, second)], axis=0))

    def __str__(self) -> str:
        terms = [
            f"Δ{named(name)}²" if weight == 1 else f"({weight!r} Δ{named(name)})²"
            for name, weight in self.weights.items()
        ]
        return f"√({' + '.join(terms)})"


@final
class Hamming(_Weighted):
    """``Σ w [x ≠ y]``: how many columns of a row differ, each counted with its weight.

    Parameters
    ----------
    columns : str, iterable of str, mapping of str to float, or None
        Names of columns of any kind, and the distance between any two of their values (1 by default). None: whole rows,
        at distance 1 where anything private differs; per unit of ρ is then per row.

    Examples
    --------
    >>> print(Hamming({"sex": 1, "illness": 5}))
    5.0 [illness ≠] + [sex ≠]
    """

    def __init__(self, columns: Weights | None = None) -> None:
        if columns is None:
            object.__setattr__(self, "weights", MappingProxyType({}))
        else:
            super().__init__(columns)

    @override
    def diameter(self, extents: Mapping[str, Extent]) -> float:
        return sum_up(self.weights.values()) if self.weights else 1.0

    @override
    def distance(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> np.ndarray:
        names = self.weights or first
        differ = {name: (_flat(first[name]) != _flat(second[name])).any(axis=1) for name in names}
        if not self.weights:
            return np.any(list(differ.values()), axis=0).astype(np.float64)
        return np.sum([weight * differ[name] for name, weight in self.weights.items()], axis=0)

    def __str__(self) -> str:
        if not self.weights:
            return f"[{ROW} ≠]"
        return " + ".join(times(weight, f"[{named(name)} ≠]") for name, weight in self.weights.items())

    def __repr__(self) -> str:
        return super().__repr__() if self.weights else "Hamming()"

    def __reduce__(self) -> tuple[object, ...]:
        return Hamming, (dict(self.weights) or None,)


__all__ = ["L1", "L2", "Hamming"]
