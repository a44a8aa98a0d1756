"""Densities of counts with Gaussian noise by their saddle points.

With K the cumulant function of the noised count, K(t) = log E e^{tS} + scale² t² / 2, and t the root of K'(t) = x, the
density at x is ``exp(K(t) - t x) / sqrt(2 π K''(t))`` times 1 + K⁗/8K''² - 5K‴²/24K''³ (Daniels 1954, Ann. Math. Stat.
25(4), equation 2.6), whose error falls with the fourth power of the noise: below 4e-3 from a scale of 1 on.

Roots are found by Newton's method from the side on which it is monotone. Derivatives pass through its last two steps
alone, which have those of the root itself up to the second.
"""

from __future__ import annotations

from math import log, pi

import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.tensor.variable import TensorVariable

LOG_2PI = log(2 * pi)
STEPS = 4
LAST = 2
"""Newton steps, and those that are differentiated."""


def poisson_saddle(
    value: TensorVariable, rate: TensorVariable, scale: float
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Log density of a Poisson count with Gaussian noise, and mean and variance of the exact one given the release.

    With m = rate e^t the root is that of ``m + scale² log(m / rate) = value``. By Tweedie's formula (Robbins 1956) the
    exact count has mean ``value + scale² (log f)'``.
    """
    square = scale**2
    log_m = _root_of_exponential(value / square + pt.log(rate), square)
    m, t = pt.exp(log_m), log_m - pt.log(rate)
    variance = m + square
    logp = m - rate - t * m - 0.5 * square * t**2 + _normalised(variance, m, m)
    return logp, m - 0.5 * square * m / variance**2, square * m / variance


def binomial_saddle(value: TensorVariable, p: TensorVariable, size: TensorVariable, scale: float) -> TensorVariable:
    """Log density of a binomial count with Gaussian noise.

    With s the tilted probability and η its logit, the root is that of ``size s + scale² (η - logit p) = value``. It is
    found for the level that is the rarer one there, where s is convex in η.
    """
    square, logit = scale**2, pt.log(p) - pt.log1p(-p)
    sign = pt.switch(size / 2 - square * logit - value >= 0, 1.0, -1.0)
    x = pt.switch(sign > 0, value, size - value)
    root = _root_of_logistic(x / square + sign * logit, size / square)
    t, rare = root - sign * logit, pt.sigmoid(root)
    variance = size * rare * (1 - rare)
    cumulant = size * (pt.switch(sign > 0, pt.log1p(-p), pt.log(p)) + pt.softplus(root))
    logp = cumulant - t * size * rare - 0.5 * square * t**2
    return logp + _normalised(variance + square, variance * (1 - 2 * rare), variance * (1 - 6 * rare * (1 - rare)))


def _normalised(second: TensorVariable, third: TensorVariable, fourth: TensorVariable) -> TensorVariable:
    """What remains of the log density beside K(t) - t x, from the higher cumulants at the saddle point."""
    correction = fourth / (8 * second**2) - 5 * third**2 / (24 * second**3)
    return correction - 0.5 * (LOG_2PI + pt.log(second))


def _root_of_exponential(level: TensorVariable, square: float) -> TensorVariable:
    """Return u with ``e^u / square + u = level``: convex and rising, so that Newton's steps come from above."""
    goal = level - log(square)
    v = pt.switch(goal < 1, goal, pt.log(pt.maximum(goal, 1)))
    for step in range(STEPS + LAST):
        v = disconnected_grad(v) if step == STEPS else v
        tilted = pt.exp(v)
        v = v - (tilted + v - goal) / (tilted + 1)
    return v + log(square)


def _root_of_logistic(level: TensorVariable, ratio: TensorVariable) -> TensorVariable:
    """Return η <= 0 with ``ratio σ(η) + η = level``, from the root for ``ratio e^η / 2``, which lies above it."""
    half = pt.maximum(ratio, 1e-300) / 2
    goal = level + pt.log(half)
    v = pt.switch(goal < 1, goal, pt.log(pt.maximum(goal, 1)))
    for _ in range(STEPS):
        tilted = pt.exp(v)
        v = v - (tilted + v - goal) / (tilted + 1)
    root = pt.minimum(v - pt.log(half), 0)
    for step in range(STEPS + LAST):
        root = disconnected_grad(root) if step == STEPS else root
        share = pt.sigmoid(root)
        root = root - (ratio * share + root - level) / (ratio * share * (1 - share) + 1)
    return root


__all__ = ["binomial_saddle", "poisson_saddle"]
