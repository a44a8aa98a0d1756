"""One small check per kind of argument; each text names the value, the range and the way out."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable

from pymc_dp.errors import ArgumentError


def number(name: str, value: object) -> float:
    """Return `value` as a float; refuse strings, booleans, NaN and infinities."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")
    result = float(value)
    if not math.isfinite(result):
        raise ArgumentError(f"{name} must be finite, got {result}.")
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
        raise ArgumentError(f"{name} must be a whole number, got {value!r} of type {type(value).__name__}.")
    result = int(value)
    if result < low or (high is not None and result > high):
        span = f">= {low}" if high is None else f"in {low}..{high}"
        raise ArgumentError(f"{name} must be {span}, got {result}.")
    return result


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`."""
    known = list(options)
    if value not in known:
        raise ArgumentError(
            f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}.{nearest(value, known)}"
        )
    return str(value)


def choices(name: str, values: str | Iterable[object], options: Iterable[str]) -> list[str]:
    """Return one or several of `options` as a list."""
    known = list(options)
    given = [values] if isinstance(values, str) else list(values)
    if not given:
        raise ArgumentError(f"{name} must name at least one of {', '.join(known)}.")
    return [choice(name, value, known) for value in given]


def nearest(value: object, options: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest option, or an empty string."""
    close = difflib.get_close_matches(str(value), list(options), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
