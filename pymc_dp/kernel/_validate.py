"""One small check per kind of argument of an event or a budget; each text names the value, the range and the way out.

`arguments` has the stricter ones of operations, which take Python's own numbers alone.
"""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from pathlib import Path

from pymc_dp.kernel.errors import ArgumentError

LARGEST = 2**63 - 1
"""Whole number that 64 bits hold."""
MANY = 10**9
"""Draws, steps and the like, of which nobody makes more."""


def shown(value: object) -> str:
    """Return a value as an error may show it: a plain one as it is written, of others, which may hold rows, the type.

    Examples
    --------
    >>> shown("abc"), shown(1.5), shown([1, 2]), shown(10**400)
    ("'abc'", '1.5', 'a list', 'a whole number of more than 19 digits')
    """
    if isinstance(value, numbers.Integral) and not -LARGEST <= int(value) <= LARGEST:
        return "a whole number of more than 19 digits"
    if value is None or isinstance(value, bool | numbers.Number | type):
        return repr(value)
    if isinstance(value, str | Path):
        return repr(value) if len(str(value)) <= 60 else f"{str(value)[:60]!r}..."
    article = "an" if type(value).__name__[0] in "aeiouAEIOU" else "a"
    return f"{article} {type(value).__name__}"


def got(value: object) -> str:
    """Return what was given instead of an argument of another kind."""
    plain = isinstance(value, str | numbers.Number) and not isinstance(value, type)
    return f"got {shown(value)}" + (f" of type {type(value).__name__}" if plain else "")


def number(name: str, value: object) -> float:
    """Return `value` as a float; refuse strings, booleans, NaN and infinities."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentError(f"{name} must be a number, {got(value)}. Give an int or a float.")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ArgumentError(f"{name} must be finite, got {shown(value)}. Give a number below 1e308.")
    return result


def epsilon(value: object, name: str = "epsilon") -> float:
    """Return a privacy loss > 0."""
    result = number(name, value)
    if result <= 0:
        raise ArgumentError(f"{name} must be > 0, got {result}. Common values lie between 0.1 (strong) and 3 (weak).")
    return result


def delta(value: object, name: str = "delta") -> float:
    """Return a failure probability in [0, 1)."""
    result = number(name, value)
    if not 0 <= result < 1:
        raise ArgumentError(f"{name} must lie in [0, 1), got {result}. Use 0, or a value far below 1 / number of rows.")
    return result


def integer(name: str, value: object, low: int = 1, high: int | None = None) -> int:
    """Return an int in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ArgumentError(f"{name} must be a whole number, {got(value)}. Give an int.")
    result = int(value)
    if result < low or (high is not None and result > high):
        span = f">= {low}" if high is None or (high == MANY and result < low) else f"in {low}..{high}"
        raise ArgumentError(f"{name} must be {span}, got {shown(result)}. Give a number in that range.")
    return result


def many(name: str, value: object, low: int = 1) -> int:
    """Return a number of draws, steps or the like."""
    return integer(name, value, low, MANY)


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`."""
    known = list(options)
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(
            f"{name} must be one of {', '.join(map(repr, known))}, got {shown(value)}.{nearest(value, known)}"
        )
    return str(value)


def nearest(value: object, options: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest option, or an empty string."""
    close = difflib.get_close_matches(value, list(options), n=1) if isinstance(value, str) else []
    return f" Did you mean {close[0]!r}?" if close else ""
