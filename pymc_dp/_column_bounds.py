"""Public ranges as a domain declares them: a pair of one column, or a pair for each column of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp import _validate
from pymc_dp.errors import DomainError

Pair = tuple[float, float]
GivenBounds = Pair | Sequence[Pair] | npt.NDArray[Any]
"""``(low, high)``, or one such pair per column; of one of several columns both ends may be the same."""
DeclaredBounds = Pair | tuple[Pair, ...]
"""The same, checked."""


def checked_bounds(name: str, value: Any) -> DeclaredBounds:
    """Return the bounds that a domain gives a column; raise for what is none.

    Raises
    ------
    ArgumentError
        For what is neither a pair of numbers nor a list of such pairs.
    DomainError
        For a low end above its high end, or equal to it where no other column leaves room.
    """
    argument = f"bounds[{name!r}]"
    if not _lists_pairs(value):
        low, high = _ends(argument, value)
        if low >= high:
            raise DomainError(f"{argument} must have low < high, got ({low}, {high}).")
        return low, high
    pairs = tuple(_ends(f"{argument}[{place}]", item) for place, item in enumerate(value))
    for place, (low, high) in enumerate(pairs):
        if low > high:
            raise DomainError(
                f"{argument}[{place}] must have low <= high, got ({low}, {high}). Equal ends make a constant of it, "
                "the same public number in every row."
            )
    if all(low == high for low, high in pairs):
        raise DomainError(
            f"{argument} leaves every column a single value, got {written(pairs)}. Give a column that varies a range, "
            "and leave an array of constants out of the model."
        )
    return pairs


def _lists_pairs(value: Any) -> bool:
    """Whether bounds are a list of pairs rather than one: some member of them is a collection itself."""
    if not isinstance(value, list | tuple | np.ndarray) or (isinstance(value, np.ndarray) and not value.ndim):
        return False
    return any(isinstance(item, list | tuple) or (isinstance(item, np.ndarray) and item.ndim > 0) for item in value)


def _ends(argument: str, value: Any) -> Pair:
    low, high = _validate.pair(argument, value)
    return _validate.number(f"{argument} low", low), _validate.number(f"{argument} high", high)


def pairs_of(bounds: DeclaredBounds) -> tuple[Pair, ...]:
    """Return the pairs of bounds that have one per column; none of a single pair.

    Examples
    --------
    >>> pairs_of(((1.0, 1.0), (-4.0, 4.0))), pairs_of((0.0, 1.0))
    (((1.0, 1.0), (-4.0, 4.0)), ())
    """
    return tuple(item for item in bounds if isinstance(item, tuple))


def hull_of(bounds: DeclaredBounds) -> Pair:
    """Return the range that holds the values of every column.

    Examples
    --------
    >>> hull_of(((1.0, 1.0), (-4.0, 4.0))), hull_of((0.0, 1.0))
    ((-4.0, 4.0), (0.0, 1.0))
    """
    lows = [item[0] if isinstance(item, tuple) else item for item in bounds]
    highs = [item[1] if isinstance(item, tuple) else item for item in bounds]
    return min(lows), max(highs)


def written(bounds: DeclaredBounds) -> str:
    """Write bounds as a domain is given them.

    Examples
    --------
    >>> written(((1.0, 1.0), (-4.0, 4.0))), written((0.0, 1.0))
    ('[(1, 1), (-4, 4)]', '(0, 1)')
    """
    pairs = pairs_of(bounds)
    texts = ["({:g}, {:g})".format(*pair) for pair in pairs or [hull_of(bounds)]]
    return f"[{', '.join(texts)}]" if pairs else texts[0]


def each_of(n_axes: int) -> str:
    """Return what a text adds to one pair of bounds of an array with so many axes: nothing unless it has columns."""
    return ", or a list with a pair for each of its columns" if n_axes == 2 else ""


__all__ = ["DeclaredBounds", "GivenBounds", "Pair", "checked_bounds", "each_of", "hull_of", "pairs_of", "written"]
