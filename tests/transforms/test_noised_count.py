"""Noised counts against sums over every count, and their slopes."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import logsumexp

from pymc_dp.transforms.count_kernels import GAUSSIAN, LAPLACE, MOST_TERMS, WIDE, log_mass_at_zero, noised_count
from pymc_dp.transforms.noised_count import noised_binomial, noised_poisson

SUMMED, CLOSED = np.full(4, 1e-6), np.array([1e-6, 2e-5, 4e-3, 0.02])
"""Errors of the log probability and of three cumulants, in powers of the standard deviation."""


def reference(x, rate, n, noise, scale):
    """Log probability, mean, variance and third central moment; `rate` is that of a Poisson count, or odds."""
    if n < 0:
        reach = 40 * (scale + np.sqrt(rate)) + 100
        s = np.arange(int(max(0, min(x, rate) - reach)), int(max(x, rate) + reach))
        terms = stats.poisson.logpmf(s, rate)
    else:
        s = np.arange(n + 1)
        terms = stats.binom.logpmf(s, n, rate / (1 + rate))
    terms = terms + (-abs(x - s) / scale if noise == LAPLACE else -0.5 * ((x - s) / scale) ** 2)
    logp = logsumexp(terms)
    weight = np.exp(terms - logp)
    near = s - s[weight.argmax()]
    mean = weight @ near
    centred = [weight @ (near - mean) ** power for power in (2, 3)]
    return np.array([logp + log_mass_at_zero(noise, scale), s[weight.argmax()] + mean, *centred])


@pytest.mark.few(1)
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("binomial", [False, True])
def test_every_cumulant_is_that_of_the_sum_over_every_count(noise, binomial, rng):
    """From no noise to noise far wider than the counts, and from summed terms to integrated ones."""
    wide = 0
    for turn in range(100):
        scale, n = 10 ** rng.uniform(-1.5, 3), float(int(10 ** rng.uniform(0, 5)))
        rate = np.exp(rng.normal() * 4) if binomial else 10 ** rng.uniform(-3, 5)
        if turn % 10 == 0:
            scale, n, rate = 3e3, 1e6, 0.3 if binomial else 3e5
        centre = n * rate / (1 + rate) if binomial else rate
        n = n if binomial else -1.0
        x = np.rint(centre + 3 * rng.normal() * (scale + np.sqrt(centre)))
        found = np.array(noised_count(x, np.log(rate), n, noise, scale, log_mass_at_zero(noise, scale)))
        expected = reference(x, rate, int(n), noise, scale)
        size = np.sqrt(expected[2]) + 0.05
        wide += size > MOST_TERMS / 8
        errors = np.abs(found - expected) / (1 + abs(expected[0]), size, size**2, size**3)
        closed = not binomial and scale >= WIDE[int(noise)]
        assert (errors < (CLOSED if closed else SUMMED)).all(), (x, rate, n, scale, found, expected)
    assert wide >= 10


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_gradients_are_slopes_and_compiled_models_agree_with_the_plain_form(kind, rng):
    value, p = pt.vector("value"), pt.vector("p")
    logp, mean, variance, _ = noised_poisson(value, 50 * p, kind, 3.0)
    total = (logp + 0.1 * mean * variance).sum() + noised_binomial(value, p, np.full(8, 50), kind, 3.0)[0].sum()
    outputs = [total, pt.grad(total, p)]
    plain = pytensor.function([value, p], outputs, mode="FAST_COMPILE")
    at, values = rng.uniform(0.05, 0.95, 8), rng.integers(-5, 60, 8).astype(float)
    slope = plain(values, at)[1]
    for i in range(8):
        step = 1e-6 * np.eye(8)[i]
        rise = plain(values, at + step)[0] - plain(values, at - step)[0]
        assert slope[i] == pytest.approx(rise / 2e-6, rel=1e-6)
    for found, expected in zip(pytensor.function([value, p], outputs)(values, at), plain(values, at), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7)  # compiled sums are reordered
