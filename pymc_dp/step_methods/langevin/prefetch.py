"""Rows drawn at random are copied, and asked for before: memory would be waited for row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic, overload

LINE = 8  # numbers in a line of the cache
AHEAD = 32  # rows asked for in advance


@intrinsic
def prefetch(typing_context: Any, array: Any, i: Any, j: Any) -> Any:
    """Ask for the cache line of ``array[i, j]``: rows drawn at random otherwise wait for memory one after the other."""

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = cgutils.get_item_pointer(
            context, builder, signature.args[0], struct, list(arguments[1:]), wraparound=False
        )
        place = builder.bitcast(place, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return numba.types.void(array, i, j), write


def ask(rows: Any, places: Any, begin: int, count: int) -> None:
    """Ask for the rows at `places`, `count` from `begin` on, of every column of several numbers."""
    raise NotImplementedError


@overload(ask, strict=False, jit_options={"error_model": "numpy"})
def _ask_columns(rows: Any, places: Any, begin: int, count: int) -> Callable[..., Any]:
    if len(rows) == 0:
        return lambda rows, places, begin, count: None
    if rows[0].ndim != 2:
        return lambda rows, places, begin, count: ask(rows[1:], places, begin, count)

    def ask_rows(rows, places, begin, count):  # type: ignore[no-untyped-def]
        for i in range(begin, min(begin + count, places.size)):
            for j in range(0, rows[0].shape[1], LINE):
                prefetch(rows[0], places[i], j)
        ask(rows[1:], places, begin, count)

    return ask_rows


def gather(rows: Any, places: Any, begin: int, count: int, following: int, buffers: Any) -> None:
    """Copy some of the rows at `places` of every column, `count` from `begin` on, into the buffers.

    Those from `following` on will be next.
    """
    raise NotImplementedError


@overload(gather, strict=False, jit_options={"error_model": "numpy"})
def _gather_columns(rows: Any, places: Any, begin: int, count: int, following: int, buffers: Any) -> Callable[..., Any]:
    if len(rows) == 0:
        return lambda rows, places, begin, count, following, buffers: None

    def every(rows, places, begin, count, following, buffers):  # type: ignore[no-untyped-def]
        _copy(rows[0], places, begin, count, following, buffers[0])
        gather(rows[1:], places, begin, count, following, buffers[1:])

    return every


def _copy(source: Any, places: Any, begin: int, count: int, following: int, target: Any) -> None:
    raise NotImplementedError


@overload(_copy, strict=False, jit_options={"error_model": "numpy"})
def _copy_rows(source: Any, places: Any, begin: int, count: int, following: int, target: Any) -> Callable[..., Any]:
    if source.ndim == 2:

        def copy(source, places, begin, count, following, target):  # type: ignore[no-untyped-def]
            width = source.shape[1]
            for i in range(count):
                ahead = i + AHEAD
                ahead += begin if ahead < count else following - count
                if ahead < places.size:
                    for j in range(0, width, LINE):
                        prefetch(source, places[ahead], j)
                place = places[begin + i]
                for j in range(width):
                    target[i, j] = source[place, j]

        return copy

    def copy_any(source, places, begin, count, following, target):  # type: ignore[no-untyped-def]
        for i in range(count):
            target[i] = source[places[begin + i]]

    return copy_any


def heads(buffers: Any, n: Any) -> Any:
    """Return the first `n` rows of every buffer."""
    raise NotImplementedError


@overload(heads, strict=False)
def _heads_of(buffers: Any, n: Any) -> Callable[..., Any]:
    if len(buffers) == 0:
        return lambda buffers, n: ()
    return lambda buffers, n: (buffers[0][:n], *heads(buffers[1:], n))


__all__ = ["ask", "gather", "heads"]
