"""By how much one row moves many choices together: the sum over elements of the range of each over its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pymc_dp.kernel.corner_ranges import ROUNDINGS
from pymc_dp.kernel.payer import Array

if TYPE_CHECKING:
    from pymc_dp.kernel.layout import Block

MOST_PAIRED = 2**28
"""Candidates times pairs of corners, of all elements; of more, rows in different cells count one by one."""
AT_ONCE = 2**22
"""Pairs of corners that are held at once."""
PER_ELEMENT = 2.0**-48
"""What a sum over elements loses to floats for each of them, over the largest sum of sizes."""


class Moved(NamedTuple):
    """Sum of ranges that one row moves elements by at most, and how many elements it moves."""

    wide: float
    elements: int


class Element(NamedTuple):
    """An element in the cells where a row moves it.

    Attributes
    ----------
    cells : (n,) array
    parts : (K, n, n_corners) array
        What a row at a corner adds to each exponent.
    alone : (n, n_corners) array
        Ranges of these.
    """

    cells: Array
    parts: Array
    alone: Array


def range_of_each(block: Block, exponents: Array, *, replace: bool) -> Moved:
    """Return a bound of Σ_e of the range over k of what one row moves exponent (e, k) by; of (n, K, n_sums) exponents.

    No less than it is, whatever floats do. Elements whose exponents all move alike are not moved.
    """
    (at, room), n = block.corners, len(exponents)
    alone, count = np.zeros((block.cells, len(at))), np.zeros(block.cells, dtype=np.int64)
    loose, size = np.zeros((2, block.cells))
    elements = list[Element]()
    for own in exponents:
        held = own.reshape(len(own), block.cells, block.size)
        spread = np.ptp(held, axis=0)
        cells = np.flatnonzero(spread.any(axis=1))
        if not len(cells):
            continue
        held = held[:, cells]
        parts = np.einsum("kcj,vj->kcv", held, at)
        found = Element(cells, parts, np.ptp(parts, axis=0))
        alone[cells] += found.alone
        count[cells] += 1
        loose[cells] += spread[cells] @ room
        size[cells] += np.einsum("kcj,vj->kcv", np.abs(held), np.abs(at)).max(axis=(0, 2))
        if replace:
            elements.append(found)
    wide, most = float(alone.max()), int(count.max())
    if replace:
        wide, most = _farthest(block, alone, elements), _two(block, count)
    floats = (ROUNDINGS + n * PER_ELEMENT) * 2 * size.max()
    return Moved(float(wide + (2 if replace else 1) * loose.max() + floats), min(most, n))


def _two(block: Block, numbers: Array) -> int:
    """Return the largest sum of numbers of two cells that a row may move between, or of one if it stays there."""
    return max(int(np.sort(numbers[np.unique(cells)])[-2:].sum()) for cells in block.groups)


def _farthest(block: Block, alone: Array, elements: Sequence[Element]) -> float:
    """Return the largest sum of ranges over pairs of corners of a group."""
    groups = [np.unique(cells) for cells in block.groups]
    pairs = Pairs(alone, elements, MOST_PAIRED // sum(map(len, groups)))
    return max(pairs.largest(cells, absent=bool(absent)) for cells, absent in zip(groups, block.absent, strict=True))


class Pairs:
    """Pairs of corners, which are compared where that is not too much work.

    Parameters
    ----------
    alone : (n_cells, n_corners) array
        Sum of ranges of a row there alone.
    elements : sequence of Element
    most : int
        Candidates times pairs of corners, for each cell.
    """

    def __init__(self, alone: Array, elements: Sequence[Element], most: int) -> None:
        self._alone, self._most = alone, most
        self._place = np.full(len(alone), -1)
        self._elements: list[list[int]] = [[] for _ in alone]
        self._every = elements
        for number, element in enumerate(elements):
            for cell in element.cells:
                self._elements[cell].append(number)

    def largest(self, cells: Array, *, absent: bool = False) -> float:
        """Return the largest sum of ranges of two rows in some cells; with `absent`, one may be in none.

        Where it is too much work, the ranges of rows in different cells add up (triangle inequality), and at last those
        of any two.
        """
        corners = self._alone.shape[1]
        own = [self._every[number] for number in sorted({one for cell in cells for one in self._elements[cell]})]
        shared = [np.flatnonzero(np.isin(element.cells, cells)) for element in own]
        work = sum(len(element.parts) * (len(here) * corners) ** 2 for element, here in zip(own, shared, strict=True))
        if (len(cells) * corners) ** 2 <= AT_ONCE and work <= self._most * len(cells):
            return self._compared(cells, own, shared, absent=absent)
        ends = self._alone[cells]
        if len(cells) == 1:
            return max(_sum_of_two(ends.ravel()), float(ends.max()) if absent else 0.0)
        return max(_sum_of_two(ends.max(axis=1)), *(self.largest(cells[k : k + 1]) for k in range(len(cells))))

    def _compared(self, cells: Array, own: list[Element], shared: list[Array], *, absent: bool) -> float:
        """Compare all pairs: their ranges alone, less what elements with both corners have less than that."""
        corners = self._alone.shape[1]
        single = self._alone[cells].ravel()
        total = single[:, None] + single
        self._place[cells] = np.arange(len(cells))
        for element, here in zip(own, shared, strict=True):
            spots = (self._place[element.cells[here], None] * corners + np.arange(corners)).ravel()
            parts, ends = element.parts[:, here].reshape(len(element.parts), -1), element.alone[here].ravel()
            for k, spot in enumerate(spots):
                total[spot, spots] += np.ptp(parts - parts[:, k, None], axis=0) - ends - ends[k]
        self._place[cells] = -1
        return max(float(total.max()), float(single.max()) if absent else 0.0)


def _sum_of_two(numbers: Array) -> float:
    return float(np.sort(numbers)[-2:].sum()) if len(numbers) > 1 else 0.0
