"""Compiled loops of walks by batches: secret batches, whole numbers within a norm, their sums, noise.

None is compiled with fast arithmetic: what a row adds would depend on where it stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import cgutils
from numba.core.types import FunctionType
from numba.extending import intrinsic

from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.limits import FLAGS, UNITS

MOST, WIDEST = np.int64(UNITS) * np.int64(UNITS), 2**14
"""Square of the norm, and numbers of a row: so many squares of single entries fit into 64 bits."""
SHORTENED = UNITS * (1 - 1e-9)
FAR = 2.0**61
"""Noise is cut here, in units."""


class Numbers(NamedTuple):
    """Public numbers of a walk.

    Attributes
    ----------
    n_rows : int
        Private under add_remove.
    poisson : bool
    batch : int
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
    batch: int
    waiting: float
    inverse: float
    unit: float
    noise: float
    coarser: int
    square: float
    on: float
    off: float
    centred: bool


EXAMPLE = Numbers(0, False, 0, 0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0, 0.0, False)


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
        place = min(int(rng.random() * (last + 1)), last)
        if _held(keys, place):
            place = last
            _held(keys, place)
        places[i] = place
    return size


@numba.njit(**FLAGS)
def hold(found, count, inverse, shares, whole):  # type: ignore[no-untyped-def]
    """Write the first `count` rows of (n_rows, d) numbers, times `inverse`, as whole numbers of L2 norm <= `UNITS`.

    Rows without such are written as 0. Longer rows are shortened in floats. That decides how many rows are lost and
    nothing else: the norm is checked on the whole numbers, by whole numbers.
    """
    size = whole.shape[1]
    shares[:] = 0.0
    for j in range(size):
        for i in range(count):
            value = found[i, j] * inverse
            shares[i] += value * value
    for i in range(count):
        shares[i] = inverse * min(float(UNITS), SHORTENED / np.sqrt(shares[i]))
    for i in range(count):
        used, share = np.int64(0), shares[i]
        for j in range(size):  # up to `WIDEST`, so that squares add up to less than 2^63
            value = found[i, j] * share
            held = abs(value) <= UNITS  # not NaN
            entry = np.int32(value if held else 0.0)
            whole[i, j] = entry
            used += np.int64(entry) * np.int64(entry) if held else MOST + 1
        if used > MOST:
            whole[i] = 0


@numba.njit(**FLAGS)
def add(whole, count, total):  # type: ignore[no-untyped-def]
    """Add rows of whole numbers, four at once, which fit into 32 bits."""
    four = count // 4 * 4
    for i in range(0, four, 4):
        for j in range(total.size):
            total[j] += np.int64(whole[i, j] + whole[i + 1, j] + whole[i + 2, j] + whole[i + 3, j])
    for i in range(four, count):
        for j in range(total.size):
            total[j] += np.int64(whole[i, j])


@numba.njit(**FLAGS)
def add_products(whole, count, coarser, halves, products):  # type: ignore[no-untyped-def]
    """Add rows divided by `coarser`, toward zero, and the lower triangle of their products, one row after the other."""
    for i in range(count):
        own = whole[i]
        for j in range(own.size):
            cut = abs(own[j]) // coarser
            own[j] = cut if own[j] > 0 else -cut
            halves[j] += own[j]
        place = 0
        for j in range(own.size):
            for k in range(j + 1):
                products[place + k] += np.int64(own[j]) * np.int64(own[k])
            place += j + 1


@numba.njit(**FLAGS)
def noised(total, deviation, rng):  # type: ignore[no-untyped-def]
    """Return a whole number plus a normal one that is rounded to whole units."""
    drawn = np.rint(deviation * rng.standard_normal())
    return np.float64(total + np.int64(min(max(drawn, -FAR), FAR)))


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
                seen = numbers.batch * seen - halves[j] * halves[k]
            found = numbers.square * noised(seen, numbers.on if j == k else numbers.off, rng)
            released[size * (1 + j) + k] = released[size * (1 + k) + j] = found
            place += 1


def _lasting(kind: Any) -> bool:
    """Whether a type is of numbers, arrays and generators alone, so that a loop for it may be kept on disk.

    Numba's index of what it keeps names the class of every named tuple. Where one of them is not found, it cannot be
    read at all: no process that lacks the class, another version of it perhaps, would make a step.
    """
    if isinstance(kind, numba.types.BaseAnonymousTuple):
        return all(map(_lasting, kind.types))
    entry = kind.dtype if type(kind) is numba.types.Array else kind
    return isinstance(entry, (numba.types.Number, numba.types.Boolean)) or kind == numba.types.npy_rng


@intrinsic
def _function(context, address, arguments):  # type: ignore[no-untyped-def]
    """Return the compiled function at an address, which takes arguments of such types and returns nothing."""
    kind = FunctionType(numba.void(*map(numba.types.unliteral, arguments.types)))

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        made = cgutils.create_struct_proxy(kind)(context, builder)
        made.jit_addr = builder.inttoptr(args[0], cgutils.voidptr_t)
        return made._getvalue()

    return kind(address, arguments), generate


@numba.njit(**FLAGS)
def _steps(addresses, lanes, rows, columns, places, keys, found, given, sums, released, state, count, rng, numbers):  # type: ignore[no-untyped-def]
    fill = _function(addresses[0], (rows, places, 0, 0, 0, columns))
    mapped = _function(addresses[1], (*columns, given, found))
    ask = _function(addresses[2], (state, 0, given))
    take = _function(addresses[3], (state, 0, released))
    total, halves, products = sums
    block = found.shape[0]
    whole, shares = np.zeros((block, total.size), dtype=np.int32), np.zeros(block)
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
                drawn = fixed_rows(rng, numbers.n_rows, numbers.batch, keys, places)
            for begin in range(0, drawn, block):
                some = min(block, drawn - begin)
                filled = -(-some // lanes) * lanes
                fill(rows, places, begin, some, filled, columns)
                mapped(*columns, given, found[:filled])
                hold(found, some, numbers.inverse, shares, whole)
                add(whole, some, total)
                if numbers.coarser:
                    add_products(whole, some, numbers.coarser, halves, products)
            more = numbers.poisson and drawn == places.size
            last = places[-1]
        release(numbers, rng, total, halves, products, released)
        take(state, step, released)


_fresh = numba.njit(**{**FLAGS, "cache": False})(_steps.py_func)


def stepping(fill: Any, mapped: Any, ask: Any, take: Any, lanes: int, types: tuple[Any, ...]) -> Callable[..., None]:
    """Return the loop over steps, for arguments of such types. What it calls is handed over by address.

    So it is compiled for types alone, whatever the model is, and kept on disk for states of arrays and numbers.

    Parameters
    ----------
    fill, mapped : callable
        Of `rowmap.RowMap.of_batches`.
    ask, take : callable
        Not trusted. They say at which parameters rows are asked, and follow what was released; neither is handed
        anything else that was computed of a row.
    lanes : int
        Rows are mapped in blocks of a multiple of these.
    types : tuple
        Of the arguments, up to the state: arrays of other types would be read wrongly.
    """
    rows, columns, places, _, found, given, _, released, state = types
    called = [
        (fill, (rows, places, numba.int64, numba.int64, numba.int64, columns)),
        (mapped, (*columns.types, given, found)),
        (ask, (state, numba.int64, given)),
        (take, (state, numba.int64, released)),
    ]
    addresses = tuple(_address(*one) for one in called)
    others = numba.int64, numba.types.npy_rng, numba.typeof(EXAMPLE)
    dispatcher = _steps if _lasting(state) else _fresh
    loop = dispatcher.compile((numba.types.UniTuple(numba.int64, len(called)), numba.int64, *types, *others))

    def steps(*arguments: Any, kept: Any = called) -> None:  # an address is good for as long as its function is kept
        loop(addresses, lanes, *arguments)

    return steps


def _address(function: Any, arguments: tuple[Any, ...]) -> int:
    """Compile a function for arguments of such types, and return where it is."""
    function.compile(arguments)
    found = function.overloads[arguments]
    if found.signature.return_type != numba.void:
        raise ArgumentError("ask and take must return nothing.")
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


def waiting(rate: float) -> float:
    """Return the rate of the waiting times between rows that are drawn with some probability."""
    return -math.log1p(-rate) if rate < 1 else math.inf
