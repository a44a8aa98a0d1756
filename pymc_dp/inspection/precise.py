"""Numbers that nobody would choose: more digits than people write, and no well-known constant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pymc_dp.inspection.rows import Array

QUESTION = "looks computed: was it computed from the rows?"
WRITTEN_DIGITS, KNOWN_DIGITS = 5, 3
"""Significant digits of a number that people choose, and of one that they take a root, a logarithm or a power of."""
LARGEST_PART = 60
"""Of a fraction such as 1/3: its numerator and its denominator."""
POWERS = range(2, 11)
CONSTANTS = (
    *(math.pi, 2 * math.pi, math.pi / 2, math.sqrt(2 * math.pi), math.e, math.sqrt(2), math.sqrt(3), math.sqrt(5)),
    *(math.log(2), math.log(10), math.log(2 * math.pi), math.log(2 * math.pi) / 2, math.pi / math.sqrt(3)),
    *(1.2815515655446004, 1.6448536269514722, 1.959963984540054, 2.3263478740408408, 2.5758293035489004),  # of a normal
)
"""Numbers that people also write cut to some digits: the last are quantiles of the standard normal distribution."""


def question(numbers: npt.ArrayLike) -> str:
    """Return what to ask about public numbers, in brackets, or an empty text."""
    return f" ({QUESTION})" if looks_computed(np.asarray(numbers)) else ""


def looks_computed(array: Array) -> bool:
    """Return whether a float of an array has more digits than a person would give it.

    Silent are numbers of at most five significant digits, fractions of small whole numbers, roots, powers, logarithms
    and exponentials of simple numbers, multiples of π, usual constants however they are cut, and arrays that are
    evenly spaced between such numbers.

    Parameters
    ----------
    array : array of any shape
        Public. Only floats are looked at, in the precision that they are given in.

    Examples
    --------
    >>> looks_computed(np.array(-0.0736625)), looks_computed(np.array([0.5, 1 / 3, math.sqrt(2)]))
    (True, False)
    """
    array = np.asarray(array)
    if array.dtype.kind != "f":
        return False
    values = np.unique(np.abs(array[np.isfinite(array)]))
    if values.ndim == 1 and len(values) > 2 and _evenly_spaced(values):
        values = values[[0, -1]]
    return not all(_simple(value) for value in values)


def _simple(value: np.floating) -> bool:
    """Whether somebody may have chosen `value`, >= 0."""
    if len(_digits(np.float64(value))) <= len(_digits(value)):
        value = np.float64(value)  # PyTensor holds what it can in fewer bits: nothing was rounded
    tolerance = 8 * float(np.finfo(value.dtype).eps)
    number = float(value)
    if number == 0 or len(_digits(value)) <= WRITTEN_DIGITS or _is_binary(number) or _is_cut_constant(value):
        return True
    return any(_chosen(origin, tolerance * max(1.0, factor)) for origin, factor in _origins(number))


def _origins(number: float) -> Iterator[tuple[float, float]]:
    """Yield what `number` or its reciprocal may have been made of, and by how much relative errors grow on the way."""
    yield number, 1.0
    yield from ((number ** (1 / power), 1.0) for power in POWERS)
    if 1e-30 < number < 1e30:
        yield from ((number**power, power) for power in POWERS)
        yield from ((multiple, 3.0) for multiple in (number / math.pi, number * math.pi, number**2 * math.pi))
        yield number**2 / math.pi, 3.0
    if number < 100:
        bases = math.exp(number), math.exp(2 * number), 2**number, 10**number
        yield from ((base, 5 * number) for base in bases)
    yield abs(math.log(number)), 1 / max(abs(math.log(number)), 1e-300)


def _chosen(number: float, tolerance: float) -> bool:
    """Whether `number` or its reciprocal is, within a relative error, of few digits or a fraction of small numbers."""
    if not 1e-100 < number < 1e100 or tolerance > 1e-4:
        return False
    if any(abs(float(f"{one:.{KNOWN_DIGITS - 1}e}") - one) <= tolerance * one for one in (number, 1 / number)):
        return True
    near = Fraction(min(number, 1 / number)).limit_denominator(LARGEST_PART)
    return abs(float(near) - min(number, 1 / number)) <= tolerance * float(near)


def _is_binary(number: float) -> bool:
    """Whether `number` is a whole number below 256 times a power of two: halves of halves."""
    return math.frexp(number)[0] * 256 % 1 == 0


def _is_cut_constant(value: np.floating) -> bool:
    """Whether `value` is a usual constant, rounded or cut to as many digits as it has."""
    digits, number = _digits(value), float(value)
    for constant in CONSTANTS:
        if abs(number - constant) < 1e-3 * constant:
            return abs(number - constant) <= 10.0 ** (1 + math.floor(math.log10(constant)) - len(digits))
    return False


def _digits(value: np.floating) -> str:
    """Significant digits of the shortest text that stands for `value` in its own precision."""
    mantissa = np.format_float_scientific(value).partition("e")[0]
    return mantissa.replace(".", "").rstrip("0") or "0"


def _evenly_spaced(values: Array) -> bool:
    steps = np.diff(values.astype(np.float64))
    room = 8 * float(np.finfo(values.dtype).eps) * float(values[-1])
    return float(np.ptp(steps)) <= room


__all__ = ["QUESTION", "looks_computed", "question"]
