"""Rows of a batch are copied out of every column, so that a gradient sees them one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload


def gather(rows: Any, places: Any, begin: int, count: int, buffers: Any) -> None:
    """Copy some of the rows at `places` of every column, `count` from `begin` on, into the buffers."""
    raise NotImplementedError


@overload(gather, strict=False, jit_options={"error_model": "numpy"})
def _gather_columns(rows: Any, places: Any, begin: int, count: int, buffers: Any) -> Callable[..., Any]:
    if len(rows) == 0:
        return lambda rows, places, begin, count, buffers: None

    def every(rows, places, begin, count, buffers):  # type: ignore[no-untyped-def]
        _copy(rows[0], places, begin, count, buffers[0])
        gather(rows[1:], places, begin, count, buffers[1:])

    return every


def _copy(source: Any, places: Any, begin: int, count: int, target: Any) -> None:
    raise NotImplementedError


@overload(_copy, strict=False, jit_options={"error_model": "numpy"})
def _copy_rows(source: Any, places: Any, begin: int, count: int, target: Any) -> Callable[..., Any]:
    if source.ndim == 2:

        def copy(source, places, begin, count, target):  # type: ignore[no-untyped-def]
            for i in range(count):
                place = places[begin + i]
                for j in range(source.shape[1]):
                    target[i, j] = source[place, j]

        return copy

    def copy_any(source, places, begin, count, target):  # type: ignore[no-untyped-def]
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


__all__ = ["gather", "heads"]
