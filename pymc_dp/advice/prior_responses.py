"""What the prior expects of normal responses beside their bounds: priors far wider mislead noised gradients."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array
from pymc_dp.release.regression_sensitivity import spread_predictors
from pymc_dp.release.tables import TablePlan
from pymc_dp.transforms.likelihood import per_cell_parameters

DRAWS = 200


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


__all__ = ["expected_within"]
