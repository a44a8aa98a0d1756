"""Tables whose rows count for public nodes: a score that is Lipschitz in the row, as it is computed.

A bound on the range of a row's numbers says nothing about two rows that are close to each other: rounded, or computed
by a function that jumps, their numbers may differ by all of it. So where ε is per unit of a metric, the log-likelihood
of a row is replaced by its linear interpolation between nodes of a public grid. A sum over rows is then a sum over
nodes, each with a whole number of shares of rows, and how much the sum changes per unit of distance is read from the
numbers at the nodes, which are public.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from pymc_dp.errors import Problem, UnsupportedModelError, needs_bounds
from pymc_dp.inspection.rows import Array, Column, shape_of
from pymc_dp.metrics import Extent, Metric
from pymc_dp.proofs.lipschitz_in_rows import columns_of, extent_of, largest_per_unit

MOST_NODES = 5000
COARSEST, FINEST = 3, 8
"""Powers of 2: intervals between the nodes of one column of real numbers, fewest and most."""
SHARE_BITS = 40
"""Bits of a number of shares that all rows together have."""
FINE = 24
"""Bits of a place between two nodes, at most."""
VALUE_BITS = 20
"""Bits of the number of a node."""
ROUNDING = 1 + 1e-12
MOST_PAIRS = 2**27
"""Differences of numbers of nodes that are looked at; beyond that, twice the largest from one node bounds them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """The nodes of one number of a row.

    Attributes
    ----------
    column : Column
    entry : int
        Place of the number in the column's raveled row.
    low : float
    step : float
        From one node to the next.
    count : int
    bits : int or None
        A place between two nodes is rounded to so many bits; None for whole numbers, which are on nodes.
    """

    column: Column
    entry: int
    low: float
    step: float
    count: int
    bits: int | None

    @property
    def nodes(self) -> Array:
        """Values at the nodes: (count,) array."""
        return self.low + self.step * np.arange(self.count)

    def corners(self, values: Array) -> list[tuple[Array, Array]]:
        """Return the nodes about each clamped value, and the shares of it that they have. **Private**."""
        last = self.count - 1
        if self.bits is None:
            return [(np.clip(values.astype(np.int64) - int(self.low), 0, last), np.ones(len(values), dtype=np.int64))]
        whole = 2**self.bits
        with np.errstate(all="ignore"):
            found = np.rint((values.astype(np.float64) - self.low) / self.step * whole)
        place = np.clip(np.nan_to_num(found), 0, last * whole).astype(np.int64)
        cell = np.minimum(place >> self.bits, max(last - 1, 0))
        over = place - cell * whole
        return [(cell, whole - over), (np.minimum(cell + 1, last), over)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Nodes:
    """Public nodes that stand for all rows that there can be.

    Attributes
    ----------
    metric : Metric
    axes : tuple of Axis
        One for every number of a row.
    columns : list of arrays
        The nodes as rows of a table.
    named : mapping of str to Column
        Private columns of the table by the names that the metric gives them; all of them where it is of whole rows.

    Notes
    -----
    **Guarantee.** A row at x counts with the log-likelihood ``Σ_v w_v(x) f_v`` over nodes v, f their numbers at some
    points; the shares w are products of whole numbers of 2^-bits, linear in each real number of the row, and add up to
    one. With any numbers f, for two rows x and y and any two points the differences ``Σ_v (w_v(x) - w_v(y)) f_v`` at
    these points differ by at most ``per_unit(f) ρ(x, y)``, where ρ is that of rows as they are used: clamped, and real
    numbers rounded to a grid of ``resolution``. Sums over rows are exact, as whole numbers.
    """

    metric: Metric
    axes: tuple[Axis, ...]
    columns: list[Array]
    named: dict[str, Column]

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        metric: Metric,
        n_rows: int,
        *,
        layout: Layout | None = None,
        every: Sequence[Column] | None = None,
    ) -> Self:
        """Lay out the nodes. Reads no private value.

        Parameters
        ----------
        columns : sequence of Column
        metric : Metric
        n_rows : int
        layout : Layout, optional
            Where other nodes of the same rows are laid out too, so that rows are rounded in one way.
        every : sequence of Column, optional
            All columns of the table, where `columns` are those of one likelihood.

        Raises
        ------
        UnsupportedModelError
            For columns without bounds, and for rows of too many numbers.
        """
        layout = layout or Layout.of([columns], n_rows)
        axes = tuple(axis for column in columns for axis in _axes(column, layout))
        places = np.unravel_index(np.arange(math.prod(axis.count for axis in axes)), [axis.count for axis in axes])
        values = iter([axis.nodes[place] for axis, place in zip(axes, places, strict=True)])
        table = []
        for column in columns:
            size, shape = _size(column), shape_of(column.leaf)[1:]
            part = np.stack([next(values) for _ in range(size)], axis=1).reshape(-1, *shape)
            table.append(np.ascontiguousarray(part.astype(column.leaf.type.dtype)))
        named = columns_of(metric, every or columns)
        return cls(metric=metric, axes=axes, columns=table, named=named)

    @property
    def count(self) -> int:
        """Number of nodes."""
        return len(self.columns[0])

    @property
    def shares(self) -> int:
        """Shares that one row has."""
        return 2 ** sum(axis.bits or 0 for axis in self.axes)

    @property
    def grids(self) -> tuple[str, ...]:
        """What real numbers of a row are rounded to."""
        real = {axis.column.name: axis for axis in self.axes if axis.bits}
        return tuple(f"{name} to {axis.step / 2 ** (axis.bits or 0):.3g}" for name, axis in real.items())

    def __str__(self) -> str:
        real = {axis.column.name: axis for axis in self.axes if axis.bits}
        steps = ", ".join(f"{axis.step:.3g} of {name}" for name, axis in real.items())
        return f"{self.count} nodes" + (f", linear in steps of {steps}" if real else "")

    def weights(self, rows: Sequence[Array]) -> Array:
        """Count the shares of rows that each node has: (count,) int64 array. **Private**.

        Parameters
        ----------
        rows : sequence of (n_rows, ...) array
            Clamped, one per column.
        """
        flat = [row.reshape(len(row), -1)[:, entry] for row in rows for entry in range(int(np.prod(row.shape[1:])))]
        corners = [axis.corners(values) for axis, values in zip(self.axes, flat, strict=True)]
        total = np.zeros(self.count, dtype=np.int64)
        for chosen in itertools.product(*corners):
            place = np.ravel_multi_index([place for place, _ in chosen], [axis.count for axis in self.axes])
            np.add.at(total, place, math.prod(share for _, share in chosen))
        return total

    def per_unit(self, table: Array, owner: Array | None = None) -> float:
        """Return the largest difference per unit of ρ, over two points, of the numbers of two rows' differences.

        Parameters
        ----------
        table : (n_points, count) array
            Numbers of the nodes, whole ones of few enough bits: public.
        owner : (count,) array, optional
            Which of several choices a node's numbers are for, each among all points; one choice by default.
        """
        laid = _Laid(table=table, owner=owner, axes=self.axes)
        if not self.metric.columns:
            return laid.different(range(len(self.axes))) * ROUNDING
        extents = {name: _extent(column) for name, column in self.named.items()}

        def slope(name: str) -> float:
            return math.hypot(*(laid.slope(place) for place in self._places(name))) * ROUNDING

        def different(name: str) -> float:
            return laid.different(self._places(name))

        found = [largest_per_unit(part, extents, slope=slope, different=different) for part in self.metric.parts]
        return max(found) * ROUNDING

    def _places(self, name: str) -> list[int]:
        column = self.named[name]
        return [place for place, axis in enumerate(self.axes) if axis.column is column]


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """How finely real numbers are looked at, in all nodes of a model.

    Attributes
    ----------
    intervals : int
        Between nodes of one number, as a power of 2.
    bits : int
        Of a place between two nodes.
    """

    intervals: int
    bits: int

    @classmethod
    def of(cls, several: Sequence[Sequence[Column]], n_rows: int) -> Self:
        """Choose the finest that there are nodes for, in each of several sets of columns.

        Raises
        ------
        UnsupportedModelError
        """
        if problems := [problem for columns in several for column in columns if (problem := _problem(column))]:
            raise UnsupportedModelError(list(dict.fromkeys(problems)))
        finest, most_real = FINEST, 0
        for columns in several:
            levels = math.prod(_levels(column) ** _size(column) for column in columns if column.integer)
            real = sum(_size(column) for column in columns if not column.integer)
            fits = [p for p in range(COARSEST, FINEST + 1) if levels * (2**p + 1) ** real <= MOST_NODES]
            if not fits:
                raise UnsupportedModelError([_too_many(columns)])
            finest, most_real = min(finest, fits[-1]), max(most_real, real)
        room = SHARE_BITS - max(1, n_rows).bit_length()
        bits = min(FINE, room // max(1, most_real))
        if bits < 1:
            raise UnsupportedModelError([_too_many([column for columns in several for column in columns])])
        return cls(intervals=finest, bits=bits)


def diameter_of(columns: Sequence[Column], metric: Metric) -> float:
    """Return the largest distance of two rows as nodes have them: rounded, rows may exceed a norm by a little."""
    named = columns_of(metric, columns)
    return metric.diameter({name: _extent(column) for name, column in named.items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Laid:
    """Numbers of nodes along their axes."""

    table: Array
    owner: Array | None
    axes: tuple[Axis, ...]

    def slope(self, place: int) -> float:
        """Return the largest difference from one node to the next along an axis, per unit."""
        axis = self.axes[place]
        if axis.count < 2:
            return 0.0
        first, second = (self._along([place], part) for part in (slice(None, -1), slice(1, None)))
        return _apart(first, second) / axis.step * ROUNDING

    def different(self, places: Sequence[int]) -> float:
        """Return the largest difference of two nodes that agree in all other axes."""
        if not places:
            return 0.0
        table, owner = self._along(list(places), slice(None))
        count = table.shape[-1]
        if table.size * count <= 2 * MOST_PAIRS:
            return max(
                (_apart(_from(table, owner, lag), _upto(table, owner, lag)) for lag in range(1, count)), default=0.0
            )
        middle = slice(count // 2, count // 2 + 1)
        beside = table[..., middle], None if owner is None else owner[..., middle]
        return 2 * _apart((table, owner), beside)

    def _along(self, places: list[int], part: slice) -> tuple[Array, Array | None]:
        """Return numbers with some axes made one, the last, and of it a part."""
        shape = [axis.count for axis in self.axes]
        table = self.table.reshape(len(self.table), *shape)
        table = np.moveaxis(table, [place + 1 for place in places], range(-len(places), 0))
        table = table.reshape(*table.shape[: table.ndim - len(places)], -1)[..., part]
        if self.owner is None:
            return table, None
        owner = np.moveaxis(self.owner.reshape(shape), places, range(-len(places), 0))
        return table, owner.reshape(*owner.shape[: owner.ndim - len(places)], -1)[..., part]


def _from(table: Array, owner: Array | None, lag: int) -> tuple[Array, Array | None]:
    return table[..., lag:], None if owner is None else owner[..., lag:]


def _upto(table: Array, owner: Array | None, lag: int) -> tuple[Array, Array | None]:
    return table[..., :-lag], None if owner is None else owner[..., :-lag]


def _apart(one: tuple[Array, Array | None], two: tuple[Array, Array | None]) -> float:
    """Return the largest range over points of a difference; of numbers for two choices, their ranges add up."""
    (first, owner), (second, other) = one, two
    together = np.ptp(first - second, axis=0)
    if owner is None or other is None:
        return float(together.max(initial=0))
    apart = np.ptp(first, axis=0) + np.ptp(second, axis=0)
    return float(np.where(owner == other, together, apart).max(initial=0))


def _axes(column: Column, layout: Layout) -> Iterator[Axis]:
    low, high = _ends(column)
    for entry in range(_size(column)):
        if column.integer:
            yield Axis(column=column, entry=entry, low=low, step=1.0, count=_levels(column), bits=None)
        else:
            steps = 2**layout.intervals
            step = (high - low) / steps or 1.0
            yield Axis(column=column, entry=entry, low=low, step=step, count=steps + 1, bits=layout.bits)


def _extent(column: Column) -> Extent:
    """Return what the values of a column can be, a box in place of a norm."""
    found = extent_of(column)
    low, high = (0.0, 1.0) if np.dtype(column.leaf.type.dtype).kind == "b" else (found.low, found.high)
    if found.norm is not None:
        low, high = max(low, -found.norm), min(high, found.norm)
    return replace(found, low=low, high=high, norm=None)


def _ends(column: Column) -> tuple[float, float]:
    found = _extent(column)
    return found.low, found.high


def _levels(column: Column) -> int:
    low, high = _ends(column)
    return int(high - low) + 1


def _size(column: Column) -> int:
    return int(np.prod(shape_of(column.leaf)[1:], dtype=int))


def _problem(column: Column) -> Problem | None:
    low, high = _ends(column)
    if not math.isfinite(high - low):
        what = "under a metric its values need public bounds: ε per unit is enforced at nodes between them"
        remedy = f"{needs_bounds(column.name)}."
        return Problem(where=column.name, what=what, remedy=remedy)
    if column.public and not column.integer:
        what = "under a metric a public column of real numbers has more values than there are nodes for"
        remedy = "Use dp.OPS(), make it a code of few levels, or leave the metric out."
        return Problem(where=column.name, what=what, remedy=remedy)
    return None


def _too_many(columns: Sequence[Column]) -> Problem:
    names = ", ".join(column.name for column in columns)
    what = (
        f"under a metric ε per unit is enforced at nodes of a public grid, and rows of these columns need more than "
        f"{MOST_NODES}: {2**COARSEST + 1} for a real number, one for each level of another, multiplied"
    )
    return Problem(where=names, what=what, remedy="Use fewer columns or levels, dp.OPS(), or leave the metric out.")


__all__ = ["Axis", "Layout", "Nodes", "diameter_of"]
