"""Normal rows: sums of the clamped value and of its square."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem, needs_bounds
from pymc_dp.families.closed_form import Boxes, CellRanges, ClosedForm, Moving, number
from pymc_dp.families.conjugate_form import Mean, Rate
from pymc_dp.families.family import BoundedMoments, MomentFamily, Moments, RowStatistic, Tensors
from pymc_dp.families.features import SumStatistic
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.shapes import GRID

COARSEST = 1024
"""Least number of grid steps between the bounds: fewer would round the values away."""


FLAT = 1.0
"""Standard deviation, in half widths, from which the density between the bounds is integrated by quadrature."""
NODES = 16
PIECES = 4096
"""Pieces into which the values of a row are cut where no closed form is at hand; each gives an upper bound."""

CONJUGATE = (
    Mean(slot=0),
    Rate(slot=1, exponents=lambda e: (e.rows / 2, e.squares(e.given[0]) / 2), power=-2.0),
)


@dataclass(frozen=True, kw_only=True)
class NormalRows(ClosedForm):
    """What a row of a value, or of its logarithm, that is normal can move."""

    slot: int = 1

    @override
    def ranges(self, statistic: RowStatistic, boxes: Boxes, moving: Moving, *, normalised: bool) -> CellRanges:
        assert isinstance(statistic, BoundedMoments)
        (mean_low, mean_high), (sd_low, sd_high) = _others_held(statistic, boxes, moving)
        values = [
            _cell(np.float64(statistic.low), np.float64(statistic.high), *(np.float64(item) for item in cell))
            for cell in np.broadcast(mean_low, mean_high, sd_low, sd_high)
        ]
        same, alone, same_size, alone_size = (np.array(items) for items in zip(*values, strict=True))
        # A square rounded to its grid is off by at most half a step.
        rounding = (1 / sd_low**2) * statistic.half_width**2 / GRID if 2 in statistic.powers else 0.0
        return CellRanges(
            same=same + rounding,
            alone=alone + rounding,
            same_size=same_size + rounding,
            alone_size=alone_size + rounding,
            reason=f"values clamped to ({statistic.low:g}, {statistic.high:g}), mean and sd within their bounds",
        )


class Normal(MomentFamily):
    """``pm.Normal`` on rows clamped to public bounds: only the sums that unknown parameters need are released.

    Mean unknown: sum of x. Standard deviation unknown: sum of squares about the known mean. Both: both, about the
    middle of the bounds, which needs Δ1 = 9/4 in units of the half width instead of 2 + 1.
    """

    distribution = "normal"
    event_ndims = (0, 0)
    closed_form = NormalRows(base=-math.log(2 * math.pi) / 2)
    conjugate = CONJUGATE

    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        """Powers of (x - centre), see the class."""
        if observed.bounds is None:
            return Problem(
                where=observed.name,
                what="a Normal value has no bounds, so one row could move the sum by any amount",
                remedy=needs_bounds(observed.name, of="a public range") + ".",
                kind="declaration",
            )
        low, high = observed.bounds
        centre = low + (high - low) / 2
        powers: tuple[int, ...] = (1, 2)
        if observed.free == (True, False) and number(observed.parameters[1]) is not None:
            powers = (1,)
        elif observed.free == (False, True) and (mean := number(observed.parameters[0])) is not None:
            powers, centre = (2,), mean
        half_width = max(high - centre, centre - low)
        statistic = BoundedMoments(
            low=low,
            high=high,
            centre=centre,
            unit=half_width / GRID,
            half_width=half_width,
            powers=powers,
            offset=GRID // 2 if 2 in powers and not sizes_known else 0,
        )
        if not 1e-150 < half_width < 1e150 or statistic.grid_steps < COARSEST:
            return Problem(
                where=observed.name,
                what=f"the bounds ({low:g}, {high:g}), seen from {centre:g}, are too wide or too narrow for float64",
                remedy="Measure the value in another unit.",
            )
        return statistic

    def supported(self, parameters: Tensors) -> TensorVariable:
        """``sd > 0``, with a finite mean."""
        return (parameters[1] > 0) & pt.lt(pt.abs(parameters[0]), np.inf)

    def moments(self, parameters: Tensors, statistic: SumStatistic) -> Moments:
        """Mean and covariance of (t, t^2), t the clamped value about the centre in half widths, in closed form."""
        assert isinstance(statistic, BoundedMoments)
        width = statistic.half_width
        mean, sd = (parameters[0] - statistic.centre) / width, parameters[1] / width
        low, high = (statistic.low - statistic.centre) / width, (statistic.high - statistic.centre) / width
        raw = clamped_moments(mean, sd, low, high)
        index = list(statistic.powers)
        means = [raw[power] for power in index]
        covariance = [[_covariance(raw, i, j) for j in index] for i in index]
        return means, covariance

    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``-n log sd - sum (x - mean)^2 / (2 sd^2)``, without terms free of the parameters."""
        assert isinstance(statistic, BoundedMoments)
        mean, sd = parameters[0] - statistic.centre, parameters[1]
        first = sums[:, 0] if 1 in statistic.powers else pt.zeros_like(sizes)
        second = sums[:, -1] if 2 in statistic.powers else pt.zeros_like(sizes)
        return -sizes * pt.log(sd) - (second - 2 * mean * first + sizes * mean**2) / (2 * sd**2)

    @override
    def draw(self, rng: np.random.Generator, *parameters: Array) -> Array:
        return np.asarray(rng.normal(*parameters))


def clamped_moments(mean: TensorVariable, sd: TensorVariable, low: float, high: float) -> list[TensorVariable]:
    """E t^k for k = 0..4, t = clip(N(mean, sd), low, high): the inner part and atoms at the bounds.

    The recursion for the inner part cancels where the density is flat between the bounds: quadrature takes over there.
    """
    a, b = (low - mean) / sd, (high - mean) / sd
    below, above = 0.5 * pt.erfc(-a / np.sqrt(2)), 0.5 * pt.erfc(b / np.sqrt(2))
    peaked = _inner_by_recursion(mean, pt.minimum(sd, FLAT), low, high)
    flat = _inner_by_quadrature(mean, pt.maximum(sd, FLAT), low, high)
    inner = [pt.switch(sd < FLAT, one, two) for one, two in zip(peaked, flat, strict=True)]
    return [inner[k] + low**k * below + high**k * above for k in range(5)]


def _inner_by_recursion(mean: TensorVariable, sd: TensorVariable, low: float, high: float) -> list[TensorVariable]:
    """E t^k 1(low < t < high) for a normal t, k = 0..4, by integration by parts."""
    a, b = (low - mean) / sd, (high - mean) / sd
    phi_a, phi_b = _density(a), _density(b)
    inside = [1 - 0.5 * pt.erfc(-a / np.sqrt(2)) - 0.5 * pt.erfc(b / np.sqrt(2)), phi_a - phi_b]
    for k in range(2, 5):
        inside.append((k - 1) * inside[k - 2] + a ** (k - 1) * phi_a - b ** (k - 1) * phi_b)
    return [sum(comb(k, i) * mean ** (k - i) * sd**i * inside[i] for i in range(k + 1)) for k in range(5)]


def _inner_by_quadrature(mean: TensorVariable, sd: TensorVariable, low: float, high: float) -> list[TensorVariable]:
    """The same for sd >= FLAT, by Gauss-Legendre nodes between the bounds."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    nodes, weights = low + (high - low) * 0.5 * (x + 1), (high - low) * 0.5 * w
    density = weights * _density((nodes - mean[..., None]) / sd[..., None]) / sd[..., None]
    return [(density * nodes**k).sum(axis=-1) for k in range(5)]


def _covariance(raw: list[TensorVariable], i: int, j: int) -> TensorVariable:
    value = raw[i + j] - raw[i] * raw[j]
    return pt.maximum(value, 0) if i == j else value


def _density(z: TensorVariable) -> TensorVariable:
    return pt.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def _others_held(statistic: BoundedMoments, boxes: Boxes, moving: Moving) -> Boxes:
    """Boxes over one parameter, with the other held where the range is largest.

    Over the mean, log-likelihood differences are proportional to the precision: largest at the least sd. Over the sd
    they are, for every pair of rows, convex in the squared distances to the mean: largest at an end of the mean's
    bounds, or where a distance is 0. These three means stand as cells of their own, so that a row that leaves one cell
    for another may meet the worst of each.
    """
    mean, sd = boxes
    if not moving[1].any():
        return [mean, (sd[0], sd[0])]
    if moving[0].any() or not np.isfinite(mean)[:, moving[1]].all():
        return boxes
    means = np.concatenate([*mean, np.clip((statistic.low + statistic.high) / 2, *mean)])
    return [(means, means), (np.tile(sd[0], 3), np.tile(sd[1], 3))]


def _cell(low: float, high: float, a: float, b: float, s: float, t: float) -> tuple[float, ...]:
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
        _same(low, high, a, b, least, most),
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


def _same(low: float, high: float, a: float, b: float, least: float, most: float) -> float:
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
