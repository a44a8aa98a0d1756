"""How far one row can move released sums: exact integers, proved case by case."""

from __future__ import annotations

from dataclasses import dataclass

from pymc_dp.domain import Neighbours
from pymc_dp.families.features import SumStatistic
from pymc_dp.families.stated_sums import StatedSums
from pymc_dp.families.statistic import LevelCounts, OwnTotals


@dataclass(frozen=True, kw_only=True)
class SumSensitivity:
    """The largest sensitivity of an integer vector between neighbours.

    Attributes
    ----------
    l1 : int
        Sensitivity in the L1 norm, in grid steps.
    l2_squared : int
        Square of the sensitivity in the L2 norm, in squared grid steps.
    shifts : tuple of int or None
        The exact worst case coordinate by coordinate, where every worst case is a permutation of one; accountants
        may use it for tighter composition.
    reason : str
        The proof in a line.
    """

    l1: int
    l2_squared: int
    shifts: tuple[int, ...] | None
    reason: str

    def of_person(self, rows: int) -> SumSensitivity:
        """Return that of a person with up to `rows` rows: so many times as much, in L2 too, for all may be alike."""
        if rows == 1:
            return self
        reason = f"{self.reason}; a person adds {rows} rows at most"
        return SumSensitivity(l1=rows * self.l1, l2_squared=rows**2 * self.l2_squared, shifts=None, reason=reason)


def counts_sensitivity(statistic: LevelCounts, neighbours: Neighbours, *, sizes_known: bool) -> SumSensitivity:
    """Sensitivity of a table of counts; with two levels and public sizes, of the second count alone.

    Two vectors of counts >= 0 with sums of m at most differ by at most 2m in L1, and by 2m² in squared L2 (a² + b² -
    2ab, with a² <= m² and ab >= 0), in one cell or in two; both are attained by rows of one level each.

    Parameters
    ----------
    statistic : LevelCounts
    neighbours : {"replace", "add_remove"}
    sizes_known : bool
        Whether the number of rows of every cell is public, so that a row cannot change its cell.
    """
    if statistic.trials is not None:
        alone = sizes_known and statistic.n_levels == 2 and not isinstance(statistic, OwnTotals)
        return _trials_sensitivity(statistic.trials, neighbours, alone=alone)
    if neighbours == "add_remove":
        return SumSensitivity(l1=1, l2_squared=1, shifts=(1,), reason="one row adds 1 to one count")
    if sizes_known and statistic.n_levels == 2:
        reason = "one row moves one count by 1; the other count is the public size less it"
        return SumSensitivity(l1=1, l2_squared=1, shifts=(1,), reason=reason)
    return SumSensitivity(l1=2, l2_squared=2, shifts=(1, 1), reason="one row leaves one count and joins another")


def _trials_sensitivity(trials: int, neighbours: Neighbours, *, alone: bool) -> SumSensitivity:
    """Sensitivity of counts of which one row adds `trials`; `alone` if one count is released, without the other."""
    square = trials**2
    if neighbours == "add_remove":
        reason = f"one row adds {trials} to all counts together"
        return SumSensitivity(l1=trials, l2_squared=square, shifts=None, reason=reason)
    if alone:
        reason = f"one row moves one count by {trials} at most; the other count is the public total less it"
        return SumSensitivity(l1=trials, l2_squared=square, shifts=(trials,), reason=reason)
    reason = f"one row moves {trials} at most from some counts to others"
    return SumSensitivity(l1=2 * trials, l2_squared=2 * square, shifts=None, reason=reason)


def sizes_sensitivity(neighbours: Neighbours) -> SumSensitivity:
    """Sensitivity of the numbers of rows per cell, where these are private."""
    if neighbours == "add_remove":
        return SumSensitivity(l1=1, l2_squared=1, shifts=(1,), reason="one row adds 1 to the size of one cell")
    return SumSensitivity(l1=2, l2_squared=2, shifts=(1, 1), reason="one row leaves one cell and joins another")


def entries_sensitivity(width: int, neighbours: Neighbours) -> SumSensitivity:
    """Sensitivity of a histogram of all entries of rows that have `width` of them each, one table for all."""
    return sizes_sensitivity(neighbours) if width == 1 else _trials_sensitivity(width, neighbours, alone=False)


def sums_sensitivity(statistic: SumStatistic, neighbours: Neighbours, *, sizes_known: bool) -> SumSensitivity:
    """Sensitivity of sums of bounded numbers.

    Within one cell two rows differ by at most `spread`; a row that changes its cell takes its whole statistic
    (`magnitude`) out of one and puts another into the other.
    """
    if neighbours == "add_remove":
        l1, l2, reason = statistic.magnitude, statistic.magnitude_squared, "one row adds its centred value"
    elif sizes_known:
        l1, l2 = statistic.spread, statistic.spread_squared
        known = isinstance(statistic, StatedSums) and statistic.table is not None
        reason = "no two possible rows are further apart" if known else "one row changes its value between the bounds"
    else:
        l1 = max(statistic.spread, 2 * statistic.magnitude)
        l2 = max(statistic.spread_squared, 2 * statistic.magnitude_squared)
        reason = "one row takes its centred value from one cell to another"
    one = len(statistic.labels) == 1 and (neighbours == "add_remove" or sizes_known)
    return SumSensitivity(l1=l1, l2_squared=l2, shifts=(l1,) if one else None, reason=reason)
