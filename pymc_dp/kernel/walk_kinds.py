"""What one unit adds to a sum of a walk, and what such a sum costs: kinds that are held on whole numbers.

Floats come from block functions, which are not believed: whatever they are, each unit is held within the limit of the
kind, and no caller states by how far neighbours move a sum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final, override

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel import draw, limits, walk_limits
from pymc_dp.kernel.accounting.events import ComposedEvent, DiscreteGaussianEvent, Event
from pymc_dp.kernel.arguments import exact, exact_all, positive
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.shapes import FACTOR, ROOM, MHot, Move, OneHot

Array = npt.NDArray[Any]

MATRIX = FACTOR**2
"""A Frobenius norm of 1 is so many whole units."""
MOST_PRODUCTS = 2**33
"""Vectors of a unit times parameters squared: sums over slots of so many products of whole numbers fit into 64 bits."""
MOST_SQUARES = 10**7
"""So many squares are added in floats, within `ROOM`."""


class Kind(ABC):
    """What one unit adds to a sum: whole numbers within a limit, whatever floats a block function returns.

    Attributes
    ----------
    shape : tuple of int
        Of the floats of one unit.
    entries : int
        Numbers that are released.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of the floats of one unit; of vectors whose number is not known beforehand, the most."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """Numbers that are released."""

    @abstractmethod
    def squared(self, neighbours: str) -> int:
        """Return the largest square of a distance of two sums of neighbours, in whole units."""

    noise: ClassVar[str] = "gaussian"

    def event(self, scale: float, neighbours: str) -> Event:
        """Return what discrete noise of a scale costs, in whole units."""
        return DiscreteGaussianEvent(scale=scale, l2_squared=self.squared(neighbours), coordinates=self.entries)

    def scales(self, scale: float) -> tuple[float, ...]:
        """Return all scales at which noise is drawn."""
        return (scale,)

    def _empty(self) -> Array:
        """Return a sum of no units."""
        return np.zeros(self.entries, dtype=np.int64)

    @abstractmethod
    def _add(self, found: Array, total: Array) -> None:
        """Add units, each held within the limit, to a sum. **Private**."""

    def _noised(self, total: Array, scale: float) -> Array:
        """Return a sum with noise."""
        return draw.noised(total, self.noise, scale)


@final
@dataclass(frozen=True)
class Vector(Kind):
    """A unit adds a vector of L2 norm <= 2^24 units, from floats of norm <= 1 (`limits.add_norms`).

    Move: its norm where a unit comes or goes, twice that where one is replaced.
    """

    size: int

    def __post_init__(self) -> None:
        exact(1, size=self.size)

    @property
    @override
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    @override
    def entries(self) -> int:
        return self.size

    @override
    def squared(self, neighbours: str) -> int:
        return UNITS**2 * (4 if neighbours == "replace" else 1)

    @override
    def _add(self, found: Array, total: Array) -> None:
        once = np.ones(len(found), dtype=np.int64)
        limits.add_norms(found, np.arange(len(found) + 1), once, 2, UNITS, total)


@final
@dataclass(frozen=True)
class Bins(Kind):
    """A unit counts in one bin, by a share from 0 to 1, in 2^24 units; floats are the bin and the share.

    Move: one bin by 2^24; two, where a unit is replaced, and there are two.
    """

    count: int

    def __post_init__(self) -> None:
        exact(1, count=self.count)

    @property
    @override
    def shape(self) -> tuple[int, ...]:
        return (2,)

    @property
    @override
    def entries(self) -> int:
        return self.count

    @override
    def squared(self, neighbours: str) -> int:
        return UNITS**2 * (2 if neighbours == "replace" and self.count > 1 else 1)

    @override
    def _add(self, found: Array, total: Array) -> None:
        walk_limits.add_shares(found, float(UNITS), total)


@final
@dataclass(frozen=True)
class Counts(Kind):
    """A unit has `width` values, each of which counts 1 in one bin, or in none; floats are bins. Noise is Laplace's.

    Move: that of `OneHot` and `MHot`, in counts.
    """

    count: int
    width: int = 1
    noise: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        exact(1, count=self.count, width=self.width)

    @property
    @override
    def shape(self) -> tuple[int, ...]:
        return (self.width,)

    @property
    @override
    def entries(self) -> int:
        return self.count

    def move(self, neighbours: str) -> Move:
        """Return by how much neighbours move the counts."""
        one: OneHot | MHot = OneHot(self.count) if self.width == 1 else MHot(self.count, self.width)
        return one.move(neighbours)

    @override
    def squared(self, neighbours: str) -> int:
        return self.move(neighbours).l2_squared

    @override
    def event(self, scale: float, neighbours: str) -> Event:
        return self.move(neighbours).event(self.noise, scale)

    @override
    def _add(self, found: Array, total: Array) -> None:
        walk_limits.add_places(found, total)


class _Products(Kind):
    """Sums of Σ v vᵀ over a unit's vectors v, in units of 2^15, of a Frobenius norm of 2^30 units at most.

    A norm counts entries off the diagonal twice, and their noise is less by √2. So the event is in units of that noise:
    half of the squares, at the smaller scale, rounded down.
    """

    @override
    def event(self, scale: float, neighbours: str) -> Event:
        least, half = math.nextafter(scale / math.sqrt(2), 0.0), -(-self.squared(neighbours) // 2)
        return DiscreteGaussianEvent(scale=least, l2_squared=half, coordinates=self.entries)

    @override
    def scales(self, scale: float) -> tuple[float, ...]:
        return scale, scale / math.sqrt(2)


@final
@dataclass(frozen=True)
class Matrix(_Products):
    """A unit adds Σ v vᵀ over `columns` vectors at most; released is a symmetric matrix.

    Move: tr(AB) >= 0 for two positive semidefinite matrices, so that replacing one moves a sum by √2 norms at most.
    """

    width: int
    columns: int = 1

    def __post_init__(self) -> None:
        exact(1, width=self.width, columns=self.columns)
        if self.columns**2 > MOST_SQUARES:
            raise ArgumentError(f"columns² must be {MOST_SQUARES} at most, got {self.columns}².")

    @property
    @override
    def shape(self) -> tuple[int, ...]:
        return self.columns, self.width

    @property
    @override
    def entries(self) -> int:
        return self.width * (self.width + 1) // 2

    @override
    def squared(self, neighbours: str) -> int:
        return MATRIX**2 * (2 if neighbours == "replace" else 1)

    @override
    def _empty(self) -> Array:
        return np.zeros((self.width, self.width), dtype=np.int64)

    @override
    def _add(self, found: Array, total: Array) -> None:
        walk_limits.add_products(found, float(FACTOR), float(MATRIX) ** 2 * ROOM, total)

    @override
    def _noised(self, total: Array, scale: float) -> Array:
        return _symmetric(total, scale, np.ones(self.width, dtype=bool))


@final
@dataclass(frozen=True)
class Collapsed(_Products):
    """A unit adds sums of Σ v vᵀ over all entries of two slots, and the diagonal of slots that are shared.

    Released are a symmetric matrix over slots, (s, s), without the diagonal of shared ones, and of each parameter of a
    shared slot what is on the diagonal: one after the other, flat.

    Move: twice the norm where a unit is replaced, for sums of entries may be of either sign.

    Attributes
    ----------
    slots : tuple of int
        The slot of each parameter.
    shared : tuple of int
        1 for a slot that is shared, else 0.
    """

    slots: tuple[int, ...]
    shared: tuple[int, ...]
    columns: int = 1

    def __post_init__(self) -> None:
        exact(1, columns=self.columns)
        exact_all(None, slots=self.slots, shared=self.shared)
        count, size = len(self.shared), len(self.slots)
        if not size or not set(self.slots) <= set(range(count)) or not set(self.shared) <= {0, 1}:
            raise ArgumentError("slots must be places in shared, which must be 0 or 1.")
        if self.columns * size**2 > MOST_PRODUCTS or count**2 + size > MOST_SQUARES:
            raise ArgumentError(
                f"Sums over {count} slots of {size} parameters, of {self.columns} vectors, do not fit into 64 bits."
            )

    @cached_property
    def _kept(self) -> npt.NDArray[np.bool_]:
        """Parameters whose diagonal is released."""
        return np.array(self.shared, dtype=bool)[np.array(self.slots)]

    @property
    @override
    def shape(self) -> tuple[int, ...]:
        return self.columns, len(self.slots)

    @property
    @override
    def entries(self) -> int:
        count = len(self.shared)
        return count * (count + 1) // 2 - sum(self.shared) + int(self._kept.sum())

    @override
    def squared(self, neighbours: str) -> int:
        return MATRIX**2 * (4 if neighbours == "replace" else 1)

    @override
    def _empty(self) -> Array:
        return np.zeros(len(self.shared) ** 2 + len(self.slots), dtype=np.int64)

    def _parts(self, total: Array) -> tuple[Array, Array]:
        count = len(self.shared)
        return total[: count**2].reshape(count, count), total[count**2 :]

    @override
    def _add(self, found: Array, total: Array) -> None:
        slots, shared = np.array(self.slots), np.array(self.shared, dtype=bool)
        most = float(MATRIX) ** 2 * ROOM
        walk_limits.add_collapsed(found, slots, shared, float(FACTOR), most, *self._parts(total))

    @override
    def _noised(self, total: Array, scale: float) -> Array:
        pairs, own = self._parts(total)
        diagonal = np.zeros_like(own)
        diagonal[self._kept] = draw.noised(own[self._kept], "gaussian", scale)
        return np.concatenate([_symmetric(pairs, scale, ~np.array(self.shared, dtype=bool)).ravel(), diagonal])


def _symmetric(total: Array, scale: float, kept: Array) -> Array:
    """Return a noised symmetric matrix, without the entries of its diagonal that are not kept."""
    upper, own = np.triu_indices(len(total), 1), np.zeros(len(total), dtype=np.int64)
    own[kept] = draw.noised(np.diag(total)[kept], "gaussian", scale)
    noised = np.diag(own)
    noised[upper] = draw.noised(total[upper], "gaussian", scale / math.sqrt(2))
    return noised + np.triu(noised, 1).T


KINDS: set[type] = {Vector, Bins, Counts, Matrix, Collapsed}


@final
@dataclass(frozen=True)
class WalkSum:
    """A sum that a walk will make: what a unit adds, and the scale of the noise, in whole units; of matrices on the
    diagonal.
    """

    kind: Kind
    scale: float


def walk_events(sums: Sequence[WalkSum], neighbours: str) -> tuple[Event, ...]:
    """Return what each sum of a walk costs, under "replace" or "add_remove". Public."""
    return tuple(one.kind.event(one.scale, neighbours) for one in checked(sums))


def walk_event(sums: Sequence[WalkSum], neighbours: str) -> Event:
    """Return what all sums of a walk cost together. Public."""
    events = walk_events(sums, neighbours)
    return events[0] if len(events) == 1 else ComposedEvent(events=events)


def checked(sums: Sequence[WalkSum]) -> list[WalkSum]:
    """Return sums that nobody else holds; refuse kinds that are not known, and scales that are none."""
    found = []
    for one in sums:
        if type(one) is not WalkSum or type(one.kind) not in KINDS:
            raise ArgumentError("A walk is of WalkSums, each of a kind that is known, and of no class derived from it.")
        found.append(WalkSum(one.kind, positive(scale=one.scale)[0]))
    return found
