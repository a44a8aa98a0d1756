"""What the prior expects of normal responses beside their bounds: priors far wider mislead noised gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array
from pymc_dp.release.regression_sensitivity import spread_rows
from pymc_dp.release.tables import TablePlan
from pymc_dp.transforms.likelihood import per_cell_parameters

DRAWS = 200


@dataclass(frozen=True, kw_only=True)
class PriorResponses:
    """Responses of one likelihood, by draws from the prior.

    Attributes
    ----------
    within : float
        Share of them within their bounds.
    deviation : float
        Median of their standard deviation, over half the width of the bounds.
    """

    within: float
    deviation: float


def prior_responses(table: TablePlan) -> PriorResponses:
    """Draw normal responses from the prior. Reads no private value.

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
        return PriorResponses(within=0.0, deviation=np.inf)
    with np.errstate(all="ignore"):
        share = ndtr((high - mean) / deviation) - ndtr((low - mean) / deviation)
    return PriorResponses(
        within=float(np.nan_to_num(share).mean()), deviation=float(np.median(deviation)) / ((high - low) / 2)
    )


def _drawn(table: TablePlan) -> tuple[Array, Array]:
    """Return draws of means and of standard deviations, in shapes that broadcast."""
    observed, statistic, cells = table.observed, table.statistic, table.cells
    if observed.design is None:
        mean, deviation = plain_draw(per_cell_parameters(observed, cells), 0, DRAWS)
        return mean, deviation
    assert isinstance(statistic, GramSums)
    coefficients = observed.design.coefficients(cells.constants, cells.count)
    intercepts, slopes, deviation = plain_draw([*coefficients, observed.design.dispersion], 0, DRAWS)
    means = intercepts[..., None] + np.einsum("kcd,rd->kcr", slopes, spread_rows(statistic))
    return means, deviation.reshape((DRAWS, 1, 1))


__all__ = ["PriorResponses", "prior_responses"]
