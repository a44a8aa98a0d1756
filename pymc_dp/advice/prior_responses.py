"""What the prior expects of responses beside their bounds: no row is looked at.

Priors of normal responses far wider than the bounds mislead noised gradients. Counts spread far less than their bounds.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from pymc_dp.families.family import WholeFamily
from pymc_dp.families.gram import GramSums
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array
from pymc_dp.release.regression_reach import spread_predictors
from pymc_dp.release.tables import TablePlan
from pymc_dp.transforms.likelihood import per_cell_parameters

DRAWS = 200
ROWS = 20
"""Of a cell, drawn of every draw from the prior."""
LEAST_WITHIN = 0.5
"""Share of cells and of draws from the prior with counts not all at a bound, from which it says what to expect."""


def expected_within(table: TablePlan) -> float:
    """Return the share of normal responses within their bounds, by draws from the prior. Reads no private value.

    Every cell counts as much, and predictors are spread evenly over their bounds. A prior that cannot be drawn from
    expects nothing within any bounds.

    Parameters
    ----------
    table : TablePlan
        Of a normal likelihood, in a layout without problems: its parameters hold no row.
    """
    assert table.observed.bounds is not None
    low, high = table.observed.bounds
    try:
        mean, deviation = _drawn(table)
    except NotImplementedError:
        return 0.0
    with np.errstate(all="ignore"):
        share = ndtr((high - mean) / deviation) - ndtr((low - mean) / deviation)
    return float(np.nan_to_num(share).mean())


def expected_counts(table: TablePlan) -> tuple[float, float] | None:
    """Return a typical mean and standard deviation of counts in a cell, medians over the prior between the bounds.

    None of other responses, where the prior cannot be drawn from, and where it expects most cells to have counts at a
    bound only: it says too little of them. Reads no private value.
    """
    statistic, family = table.statistic, table.family
    if not (isinstance(family, WholeFamily) and isinstance(statistic, BoundedMoments)):
        return None
    rng = np.random.default_rng(0)
    try:
        given = [np.asarray(item) for item in plain_draw(per_cell_parameters(table.observed, table.cells), 0, DRAWS)]
        with np.errstate(all="ignore"):
            rows = np.array([np.clip(family.draw(rng, *given), statistic.low, statistic.high) for _ in range(ROWS)])
    except (NotImplementedError, ValueError):  # counts of a prior so wide cannot be drawn
        return None
    means, variances = rows.mean(axis=0), rows.var(axis=0, ddof=1)
    within = (variances > 0) & (rows.max(axis=0) < statistic.high)
    if within.mean() < LEAST_WITHIN:
        return None
    return float(np.median(means[within])), float(np.sqrt(np.median(variances[within])))


def _drawn(table: TablePlan) -> tuple[Array, Array]:
    """Return draws of means and of standard deviations, in shapes that broadcast."""
    observed, statistic, cells = table.observed, table.statistic, table.cells
    if observed.design is None:
        mean, deviation = plain_draw(per_cell_parameters(observed, cells), 0, DRAWS)
        return mean, deviation
    assert isinstance(statistic, GramSums)
    coefficients = observed.design.coefficients(cells.constants, cells.count)
    intercepts, slopes, deviation = plain_draw([*coefficients, observed.design.dispersion], 0, DRAWS)
    return spread_predictors(intercepts, slopes, statistic), deviation.reshape((DRAWS, 1, 1))


__all__ = ["expected_counts", "expected_within"]
