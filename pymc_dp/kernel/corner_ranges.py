"""By how much one row moves public linear functions of exact sums: the largest over pairs of known corners."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.kernel.payer import Array

if TYPE_CHECKING:
    from pymc_dp.kernel.layout import Block

MOST_PAIRED = 2**30
"""Candidates times pairs of corners; of more, each corner is compared with one centre."""
AT_ONCE = 2**21
"""Numbers of corners that are held at once."""
ROUNDINGS = 32 * 2.0**-53
"""Of four floats of up to three products each, and their differences, over the largest sum of sizes."""


def range_of(block: Block, exponents: Array, *, replace: bool) -> float:
    """Return a bound of what one row moves the exponents by, over candidates: no less than it is, whatever floats do.

    Under replace of differences of two corners of a group; where these are too many, twice that of one corner and a
    centre, which is the same for all corners.
    """
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
