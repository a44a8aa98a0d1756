"""How far one row can move a log-likelihood over a bounded parameter space, by what a family says of each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.families.closed_form import Box
from pymc_dp.families.family import Family, with_closed_form
from pymc_dp.families.features import RowStatistic
from pymc_dp.inspection.rows import Array

SLACK = 1 + 1e-12
"""Room for the rounding of the few operations of a closed form."""


@dataclass(frozen=True, kw_only=True)
class RowRange:
    """Bounds over one observed variable's rows and a box of parameters.

    Attributes
    ----------
    value : float
        Upper bound of sup over neighbours of (sup over θ of d - inf over θ of d), see ``families.closed_form``.
    sensitivity : float
        Upper bound of Δl = sup |d| [Foulds et al. 2016, equation 9]; inf where no base measure is known.
    reason : str
    """

    value: float
    sensitivity: float
    reason: str


def row_range(
    family: Family,
    statistic: RowStatistic,
    boxes: Sequence[Box],
    *,
    neighbours: str,
    moves: bool,
    moving: Sequence[Array] | None = None,
    normalised: bool = False,
    title: str = "",
) -> RowRange:
    """Bound how far one row moves the log-likelihood of one observed variable, over parameters in a box.

    Parameters
    ----------
    family : Family
    statistic : RowStatistic
        Its public bounds.
    boxes : sequence of (low, high)
        Public bounds of each parameter per cell.
    neighbours : {"replace", "add_remove"}
    moves : bool
        Whether a private column lets a row change its cell.
    moving : sequence of (n_cells,) boolean arrays, optional
        For each parameter the cells in which it moves; where it does not, it is held anywhere within its bounds. All
        move everywhere by default.
    normalised : bool
        Whether the probabilities of a categorical row are known to add up to 1.
    title : str
        Name of the likelihood in texts.

    Returns
    -------
    RowRange
        inf where nothing bounds it.

    Raises
    ------
    PrivacyError
        For a family without a closed form.

    Examples
    --------
    >>> from pymc_dp.families import FAMILIES
    >>> from pymc_dp.families.statistic import LevelCounts
    >>> box, family = (np.array([0.05]), np.array([0.95])), FAMILIES["bernoulli"]
    >>> found = row_range(family, LevelCounts(labels=("0", "1")), [box], neighbours="replace", moves=False)
    >>> round(found.sensitivity, 6), round(found.value / 2, 6)
    (2.944439, 2.944439)
    """
    form = family.closed_form
    if form is None:
        known = ", ".join(sorted(with_closed_form()))
        raise PrivacyError(f"No closed form bounds the rows of {family.distribution!r}; known: {known}.")
    if moving is None:
        moving = np.broadcast_arrays(*(np.ones(len(low), dtype=bool) for low, _ in boxes))
    anywhere = np.any(moving, axis=0)
    with np.errstate(all="ignore"):
        found = form.ranges(statistic, boxes, moving, normalised=normalised)

    def worst(*ranges: Array) -> Any:
        """Of rows that stay in their cell, and of those that come, go or change it."""
        same, alone = (np.where(np.resize(anywhere, item.shape), item, 0.0) for item in ranges)  # blocks of all cells
        if neighbours == "add_remove":
            return alone.max()
        apart = moves and len(anywhere) > 1  # the row leaves one cell and enters another: both can be the worst
        return np.maximum(same.max(), np.sort(alone)[-2:].sum() if apart else 0.0)

    value, sensitivity = worst(found.same, found.alone), worst(found.same_size, found.alone_size)
    if max(value, sensitivity) > 0:
        value, sensitivity = value + 2 * found.room, sensitivity + found.room
    sensitivity = math.inf if form.base is None else sensitivity
    value, sensitivity = (float(item) * SLACK if np.isfinite(item) else math.inf for item in (value, sensitivity))
    return RowRange(value=value, sensitivity=sensitivity, reason=found.reason.replace("{title}", title))


def total_range(ranges: Sequence[RowRange]) -> RowRange:
    """Range of several observed variables of one row: they add up."""
    return RowRange(
        value=sum(item.value for item in ranges),
        sensitivity=sum(item.sensitivity for item in ranges),
        reason="; ".join(dict.fromkeys(item.reason for item in ranges)),
    )


__all__ = ["RowRange", "row_range", "total_range"]
