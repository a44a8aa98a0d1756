"""What one row of a regression adds to a release: products of its clamped numbers, as whole numbers on one grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

FINEST_BITS = 20
"""Of the grid of one number: products of two of them have twice as many."""
SUM_BITS = 62
"""Sums of products stay below two to that power."""
MOST_PREDICTORS = 20
"""Private predictors whose products are unknown numbers of the model; of more, noised gradients are released."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """One array of the table, clamped and scaled: ``t = (x - centre) / half``.

    Attributes
    ----------
    name : str
    centres, halves : tuple of float
        One per column, in units of the array: where t is 0, and what t counts in.
    ball : bool
        Whether the vector of all t of a row has a Euclidean norm of at most 1 (centres are 0 then, and all halves the
        public norm). Else every t lies in [-1, 1] by itself.
    """

    name: str
    centres: tuple[float, ...]
    halves: tuple[float, ...]
    ball: bool = False

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.centres)

    @property
    def names(self) -> tuple[str, ...]:
        """One text per column."""
        return (self.name,) if self.width == 1 else tuple(f"{self.name}[{i}]" for i in range(self.width))


@dataclass(frozen=True, kw_only=True)
class GramSums:
    """A row in cell c, with numbers t (of all sources, d of them) and u (the response), adds some of their products.

    In this order, with one integer each, in steps of ``4**-bits``:

    - 1 to the size of its cell, unless sizes are public;
    - t_1, ..., t_d (unless they are public) and u to the sums of its cell, where there is a `constant`;
    - t_i t_j for i <= j (unless public), t_1 u, ..., t_d u, and u² where there is a `square`: to sums over all cells,
      or, with `apart`, to those of its cell.

    Attributes
    ----------
    sources : tuple of Source
    response : Source
        Of one column.
    cells : tuple of str
        Texts of the cells.
    sizes_known : bool
        Whether the number of rows of every cell is public; with one cell, whether the number of rows is.
    known : bool
        Whether all sources, and so the cells, are public: a row can change its response alone.
    longest : (float, float) or None
        Of the public rows that are `known`, the largest sums of |t| and of t²; None: as large as bounds allow.
    constant, square, apart : bool
    bits : int
        A number t is held as ``rint(2**bits t)``, toward zero in a ball; so that it stays within.
    """

    sources: tuple[Source, ...]
    response: Source
    cells: tuple[str, ...] = ("all rows",)
    sizes_known: bool = True
    known: bool = False
    longest: tuple[float, float] | None = None
    constant: bool = True
    square: bool = True
    apart: bool = False
    bits: int = FINEST_BITS
    kind: Literal["gram"] = "gram"

    @property
    def width(self) -> int:
        """Number of predictors d."""
        return sum(source.width for source in self.sources)

    @property
    def step(self) -> float:
        """Grid step of every sum; sums are pure numbers."""
        return float(4.0**-self.bits)

    @property
    def centres(self) -> np.ndarray:
        """(d,) array: where each predictor is 0 here, in its own units."""
        return np.array([item for source in self.sources for item in source.centres], dtype=float)

    @property
    def halves(self) -> np.ndarray:
        """(d,) array: what each predictor is counted in."""
        return np.array([item for source in self.sources for item in source.halves], dtype=float)

    @property
    def names(self) -> tuple[str, ...]:
        """One text per predictor."""
        return tuple(name for source in self.sources for name in source.names)

    def scaled(self, intercepts: Any, slopes: Any, dispersion: Any, *, normal: bool) -> tuple[Any, Any, Any]:
        """Return coefficients of the scaled predictors, from natural ones: arrays or tensors.

        With `normal`, the response is scaled too.
        """
        intercepts, slopes = intercepts + (slopes * self.centres).sum(axis=-1), slopes * self.halves
        if not normal:
            return intercepts, slopes, dispersion
        (centre,), (half,) = self.response.centres, self.response.halves
        return (intercepts - centre) / half, slopes / half, dispersion / half

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where the parts lie in the released vector: "sizes", "first" (cell by cell) and "second"."""
        n_cells = len(self.cells)
        sizes = 0 if self.sizes_known else n_cells
        first = n_cells * self.per_cell if self.constant else 0
        second = self.products * (n_cells if self.apart else 1)
        return {
            "sizes": slice(0, sizes),
            "first": slice(sizes, sizes + first),
            "second": slice(sizes + first, sizes + first + second),
        }

    @property
    def per_cell(self) -> int:
        """Sums of first order of one cell: those of t, and that of u at last."""
        return (0 if self.known else self.width) + 1

    @property
    def products(self) -> int:
        """Sums of second order: t_i t_j by rows of the upper triangle, then t_j u, then u²."""
        d = self.width
        return (0 if self.known else d * (d + 1) // 2) + d + self.square

    @property
    def count(self) -> int:
        """Number of sums."""
        return self.parts["second"].stop

    @property
    def labels(self) -> tuple[str, ...]:
        """One text per sum. Names stand for centred and scaled numbers."""
        x, y = self.names, self.response.name
        i, j = np.triu_indices(len(x))
        pairs = [] if self.known else [f"{x[a]} {x[b]}" if a != b else f"{x[a]}^2" for a, b in zip(i, j, strict=True)]
        second = [*pairs, *(f"{name} {y}" for name in x), *([f"{y}^2"] if self.square else [])]
        first = [*([] if self.known else x), y] if self.constant else []
        many = len(self.cells) > 1
        within = [f", {cell}" if many else "" for cell in self.cells]
        sizes = [] if self.sizes_known else [f"rows{cell}" for cell in within]
        ends = within if self.apart else [""]
        return (
            *sizes,
            *(f"sum {name}{cell}" for cell in within for name in first),
            *(f"sum {name}{cell}" for cell in ends for name in second),
        )


def grid_bits(n_rows: int) -> int:
    """Bits of the finest grid on which sums over this (public) number of rows fit."""
    return min(FINEST_BITS, (SUM_BITS - max(int(n_rows), 1).bit_length()) // 2)


__all__ = ["MOST_PREDICTORS", "GramSums", "Source", "grid_bits"]
