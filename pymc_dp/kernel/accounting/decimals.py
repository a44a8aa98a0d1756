"""Exact arithmetic of privacy losses: a float stands for the decimal number that it prints.

0.1 as a float is 5.6e-18 more than one tenth, so ten spends of 0.1 would not fit a budget of 1.0. Everywhere in this
package a loss written 0.1 therefore *means* one tenth: sums and comparisons are exact on fractions, and a loss that is
computed is rounded up to a float whose printed decimal is not below it. No tolerance is needed and none is used.
"""

from __future__ import annotations

import math
from fractions import Fraction

_LONG = 10**1000
_GRID = 10**200


def decimal(value: float) -> Fraction:
    """Return the number that ``repr(value)`` shows, as a fraction; `value` must be finite."""
    return Fraction(repr(value))


def float_up(value: Fraction) -> float:
    """Return the least float whose decimal is >= `value` (inf where there is none).

    Printed decimals increase with the float, because each lies in its float's own rounding interval; so a step or two
    from the nearest float is enough.
    """
    try:
        result = float(value)
    except OverflowError:
        return math.inf
    while math.isfinite(result) and decimal(result) < value:
        result = math.nextafter(result, math.inf)
    return result


def bounded(value: Fraction) -> Fraction:
    """Return `value` where it can be written in some digits, or else a number hardly above it.

    Sums of fractions with different denominators grow by the digits of each, and Python refuses to write or to read
    numbers of more than 4300.
    """
    if value.denominator < _LONG:
        return value
    return Fraction(-(-value.numerator * _GRID // value.denominator), _GRID)


def float_down(value: Fraction) -> float:
    """Return the greatest float whose decimal is <= `value`; `value` must be >= 0 and within range."""
    result = float(value)
    while decimal(result) > value:
        result = math.nextafter(result, -math.inf)
    return result
