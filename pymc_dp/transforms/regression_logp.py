"""The density of a released regression as one operation, and that of the unknown moments of its predictors.

Moments of a clamped response over the rows of a cell whose linear predictor is normal.

Let η ~ N(m, v) over rows and u = (clip(y) - centre) / half with y | η from the likelihood. By Stein's identity
``Cov(t, u) = W w E[g'(η)]`` for normal predictors t with covariance W and η = a + wᵀt, g(η) = E[u | η]. What is left of
u when its regressions on η and on (η - m)² are taken out is all that varies given the first two moments of the
predictors of the rows.

References
----------
Stein (1981), Estimation of the mean of a multivariate normal distribution, Ann. Statist. 9(6), lemma 1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import erfc, sqrt
from typing import TYPE_CHECKING, Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.gram import Response, Source
from pymc_dp.families.normal import clamped_moments
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.released_logp import ReleasedLogp, held

if TYPE_CHECKING:
    from pymc_dp.transforms.regression import RegressionDensity


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


KERNELS = "pymc_dp.transforms.regression_kernels"
LINKS: tuple[Callable[[Array], Array], ...] = (
    lambda eta: 1 / (1 + np.exp(-eta)),
    np.exp,
    lambda eta: np.array([0.5 * erfc(-x / sqrt(2)) for x in eta]),
    lambda eta: -np.expm1(-np.exp(eta)),
)
"""Links that kernels know, in the order of their numbers there."""


class NormalRegression(ReleasedLogp):
    """Log density of a released regression with a normal response.

    Inputs are those of its kernel: released sums and scales, what they depend on, then what is known.
    """

    kernel = f"{KERNELS}:normal_regression"
    slopes = (2, 3, 4, 5, 6, 7)

    @cached_property
    @override
    def structure(self) -> Hashable:
        density, statistic = self.density, self.density.statistic
        sums = form_of(density), density.gram is None, statistic.sizes_known
        return density.response.likelihood, *sums, *density.latent_shapes.items()

    def of(self, value: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
        """Return the log density of a release, as ``RegressionDensity.logp`` does."""
        a, w, sd, scales, *latents = cores(parameters, self.density.ndims)
        named = dict(zip(self.density.beside_shapes, latents, strict=True))
        beside = [named.get(key, none) for key, none in _lacking().items()]
        return self.log_density(value, scales, a, w, sd, *beside, *self._known)[None]

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        value, scales, a, w, sd, *given = inputs
        named = dict(zip(_lacking(), given[:5], strict=True))
        beside = [named[key] for key in self.density.beside_shapes]
        found: TensorVariable = self.density.graph(value, a, w, sd, scales, *beside)[0]
        return found

    @property
    def _known(self) -> list[TensorVariable]:
        density, layout = self.density, self.density.layout
        statistic, d = density.statistic, density.statistic.width
        moments = density.known
        sizes = density.sizes if moments is None else moments.sizes
        means = np.zeros((len(statistic.cells), d)) if moments is None else moments.means
        within = np.zeros((1, d, d)) if moments is None else moments.within
        (centre,), (half,) = statistic.response.centres, statistic.response.halves
        scaling = (centre, half) if density.response.likelihood == "normal" else (0.0, 1.0)
        units = np.array([*statistic.centres, *statistic.halves, *scaling])
        arrays = (np.atleast_1d(sizes), means, within, layout.predictors, layout.responses, units, form_of(density))
        return [held(item) for item in arrays]


class LinkRegression(NormalRegression):
    """The same with a Bernoulli or Poisson response, of a link that kernels know."""

    kernel = f"{KERNELS}:link_regression"

    @property
    @override
    def _known(self) -> list[TensorVariable]:
        response, source = self.density.response, self.density.statistic.response
        number = link_number(response)
        assert number is not None
        described = [float(response.likelihood == "poisson"), number, source.centres[0], source.halves[0]]
        return [*super()._known, held(np.array(described))]


class CovariatePrior(ReleasedLogp):
    """Log density of the unknown moments of predictors in given coordinates, up to a constant.

    Inputs are the numbers in their coordinates; centre and root of these; kind, scale and Beta shape of every number.
    """

    kernel = "pymc_dp.transforms.predictor_kernels:covariate_prior"
    slopes = (0,)

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        from pymc_dp.transforms.covariates import SPREAD

        z, centre, root, kinds, scales, shapes = inputs
        x = centre + (root * z).sum(axis=-1)
        mean, deviation = -0.5 * (x / scales) ** 2, -0.5 * ((x - pt.log(scales)) / SPREAD) ** 2
        partial = -shapes * (pt.softplus(x) + pt.softplus(-x))
        return pt.switch(pt.eq(kinds, 0), mean, pt.switch(pt.eq(kinds, 1), deviation, partial)).sum()


def regression_logp(density: RegressionDensity) -> NormalRegression | None:
    """Return the operation of a density, where a kernel knows it: not in the plug-in form, or with other links."""
    if not density.noise_aware:
        return None
    if density.response.likelihood == "normal":
        return NormalRegression(density)
    return LinkRegression(density) if link_number(density.response) is not None else None


def link_number(response: Response) -> float | None:
    """Return which of `LINKS` the mean of a response is, by its values; None if it is another function."""
    eta = np.array([0.0, 0.1, -0.3, 1.7, -2.2, 5.0, -7.0, 30.0, -30.0, FAR, -FAR])
    argument = pt.vector("eta")
    with np.errstate(all="ignore"):
        found = plain_function([argument], response.mean(argument))(eta)
        same = [np.allclose(found, link(eta), rtol=1e-12, atol=1e-14) for link in LINKS]
    return float(same.index(True)) if any(same) else None


def _lacking() -> dict[str, TensorVariable]:
    """What stands for unknown numbers, and for their coordinates, where there are none: in the order of inputs."""
    none, square = held(np.zeros(0)), held(np.zeros((0, 0)))
    return {"shares": none, "covariates": none, "noise_variance": square, "centre": none, "root": square}


def cores(items: Sequence[Any], ndims: Sequence[int]) -> list[TensorVariable]:
    """Return items without leading axes of length 1, so that they have as many axes as that."""
    return [_core(pt.as_tensor(item), ndim) for item, ndim in zip(items, ndims, strict=True)]


def _core(tensor: TensorVariable, ndim: int) -> TensorVariable:
    above = tuple(range(tensor.ndim - ndim))
    if all(tensor.type.broadcastable[axis] for axis in above):
        return pt.squeeze(tensor, axis=above) if above else tensor
    return tensor[(0,) * len(above)]


def form_of(density: RegressionDensity) -> tuple[float, ...]:
    """What sums there are, and of which noise, as kernels take it."""
    statistic = density.statistic
    found = (statistic.apart, statistic.constant, statistic.square, density.noise == "laplace")
    return tuple(float(item) for item in found)


__all__ = [
    "CovariatePrior",
    "LinkRegression",
    "NormalRegression",
    "RowMoments",
    "clamped_response",
    "cores",
    "hermite",
    "link_number",
    "regression_logp",
    "row_moments",
]
