"""How compiled functions multiply rows by a vector; imported when the first of them is made."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key

from pymc_dp.gradients.compiled_rows import RowProducts
from pymc_dp.transforms.source_hash import source_hash

LANES, CHAINS = 8, 2
"""Sums of a row that are added up side by side, and vectors of them, so that none waits for the one before."""
FLOAT = ir.DoubleType()
VECTOR = ir.VectorType(FLOAT, LANES)


class _Product:
    """Writes the product of two arrays of `count` floats, given by where they begin."""

    def __init__(self, builder: Any, one: Any, other: Any, count: Any) -> None:
        self.builder, self.one, self.other, self.count = builder, one, other, count
        self.intp = count.type

    def write(self) -> Any:
        """Return the sum: of vectors, of what they leave, of the numbers of the vector, and of the last numbers."""
        builder, chunk = self.builder, self.intp(LANES * CHAINS)
        whole = self._multiple(chunk)
        sums = [cgutils.alloca_once_value(builder, ir.Constant(VECTOR, [0.0] * LANES)) for _ in range(CHAINS)]
        with self._range(self.intp(0), whole, chunk) as (place, _):
            for number, total in enumerate(sums):
                self._add(total, self._term(builder.add(place, self.intp(number * LANES)), VECTOR))
        vectors = self._multiple(self.intp(LANES))
        with self._range(whole, vectors, self.intp(LANES)) as (place, _):
            self._add(sums[0], self._term(place, VECTOR))
        held = cgutils.alloca_once_value(builder, self._numbers(builder.fadd(*map(builder.load, sums))))
        with self._range(vectors, self.count, self.intp(1)) as (place, _):
            self._add(held, self._term(place, FLOAT))
        return builder.load(held)

    def _multiple(self, of: Any) -> Any:
        return self.builder.sub(self.count, self.builder.srem(self.count, of))

    def _range(self, start: Any, stop: Any, step: Any) -> Any:
        return cgutils.for_range_slice(self.builder, start, stop, step, inc=True)

    def _add(self, total: Any, term: Any) -> None:
        self.builder.store(self.builder.fadd(self.builder.load(total), term), total)

    def _term(self, place: Any, kind: Any) -> Any:
        return self.builder.fmul(self._load(self.one, place, kind), self._load(self.other, place, kind))

    def _load(self, begin: Any, place: Any, kind: Any) -> Any:
        at = self.builder.gep(begin, [place])
        return self.builder.load(self.builder.bitcast(at, kind.as_pointer()), align=8)

    def _numbers(self, vector: Any) -> Any:
        parts = [self.builder.extract_element(vector, ir.IntType(32)(lane)) for lane in range(LANES)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self.builder.fadd(*pair) for pair in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]


@intrinsic
def product_of_row(typing_context: Any, rows: Any, row: Any, vector: Any) -> Any:
    """Multiply ``rows[row]`` by a vector of the same length, both of contiguous floats.

    Written out, as the compiler turns no sum into several side by side unless it may choose the order of terms.
    """

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = context.make_array(signature.args[0])(context, builder, arguments[0])
        other = context.make_array(signature.args[2])(context, builder, arguments[2])
        (count,) = cgutils.unpack_tuple(builder, other.shape)
        begin = builder.gep(table.data, [builder.mul(arguments[1], count)])
        return _Product(builder, begin, other.data, count).write()

    return numba.types.float64(rows, row, vector), write


@numba_njit(fastmath=False, error_model="numpy")
def products(rows, vector):  # type: ignore[no-untyped-def]
    """Multiply every row by the vector."""
    table, other = np.ascontiguousarray(rows), np.ascontiguousarray(vector)
    found = np.empty(table.shape[0])
    for row in range(found.size):
        found[row] = product_of_row(table, row, other)
    return found


@register_funcify_and_cache_key(RowProducts)
def compiled(op: RowProducts, node: Any, **_: Any) -> tuple[Any, str | None]:
    """Return the function, and what it may be cached by."""
    return products, source_hash(products)


__all__ = ["products"]
