"""How far one row moves a log-likelihood over the one unknown parameter of an exponential family: closed forms.

With ``l(x, θ) = T(x) η(θ) - c A(θ)``, c a known number, two rows of one cell differ by ``(T - T') η(θ)``: its range
over θ is the width of T times that of η, which is monotone. The range of one row alone, ``max_θ l - min_θ l``, is a
largest value of functions that are linear in T, so convex: it is largest at an end of T. l has one maximum in θ, so
that its least value is at an end of the box of θ, and its greatest at that maximum or at the end next to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pymc_dp.families.features import BoundedFeatures, RowStatistic
from pymc_dp.families.one_parameter import OneParameter
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.closed_form_ranges import SLACK

Box = tuple[Array, Array]


def one_parameter_range(
    family: OneParameter,
    statistic: RowStatistic,
    boxes: Sequence[Box],
    touched: Array,
    *,
    neighbours: str,
    moves: bool,
) -> float:
    """Bound the range over the unknown parameter of what one row adds to the log-likelihood.

    Parameters
    ----------
    family : OneParameter
        What the likelihood says of itself.
    statistic : RowStatistic
        Its public bounds.
    boxes : sequence of (low, high)
        Public bounds of each parameter per cell; those of the known one are equal.
    touched : (n_cells,) boolean array
        Cells whose parameter moves; the others add nothing.
    neighbours : {"replace", "add_remove"}
    moves : bool
        Whether a private column lets a row change its cell.

    Returns
    -------
    float
        inf where nothing bounds it.

    Examples
    --------
    >>> from pymc_dp.families.binomial import Binomial
    >>> counts = BoundedMoments(low=0, high=3, centre=0, unit=1, half_width=1.5, powers=(1,))
    >>> trials, chance = (np.array([3.0]),) * 2, (np.array([0.1]), np.array([0.9]))
    >>> found = one_parameter_range(
    ...     Binomial.one_parameter, counts, [trials, chance], np.array([True]), neighbours="replace", moves=False
    ... )
    >>> round(float(found / np.log(9)), 6)
    6.0
    """
    assert not isinstance(statistic, LevelCounts)
    low, high = boxes[family.slot]
    known = (np.ones(len(low)),) * 2 if family.known is None else boxes[family.known]
    inside = (low > family.low) & (high < family.high) & (known[0] == known[1]) & (known[0] > 0)
    with np.errstate(all="ignore"):
        least, most = _ends(statistic)
        c = known[0]
        same = (most - least) * np.abs(family.natural(high, c) - family.natural(low, c))
        alone = np.maximum(*(_alone(family, np.full(low.shape, t), low, high, c) for t in (least, most)))
    same, alone = (np.where(touched, np.where(inside, item, np.inf), 0.0) for item in (same, alone))
    value = alone.max() if neighbours == "add_remove" else same.max()
    if neighbours == "replace" and moves and len(alone) > 1:  # the row leaves one cell and enters another
        value = max(value, np.sort(alone)[-2:].sum())
    return float(value) * SLACK if np.isfinite(value) else np.inf


def _ends(statistic: RowStatistic) -> tuple[float, float]:
    """Least and greatest T of a row, as it is rounded and clipped."""
    if isinstance(statistic, BoundedMoments):
        return float(statistic.low), float(statistic.high)
    assert isinstance(statistic, BoundedFeatures)
    (only,) = statistic.features
    return only.centre - only.half_width, only.centre + only.half_width


def _alone(family: OneParameter, t: Array, low: Array, high: Array, c: Array) -> Array:
    best = family.best(t, c)
    best = np.clip(np.where(np.isnan(best), low, best), low, high)
    heights = np.stack([family.density(t, place, c) for place in (best, low, high)])
    top, bottom = heights.max(axis=0), heights[1:].min(axis=0)
    return np.asarray(top - bottom + 1e-13 * np.abs(heights).max(axis=0))


__all__ = ["one_parameter_range"]
