"""How far one row can move the log-likelihood ratio of two public parameter values: closed forms, one per step.

The log-likelihood is linear in a row's statistic, l(x, θ) = <η(θ), s(x)>, so that g(x) = l(x, θ') - l(x, θ) is
<Δη, s(x)> with Δη public. Its extremes over everything that a row may be are those of a table entry (counts) or of a
quadratic on an interval (moments).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.statistic import GRID, BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Array

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


__all__ = ["RowTable", "StepRange", "row_groups"]
