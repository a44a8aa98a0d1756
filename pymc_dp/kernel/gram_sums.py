"""One pass over the rows of a regression: exact sums of products of whole numbers.

A chunk of rows is turned into whole numbers in a small buffer, clamped before anything else; products are added up
there. No temporary has the length of the table, and no array is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple, final, override

import numpy as np

from pymc_dp.kernel.arguments import finite_all, flag, keep
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.gram import Regression
from pymc_dp.kernel.readings import Reading, Sums
from pymc_dp.kernel.shapes import Array

CHUNK = 512
"""Rows of a matrix whose numbers stay in the cache. Sums of 2**13 products are still exact in float64."""
MANY = 8
"""Arrays from which on chunks are 4 times as long: a call for every one takes longer then than what it does."""


class Scaled(NamedTuple):
    """Numbers of one array: ``t = (x - centre) / half``, within [-1, 1], or a vector of length 1 at most (`ball`)."""

    centres: tuple[float, ...]
    halves: tuple[float, ...]
    ball: bool = False


def _own(given: Scaled) -> Scaled:
    centres, halves = finite_all("centres", given.centres), finite_all("halves", given.halves)
    if not centres or len(centres) != len(halves) or not min(halves) > 0:
        raise ArgumentError("Each number of an array needs a centre, and half a width > 0.")
    return Scaled(centres, halves, flag("ball", given.ball))


@final
@dataclass(frozen=True, eq=False)
class Regressed(Reading):
    """Predictors of some arrays, and a response: products of these in a row's cell.

    Values that are no numbers count as the centre; values outside as the nearest bound; a row that is longer than a
    norm is scaled down to it.
    """

    sources: tuple[Scaled, ...]
    response: Scaled
    products: Regression

    def __post_init__(self) -> None:
        if type(self.products) is not Regression:  # exactly: another class would state its own move
            raise ArgumentError("products must be a Regression.")
        keep(self, sources=tuple(_own(one) for one in self.sources), response=_own(self.response))
        balls = tuple(len(one.centres) for one in self.sources if one.ball and len(one.centres) > 1)
        widths = [len(one.centres) for one in self.sources]
        if balls != self.products.balls or sum(widths) != self.products.width or len(self.response.centres) != 1:
            raise ArgumentError("The arrays of a regression are not those of its shape.")

    @property
    @override
    def widths(self) -> tuple[int, ...]:  # type: ignore[override]
        return (*(len(one.centres) for one in self.sources), 1)

    @property
    @override
    def shape(self) -> Regression:
        return self.products

    @override
    def begin(self, cells: int, *, sized: bool) -> Sums:
        if sized or cells != self.products.cells:
            raise ArgumentError("The cells of a regression, and whether their sizes are released, are of its shape.")
        return _Sums.empty(self.products)

    @override
    def add(self, code: Array, arrays: Sequence[Array], sums: Sums) -> None:
        assert isinstance(sums, _Sums)
        size = sums.held.shape[1]
        for start in range(0, len(code), size):
            here = slice(start, min(start + size, len(code)))
            self._hold([values[here] for values in arrays], sums)
            own = code[here].astype(np.int64)
            there = (own >= 0) & (own < self.products.cells)
            if not there.all():  # those of no cell add nothing
                sums.held[:, : there.sum()] = sums.held[:, : len(own)][:, there]
            sums.add(self.products, own[there])

    @override
    def end(self, sums: Sums) -> Array:
        assert isinstance(sums, _Sums)
        shape, last = self.products, self.products.width + 1
        pairs = sums.products[np.triu_indices(last)][None]
        if shape.cells == 1:
            return laid_out(shape, sums.products[None, : last + 1, last], pairs)
        return laid_out(shape, sums.first * 2**shape.bits, sums.apart if _lie_apart(shape) else pairs)

    @override
    def whole(self, arrays: Sequence[Array]) -> Array:
        raise ArgumentError("Rows of a regression are added up, and have no weights.")

    def _hold(self, arrays: Sequence[Array], sums: _Sums) -> None:
        """Turn the rows of one chunk into whole numbers."""
        line, top, size, loops = 0, 2.0**self.products.bits, len(arrays[-1]), _loops()
        for source, values in zip((*self.sources, self.response), arrays, strict=True):
            width = len(source.centres)
            chunk = np.asarray(values, dtype=np.float64).reshape(size, width)
            held, halves = sums.held[line : line + width], np.array(source.halves, dtype=float)
            if source.ball:
                loops.hold_ball(chunk, halves, top, held, sums.lengths)
            else:
                loops.hold_boxes(chunk, np.array(source.centres, dtype=float), halves, top, held)
            line += width
        if self.products.longest is not None:
            loops.hold_public(sums.held, self.products.width, size, *self.products.most_public)


class _Sums(Sums):
    """What one thread fills: lines are those of t, u, the constant, and zeros up to a multiple of 4. **Private**.

    Attributes
    ----------
    held : (n_lines, chunk) array
        The chunk at hand as whole numbers.
    lengths : (chunk,) array
        Of its rows in a ball.
    products : (n_lines, n_lines) int64 array
        Of all lines, over all cells.
    first : (n_cells, d + 2) int64 array
        Of lines alone; not with one cell.
    apart, partial : (n_cells, (d + 1) (d + 2) / 2) arrays
        Products by cell, where they lie apart, and those of the chunk at hand.
    """

    held: Array
    lengths: Array
    products: Array
    first: Array
    apart: Array
    partial: Array

    @classmethod
    def empty(cls, shape: Regression) -> _Sums:
        """Return sums of no rows."""
        lines, none = shape.width + 2, np.zeros((0, 0), dtype=np.int64)
        chunk = 4 * CHUNK if len(shape.balls) + shape.boxes >= MANY or _lie_apart(shape) else CHUNK
        held = np.zeros((-(-lines // 4) * 4, chunk))
        held[lines - 1] = 2.0**shape.bits
        pairs = (shape.cells, (lines - 1) * lines // 2 if _lie_apart(shape) else 0)
        found = cls(none, none)
        found.held, found.lengths = held, np.empty(chunk)
        found.products = np.zeros((len(held), len(held)), dtype=np.int64)
        found.first = np.zeros((shape.cells, lines), dtype=np.int64)
        found.apart, found.partial = np.zeros(pairs, dtype=np.int64), np.zeros(pairs)
        return found

    def add(self, shape: Regression, code: Array) -> None:
        """Add the products of the chunk at hand."""
        loops, size = _loops(), len(code)
        if shape.cells == 1:
            loops.add_products(self.held, size, self.products)
            return
        loops.add_first(code, self.held, size, self.first)
        if _lie_apart(shape):
            rows = np.ascontiguousarray(self.held[: shape.width + 1, :size].T)
            loops.add_apart(code, rows, self.partial, self.apart)
        else:
            loops.add_products(self.held, size, self.products)


def _lie_apart(shape: Regression) -> bool:
    return shape.apart and shape.cells > 1


def laid_out(shape: Regression, first: Array, second: Array) -> Array:
    """Put sums of whole numbers into the order in which they are released.

    Parameters
    ----------
    shape : Regression
    first : (n_cells, d + 2) array
        Sums of t, u and the constant, times the constant, ``2**bits``.
    second : (n_cells or 1, (d + 1) (d + 2) / 2) array
        Of the products of all pairs of t and u, by rows of the upper triangle: of each cell where they lie apart.
    """
    d = shape.width
    i, j = np.triu_indices(d + 1)
    pairs = np.flatnonzero(j < d) if not shape.known else np.empty(0, dtype=int)
    order = [*pairs, *np.flatnonzero((i < d) & (j == d)), *([len(i) - 1] if shape.square else [])]
    sizes = first[:, d + 1] if shape.sizes else first[:0, 0]
    sums = first[:, d if shape.known else 0 : d + 1] if shape.constant else first[:, :0]
    return np.concatenate([sizes, sums.ravel(), second[:, order].ravel()]).astype(np.int64)[None]


def _loops() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.kernel import gram_loops

    return gram_loops
