"""Normal rows: sums of the clamped value and of its square."""

from __future__ import annotations

import math
from math import comb
from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem, needs_bounds
from pymc_dp.families.conjugate_form import Mean, Rate
from pymc_dp.families.constants import number
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

CONJUGATE = (
    Mean(slot=0),
    Rate(slot=1, exponents=lambda e: (e.rows / 2, e.squares(e.given[0]) / 2), power=-2.0),
)


class Normal(MomentFamily):
    """``pm.Normal`` on rows clamped to public bounds: only the sums that unknown parameters need are released.

    Mean unknown: sum of x. Standard deviation unknown: sum of squares about the known mean. Both: both, about the
    middle of the bounds, which needs Δ1 = 9/4 in units of the half width instead of 2 + 1.
    """

    distribution = "normal"
    event_ndims = (0, 0)
    base = -math.log(2 * math.pi) / 2
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
