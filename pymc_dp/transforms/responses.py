"""Moments of a clamped response over the rows of a cell whose linear predictor is normal.

Let η ~ N(m, v) over rows and u = (clip(y) - centre) / half with y | η from the likelihood. By Stein's identity
``Cov(t, u) = W w E[g'(η)]`` for normal predictors t with covariance W and η = a + wᵀt, g(η) = E[u | η]. What is left of
u when its regressions on η and on (η - m)² are taken out is all that varies given the first two moments of the
predictors of the rows.

References
----------
Stein (1981), Estimation of the mean of a multivariate normal distribution, Ann. Statist. 9(6), lemma 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.gram import Source
from pymc_dp.families.normal import clamped_moments
from pymc_dp.families.polynomial import Response
from pymc_dp.inspection.rows import Array

NODES = 24
FLOOR = 1e-8
"""Least variance of a linear predictor and of a residual."""
FAR = 500.0
"""Linear predictors beyond are set to it: every link is finite there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowMoments:
    """Of u of one row, per cell: (n_cells,) tensors. z = (η - m) / sqrt v, r and r2 are what is left of u and u².

    Attributes
    ----------
    mean, slope : E u and E g'(η)
    variance, tilt, stretch : E r², E r² z, E r² (z² - 1)
    square, square_variance : E u² and E r2²
    joint, joint_slope : E r r2 and E r r2 (η - m) / v
    """

    mean: TensorVariable
    slope: TensorVariable
    variance: TensorVariable
    tilt: TensorVariable
    stretch: TensorVariable
    square: TensorVariable
    square_variance: TensorVariable
    joint: TensorVariable
    joint_slope: TensorVariable


def row_moments(
    response: Response, source: Source, centre: TensorVariable, spread: TensorVariable, dispersion: TensorVariable
) -> RowMoments:
    """Return moments of a row, given mean and variance of the linear predictor per cell, (n_cells,) tensors.

    A normal response has linear predictor and `dispersion` in scaled units, others in natural ones.
    """
    if response.likelihood == "normal":
        return normal_moments(centre, spread, dispersion)
    return link_moments(response, source, centre, spread)


def normal_moments(m: TensorVariable, v: TensorVariable, sd: TensorVariable) -> RowMoments:
    """Closed forms: u = clip(N(η, sd), -1, 1). Where nothing is clamped they are exact for any predictors.

    Derivatives of E u^k by m are expectations inside of the bounds, and Stein's identity has them for all covariances
    with η.
    """
    s = pt.sqrt(v + sd**2 + 1e-12)
    raw = clamped_moments(m, s, -1.0, 1.0)
    a, b = (-1 - m) / s, (1 - m) / s
    below, above = 0.5 * pt.erfc(-a / np.sqrt(2)), 0.5 * pt.erfc(b / np.sqrt(2))
    inside = [raw[k] - (-1.0) ** k * below - above for k in range(3)]
    at_low, at_high = (pt.exp(-0.5 * x**2) / (np.sqrt(2 * np.pi) * s) for x in (a, b))
    slope, curve = inside[0], at_low - at_high
    slope2, curve2 = 2 * inside[1], 2 * (inside[0] - at_low - at_high)
    variance = raw[2] - raw[1] ** 2 - slope**2 * v - 0.5 * (curve * v) ** 2
    variance = pt.maximum(variance, FLOOR)
    joint = raw[3] - raw[1] * raw[2] - slope * slope2 * v - 0.5 * curve * curve2 * v**2
    joint_slope = 3 * inside[2] - raw[2] * slope - raw[1] * slope2 - v * (slope * curve2 + slope2 * curve)
    square_variance = raw[4] - raw[2] ** 2 - slope2**2 * v - 0.5 * (curve2 * v) ** 2
    # Clamped, the closure might correlate beyond 1.
    least = (joint**2 + v * joint_slope**2) / variance
    zeros = pt.zeros_like(m)
    return RowMoments(
        mean=raw[1],
        slope=slope,
        variance=variance,
        tilt=zeros,
        stretch=zeros,
        square=raw[2],
        square_variance=pt.maximum(square_variance, least * (1 + 1e-9) + FLOOR**2),
        joint=joint,
        joint_slope=joint_slope,
    )


def link_moments(response: Response, source: Source, m: TensorVariable, v: TensorVariable) -> RowMoments:
    """By Gauss-Hermite nodes, of a response with any link."""
    z, weights = hermite(NODES)
    s = pt.sqrt(v + FLOOR)[:, None]
    mean, variance = clamped_response(response, source, pt.clip(m[:, None] + s * z, -FAR, FAR))

    def average(item: TensorVariable) -> TensorVariable:
        return (weights * item).sum(axis=-1)

    level, line, curve = average(mean), average(mean * z), average(mean * (z**2 - 1))
    left = mean - level[:, None] - line[:, None] * z - 0.5 * curve[:, None] * (z**2 - 1)
    rest = variance + left**2
    zeros = pt.zeros_like(m)
    return RowMoments(
        mean=level,
        slope=line / s[:, 0],
        variance=pt.maximum(average(rest), FLOOR),
        tilt=average(rest * z),
        stretch=average(rest * (z**2 - 1)),
        square=zeros,
        square_variance=zeros + 1.0,
        joint=zeros,
        joint_slope=zeros,
    )


def clamped_response(response: Response, source: Source, eta: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Mean and variance of u given the linear predictor."""
    (centre,), (half,) = source.centres, source.halves
    given = response.mean(eta)
    if response.likelihood == "bernoulli":
        p = pt.clip(given, 0.0, 1.0)
        return (p - centre) / half, p * (1 - p) / half**2
    most = centre + half
    y = np.arange(round(most))
    rate = pt.clip(given, 1e-12, 20 * most + 200)[..., None]
    chance = pt.exp(y * pt.log(rate) - rate - np.array([_log_factorial(int(k)) for k in y]))
    # About the upper bound, where the remaining probability lies.
    mean = (chance * (y - most)).sum(axis=-1)
    square = (chance * (y - most) ** 2).sum(axis=-1)
    return (mean + most - centre) / half, pt.maximum(square - mean**2, 0.0) / half**2


def hermite(count: int) -> tuple[Array, Array]:
    """Return Gauss-Hermite nodes of a standard normal number, and their weights."""
    z, weights = np.polynomial.hermite_e.hermegauss(count)
    return z, weights / weights.sum()


def _log_factorial(k: int) -> float:
    return float(np.log(np.arange(1, k + 1)).sum())


__all__ = ["RowMoments", "clamped_response", "hermite", "row_moments"]
