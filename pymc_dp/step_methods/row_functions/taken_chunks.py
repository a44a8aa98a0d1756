"""Chunks of rows that threads share: each takes one that is left, and the sum of all is exact in any order.

Imported at first use. One thread leads and others help it. A helper that is not running holds up nobody: what it has
taken, the leader works off again, and what comes late is dropped. What is summed are whole numbers (`Clip`), so that a
sum does not depend on who added what: it is the same for every number of threads, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from threading import Event, Thread
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from pymc_dp.inspection.rows import Array

LINE = 8
LEFT, DONE, ROWS, OVER, TAKEN = range(0, 5 * LINE, LINE)
"""Where on a board what stands, a line of the cache each.

From which to which chunk none is taken (in one number, so that two threads never take the same); how many are worked
off; the rows of a batch; whether helpers are to end; and from `TAKEN` on what each helper has taken: 1 + the number of
a chunk, or one of the following.
"""
NOTHING, HANDS_OVER, TAKEN_AWAY = 0, -1, -2
HALF = 32  # bits
PATIENCE = 1000
"""Looks at the board before chunks of a helper are worked off again, and before a helper sleeps for a while."""
SHORTEST, LONGEST, MANY = 1e-4, 0.05, 200
"""Seconds for which a helper sleeps that was late, or waited in vain, and chunks after which these begin anew.

No core is free for both threads then; by looking on, the helper would take the leader's time.
"""
MOST_THREADS = 4
WORTHWHILE = 2_000_000
"""Entries of rows, read in about the time of a millisecond, for which threads are started."""
NUMBER = ir.IntType(64)


def spare_threads(entries: float, chunks: int) -> int:
    """Return how many threads to start beside one, given public numbers: entries of rows, and chunks at a time.

    As many as Numba may use. A chain in a process of its own has other chains beside it, and gets none.
    """
    if entries < WORTHWHILE or parent_process() is not None:
        return 0
    return max(0, min(numba.config.NUMBA_NUM_THREADS, MOST_THREADS, chunks) - 1)


@contextmanager
def helped(board: Array, helpers: Sequence[Callable[[], int]]) -> Iterator[None]:
    """Run every helper in a thread of its own until the block ends, again whenever it returns.

    It has to release Python's lock, and returns how many chunks it has worked off once nothing was left for some time.
    An error of one of them is raised when the block has ended.
    """
    over, errors = Event(), list[BaseException]()

    def run(helper: Callable[[], int]) -> None:
        pause = 0.0
        try:
            while not over.wait(pause):
                pause = SHORTEST if helper() > MANY else min(4 * pause + SHORTEST, LONGEST)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(helper,), daemon=True) for helper in helpers]
    try:
        for thread in threads:
            with suppress(RuntimeError):  # where the system has no more threads, there is less help
                thread.start()
        yield
    finally:
        board[OVER] = 1
        over.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    for error in errors:
        raise error


def _place_of(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = signature.args[0]
    board = context.make_array(kind)(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, kind, board, [arguments[1]], wraparound=False)


@intrinsic
def _seen(typing_context: Any, board: Any, place: Any) -> Any:
    """Return a number of a board; all that was written before it was is seen from then on."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place_of(context, builder, signature, arguments), "acquire", 8)

    return numba.types.int64(board, numba.types.int64), write


@intrinsic
def _show(typing_context: Any, board: Any, place: Any, value: Any) -> Any:
    """Write a number to a board, after all that was written before."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _place_of(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return numba.types.void(board, numba.types.int64, numba.types.int64), write


@intrinsic
def _count_up(typing_context: Any, board: Any, place: Any) -> Any:
    """Add 1 to a number of a board, after all that was written before."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _place_of(context, builder, signature, arguments)
        builder.atomic_rmw("add", pointer, ir.Constant(NUMBER, 1), "acq_rel")
        return context.get_dummy_value()

    return numba.types.void(board, numba.types.int64), write


@intrinsic
def _changed(typing_context: Any, board: Any, place: Any, old: Any, new: Any) -> Any:
    """Write a number in place of an old one; say whether it was still there."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _place_of(context, builder, signature, arguments)
        found = builder.cmpxchg(pointer, arguments[2], arguments[3], "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    return numba.types.boolean(board, *[numba.types.int64] * 3), write


@intrinsic
def _pause(typing_context: Any) -> Any:
    """Leave the core to its other thread for some cycles, where the processor knows of such."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if builder.module.triple.startswith("x86_64"):
            function = builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), ir.FunctionType(ir.VoidType(), []))
            builder.call(function, [])
        return context.get_dummy_value()

    return numba.types.void(), write


@numba.njit(error_model="numpy")
def lay_out(board: Any, rows: int, chunks: int) -> None:
    """Let threads take chunks of a batch of so many rows; all that were laid out before are worked off."""
    _show(board, DONE, 0)
    _show(board, ROWS, rows)
    _show(board, LEFT, chunks << HALF)


@numba.njit(error_model="numpy")
def rows_of(board: Any) -> int:
    """Return how many rows are in the batch of which a chunk was taken."""
    return _seen(board, ROWS)


@numba.njit(error_model="numpy")
def lead(board: Any, chunks: int) -> int:
    """Take the last of the chunks that are left, or one that a helper is late with; -1 once all are worked off."""
    looks = 0
    while _seen(board, DONE) < chunks:
        left = _seen(board, LEFT)
        first, last = left & ((1 << HALF) - 1), left >> HALF
        if first < last:
            if _changed(board, LEFT, left, first | (last - 1) << HALF):
                return last - 1
        elif looks < PATIENCE:
            looks += 1
            _pause()
        else:
            for place in range(TAKEN, board.size, LINE):
                taken = _seen(board, place)
                if taken > 0 and _changed(board, place, taken, TAKEN_AWAY):
                    return taken - 1
    return -1


@numba.njit(error_model="numpy")
def worked_off(board: Any) -> None:
    """Say that a chunk is worked off."""
    _count_up(board, DONE)


@numba.njit(error_model="numpy")
def follow(board: Any, helper: int) -> int:
    """Take the first of the chunks that are left, by the number of a helper; -1 if there is none for some time."""
    for _ in range(PATIENCE):
        left = _seen(board, LEFT)
        first, last = left & ((1 << HALF) - 1), left >> HALF
        if first == last:
            if _seen(board, OVER) != 0:
                return -1
            _pause()
        elif _changed(board, LEFT, left, left + 1):
            _show(board, TAKEN + helper * LINE, first + 1)
            return first
    return -1


@numba.njit(error_model="numpy")
def hand_over(board: Any, helper: int, chunk: int, part: Any, total: Any) -> bool:
    """Move the sum over a chunk to what the leader collects, or drop it where the chunk was taken away; say which."""
    place = TAKEN + helper * LINE
    wanted = _changed(board, place, chunk + 1, HANDS_OVER)
    for j in range(part.size):
        if wanted:
            total[j] += part[j]
        part[j] = 0.0
    _show(board, place, NOTHING)
    if wanted:
        _count_up(board, DONE)
    return bool(wanted)


def new_board(helpers: int) -> Array:
    """Return a board on which nothing is laid out."""
    return np.zeros(TAKEN + helpers * LINE, dtype=np.int64)


__all__ = [
    "OVER",
    "follow",
    "hand_over",
    "helped",
    "lay_out",
    "lead",
    "new_board",
    "rows_of",
    "spare_threads",
    "worked_off",
]
