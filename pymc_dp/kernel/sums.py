"""Noised sums: of vectors within a norm, of numbers within an interval, of certified shapes, and of bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from pymc_dp.kernel import draw, limits
from pymc_dp.kernel.accounting.events import Event
from pymc_dp.kernel.arguments import positive, whole, word
from pymc_dp.kernel.choices import Choices, Ends
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.gram import CERTIFIED
from pymc_dp.kernel.holder import weighted
from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.payer import Array, Pay
from pymc_dp.kernel.rowmap import RowMap
from pymc_dp.kernel.shapes import Move, Shape
from pymc_dp.kernel.table import WEIGHT_BITS

Noise = Literal["laplace", "gaussian"]
ORDERS = {"laplace": 1, "gaussian": 2}
FLOAT = 2.0**-45
"""Bound of the relative errors of exp and log that `soft_max` needs: a hundred times what libraries state."""


def widest(shape: Shape) -> int:
    """Return how many numbers of a row are held at once: what a row map gives, or what is made of it."""
    return max(shape.facts.inputs, shape.facts.size)


def sum_event(size: int, sense: int, noise: Noise, scale: float, units: int = UNITS) -> Event:
    """Return what a `sum` of vectors of `size` numbers costs, whose noise has `scale`; refuse what cannot be drawn."""
    (scale,), size, units = positive(scale=scale), whole("size", size), whole("units", units, 1, UNITS)
    most, kind = whole("sense", sense, 1, 2) * units, word("noise", noise, ORDERS)
    draw.check_noise(kind, scale * most)
    return Move(l1=most, l2_squared=most**2, coordinates=size).event(kind, scale * most)


def least_gap(candidates: int) -> float:
    """Return the least high - low of a `soft_max`: below, its floats would err by more than a unit."""
    return 2.0**-20 * (1 + math.log(candidates))


class Sums(Choices):
    """Operations that release sums of rows with noise."""

    def sum(
        self,
        rowmap: RowMap,
        parameters: Sequence[Any],
        size: int,
        *,
        bound: float,
        noise: Noise,
        scale: float,
        units: int = UNITS,
        pay: Pay = None,
    ) -> Array:
        """Return noised sums of units' vectors, shortened to an L1 (laplace) or L2 norm (gaussian) of `bound`.

        Parameters
        ----------
        bound : float
            In the unit of the row map, in which sums are returned too.
        scale : float
            Of the noise, over what neighbours move the sum by.
        units : int
            `bound` is so many whole units, 2^24 at most.

        Notes
        -----
        **Guarantee.** ε = 1 / scale (laplace) or ρ = 1 / (2 scale²). Norms of whole numbers are at most `units`,
        checked on these; neighbours differ by sense `units`. Class exact, noise discrete.
        """
        bound, scale = positive(bound=bound, scale=scale)
        size, units, kind = whole("size", size), whole("units", units, 1, UNITS), word("noise", noise, ORDERS)
        given, most = self._prepared(rowmap, parameters, size), self.sense * units
        wide = scale * most
        self._pay(pay, sum_event(size, self.sense, noise, scale, units), "sum")
        total = self._read(lambda: draw.noised(self._vector(rowmap, given, size, bound, kind, units), kind, wide))
        return np.asarray(total * (bound / units))

    def _vector(self, rowmap: RowMap, given: list[Any], size: int, bound: float, noise: str, units: int) -> Array:
        total = np.zeros(size, dtype=np.int64)

        def add(found: Array, first: Array, times: Array, rows: list[Array], shares: Array) -> None:
            limits.add_norms(weighted(found, shares) / bound, first, times, ORDERS[noise], units, total)

        self._scan(rowmap, given, size, add)
        return total

    def soft_max(
        self,
        rowmap: RowMap,
        parameters: Sequence[Any],
        candidates: int,
        *,
        low: float,
        high: float,
        noise: Noise,
        scale: float,
        pay: Pay = None,
    ) -> float:
        """Return a noised log mean exp over candidates of Σ f_k, each unit's f_k held within [low, high].

        Notes
        -----
        **Guarantee.** ε = 1 / scale or ρ = 1 / (2 scale²). It moves by no more than the sums do, and 3 units: two for
        rounding to whole units, and one for the floats, whose error is at most 2^-44 (1 + log K) U / (high - low)
        units if exp and log err by no more than `FLOAT`; where that is more, it is refused. Class exact.
        """
        (scale,), kind = positive(scale=scale), word("noise", noise, ORDERS)
        candidates = whole("candidates", candidates)
        ends, given = Ends(low, high), self._prepared(rowmap, parameters, candidates)
        if ends.width < least_gap(candidates):
            raise ArgumentError(f"high - low must be {least_gap(candidates):.2g} or more, got {ends.width:g}.")
        moved = ends.moved(self.sense) + 3
        event = Move(l1=moved, l2_squared=moved**2, shifts=(moved,)).event(kind, scale * moved)
        draw.check_noise(kind, scale * moved)
        self._pay(pay, event, "soft_max")

        def work() -> Array:
            found = log_mean_exp(self._held(rowmap, given, candidates, ends).tolist(), ends.inverse)
            return draw.noised(np.array([found]), kind, scale * moved)

        return int(self._read(work)[0]) / ends.inverse

    def sums(
        self,
        rowmap: RowMap,
        parameters: Sequence[Any],
        shape: Shape,
        *,
        noise: Noise,
        scale: float,
        cell: str | None = None,
        cells: int = 1,
        pay: Pay = None,
    ) -> Array:
        """Return noised sums of whole numbers of a certified shape, by cells: (size,) or (cells, size).

        Parameters
        ----------
        scale : float
            Of the noise, in whole units; of those that are 2^finer times finer, with weights (`Shape.finer`), in which
            sums are returned then.
        cell : str, optional
            Column of whole numbers. Where it is public, a row cannot change its cell.

        Notes
        -----
        **Guarantee.** What `Shape.move` proves, at this scale: a pure loss of l1 / scale, or ρ = l2² / (2 scale²).
        Whole numbers are computed by the kernel from what the map returns, within the shape whatever that is. Class
        exact.
        """
        (scale,), kind = positive(scale=scale), word("noise", noise, ORDERS)
        place, several = self._cell(cell, persons=True), whole("cells", cells)
        move = self.move_of(shape, cell)
        given = self._prepared(rowmap, parameters, widest(shape))
        n_rows = self._table.n_rows if self.neighbours == "replace" else limits.MOST_ROWS
        if shape.entry * n_rows > 2**62:
            raise ArgumentError(f"Sums of {n_rows} rows would not fit into 64 bits. Take coarser units.")
        event = move.event(kind, scale)
        draw.check_noise(kind, scale)
        self._pay(pay, event, "sums")
        coarser = WEIGHT_BITS - shape.finer(self._table.weighted)
        found = self._read(
            lambda: draw.noised(self._shaped(rowmap, given, shape, place, several, coarser), kind, scale)
        )
        return found if cell is not None else found[0]

    def move_of(self, shape: Shape, cell: str | None = None) -> Move:
        """Return by how much neighbours of this table move a sum of a shape; public."""
        table = self._table
        if type(shape) not in CERTIFIED:  # exactly: another class would state its own move
            raise ArgumentError("shape must be one of the certified shapes.")
        moves = cell is not None and not table.columns[cell].public
        return shape.move(table.neighbours, moves=moves, weighted=table.weighted, rows=table.max_rows)

    def _shaped(
        self,
        rowmap: RowMap,
        given: list[Any],
        shape: Shape,
        place: int | None,
        cells: int,
        coarser: int,
    ) -> Array:
        """Return sums of whole numbers of a shape, by cells. **Private**."""
        total = np.zeros((cells, shape.facts.size), dtype=np.int64)

        def add(found: Array, first: Array, times: Array, rows: list[Array], shares: Array) -> None:
            held = np.zeros((len(found), shape.facts.size), dtype=np.int64)
            shape._hold(found, held)
            own = np.zeros(len(found), dtype=np.int64) if place is None else rows[place]
            limits.add_held(held, first, times, own, shares, coarser, total)

        self._scan(rowmap, given, shape.facts.inputs, add, wide=widest(shape))
        return total


def log_mean_exp(total: Sequence[int], inverse: float) -> int:
    """Return log mean exp of whole sums, in whole units: exact but for floats of the distance to the largest."""
    top = max(total)
    behind = np.array([max(one - top, -(2**62)) for one in total])
    return top + round(math.log(float(np.mean(np.exp(behind / inverse)))) * inverse)
