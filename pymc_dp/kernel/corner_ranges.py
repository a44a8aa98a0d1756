"""By how much one row moves public linear functions of exact sums: the largest over pairs of known corners.

Of one choice, or of many together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pymc_dp.kernel.payer import Array

if TYPE_CHECKING:
    from pymc_dp.kernel.layout import Block

MOST_PAIRED = 2**30
"""Candidates times pairs of corners; of more, each corner is compared with one centre."""
AT_ONCE = 2**21
"""Numbers of corners that are held at once."""
ROUNDINGS = 128 * 2.0**-53
"""Of eight floats of up to seven products each, and their differences, over the largest sum of sizes."""


def range_of(block: Block, exponents: Array, *, replace: bool) -> float:
    """Return a bound of what one row moves the exponents by, over candidates: no less than it is, whatever floats do.

    Under replace of differences of two corners of a group; where these are too many, twice that of one corner and a
    centre, which is the same for all corners.
    """
    if replace and block.groups.shape[1] == 1 and not block.absent.any() and len(exponents) > 2:
        return range_of_each(block, exponents, replace=True).wide
    (at, room), n = block.corners, len(exponents)
    count = block.of_groups(np.zeros((1, block.cells, len(at))), together=replace).shape
    many = math.prod(count) * count[2] * max(n, 2**6) > MOST_PAIRED
    others = count[2] if replace and n > 2 and not many else 1
    ends = np.full((2, others, *count[1:]), -np.inf)
    loose, size, wide = np.full((2, exponents.shape[1]), -np.inf), 0.0, 0.0
    step = max(2, AT_ONCE // math.prod(count))
    for start in range(0, n, step):
        held = exponents[start : start + step]
        loose = np.maximum(loose, [held.max(axis=0), -held.min(axis=0)])
        held = held.reshape(len(held), block.cells, block.size)
        size = max(size, float(np.einsum("kcj,vj->kcv", np.abs(held), np.abs(at)).max(initial=0.0)))
        own = block.of_groups(np.einsum("kcj,vj->kcv", held, at), together=replace)
        if replace and n == 2:
            wide = float(np.ptp(own[1] - own[0], axis=1).max(initial=0.0))
        for place in range(others):
            about: Any = 0.0
            if replace:  # one corner, or the middle of all
                about = own[:, :, place, None] if others > 1 else (own.max(axis=2) + own.min(axis=2))[:, :, None] / 2
            moved = own - about
            ends[:, place] = np.maximum(ends[:, place], [moved.max(axis=0), -moved.min(axis=0)])
    if not (replace and n == 2):
        wide = float(ends.sum(axis=0).max(initial=0.0)) * (2 if replace and others == 1 else 1)
    rounded = float((loose.sum(axis=0).reshape(block.cells, block.size) @ room).max(initial=0.0))
    return wide + (2 if replace else 1) * rounded + ROUNDINGS * size


def moves_of(block: Block, exponents: Array, *, replace: bool) -> Array:
    """Return a bound of what neighbours move each exponent by, (n,): no less than it is, whatever floats do.

    Under replace the difference of two corners of a group, and one corner otherwise.
    """
    at, room = block.corners
    found = np.zeros(len(exponents))
    step = max(1, AT_ONCE // (block.groups.size * len(at) + block.cells * len(at)))
    for start in range(0, len(found), step):
        held = exponents[start : start + step].reshape(-1, block.cells, block.size)
        own = block.of_groups(np.einsum("kcj,vj->kcv", held, at), together=replace)
        wide = np.ptp(own, axis=2) if replace else np.abs(own).max(axis=2)
        rounded = (np.abs(held) @ room).max(axis=1)
        size = np.einsum("kcj,vj->kcv", np.abs(held), np.abs(at)).max(axis=(1, 2))
        found[start : start + step] = wide.max(axis=1) + (2 if replace else 1) * rounded + ROUNDINGS * size
    return found


class Moved(NamedTuple):
    """Sum of ranges that one row moves elements by at most, and how many elements it moves."""

    wide: float
    elements: int


def range_of_each(block: Block, exponents: Array, *, replace: bool) -> Moved:
    """Return a bound of the sum over elements of the range over k of what one row moves their exponents by.

    Exponents are (K, n_sums), and each cell is of one element, or of none, where they are 0. No less than it is,
    whatever floats do. Under replace rows of one cell are compared; those of two add up, whosever these are.
    """
    at, room = block.corners
    stays = replace and block.groups.shape[1] == 1 and not block.absent.any()
    cells = (block.cells, block.size)
    loose = np.ptp(exponents, axis=0).reshape(cells)
    size = float((np.abs(exponents).max(axis=0).reshape(cells) @ np.abs(at).T).max())
    floats, moved = ROUNDINGS * size + float((loose @ room).max()), loose.any(axis=1)
    if not replace:
        return Moved(float(_spans(block, exponents, at).max()) + floats, int(moved.any()))
    most = float(_of_one_cell(block, exponents).max())
    if stays:
        return Moved(most + 2 * floats, int(moved.any()))
    most = max(most, *_two(block, _spans(block, exponents, at), stays=0.0))
    return Moved(most + 2 * floats, int(max(_two(block, moved.astype(float), stays=1.0))))


def _of_one_cell(block: Block, exponents: Array) -> Array:
    """Return the range over k of what two rows of a cell differ by at most, (cells,).

    Where there are too many pairs of corners, twice that of one corner and the middle of all.
    """
    one, two = block.pairs.T
    if len(one) and len(exponents) * block.cells * len(one) <= MOST_PAIRED:
        return _spans(block, exponents, block.corners.at[one] - block.corners.at[two])
    return 2 * _spans(block, exponents, block.corners.at, about_middle=True)


def _spans(block: Block, exponents: Array, at: Array, *, about_middle: bool = False) -> Array:
    """Return the largest range over k of what (n, size) vectors add in each cell: (cells,); less the middle of all."""
    held = exponents.reshape(len(exponents), block.cells, block.size)
    found, several = np.zeros(block.cells), max(1, AT_ONCE // len(at))
    for first in range(0, block.cells, several):
        here = held[:, first : first + several]
        ends, step = np.full((2, here.shape[1], len(at)), -np.inf), max(1, AT_ONCE // (here.shape[1] * len(at)))
        for start in range(0, len(held), step):
            some = here[start : start + step]
            own = (some.reshape(-1, block.size) @ at.T).reshape(*some.shape[:2], len(at))
            if about_middle:
                own = own - (own.max(axis=2) + own.min(axis=2))[:, :, None] / 2
            ends = np.maximum(ends, [own.max(axis=0), -own.min(axis=0)])
        found[first : first + here.shape[1]] = ends.sum(axis=0).max(axis=1)
    return found


def pairs_of(count: int, at_once: int) -> Iterator[tuple[Array, Array]]:
    """Yield all pairs of so many corners, some at a time."""
    every = np.arange(count)
    for start in range(0, count, max(1, at_once // count)):
        one, two = np.meshgrid(every[start : start + max(1, at_once // count)], every, indexing="ij")
        yield one[one < two], two[one < two]


def _two(block: Block, numbers: Array, *, stays: float) -> list[float]:
    """Return the sum of the two largest numbers of each group of cells.

    Where a group is one cell, its own: if a row may be in none; else a share, where rows of one cell count otherwise.
    """
    found = []
    for cells, absent in zip(block.groups, block.absent, strict=True):
        own = np.sort(numbers[np.unique(cells)])
        found.append(float(own[-2:].sum()) if len(own) > 1 else float(own[0]) * (1.0 if absent else stays))
    return found
