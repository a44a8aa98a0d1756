"""Whole numbers that a discrete response may be, all of them or some that stand for those around them."""

from __future__ import annotations

import math

import numpy as np

from pymc_dp.errors import Problem, needs_bounds
from pymc_dp.inspection.rows import Array, Column

MOST_VALUES, MOST_SPREAD = 256, 2**14
"""Values of one discrete response that are gone through, up to `CLOSE`; values that bounds may hold."""
CLOSE = 4096
"""Values that bounds may hold up to which no more are gone through; beyond, more by the root of their number."""


def values_within(column: Column) -> Array | None:
    """Return all whole numbers up to the upper bound, from 0 if the lower one is not less; None for too many."""
    if column.bounds is None or not column.integer:
        return None
    low, high = min(int(column.bounds[0]), 0), int(column.bounds[1])
    return np.arange(low, high + 1) if 0 <= high - low < MOST_VALUES else None


def some_within(column: Column) -> Array | None:
    """Return values from bound to bound, closer together towards these, as counts vary less there; None for too many.

    Steps are less than a standard deviation of a Poisson count, and of a Binomial one whose n is the upper bound.
    """
    if column.bounds is None or not column.integer:
        return None
    low, high = int(column.bounds[0]), int(column.bounds[1])
    size = high - low
    if size >= MOST_SPREAD:
        return None
    at, most = np.arange(size + 1), MOST_VALUES * max(1.0, math.sqrt(size / CLOSE))
    found, step = at, 0.0
    while len(found) > most:
        step += 0.01
        steps = np.maximum(1, step * np.sqrt(at * (1 - at / size))).astype(int)
        places = [0]
        while places[-1] < size:
            places.append(min(size, places[-1] + int(steps[places[-1]])))
        found = np.array(places)
    return low + found


def widths_of(values: Array) -> Array:
    """Return the weights of a trapezoidal rule over whole numbers: 1 each where no value is left out."""
    around = np.concatenate([[values[0] - 1], values, [values[-1] + 1]])
    return np.asarray((around[2:] - around[:-2]) / 2)


def too_many(name: str, column: Column, most: int) -> Problem:
    """Say that values of a response cannot be enumerated, for want of bounds or by those it has."""
    if column.bounds is None:
        what = f"its values cannot be enumerated: it needs bounds that hold at most {most} values"
        remedy = f"{needs_bounds(column.name, '0')}."
    else:
        low, high = column.bounds
        wrong = "do not begin at 0" if high - low < most else f"hold more than the {most} values that are enumerated"
        what = f"its bounds ({low:.12g}, {high:.12g}) {wrong}"
        remedy = f"Give bounds of {column.name} that hold fewer values, from 0 on: count in larger units, as thousands."
    return Problem(where=name, what=what, remedy=remedy, kind="declaration")


__all__ = ["CLOSE", "MOST_SPREAD", "MOST_VALUES", "some_within", "too_many", "values_within", "widths_of"]
