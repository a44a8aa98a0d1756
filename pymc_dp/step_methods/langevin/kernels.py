"""Compiled loops of the Langevin samplers: batches, sums of clipped rows, noise, steps.

No batch size, shape or error leaves these loops: batches are worked off in chunks, so that every size that can occur is
handled alike, and a row whose gradient is not finite adds nothing. Sums are of whole numbers: see `Clip`.

Sums of products of rows' gradients, beside sums of these: compiled, as whole numbers, and their noised release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.batch_rows import gather, heads
from pymc_dp.step_methods.row_functions.builder import ALIKE
from pymc_dp.step_methods.row_functions.limits import Clip
from pymc_dp.step_methods.row_functions.summing_kernels import (
    AT_ONCE,
    SOME,
    add_whole,
    squared_norms,
    weigh,
    write_held,
)


@numba.njit(error_model="numpy")
def add_products(written: Any, count: int, ratio: float, total: Any) -> None:
    """Add the first `count` rows to `total`, and their products, times a ratio and rounded, to the matrix behind them.

    Of several rows at once, as sums of whole numbers are the same in any order; there is no rest. Of the matrix, whose
    rows follow one another, the lower triangle counts.
    """
    size, whole = written.shape[1], -(-count // AT_ONCE) * AT_ONCE
    written[count:whole] = 0.0
    products = total[size:].reshape((size, size))
    for i in range(0, whole, AT_ONCE):
        a, b, c, d = written[i], written[i + 1], written[i + 2], written[i + 3]
        for j in range(size):
            total[j] += (a[j] + b[j]) + (c[j] + d[j])
            by_a, by_b, by_c, by_d = ratio * a[j], ratio * b[j], ratio * c[j], ratio * d[j]
            of_j = products[j]
            for k in range(j + 1):
                first, second = np.rint(by_a * a[k]) + np.rint(by_b * b[k]), np.rint(by_c * c[k]) + np.rint(by_d * d[k])
                of_j[k] += first + second


@numba.njit(error_model="numpy")
def release_products(slope: Any, size: int, plan: Any, rng: Any) -> None:
    """Turn the sum of products behind a sum of gradients of `size` entries into a noised mean over a batch; in place.

    The noise has the same deviation in every direction of the space of symmetric matrices. Its Euclidean norm is
    Frobenius', where an entry off the diagonal counts twice: such an entry gets 1 / √2 of the noise of one on it.
    """
    clip, batch_size = plan.clip, float(plan.batch_size)
    unit = clip.unit * clip.unit / clip.products / batch_size
    on, off = plan.products / unit, plan.products * np.sqrt(0.5) / unit
    products = slope[size:].reshape((size, size))
    for i in range(size):
        for j in range(i + 1):
            seen = products[i, j]
            if plan.centred:
                seen -= slope[i] * slope[j] * clip.products / batch_size
                seen *= batch_size / (batch_size - 1)
            seen = unit * (seen + (on if i == j else off) * rng.standard_normal())
            products[i, j] = products[j, i] = seen


class Plan(NamedTuple):
    """Public numbers of a chain.

    Attributes
    ----------
    scale : float
        Public number of rows over expected batch size.
    sigma : float
        Standard deviation of the noise on every entry of an estimated gradient.
    products : float
        Standard deviation of the noise on a diagonal entry of what a step releases of mean products, where it does.
    centred : bool
        Whether these are covariances of a batch.
    constants : tuple of float
        Of the dynamics.
    clip : Clip
        How rows are clipped.
    poisson : bool
    batch_size : int
        Expected where batches are Poisson.
    waiting : float
        Rate of the exponential waiting times between the rows of a Poisson batch, -log(1 - sample rate).
    chunk : int
        Rows that are differentiated at a time.
    """

    scale: float
    sigma: float
    products: float
    centred: bool
    constants: tuple[float, ...]
    clip: Clip
    poisson: bool
    batch_size: int
    waiting: float
    chunk: int


@numba.njit(error_model="numpy", inline="always")
def squared(
    gradient: Any,
    position: Any,
    rows: Any,
    places: Any,
    begin: int,
    count: int,
    buffers: Any,
    squares: Any,
) -> Any:
    """Return the gradients of some of the rows at `places`, `count` from `begin` on, as factors and vectors.

    Their squared norms are written to `squares`, which has as many entries.
    """
    gather(rows, places, begin, count, buffers)
    filled = min(-(-count // ALIKE) * ALIKE, buffers[0].shape[0])  # rows behind the last one are of no account
    blocks = gradient(position, *heads(buffers, filled))
    squared_norms(blocks, squares)
    return blocks


@numba.njit(error_model="numpy", inline="always")
def _add_chunk(
    gradient: Any,
    position: Any,
    starts: Any,
    clip: Any,
    table: Any,
    count: int,
    chunk: int,
    written: Any,
    total: Any,
) -> None:
    """Add the clipped gradients of a chunk of the rows at the first `count` places of a table to `total`, in units.

    And their products, where it has entries for these.
    """
    size, places = table.squares.size, table.places[:count]
    begin = chunk * size
    weights = table.squares[: min(size, count - begin)]
    blocks = squared(gradient, position, table.rows, places, begin, weights.size, table.buffers, weights)
    weigh(weights, clip)
    for first in range(0, weights.size, SOME):
        some = write_held(blocks, weights, first, starts, clip, written)
        if total.size == position.size:
            add_whole(written, some, total)
        else:
            add_products(written, some, clip.products, total)


@numba.njit(error_model="numpy")
def poisson_rows(rng: Any, n_rows: int, waiting: float, last: int, places: Any) -> int:
    """Write the rows of a Poisson batch that come after row `last` to `places`; return how many. **Private**.

    They come in order, as many as there is room for; where there are fewer, the batch has no more. Rows are skipped by
    geometric gaps: floor(E / waiting) of an exponential E is k with probability (1-q)^k q.
    """
    for count in range(places.size):
        gap = rng.standard_exponential() / waiting
        if not gap < n_rows - last - 1:
            return count
        last += 1 + int(gap)
        places[count] = last
    return places.size


@numba.njit(error_model="numpy")
def _held(keys: Any, key: int) -> bool:
    """Say whether a key is in a table of open addresses, and put it in; -1 marks room, and there is always some."""
    slot = int((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & (keys.size - 1)
    while keys[slot] != -1:
        if keys[slot] == key:
            return True
        slot = (slot + 1) & (keys.size - 1)
    keys[slot] = key
    return False


@numba.njit(error_model="numpy")
def fixed_batch(rng: Any, n_rows: int, batch_size: int, keys: Any, places: Any) -> int:
    """Write a uniform set of `batch_size` rows to `places`, with `keys` for scratch.

    One of 0..j for each of the last `batch_size` numbers j below `n_rows`, or j itself where that one is in the set.

    References
    ----------
    Bentley and Floyd (1987), Programming pearls: a sample of brilliance, algorithm F2.
    """
    for slot in range(keys.size):
        keys[slot] = -1
    for i in range(batch_size):
        last = n_rows - batch_size + i
        place = int(rng.random() * (last + 1))
        if _held(keys, place):
            place = last
            _held(keys, place)
        places[i] = place
    return batch_size


class Table(NamedTuple):
    """The rows a step holds, and its scratch space. **Private**: never leaves a step."""

    rows: tuple[Array, ...]
    buffers: tuple[Array, ...]
    squares: Array
    places: Array
    keys: Array


@numba.njit(error_model="numpy", inline="always")
def batch_part(rng: Any, plan: Any, table: Any) -> int:
    """Write rows of a batch to the places of a table; return how many.

    Begin with -1 for the last of the places. There may be more rows in a Poisson batch that fills the places.
    """
    if plan.poisson:
        return poisson_rows(rng, len(table.rows[0]), plan.waiting, table.places[-1], table.places)
    return fixed_batch(rng, len(table.rows[0]), plan.batch_size, table.keys, table.places)


@numba.njit(error_model="numpy", inline="always")
def add_clipped(gradient: Any, position: Any, starts: Any, clip: Any, table: Any, count: int, total: Any) -> None:
    """Add what the rows at the first `count` places of a table add to a sum to `total`, which is in units.

    A sum has as many entries as the chain has parameters; where products are summed too, the rows of a matrix follow,
    of which the lower triangle counts.
    """
    written = np.zeros((SOME, position.size))
    for chunk in range(-(-count // table.squares.size)):
        _add_chunk(gradient, position, starts, clip, table, count, chunk, written, total)


@numba.njit(error_model="numpy", inline="always")
def walk(
    gradient: Any,
    prior: Any,
    before: Any,
    after: Any,
    position: Any,
    memory: Any,
    sizes: Any,
    tuning: bool,
    rng: Any,
    plan: Any,
    starts: Any,
    table: Any,
    summed: int,
) -> None:
    """Make a step of every size: estimate ∇log prior + N/b (Σ clipped gradients + noise), and follow it; in place.

    `summed` numbers are summed over rows. Where products of gradients are, their noised mean stands in `slope` behind
    the gradient.
    """
    slope = np.empty(summed)
    unit = plan.scale * plan.clip.unit
    for step in range(sizes.size):
        before(position, memory, sizes[step], plan.constants)
        slope[:] = 0.0
        table.places[-1], more = -1, True
        while more:
            count = batch_part(rng, plan, table)
            more = plan.poisson and count == table.places.size
            add_clipped(gradient, position, starts, plan.clip, table, count, slope)
        if slope.size > position.size:
            release_products(slope, position.size, plan, rng)
        (of_prior,) = prior(position)
        for j in range(position.size):
            slope[j] = of_prior[j] + unit * (slope[j] + plan.sigma / unit * rng.standard_normal())
        after(position, memory, sizes[step], plan.sigma, plan.constants, slope, tuning, rng)


def room(rows: tuple[Array, ...], dtypes: Sequence[Any], count: int) -> tuple[Array, ...]:
    """Return arrays for so many rows of every column, in these dtypes."""
    return tuple(np.zeros((count, *column.shape[1:]), dtype) for column, dtype in zip(rows, dtypes, strict=True))


def make_table(rows: tuple[Array, ...], plan: Plan, dtypes: Sequence[Any] | None = None) -> Table:
    """Return rows with room for a batch; a Poisson batch that is larger is worked off in parts.

    Nothing here is as long as the table, so that this may lie on a disk. Columns are widened to `dtypes`, if these are
    given, when a batch is taken.
    """
    widened = [column.dtype for column in rows] if dtypes is None else dtypes
    chunks = 1 + 2 * plan.batch_size // plan.chunk
    held = 0 if plan.poisson else 2 ** (2 * plan.batch_size).bit_length()
    return Table(
        rows=tuple(rows),
        buffers=room(rows, widened, plan.chunk),
        squares=np.empty(plan.chunk),
        places=np.empty(chunks * plan.chunk, dtype=np.int64),
        keys=np.empty(held, dtype=np.int64),
    )


__all__ = [
    "Plan",
    "Table",
    "add_clipped",
    "add_products",
    "fixed_batch",
    "make_table",
    "poisson_rows",
    "release_products",
    "room",
    "squared",
    "walk",
]
