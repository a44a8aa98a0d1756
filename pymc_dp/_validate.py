"""One small check per kind of argument; each text names the value, the range and the way out."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dp.errors import ArgumentError

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


def _got(value: object) -> str:
    """Return what was given instead of an argument of another kind."""
    plain = isinstance(value, str | numbers.Number) and not isinstance(value, type)
    return f"got {shown(value)}" + (f" of type {type(value).__name__}" if plain else "")


def number(name: str, value: object) -> float:
    """Return `value` as a float; refuse strings, booleans, NaN and infinities."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ArgumentError(f"{name} must be a number, {_got(value)}. Give an int or a float.")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ArgumentError(f"{name} must be finite, got {shown(value)}. Give a number below 1e308.")
    return result


def within(name: str, value: object, low: float = -math.inf, high: float = math.inf, *, ends: bool = True) -> float:
    """Return a number in [low, high], or in (low, high) without `ends`."""
    result = number(name, value)
    if not (low <= result <= high if ends else low < result < high):
        left, right = "[]" if ends else "()"
        span = f"in {left}{low:g}, {high:g}{right}"
        if math.isinf(high):
            span = f"{'>=' if ends else '>'} {low:g}"
        raise ArgumentError(f"{name} must be {span}, got {result}. Give a number in that range.")
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
        raise ArgumentError(f"{name} must be a whole number, {_got(value)}. Give an int.")
    result = int(value)
    if result < low or (high is not None and result > high):
        span = f">= {low}" if high is None or (high == MANY and result < low) else f"in {low}..{high}"
        raise ArgumentError(f"{name} must be {span}, got {shown(result)}. Give a number in that range.")
    return result


def many(name: str, value: object, low: int = 1) -> int:
    """Return a number of draws, steps or the like."""
    return integer(name, value, low, MANY)


def flag(name: str, value: object) -> bool:
    """Return a truth value, and nothing that only looks like one."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} must be True or False, {_got(value)}. Give one of them.")
    return bool(value)


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`."""
    known = list(options)
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(
            f"{name} must be one of {', '.join(map(repr, known))}, got {shown(value)}.{nearest(value, known)}"
        )
    return str(value)


def choices(name: str, values: object, options: Iterable[str]) -> list[str]:
    """Return one or several of `options` as a list."""
    known = list(options)
    given = [values] if isinstance(values, str) else several(name, values)
    if not given:
        raise ArgumentError(f"{name} must name at least one of {', '.join(known)}.")
    return [choice(name, value, known) for value in given]


def nearest(value: object, options: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the closest option, or an empty string."""
    close = difflib.get_close_matches(value, list(options), n=1) if isinstance(value, str) else []
    return f" Did you mean {close[0]!r}?" if close else ""


def several(name: str, values: object) -> list[Any]:
    """Return the members of a collection as a list: of a sequence, an array or a set, and of no text."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | type):
        raise ArgumentError(f"{name} must be a list or another collection, {_got(values)}. Write {name}=[...].")
    try:
        return list(values)
    except TypeError:  # an array without dimensions only looks like a collection
        raise ArgumentError(f"{name} must be a list or another collection, {_got(values)}.") from None


def pair(name: str, value: object, *, ends: str = "(low, high)") -> tuple[Any, Any]:
    """Return two things."""
    try:
        first, second = several(name, value)
    except (ArgumentError, ValueError):
        raise ArgumentError(f"{name} must be a pair {ends}, {_got(value)}. Write {ends}.") from None
    return first, second


def names(name: str, values: object) -> list[str]:
    """Return a collection of names as a list."""
    if isinstance(values, str):
        raise ArgumentError(
            f"{name} must be a collection of names, got the string {shown(values)}. Write {name}=({values[:60]!r},)."
        )
    return [text(f"each of {name}", value) for value in several(name, values)]


def array(name: str, value: object, axes: Iterable[int], *, integers: bool = False) -> np.ndarray[Any, Any]:
    """Return an array of numbers, or of whole numbers, with one of several numbers of axes."""
    kind, allowed = ("iub" if integers else "iubf"), tuple(axes)
    try:
        found = np.asarray(value)
    except (TypeError, ValueError):
        found = np.asarray(None)
    if found.dtype.kind not in kind or found.ndim not in allowed:
        what = f"{'whole ' * integers}numbers with {' or '.join(map(str, allowed))} axes"
        raise ArgumentError(f"{name} must be an array of {what}, {_got(value)} of {found.ndim} axes.")
    return found


def function(name: str, value: object) -> Callable[..., Any]:
    """Return a function."""
    if not callable(value):
        raise ArgumentError(f"{name} must be a function, {_got(value)}. Pass it without calling it.")
    return value


def text(name: str, value: object) -> str:
    """Return a text that is not empty: the name of something."""
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{name} must be a name, a text that is not empty, got {shown(value)}.")
    return value


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """Return a mapping whose keys are names."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{name} must map names to values, {_got(value)}. Write {name}={{'...': ...}}.")
    for key in value:
        if not isinstance(key, str):
            raise ArgumentError(f"{name} must map names to values, and {shown(key)} is no name. Write it as a text.")
    return value


def instance[Kind](name: str, value: object, kind: type[Kind], way_out: str) -> Kind:
    """Return `value` if it is of a kind; `way_out` says how to make one."""
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} must be a {kind.__name__}, {_got(value)}. {way_out}")
    return value


def folder(name: str, target: Path) -> None:
    """Refuse a path whose folder does not exist: nothing could be written there."""
    if not target.parent.is_dir():
        raise ArgumentError(f"{name} lies in a folder that does not exist, {shown(str(target.parent))}. Make it first.")


def path(name: str, value: object, suffixes: Iterable[str] = ()) -> Path:
    """Return a path, with one of `suffixes` if there are any."""
    if not isinstance(value, str | Path):
        raise ArgumentError(f"{name} must be a path, {_got(value)}. Give a str or a pathlib.Path.")
    found, known = Path(value), list(suffixes)
    if known and not any(found.name.endswith(suffix) for suffix in known):
        raise ArgumentError(f"{name} must end in {' or '.join(known)}, got {shown(found.name)}. Rename the file.")
    return found
