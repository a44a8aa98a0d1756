"""Rows that memory is asked for before they are read: drawn at random, they would be waited for one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic, overload

LINE = 8  # numbers in a line of the cache


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


__all__ = ["LINE", "ask", "prefetch"]
