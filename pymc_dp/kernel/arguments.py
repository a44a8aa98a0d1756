"""Numbers as they come in: each becomes Python's own int or float, or is refused, before anything is computed of it.

NumPy's whole numbers wrap, and classes derived from int, float or str may answer differently each time they are asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pymc_dp.kernel.errors import ArgumentError


def finite(name: str, value: Any) -> float:
    """Return a finite number as a float; refuse what is none."""
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if math.isfinite(found):
            return found
    raise ArgumentError(f"{name} must be a finite number, got {_shown(value)}.")


def positive(**given: Any) -> list[float]:
    """Return finite numbers > 0 as floats, in order; refuse what is none."""
    found = []
    for name, value in given.items():
        found.append(finite(name, value))
        if not found[-1] > 0:
            raise ArgumentError(f"{name} must be finite and > 0, got {_shown(value)}.")
    return found


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return a whole number within [least, most] as an int; refuse what is none."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        found = int(value)
        if least <= found and (most is None or found <= most):
            return found
    span = f"of {least} or more" if most is None else f"from {least} to {most}"
    raise ArgumentError(f"{name} must be a whole number {span}, got {_shown(value)}.")


def flag(name: str, value: Any) -> bool:
    """Return True or False; refuse anything else."""
    if value is not True and value is not False:
        raise ArgumentError(f"{name} must be True or False, got {_shown(value)}.")
    return bool(value)


def word(name: str, value: Any, among: Iterable[str]) -> str:
    """Return one of some words; refuse anything else, and classes derived from str."""
    words = list(among)
    if type(value) is not str or value not in words:
        raise ArgumentError(f"{name} must be {' or '.join(map(repr, words))}, got {_shown(value)}.")
    return value


def finite_all(name: str, values: Any) -> tuple[float, ...]:
    """Return a tuple or list of finite numbers as floats; refuse what is none."""
    if type(values) not in (tuple, list):
        raise ArgumentError(f"{name} must be a tuple of numbers, got {_shown(values)}.")
    return tuple(finite(f"{name}[{place}]", value) for place, value in enumerate(values))


def keep(self: object, **fields: Any) -> None:
    """Put what was made of given fields into a frozen dataclass, in their place."""
    for name, value in fields.items():
        object.__setattr__(self, name, value)


def exact(least: int, most: int | None = None, /, **given: Any) -> None:
    """Refuse fields that are not exactly int, and within [least, most]."""
    for name, value in given.items():
        if type(value) is not int or value < least or (most is not None and value > most):
            span = f"of {least} or more" if most is None else f"from {least} to {most}"
            raise ArgumentError(f"{name} must be an int {span}, got {_shown(value)}.")


def exact_all(length: int | None, /, **given: Any) -> None:
    """Refuse fields that are not exactly tuples of ints, of a length (None: of any)."""
    for name, value in given.items():
        if type(value) is not tuple or length not in (None, len(value)) or any(type(each) is not int for each in value):
            many = "" if length is None else f"{length} "
            raise ArgumentError(f"{name} must be a tuple of {many}ints, got {_shown(value)}.")


def _shown(value: Any) -> str:
    """Return a number or a word as text; of anything else its class alone: it could hold rows."""
    plain = value is None or isinstance(value, bool | int | float | complex | str | np.number)
    return repr(value) if plain else f"a {type(value).__name__}"
