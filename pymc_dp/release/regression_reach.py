"""How far the linear predictors of a regression reach, by public knowledge alone: bounds of the columns, and priors."""

from __future__ import annotations

import numpy as np

from pymc_dp.families.cells import Cells
from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.design import Design
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array

DRAWS = 400
ROWS = 64
COVERED = 0.99
"""Part of the linear predictors that stays within."""
UNKNOWN = 4.0
"""Where a prior cannot be drawn from."""


def reach_of(design: Design, statistic: GramSums, cells: Cells) -> float:
    """Return a number that 99% of linear predictors do not exceed, by the priors, on rows spread over the bounds."""
    coefficients = design.coefficients(cells.constants, cells.count)
    try:
        intercepts, slopes = plain_draw(list(coefficients), 0, DRAWS)
    except NotImplementedError:
        return UNKNOWN
    eta = spread_predictors(intercepts, slopes, statistic)
    return max(float(np.quantile(np.abs(eta), COVERED)), 1e-3)


def spread_predictors(intercepts: Array, slopes: Array, statistic: GramSums) -> Array:
    """Return linear predictors, (n_draws, n_cells, n_rows), of rows that are spread evenly over their bounds.

    Draws of intercepts are (n_draws, n_cells), and of slopes (n_draws, n_cells, n_columns).
    """
    return np.asarray(intercepts[..., None] + np.einsum("kcd,rd->kcr", slopes, _rows(statistic)))


def _rows(statistic: GramSums) -> Array:
    """Rows that are spread evenly over boxes, and over directions in balls."""
    rng = np.random.default_rng(0)
    parts = []
    for source in statistic.sources:
        t = rng.uniform(-1, 1, size=(ROWS, source.width))
        if source.ball:
            t = rng.normal(size=t.shape)
            t /= np.linalg.norm(t, axis=1, keepdims=True)
        parts.append(t)
    return statistic.centres + np.concatenate(parts, axis=1) * statistic.halves


__all__ = ["reach_of", "spread_predictors"]
