"""How far one row can move a log-likelihood over a bounded parameter space: closed forms for the four families.

With l(x, θ) the log-likelihood of a row and d = l(x, θ) - l(x', θ), the range of d over θ is what the exponential
mechanism pays for (theory: Dong, Durfee, Rogers 2020); the sensitivity Δl of the papers is the largest |d|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.statistic import GRID, BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Array

PIECES = 4096
"""Pieces into which the values of a normal row are cut where no closed form is at hand; each gives an upper bound."""
OFF_BALANCE = 1e-5
"""How far from 1 the sum of a categorical row's probabilities may be, see ``families.categorical``."""
SLACK = 1 + 1e-12
"""Room for the rounding of the few operations below."""

Box = tuple[Array, Array]
"""Lowest and highest value of one parameter in each cell: two (n_cells,) or (n_cells, n_levels) arrays."""


@dataclass(frozen=True, kw_only=True)
class RowRange:
    """Bounds over one observed variable's rows and a box of parameters.

    Attributes
    ----------
    value : float
        Upper bound of sup over neighbours of (sup over θ of d - inf over θ of d).
    sensitivity : float
        Upper bound of Δl = sup |d| [Foulds et al. 2016, equation 9].
    reason : str
    """

    value: float
    sensitivity: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Bounds:
    """Per cell: what a row that stays in its cell moves, and what its coming or going moves."""

    same: Array
    alone: Array
    same_sup: Array
    alone_sup: Array
    reason: str


def row_range(
    distribution: str,
    statistic: RowStatistic,
    boxes: Sequence[Box],
    *,
    neighbours: str,
    moves: bool,
    normalised: bool = False,
) -> RowRange:
    """Bound how far one row moves the log-likelihood of one observed variable, over all parameters in a box.

    Parameters
    ----------
    distribution : str
        Name of the family.
    statistic : RowStatistic
        Its public bounds.
    boxes : sequence of (low, high)
        Public bounds of each parameter per cell.
    neighbours : {"replace", "add_remove"}
    moves : bool
        Whether a private column lets a row change its cell.
    normalised : bool
        Whether the probabilities of a categorical row are known to add up to 1. If not, they are what the likelihood
        makes of them: divided by their sum, which may be off by `OFF_BALANCE`.

    Returns
    -------
    RowRange
        inf where nothing bounds it.

    Raises
    ------
    PrivacyError
        For a family without a rule.

    Examples
    --------
    >>> box = (np.array([0.05]), np.array([0.95]))
    >>> found = row_range("bernoulli", LevelCounts(labels=("0", "1")), [box], neighbours="replace", moves=False)
    >>> round(found.sensitivity, 6), round(found.value / 2, 6)
    (2.944439, 2.944439)
    """
    rule = _RULES.get(distribution)
    if rule is None:
        raise PrivacyError(f"No closed form bounds the rows of {distribution!r}; known: {', '.join(sorted(_RULES))}.")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bounds = rule(statistic, _balanced(boxes) if normalised and distribution == "categorical" else boxes)
    spill = 0.0 if normalised or distribution != "categorical" else 2.1 * OFF_BALANCE
    if neighbours == "add_remove":
        value, sensitivity = bounds.alone.max(), bounds.alone_sup.max()
    else:
        value, sensitivity = bounds.same.max(), bounds.same_sup.max()
        if moves and len(bounds.alone) > 1:  # the row leaves one cell and enters another: both can be the worst
            value = max(value, np.sort(bounds.alone)[-2:].sum())
            sensitivity = max(sensitivity, np.sort(bounds.alone_sup)[-2:].sum())
    spilt = (value + 2 * spill, sensitivity + spill) if max(value, sensitivity) > 0 else (value, sensitivity)
    clean = [math.inf if not np.isfinite(item) else float(item) * SLACK for item in spilt]
    return RowRange(value=clean[0], sensitivity=clean[1], reason=bounds.reason)


def _balanced(boxes: Sequence[Box]) -> list[Box]:
    """Probabilities that add up to 1 are at most what the least of the others leave."""
    low, high = boxes[0]
    return [(low, np.minimum(high, low + (1 - low.sum(axis=-1, keepdims=True)).clip(0)))]


def _bernoulli(statistic: RowStatistic, boxes: Sequence[Box]) -> _Bounds:
    low, high = boxes[0]
    up, down = np.log(high / low), np.log1p(-low) - np.log1p(-high)  # ranges of log p and of log (1 - p)
    logit = np.maximum(abs(np.log(low) - np.log1p(-low)), abs(np.log(high) - np.log1p(-high)))
    return _Bounds(
        same=up + down,
        alone=np.maximum(up, down),
        same_sup=logit,
        alone_sup=np.maximum(-np.log(low), -np.log1p(-high)),
        reason="range of logit p over its bounds, or of log p and log(1 - p)",
    )


def _categorical(statistic: RowStatistic, boxes: Sequence[Box]) -> _Bounds:
    """Each p_k in [low_k, high_k] of the simplex: log (p_k / p_j) is largest with both at their ends."""
    low, high = boxes[0]
    ranges = np.sort(np.log(high) - np.log(low), axis=-1)
    ratio = np.log(high)[..., :, None] - np.log(low)[..., None, :]
    ratio = np.where(np.eye(low.shape[-1], dtype=bool), 0.0, ratio)
    # log p_k - log p_j runs from log low_k - log high_j to log high_k - log low_j.
    spread = ratio + np.swapaxes(ratio, -1, -2)
    return _Bounds(
        same=spread.max(axis=(-1, -2)),
        alone=ranges[..., -1],
        same_sup=ratio.max(axis=(-1, -2)),
        alone_sup=-np.log(low.min(axis=-1)),
        reason="range of log(p_k / p_j) over the truncated simplex",
    )


def _poisson(statistic: RowStatistic, boxes: Sequence[Box]) -> _Bounds:
    """L = x log λ - λ. d within a cell is (x - x') log λ; alone, the range is convex in x, so largest at an end."""
    assert isinstance(statistic, BoundedMoments)
    low, high = boxes[0]
    alone = np.zeros(len(low))
    for x in (statistic.low, statistic.high):
        best = np.clip(x, low, high)
        ends = [x * np.log(rate) - rate if x else -rate for rate in (best, low, high)]
        alone = np.maximum(alone, ends[0] - np.minimum(ends[1], ends[2]))
    pairs = list(zip(low, high, strict=True))
    return _Bounds(
        same=(statistic.high - statistic.low) * (np.log(high) - np.log(low)),
        alone=alone,
        same_sup=np.array([max(_poisson_spread(statistic, rate) for rate in pair) for pair in pairs]),
        alone_sup=np.array([max(_poisson_size(statistic, rate) for rate in pair) for pair in pairs]),
        reason=f"counts clamped to ({statistic.low:g}, {statistic.high:g}): their width times the range of log rate",
    )


def _poisson_spread(statistic: BoundedMoments, rate: float) -> float:
    """Largest l(x) - l(x') at one rate: l is concave in x, with its mode at the rate rounded down.

    In log rate it is linear for each x and x', so that its largest value over rates is at an end.
    """
    if not 0 < rate < math.inf:
        return math.inf
    mode = min(max(math.floor(rate), statistic.low), statistic.high)
    values = [x * math.log(rate) - math.lgamma(x + 1) for x in (mode, statistic.low, statistic.high)]
    return values[0] - min(values)


def _poisson_size(statistic: BoundedMoments, rate: float) -> float:
    """Largest -l at one rate: l <= 0 is concave in x and in the rate, so least at ends."""
    if not 0 < rate < math.inf:
        return math.inf
    return max(rate - x * math.log(rate) + math.lgamma(x + 1) for x in (statistic.low, statistic.high))


def _normal(statistic: RowStatistic, boxes: Sequence[Box]) -> _Bounds:
    assert isinstance(statistic, BoundedMoments)
    (mean_low, mean_high), (sd_low, sd_high) = boxes
    values = [
        _normal_cell(np.float64(statistic.low), np.float64(statistic.high), *(np.float64(item) for item in cell))
        for cell in np.broadcast(mean_low, mean_high, sd_low, sd_high)
    ]
    same, alone, same_sup, alone_sup = (np.array(items) for items in zip(*values, strict=True))
    # A square rounded to its grid is off by at most half a step.
    rounding = (1 / sd_low**2) * statistic.half_width**2 / GRID if 2 in statistic.powers else 0.0
    return _Bounds(
        same=same + rounding,
        alone=alone + rounding,
        same_sup=same_sup + rounding,
        alone_sup=alone_sup + rounding,
        reason=f"values clamped to ({statistic.low:g}, {statistic.high:g}), mean and sd within their bounds",
    )


def _normal_cell(low: float, high: float, a: float, b: float, s: float, t: float) -> tuple[float, ...]:
    """Bounds of one cell: values in [low, high], mean in [a, b], sd in [s, t]."""
    if not (s > 0 and math.isfinite(a) and math.isfinite(b)):
        return math.inf, math.inf, math.inf, math.inf
    most, least = 1 / s**2, 1 / t**2  # precisions
    edges = np.linspace(low, high, PIECES + 1)
    left, right = edges[:-1], edges[1:]
    nearest = np.maximum(0.0, np.maximum(a - right, left - b))
    furthest = np.maximum(right - a, b - left)
    top = _best_density(nearest, s, t)
    bottom = np.minimum(-math.log(s) - furthest**2 * most / 2, -math.log(t) - furthest**2 * least / 2)
    norm = 0.5 * math.log(2 * math.pi)
    fixed = a == b and s == t
    return (
        _normal_same(low, high, a, b, least, most),
        0.0 if fixed else float((top - bottom).max()),
        _largest_difference(low, high, a, b, most),
        float(max(abs(top - norm).max(), abs(bottom - norm).max())),
    )


def _best_density(distance: Array, s: float, t: float) -> Array:
    """Largest of -log sd - distance^2 / (2 sd^2) over sd in [s, t]: at sd = distance, or the end next to it."""
    sd = np.clip(distance, s, t)
    return -np.log(sd) - distance**2 / (2 * sd**2)


def _largest_difference(low: float, high: float, a: float, b: float, most: float) -> float:
    """Largest |d| = |(x'-μ)^2 - (x-μ)^2| / (2 sd^2): the furthest squared distance less the nearest."""

    def spread(mean: float) -> float:
        near = max(0.0, low - mean, mean - high)
        return max(mean - low, high - mean) ** 2 - near**2

    return most / 2 * max(spread(mean) for mean in (a, b, min(max((low + high) / 2, a), b)))


def _normal_same(low: float, high: float, a: float, b: float, least: float, most: float) -> float:
    """Range of d = (x - x')(μ - m) τ, m = (x + x') / 2, over μ in [a, b] and τ in [least, most], largest over x > x'.

    d is bilinear, so its extremes are at corners: the range is (x - x') (up(m) + down(m)) with
    up = max((b-m) τ), down = max((m-a) τ) over the two τ, both convex and piecewise linear in m, while x - x' is at
    most 2 min(m - low, high - m). On each piece between the breaks (a, b and the middle) the product is a quadratic in
    m, whose largest value is at an end or at its vertex.
    """

    def size(m: float) -> float:
        up = max((b - m) * most, (b - m) * least)
        down = max((m - a) * most, (m - a) * least)
        return 2 * min(m - low, high - m) * (up + down)

    breaks = sorted({low, high, (low + high) / 2, *(edge for edge in (a, b) if low < edge < high)})
    best = max(size(m) for m in breaks)
    for left, right in pairwise(breaks):
        middle = (left + right) / 2
        f0, f1, f2 = size(left), size(middle), size(right)
        curvature = 2 * (f0 - 2 * f1 + f2)  # of the quadratic on [0, 1]
        slope = 4 * f1 - 3 * f0 - f2
        if curvature < 0 and 0 < (place := -slope / (2 * curvature)) < 1:
            best = max(best, size(left + place * (right - left)))
    return best


_RULES: dict[str, Callable[[RowStatistic, Sequence[Box]], _Bounds]] = {
    "bernoulli": _bernoulli,
    "categorical": _categorical,
    "poisson": _poisson,
    "normal": _normal,
}


def total_range(ranges: Sequence[RowRange]) -> RowRange:
    """Range of several observed variables of one row: they add up."""
    return RowRange(
        value=sum(item.value for item in ranges),
        sensitivity=sum(item.sensitivity for item in ranges),
        reason="; ".join(dict.fromkeys(item.reason for item in ranges)),
    )


RULED = frozenset(_RULES)
"""Likelihoods whose rows have a closed form here."""

__all__ = ["RULED", "Box", "LevelCounts", "RowRange", "row_range", "total_range"]
