"""Multinomial rows of a known number of trials: counts of every category, added over the rows."""

from __future__ import annotations

from typing import override

from pymc_dp.errors import Problem
from pymc_dp.families.conjugate_form import Shares
from pymc_dp.families.constants import number
from pymc_dp.families.family import CountFamily, LevelCounts, RowStatistic
from pymc_dp.families.feature_family import MOST
from pymc_dp.inspection.findings import Observed


class Multinomial(CountFamily):
    """``pm.Multinomial`` (also ``pm.OrderedMultinomial``) with one known number of trials n for all rows.

    The sums of N rows are multinomial themselves, of N n trials, so that nothing is approximated beyond what it is for
    categories. Where N is private its prior is taken to be spread over all totals rather than over the multiples of n.
    Rows that are no counts of n trials are made ones, see `LevelCounts`: what is missing goes to the last category.
    """

    distribution = "multinomial"
    event_ndims = (0, 1)
    conjugate = (Shares(slot=1),)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        trials = number(observed.parameters[0])
        if trials is None or trials != int(trials) or not 1 <= trials <= MOST:
            return Problem(
                where=observed.name,
                what="the number of trials n of a multinomial likelihood is not one constant in 1..2**29",
                remedy="Give n as a number that holds for every row, at most 2**29.",
            )
        if observed.bounds is not None and observed.bounds != (0, trials):
            return Problem(
                where=observed.name,
                what=f"its bounds {observed.bounds} are not its counts 0..{trials:g}",
                remedy="Leave the bounds out: the likelihood already says which values there are.",
            )
        n_levels = observed.static_shapes[1][-1]
        if n_levels is None or n_levels < 2:
            return Problem(
                where=observed.name,
                what="the number of its categories, 2 at least, is not known before sampling",
                remedy="Give the probability vector dims= or a constant shape.",
            )
        return LevelCounts(labels=tuple(str(k) for k in range(n_levels)), trials=int(trials))


__all__ = ["Multinomial"]
