"""Counts whose total differs from row to row: sums of successes and failures, or of the counts of every category."""

from __future__ import annotations

from typing import override

from pymc_dp.errors import Problem
from pymc_dp.families.bernoulli import Bernoulli
from pymc_dp.families.exposed_counts import Exposed
from pymc_dp.families.family import CountFamily, Family, RowStatistic
from pymc_dp.families.feature_family import MOST
from pymc_dp.families.statistic import OwnTotals
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.totals import COUNTS, SUCCESSES


class Successes(CountFamily):
    """``pm.Binomial`` with a column of trials: Σ(n - y) and Σy.

    Given the trials of all its rows together, the successes of a cell are binomial, whatever the trials of each row
    are. That total is not public, even where the number of rows is: it is an unknown number of the private model, with
    a flat prior. A row adds n at most, the largest number of trials that its bounds allow.
    """

    distribution = SUCCESSES
    event_ndims = (0,)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        return _statistic(observed, ("failures", "successes"))

    supported = Bernoulli.supported
    probabilities = Bernoulli.probabilities


class Counts(CountFamily):
    """``pm.Multinomial`` with a column of totals: sums of the counts of every category, see `Successes`."""

    distribution = COUNTS
    event_ndims = (1,)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        n_levels = observed.static_shapes[0][-1]
        if n_levels is None or n_levels < 2:
            return Problem(
                where=observed.name,
                what="the number of its categories, 2 at least, is not known before sampling",
                remedy="Give the probability vector dims= or a constant shape.",
            )
        return _statistic(observed, tuple(str(k) for k in range(n_levels)))


def _statistic(observed: Observed, labels: tuple[str, ...]) -> RowStatistic | Problem:
    assert observed.totals is not None and observed.totals.bounds is not None
    most = int(observed.totals.bounds[1])
    if most > MOST:
        return Problem(
            where=observed.name,
            what=f"a row may have {most} trials, and sums of many rows overflow",
            remedy="Count in larger units: 2**29 at most.",
        )
    return OwnTotals(labels=labels, trials=most)


WITH_TOTALS: dict[str, Family] = {family.distribution: family for family in (Successes(), Counts(), Exposed())}
"""Families of likelihoods with a column of totals or exposures, which no sampler that holds the rows knows."""


__all__ = ["WITH_TOTALS"]
