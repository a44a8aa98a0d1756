"""How far one row moves a log-likelihood over the one unknown parameter of an exponential family: closed forms.

With ``l(x, θ) = T(x) η(θ) - c A(θ)``, c a known number, two rows of one cell differ by ``(T - T') η(θ)``: its range
over θ is the width of T times that of η, which is monotone. The range of one row alone, ``max_θ l - min_θ l``, is a
largest value of functions that are linear in T, so convex: it is largest at an end of T. l has one maximum in θ, so
that its least value is at an end of the box of θ, and its greatest at that maximum or at the end next to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pymc_dp.families.features import BoundedFeatures, RowStatistic
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.closed_form_ranges import SLACK

Box = tuple[Array, Array]


@dataclass(frozen=True, kw_only=True)
class OneParameter:
    """A likelihood with one unknown parameter.

    Attributes
    ----------
    slot : int
        Which of its parameters is unknown.
    known : int or None
        Which of its parameters is the number c; None for 1.
    natural : callable
        η as a function of θ and c.
    density : callable
        l as a function of T, θ and c, up to terms free of θ.
    best : callable
        The θ at which l is largest, from T and c.
    low, high : float
        Open interval of values of θ.
    """

    slot: int
    known: int | None
    natural: Callable[[Array, Array], Array]
    density: Callable[[Array, Array, Array], Array]
    best: Callable[[Array, Array], Array]
    low: float = 0.0
    high: float = np.inf


def _of_scale(known: int | None = None, slot: int = 1) -> OneParameter:
    """A scale s: ``-c log s - T / s``."""
    return OneParameter(
        slot=slot,
        known=known,
        natural=lambda s, c: -1 / s,
        density=lambda t, s, c: -c * np.log(s) - t / s,
        best=lambda t, c: t / c,
    )


ONE_PARAMETER: dict[str, OneParameter] = {
    "binomial": OneParameter(
        slot=1,
        known=0,
        natural=lambda p, c: np.log(p) - np.log1p(-p),
        density=lambda t, p, c: t * np.log(p) + (c - t) * np.log1p(-p),
        best=lambda t, c: t / c,
        high=1.0,
    ),
    "geometric": OneParameter(
        slot=0,
        known=None,
        natural=lambda p, c: np.log1p(-p),
        density=lambda t, p, c: np.log(p) + (t - 1) * np.log1p(-p),
        best=lambda t, c: 1 / t,
        high=1.0,
    ),
    "negative_binomial": OneParameter(
        slot=1,
        known=0,
        natural=lambda p, c: np.log1p(-p),
        density=lambda t, p, c: c * np.log(p) + t * np.log1p(-p),
        best=lambda t, c: c / (c + t),
        high=1.0,
    ),
    "exponential": _of_scale(slot=0),
    "gamma": _of_scale(known=0),
    "laplace": _of_scale(),
    "invgamma": OneParameter(
        slot=1,
        known=0,
        natural=lambda b, c: -b,
        density=lambda t, b, c: c * np.log(b) - t * b,
        best=lambda t, c: c / t,
    ),
    "weibull": OneParameter(
        slot=1,
        known=0,
        natural=lambda s, c: -(s**-c),
        density=lambda t, s, c: -c * np.log(s) - t * s**-c,
        best=lambda t, c: t ** (1 / c),
    ),
    "halfnormal": OneParameter(
        slot=1,
        known=None,
        natural=lambda s, c: -0.5 * s**-2.0,
        density=lambda t, s, c: -np.log(s) - 0.5 * t * s**-2.0,
        best=lambda t, c: np.sqrt(t),
    ),
}
"""By the name of the family. T is the statistic of one row: x, |x - location|, 1/x, x^2 or x^alpha."""


def one_parameter_range(
    distribution: str,
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
    distribution : str
        Key of `ONE_PARAMETER`.
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
    >>> counts = BoundedMoments(low=0, high=3, centre=0, unit=1, half_width=1.5, powers=(1,))
    >>> trials, chance = (np.array([3.0]),) * 2, (np.array([0.1]), np.array([0.9]))
    >>> found = one_parameter_range(
    ...     "binomial", counts, [trials, chance], np.array([True]), neighbours="replace", moves=False
    ... )
    >>> round(float(found / np.log(9)), 6)
    6.0
    """
    assert not isinstance(statistic, LevelCounts)
    family = ONE_PARAMETER[distribution]
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


__all__ = ["ONE_PARAMETER", "OneParameter", "one_parameter_range"]
