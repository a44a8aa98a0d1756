"""How far one row can move the sums of a regression: exact integers, from the largest sensitivity in real numbers.

All sums count in steps of ``4**-bits`` and a row adds whole numbers that stand, without rounding, for a point of its
boxes and balls (the size of its cell counts ``4**bits``). So a bound for all real points, in these steps, is one for
rows as they are added up.

`kernel.blocks` has the proof, case by case.

How far the linear predictors of a regression reach, by public knowledge alone: bounds of the columns, and priors.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from pymc_dp.domain import Neighbours
from pymc_dp.errors import PrivacyError
from pymc_dp.families.cells import Cells
from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.design import Design
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.blocks import Blocks
from pymc_dp.release.sensitivity import SumSensitivity


def gram_sensitivity(statistic: GramSums, neighbours: Neighbours) -> SumSensitivity:
    """Sensitivity of the sums of a regression.

    Parameters
    ----------
    statistic : GramSums
    neighbours : {"replace", "add_remove"}

    Returns
    -------
    Sensitivity
        In grid steps; the largest one in real numbers, rounded up. The squared L2 is attained (with public predictors,
        by rows as long as they may be). The L1 is attained by bounded columns in one cell, by rows that are added, and
        by rows that change their cell where products lie apart; for one ball the search of the tests comes within 5%
        of it, for balls beside other predictors within 35%.

    Raises
    ------
    PrivacyError
        If a row can be added or removed, with predictors that are public.

    Notes
    -----
    **Guarantee.** For every two tables that are neighbours, whatever they hold, sums of `gram_sums` differ by no more.
    By proof, case by case, in integers; roots are rounded up.
    """
    blocks = _blocks_of(statistic)
    if neighbours == "add_remove":
        if statistic.known:
            raise PrivacyError(
                "With neighbours='add_remove' a row brings its own predictors, which cannot be public. Leave them out "
                "of Domain(public=...), or use neighbours='replace'."
            )
        l1, l2, reason = blocks.row_l1, blocks.row_squared, "one row adds its products"
    elif statistic.known:
        l1, l2, reason = *blocks.known, "one row changes its response between the bounds"
    else:
        l1, l2, reason = (
            blocks.stay_l1,
            blocks.stay_squared,
            "one row changes its numbers, in half widths of the bounds",
        )
        if len(statistic.cells) > 1 and not statistic.sizes_known:
            l1, l2 = max(l1, blocks.move_l1), max(l2, blocks.move_squared)
            reason += ", or takes its products from one cell to another"
    unit = 4**statistic.bits
    return SumSensitivity(l1=ceil(l1 * unit), l2_squared=ceil(l2 * unit**2), shifts=None, reason=reason)


def _blocks_of(statistic: GramSums) -> Blocks:
    balls = tuple(source.width for source in statistic.sources if source.ball and source.width > 1)
    return Blocks(
        balls=balls,
        boxes=statistic.width - sum(balls) + 1,
        constant=statistic.constant,
        square=statistic.square,
        sizes=not statistic.sizes_known,
        apart=statistic.apart,
        longest=statistic.longest,
    )


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


__all__ = ["gram_sensitivity", "reach_of", "spread_predictors"]
