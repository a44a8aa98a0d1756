"""Compiled loops of walks by batches: secret batches, whole numbers within a norm, their sums, noise.

None is compiled with fast arithmetic: what a row adds would depend on where it stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.rowmap import BLOCK

FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False}
MOST_SQUARES = 2**14
"""Entries whose squares, of whole numbers up to `UNITS`, add up to less than 2^62 by any order."""
SHORTENED = UNITS * (1 - 1e-9)
MOST_NOISE = 2.0**62


class Numbers(NamedTuple):
    """Public numbers of a walk.

    Attributes
    ----------
    n_rows : int
        Private under add_remove.
    poisson : bool
    size : int
        Rows of a batch of fixed size.
    waiting : float
        Rate of the waiting times between the rows of a Poisson batch, -log(1 - rate).
    inverse, unit : float
        1 / bound, and the bound over `UNITS`.
    noise : float
        Standard deviation, in units.
    coarser : int
        Whole numbers are divided by this before they are multiplied; 0 where they are not.
    square, on, off : float
        What a unit of products is worth; standard deviations of the noise on and off the diagonal, in units.
    centred : bool
    """

    n_rows: int
    poisson: bool
    size: int
    waiting: float
    inverse: float
    unit: float
    noise: float
    coarser: int
    square: float
    on: float
    off: float
    centred: bool


@numba.njit(**FLAGS)
def poisson_rows(rng, n_rows, waiting, last, places):  # type: ignore[no-untyped-def]
    """Write the rows of a Poisson batch that come after row `last`, as far as there is room; return how many.

    Rows are skipped by geometric gaps: floor(E / waiting) of an exponential E is k with probability (1-q)^k q.
    """
    for count in range(places.size):
        gap = rng.standard_exponential() / waiting
        if not gap < n_rows - last - 1:
            return count
        last += 1 + int(gap)
        places[count] = last
    return places.size


@numba.njit(**FLAGS)
def _held(keys, key):  # type: ignore[no-untyped-def]
    """Say whether a key is in a table of open addresses, and put it in; -1 marks room, and there is always some."""
    slot = int((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & (keys.size - 1)
    while keys[slot] != -1:
        if keys[slot] == key:
            return True
        slot = (slot + 1) & (keys.size - 1)
    keys[slot] = key
    return False


@numba.njit(**FLAGS)
def fixed_rows(rng, n_rows, size, keys, places):  # type: ignore[no-untyped-def]
    """Write a uniform set of `size` rows, with `keys` for scratch; return how many.

    One of 0..j for each of the last `size` numbers j below `n_rows`, or j itself where that one is in the set (Bentley,
    Floyd 1987, algorithm F2).
    """
    for slot in range(keys.size):
        keys[slot] = -1
    for i in range(size):
        last = n_rows - size + i
        place = rng.integers(0, last + 1)
        if _held(keys, place):
            place = last
            _held(keys, place)
        places[i] = place
    return size


@numba.njit(**FLAGS)
def hold(numbers, inverse, whole):  # type: ignore[no-untyped-def]
    """Write a row's numbers times `inverse` as whole numbers of L2 norm <= `UNITS`; return whether there are any.

    Longer vectors are shortened in floats. That decides how many rows are lost and nothing else: the norm is checked
    on the whole numbers.
    """
    squares = 0.0
    for j in range(numbers.size):
        value = numbers[j] * inverse
        squares += value * value
    share = inverse * UNITS if squares <= 1.0 else inverse * (SHORTENED / np.sqrt(squares))
    used, most = np.int64(0), np.int64(UNITS) * np.int64(UNITS)
    for j in range(numbers.size):
        value = numbers[j] * share
        if not abs(value) <= UNITS:  # NaN too
            return False
        entry = np.int64(value)
        whole[j] = entry
        used += entry * entry
        if used > most:
            return False
    return True


@numba.njit(**FLAGS)
def add_rows(found, count, inverse, coarser, whole, total, halves, products):  # type: ignore[no-untyped-def]
    """Add the first `count` rows of (n_rows, d) numbers, each held within the norm, as whole numbers.

    With `coarser`, also the same numbers divided by it, toward zero, to `halves`, and the lower triangle of the
    products of these, row by row, to `products`.
    """
    size = total.size
    for i in range(count):
        if not hold(found[i], inverse, whole):
            continue
        for j in range(size):
            total[j] += whole[j]
        if coarser:
            place = 0
            for j in range(size):
                own = abs(whole[j]) // coarser
                whole[j] = own if whole[j] > 0 else -own
                halves[j] += whole[j]
                for k in range(j + 1):
                    products[place] += whole[j] * whole[k]
                    place += 1


@numba.njit(**FLAGS)
def noised(total, deviation, rng):  # type: ignore[no-untyped-def]
    """Return a whole number plus a normal one that is rounded to whole units."""
    drawn = np.rint(deviation * rng.standard_normal())
    return np.float64(total + np.int64(min(max(drawn, -MOST_NOISE), MOST_NOISE)))


@numba.njit(**FLAGS)
def release(numbers, rng, total, halves, products, released):  # type: ignore[no-untyped-def]
    """Write noised sums, and behind them those of products, of which entries off the diagonal stand twice."""
    size = total.size
    for j in range(size):
        released[j] = numbers.unit * noised(total[j], numbers.noise, rng)
    if numbers.coarser == 0:
        return
    place = 0
    for j in range(size):
        for k in range(j + 1):
            seen = products[place]
            if numbers.centred:
                seen = numbers.size * seen - halves[j] * halves[k]
            found = numbers.square * noised(seen, numbers.on if j == k else numbers.off, rng)
            released[size * (1 + j) + k] = released[size * (1 + k) + j] = found
            place += 1


def stepping(fill: Any, mapped: Any, ask: Any, take: Any, whole_blocks: bool) -> Callable[..., None]:
    """Compile the loop over steps.

    Parameters
    ----------
    fill, mapped : callable
        Of `rowmap.RowMap.of_batches`.
    ask, take : callable
        Not trusted. They say at which parameters rows are asked, and follow what was released; neither is handed
        anything else that was computed of a row.
    whole_blocks : bool
        Whether rows are mapped in blocks that are always whole.
    """

    @numba.njit(**FLAGS)
    def steps(rows, columns, places, keys, found, given, state, count, rng, numbers, sums, released):  # type: ignore[no-untyped-def]
        total, halves, products = sums
        whole = np.zeros(total.size, dtype=np.int64)
        for step in range(count):
            ask(state, step, given)
            total[:] = 0
            halves[:] = 0
            products[:] = 0
            last, more = -1, True
            while more:
                if numbers.poisson:
                    drawn = poisson_rows(rng, numbers.n_rows, numbers.waiting, last, places)
                else:
                    drawn = fixed_rows(rng, numbers.n_rows, numbers.size, keys, places)
                for begin in range(0, drawn, BLOCK):
                    some = min(BLOCK, drawn - begin)
                    filled = BLOCK if whole_blocks else some
                    fill(rows, places, begin, some, filled, columns)
                    part = found[:filled]
                    part[:] = np.nan
                    mapped(columns, given, part)
                    add_rows(part, some, numbers.inverse, numbers.coarser, whole, total, halves, products)
                more = numbers.poisson and drawn == places.size
                last = places[-1]
            release(numbers, rng, total, halves, products, released)
            take(state, step, released)

    return steps


def waiting(rate: float) -> float:
    """Return the rate of the waiting times between rows that are drawn with some probability."""
    return -math.log1p(-rate) if rate < 1 else math.inf
