"""Sums with discrete Laplace noise: their log density given the distribution of the exact sum.

* A binomial count is summed over |S − Ŝ| ≤ 40 b (exact), or taken as normal where that window is wide.
* A Poisson count is summed where the noise is narrow, else an incomplete gamma function on either side.
* A normal sum has a closed form; a pair of them takes a quadrature over the first.
"""

from __future__ import annotations

from math import ceil, log, tanh
from typing import final, override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.transforms.sum_noise import SMALL, Array, SumNoise, Tensors

SQRT2 = float(np.sqrt(2.0))
LOG_2PI = float(np.log(2 * np.pi))
WINDOW = 40
"""Half width, in noise scales, of the exact sum over a binomial count (what is left out is below e^-40)."""
MAX_WINDOW_ENTRIES = 20_000
EXACT_BELOW = 2.0
"""Noise scale under which counts of several levels are summed exactly instead of taken as normal."""
EXACT_WINDOW = 25
MAX_EXACT_ENTRIES = 100_000
MOMENT_NODES = 24
TEMME_C0 = (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515, -571 / 261273600)


@final
class LaplaceSums(SumNoise):
    """Discrete Laplace noise: ``P(k)`` proportional to ``exp(-|k| / scale)``."""

    @override
    def log_density(self, distance: TensorVariable, scale: float) -> TensorVariable:
        return -pt.abs(distance) / scale - log(2 * scale)

    @override
    def reach(self, scale: float) -> float:
        return 18 * scale

    @override
    def binomial(self, value: TensorVariable, p: TensorVariable, scale: float, n: Array) -> TensorVariable:
        return binomial_logp(value, p, scale, n)

    @override
    def poisson(
        self, value: TensorVariable, rate: TensorVariable, scale: float, entries: int
    ) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        return poisson_logp(value, rate, scale, entries)

    @override
    def sums(
        self, value: Tensors, mean: Tensors, covariance: list[Tensors], scales: Array, n: TensorVariable
    ) -> TensorVariable:
        """One sum has a closed form, two are integrated over the first; more have to stay free variables."""
        if len(mean) == 1:
            return normal_laplace(value[0] - n * mean[0], n * covariance[0][0] + SMALL, float(scales[0]))
        first, second = (value[i] - n * mean[i] for i in range(2))
        variances = n * covariance[0][0] + SMALL, n * covariance[0][1], n * covariance[1][1] + SMALL
        return normal_laplace_pair([first, second], *variances, scales)


def normal_laplace(z: TensorVariable, variance: TensorVariable, scale: float) -> TensorVariable:
    """Log density at `z` of N(0, variance) + Laplace(scale): stable in all tails.

    The two exponential pieces of the noise give two Gaussian tail integrals; each is written with the scaled
    complementary error function, so that e^{v/2b²} never meets its inverse.
    """
    return pt.logaddexp(*_pieces(z, variance, scale)) - log(2 * scale)


def _pieces(z: TensorVariable, variance: TensorVariable, scale: float) -> tuple[TensorVariable, TensorVariable]:
    s = pt.sqrt(variance)
    return _tail(z / s - s / scale, z, variance, scale), _tail(-z / s - s / scale, -z, variance, scale)


def _tail(a: TensorVariable, z: TensorVariable, variance: TensorVariable, scale: float) -> TensorVariable:
    """``v/2b² − z/b + log Φ(a)`` with ``a = z/√v − √v/b``; for negative a it is ``−z²/2v + log(erfcx(−a/√2)/2)``."""
    far = -(z**2) / (2 * variance) + pt.log(0.5 * pt.erfcx(-pt.minimum(a, 0) / SQRT2))
    near = variance / (2 * scale**2) - z / scale + pt.log1p(-0.5 * pt.erfc(pt.maximum(a, -1) / SQRT2))
    return pt.switch(a < -0.5, far, near)


def normal_laplace_pair(
    z: list[TensorVariable], v11: TensorVariable, v12: TensorVariable, v22: TensorVariable, scales: Array
) -> TensorVariable:
    """Log density of a correlated normal pair with independent Laplace noise on each: quadrature over the first sum.

    On either side of its release the first sum has an exponentially tilted normal density, ``exp(a d − d²/2)`` in
    standard deviations d of it; Gauss-Legendre panels cover what is above e^-20 of its peak. Where the second sum is
    nearly a function of the first, its noise has a kink too: the panels meet there, and nodes are denser at both kinks.
    """
    s = pt.sqrt(v11)
    slope = v12 / v11
    rest = pt.maximum(v22 - v12 * slope, SMALL * (1 + v22))
    level = pt.eq(slope, 0)
    crossing = pt.switch(level, 0.0, z[0] - z[1] / pt.switch(level, 1.0, slope))
    terms = []
    for sign in (1.0, -1.0):
        a = sign * z[0] / s - s / float(scales[0])
        low = pt.maximum(a - np.sqrt(40.0), 0)
        falling = pt.minimum(a, 0)
        high = pt.maximum(a, 0) + 40.0 / (pt.sqrt(falling**2 + 40.0) - falling)
        kink = pt.clip(sign * crossing / s, low, high)
        for start, end in ((low, kink), (kink, high)):
            width = pt.maximum(end - start, 1e-9 * (high - low))
            d = start[..., None] + width[..., None] * _PANEL
            first = z[0][..., None] - sign * s[..., None] * d
            second = z[1][..., None] - slope[..., None] * first
            logp = a[..., None] * d - 0.5 * d**2 + normal_laplace(second, rest[..., None], float(scales[1]))
            terms.append(pt.logsumexp(logp + _PANEL_LOG_WEIGHTS, axis=-1) + pt.log(width))
    total = pt.logsumexp(pt.stack(terms), axis=0)
    return total - z[0] ** 2 / (2 * v11) - 0.5 * LOG_2PI - log(2 * float(scales[0]))


def binomial_logp(value: TensorVariable, p: TensorVariable, scale: float, n: Array) -> TensorVariable:
    """Log probability of a binomial count plus discrete Laplace noise."""
    half = min(ceil(WINDOW * scale), int(n.max()))
    size = pt.as_tensor(n.astype(float))
    if scale >= EXACT_BELOW and (2 * half + 1) * len(n) > MAX_WINDOW_ENTRIES:
        variance = size * p * (1 - p) + SMALL
        return normal_laplace(value - size * p, variance, scale) + _discrete(scale) + log(2 * scale)
    centre = pt.clip(pt.round(value), 0, size)
    s = centre[:, None] + np.arange(-half, half + 1)
    inside = (s >= 0) & (s <= size[:, None])
    s = pt.clip(s, 0, size[:, None])
    ways = pt.gammaln(size[:, None] + 1) - pt.gammaln(s + 1) - pt.gammaln(size[:, None] - s + 1)
    noise = -pt.abs(value[:, None] - s) / max(scale, 1e-3)
    terms = ways + s * pt.log(p)[:, None] + (size[:, None] - s) * pt.log1p(-p)[:, None] + noise
    return pt.logsumexp(pt.switch(inside, terms, -np.inf), axis=-1) + _discrete(scale)


def poisson_logp(
    value: TensorVariable, rate: TensorVariable, scale: float, entries: int
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Log probability of a noised Poisson count, and mean and variance of the exact one given the release."""
    half = ceil(EXACT_WINDOW * max(scale, 0.05))
    if scale < EXACT_BELOW and (2 * half + 1) * entries <= MAX_EXACT_ENTRIES:
        s = pt.maximum(pt.round(value), 0)[..., None] + np.arange(-half, half + 1)
        inside = s >= 0
        s = pt.maximum(s, 0)
        rate = pt.maximum(rate, 1e-300)[..., None]
        terms = s * pt.log(rate) - rate - pt.gammaln(s + 1) - pt.abs(value[..., None] - s) / max(scale, 1e-3)
        terms = pt.switch(inside, terms, -np.inf)
        logp = pt.logsumexp(terms, axis=-1)
        weight = pt.exp(terms - logp[..., None])
        mean = (weight * s).sum(axis=-1)
        return logp + _discrete(scale), mean, (weight * (s - mean[..., None]) ** 2).sum(axis=-1)
    rate = pt.maximum(rate, 1e-300)
    logp = _smoothed_poisson(value, rate, scale)
    variance = rate + SMALL
    s = pt.sqrt(variance)
    z = value - rate
    left, right = _pieces(z, variance, scale)
    weight = pt.exp(left - pt.logaddexp(left, right))
    a, b = z / s - s / scale, -z / s - s / scale
    ratio_a, ratio_b = _mills(a), _mills(b)
    mean_a, mean_b = z - s * (a + ratio_a), z + s * (b + ratio_b)
    variance_a, variance_b = 1 - ratio_a * (a + ratio_a), 1 - ratio_b * (b + ratio_b)
    mean = rate + weight * mean_a + (1 - weight) * mean_b
    inner = variance * (weight * variance_a + (1 - weight) * variance_b)
    return logp + _discrete(scale), mean, pt.maximum(inner + weight * (1 - weight) * (mean_a - mean_b) ** 2, SMALL)


def _smoothed_poisson(value: TensorVariable, rate: TensorVariable, scale: float) -> TensorVariable:
    """``log sum_s Poisson(s; rate) exp(-|value - s| / scale)``.

    The sums on either side of `value` are incomplete gamma functions at tilted rates, ``Q(a, rate e^{1/b})`` and
    ``P(a, rate e^{-1/b})`` with ``a = value + 1``, taken from the first term of the uniform expansion of Temme (1979),
    SIAM J. Math. Anal. 10(4): relative error of the order of 1e-3 / a. The exponents of the tilt and of the expansion
    cancel symbolically.
    """
    below = value < -0.5
    a = pt.switch(below, 1.0, value + 1)
    peak = a * pt.log(rate / a) - rate + a
    pieces = []
    for sign in (1.0, -1.0):
        eta, c = _temme(rate, a, sign / scale)
        root = eta * pt.sqrt(a / 2)
        correction = c / pt.sqrt(2 * np.pi * a)
        tail = 0.5 * pt.erfcx(pt.maximum(sign * root, -1)) + sign * correction
        far = sign / scale + peak + pt.log(pt.maximum(tail, 1e-300))
        rest = pt.exp(-pt.minimum(root**2, 700)) * (0.5 * pt.erfcx(pt.maximum(-sign * root, -1)) - sign * correction)
        near = -sign * (a - 1) / scale + rate * np.expm1(sign / scale) + pt.log1p(-pt.clip(rest, 0, 0.9))
        pieces.append(pt.switch(sign * root > -0.5, far, near))
    negative = value / scale + rate * np.expm1(-1 / scale)
    return pt.switch(below, negative, pt.logaddexp(*pieces))


def _temme(rate: TensorVariable, a: TensorVariable, tilt: float) -> tuple[TensorVariable, TensorVariable]:
    """Temme's ``η`` and ``c0(η) = 1/μ − 1/η`` at ``x = rate e^tilt``, ``μ = x/a − 1``."""
    mu = rate * np.exp(tilt) / a - 1
    near = pt.abs(mu) < 0.05
    small = pt.switch(near, mu, 0.0)
    large = pt.switch(near, 1.0, mu)
    log_ratio = pt.switch(near, np.log(2.0), pt.log(rate / a) + tilt)
    series = small * (1 - small * (1 / 3 - small * (7 / 36 - small * (73 / 540 - small * 1331 / 12960))))
    eta = pt.switch(near, series, pt.sign(large) * pt.sqrt(2 * (large - log_ratio)))
    close = pt.abs(eta) < 0.5
    e = pt.switch(close, eta, 0.0)
    c = pt.zeros_like(e)
    for coefficient in reversed(TEMME_C0):
        c = c * e + coefficient
    return eta, pt.switch(close, c, 1 / pt.switch(close, 1.0, mu) - 1 / pt.switch(close, 1.0, eta))


def _mills(a: TensorVariable) -> TensorVariable:
    """φ(a)/Φ(a)."""
    return np.sqrt(2 / np.pi) / pt.erfcx(-pt.minimum(a, 25) / SQRT2)


def _discrete(scale: float) -> float:
    """Log probability of zero under discrete Laplace noise."""
    return log(tanh(1 / (2 * scale))) if scale > 0 else 0.0


_X, _W = np.polynomial.legendre.leggauss(MOMENT_NODES)
_X, _W = 0.5 * (_X + 1), 0.5 * _W
_PANEL = _X**2 * (3 - 2 * _X)
"""Nodes on [0, 1], denser at both ends."""
_PANEL_LOG_WEIGHTS = np.log(_W * 6 * _X * (1 - _X))
