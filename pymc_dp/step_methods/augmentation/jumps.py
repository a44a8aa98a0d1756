"""Proposals for parameters with new rows at once: they move far where the noise is wide, and updates in turn do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.base import Point

AT_ONCE = 2
"""Coordinates that a jump moves: parameters of one likelihood often make up for each other in pairs."""
PER_SCAN = 4
REACH = (0.3, 10.0)
"""How far a jump goes, in first intervals of slices, which are as wide as the posterior given the rows."""


def jump(rng: np.random.Generator, point: Point, names: Sequence[str], widths: Mapping[str, Array | float]) -> Point:
    """Move a random pair of coordinates by normal steps of a random scale: as probable as the way back.

    Parameters
    ----------
    names : sequence of str
        Of the real value variables.
    widths : mapping of str to array or float
        By name, fixed beforehand.
    """
    sizes = [point[name].size for name in names]
    edges = np.cumsum([0, *sizes])
    chosen = rng.choice(edges[-1], size=min(AT_ONCE, int(edges[-1])), replace=False)
    scale = np.exp(rng.uniform(*np.log(REACH)))
    new = dict(point)
    for place, step in zip(chosen, scale * rng.standard_normal(len(chosen)), strict=True):
        which = int(np.searchsorted(edges, place, side="right")) - 1
        name, within = names[which], place - edges[which]
        value = np.array(new[name])
        value.reshape(-1)[within] += step * np.broadcast_to(widths[name], value.shape).ravel()[within]
        new[name] = value
    return new


__all__ = ["PER_SCAN", "jump"]
