"""How far one row can move a log-likelihood over a bounded parameter space, by what a family says of each cell.

How far one row can move the log-likelihood ratio of two public parameter values: closed forms, one per step.

The log-likelihood is linear in a row's statistic, l(x, θ) = <η(θ), s(x)>, so that g(x) = l(x, θ') - l(x, θ) is
<Δη, s(x)> with Δη public. Its extremes over everything that a row may be are those of a table entry (counts) or of a
quadratic on an interval (moments).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.errors import PrivacyError
from pymc_dp.families.cells import Cells
from pymc_dp.families.closed_form import Box
from pymc_dp.families.family import Family, with_closed_form
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.shapes import GRID

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


ROUNDING = 0.5 + 2**-20
"""Grid steps by which a rounded square may differ from the square, with room for the arithmetic of the pass."""
FIELDS = ("low", "high", "square_error")


@dataclass(frozen=True, kw_only=True, eq=False)
class RowTable:
    """What is public about the statistics of one observed variable's rows.

    Attributes
    ----------
    statistic : RowStatistic
    groups : (n_cells,) int64 array
        Cells with one number are those that a row may move among: all of them where every column is private, only its
        own where every column is public.
    """

    statistic: RowStatistic
    groups: Array

    @property
    def width(self) -> int:
        """Coefficients per cell: one per level; or of the number of rows, of the value and of its square."""
        return self.statistic.n_levels if isinstance(self.statistic, LevelCounts) else 3

    @property
    def size(self) -> int:
        """Coefficients of all cells."""
        return len(self.groups) * self.width


def row_groups(cells: Cells) -> Array:
    """Number the combinations of public levels: what a row cannot leave. Reads public levels only."""
    public = [
        np.searchsorted(column.levels, levels)
        for column, levels in zip(cells.columns, cells.levels, strict=True)
        if column.public
    ]
    if not public:
        return np.zeros(cells.count, dtype=np.int64)
    return np.unique(np.stack(public), axis=1, return_inverse=True)[1].astype(np.int64).reshape(-1)


class StepRange:
    """Range of g over all values of a row, and sums of g over rows held as statistics.

    Parameters
    ----------
    tables : sequence of RowTable
        One per observed variable; coefficients are those of all tables one after the other, cell by cell.
    neighbours : {"replace", "add_remove"}

    Notes
    -----
    **Guarantee.** An accept bit with odds ``exp(c + <Δη, S>)``, c public (Barker's rule: the exponential mechanism over
    two places), is R-DP and R²/8-zCDP, R what a call returns: sup g - inf g under ``replace`` (within what a row cannot
    leave), and sup |g| under ``add_remove``. Sups run over the public domain, never over the rows held. Several
    observed variables of one row add up. Arithmetic float64, with room for its rounding.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), appendix C; Dong, Durfee, Rogers (2020); Cesar, Rogers (2021), lemma
    3.4.

    Examples
    --------
    >>> table = RowTable(statistic=LevelCounts(labels=("0", "1")), groups=np.zeros(1, dtype=int))
    >>> round(StepRange([table], "replace")(np.array([-0.1, 0.2])), 6)
    0.3
    >>> round(StepRange([table], "add_remove")(np.array([-0.1, 0.2])), 6)
    0.2
    """

    def __init__(self, tables: Sequence[RowTable], neighbours: Neighbours) -> None:
        self.tables = tuple(tables)
        self.neighbours = neighbours
        self.size = sum(table.size for table in tables)
        self._widths = np.array([table.width for table in tables], dtype=np.int64)
        self._counts = np.array([isinstance(table.statistic, LevelCounts) for table in tables])
        self._cells = np.array([len(table.groups) for table in tables], dtype=np.int64)
        self._domains = np.array([_domain(table.statistic) for table in tables]).reshape(-1, len(FIELDS))
        alone = neighbours == "add_remove"
        groups = [np.zeros_like(table.groups) if alone else table.groups for table in tables]
        self._groups = np.concatenate([np.zeros(0, dtype=np.int64), *groups]).astype(np.int64)
        self._work = np.empty((2, 1 + int(self._groups.max(initial=0))))

    def __call__(self, change: Array, limit: float = np.inf) -> float:
        """Return an upper bound R for coefficients that differ by `change`; inf where nothing bounds it.

        Parameters
        ----------
        change : (size,) array
            Δη, public.
        limit : float
            Clamp of g, itself: then R is of clip(g, -limit, limit).
        """
        bound: float = _kernels().step_range(change, *self.layout, limit, self._work)
        return bound

    @property
    def layout(self) -> tuple[Array | bool, ...]:
        """The arguments of the compiled loops: kinds, widths and cells of each table, groups, domains, relation."""
        return (
            self._counts,
            self._widths,
            self._cells,
            self._groups,
            self._domains,
            self.neighbours == "add_remove",
        )


def _domain(statistic: RowStatistic) -> tuple[float, float, float]:
    """Least and largest value about the centre, and error of its square, all as the pass over the rows rounds them."""
    if not isinstance(statistic, BoundedMoments):
        return 0.0, 0.0, 0.0
    low, high = statistic.reach
    error = ROUNDING * statistic.half_width**2 / GRID if 2 in statistic.powers else 0.0
    return low * statistic.unit, high * statistic.unit, error


def _kernels() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.proofs import closed_form_step_kernels

    return closed_form_step_kernels


__all__ = ["RowRange", "RowTable", "StepRange", "row_groups", "row_range", "total_range"]
