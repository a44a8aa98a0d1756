"""One small check per kind of argument; each text names the value, the range and the way out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dp.errors import ArgumentError
from pymc_dp.kernel._validate import LARGEST as LARGEST
from pymc_dp.kernel._validate import MANY as MANY
from pymc_dp.kernel._validate import choice as choice
from pymc_dp.kernel._validate import delta as delta
from pymc_dp.kernel._validate import epsilon as epsilon
from pymc_dp.kernel._validate import got as got
from pymc_dp.kernel._validate import integer as integer
from pymc_dp.kernel._validate import many as many
from pymc_dp.kernel._validate import nearest as nearest
from pymc_dp.kernel._validate import number as number
from pymc_dp.kernel._validate import shown as shown


def instance[Kind](name: str, value: object, kind: type[Kind], way_out: str) -> Kind:
    """Return `value` if it is of a kind; `way_out` says how to make one."""
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} must be a {kind.__name__}, {got(value)}. {way_out}")
    return value


def several(name: str, values: object) -> list[Any]:
    """Return the members of a collection as a list: of a sequence, an array or a set, and of no text."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | type):
        raise ArgumentError(f"{name} must be a list or another collection, {got(values)}. Write {name}=[...].")
    try:
        return list(values)
    except TypeError:  # an array without dimensions only looks like a collection
        raise ArgumentError(f"{name} must be a list or another collection, {got(values)}.") from None


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


def flag(name: str, value: object) -> bool:
    """Return a truth value, and nothing that only looks like one."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} must be True or False, {got(value)}. Give one of them.")
    return bool(value)


def choices(name: str, values: object, options: Iterable[str]) -> list[str]:
    """Return one or several of `options` as a list."""
    known = list(options)
    given = [values] if isinstance(values, str) else several(name, values)
    if not given:
        raise ArgumentError(f"{name} must name at least one of {', '.join(known)}.")
    return [choice(name, value, known) for value in given]


def pair(name: str, value: object, *, ends: str = "(low, high)") -> tuple[Any, Any]:
    """Return two things."""
    try:
        first, second = several(name, value)
    except (ArgumentError, ValueError):
        raise ArgumentError(f"{name} must be a pair {ends}, {got(value)}. Write {ends}.") from None
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
        raise ArgumentError(f"{name} must be an array of {what}, {got(value)} of {found.ndim} axes.")
    return found


def function(name: str, value: object) -> Callable[..., Any]:
    """Return a function."""
    if not callable(value):
        raise ArgumentError(f"{name} must be a function, {got(value)}. Pass it without calling it.")
    return value


def text(name: str, value: object) -> str:
    """Return a text that is not empty: the name of something."""
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{name} must be a name, a text that is not empty, got {shown(value)}.")
    return value


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """Return a mapping whose keys are names."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{name} must map names to values, {got(value)}. Write {name}={{'...': ...}}.")
    for key in value:
        if not isinstance(key, str):
            raise ArgumentError(f"{name} must map names to values, and {shown(key)} is no name. Write it as a text.")
    return value


def folder(name: str, target: Path) -> None:
    """Refuse a path whose folder does not exist: nothing could be written there."""
    if not target.parent.is_dir():
        raise ArgumentError(f"{name} lies in a folder that does not exist, {shown(str(target.parent))}. Make it first.")


def path(name: str, value: object, suffixes: Iterable[str] = ()) -> Path:
    """Return a path, with one of `suffixes` if there are any."""
    if not isinstance(value, str | Path):
        raise ArgumentError(f"{name} must be a path, {got(value)}. Give a str or a pathlib.Path.")
    found, known = Path(value), list(suffixes)
    if known and not any(found.name.endswith(suffix) for suffix in known):
        raise ArgumentError(f"{name} must end in {' or '.join(known)}, got {shown(found.name)}. Rename the file.")
    return found
