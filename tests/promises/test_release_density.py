"""The likelihood of a release, as the private model has it, is that of all tables that the noise may have met."""

from functools import reduce

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dp as dp

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]
NOISES = {"laplace": 0.0, "gaussian": 1e-4}
GRID = np.linspace(0.03, 0.97, 25)
CASES = {
    "Bernoulli": (lambda p, y: pm.Bernoulli("y", p, observed=y), stats.bernoulli, (0, 1), 300),
    "Bernoulli, few": (lambda p, y: pm.Bernoulli("y", p, observed=y), stats.bernoulli, (0, 1), 3),
    "Binomial": (lambda p, y: pm.Binomial("y", 6, p, observed=y), lambda p: stats.binom(6, p), (0, 6), 12),
    "Poisson": (lambda p, y: pm.Poisson("y", 12 * p, observed=y), lambda p: stats.poisson(12 * p), (0, 20), 5),
    "Poisson from 2": (lambda p, y: pm.Poisson("y", 5 * p, observed=y), lambda p: stats.poisson(5 * p), (2, 9), 1),
    "Geometric": (lambda p, y: pm.Geometric("y", p, observed=y), stats.geom, (1, 12), 4),
    "NegativeBinomial": (
        lambda p, y: pm.NegativeBinomial("y", n=1.7, p=p, observed=y), lambda p: stats.nbinom(1.7, p), (0, 15), 3,
    ),
}  # fmt: skip


def log_noise(distance, scale, kind):
    """Log probability of discrete noise, but for a constant."""
    return -np.abs(distance) / scale if kind == "laplace" else -0.5 * (distance / scale) ** 2


def row(law, low, high):
    """Probabilities of a row that is clamped to its bounds."""
    return np.array([law.cdf(low), *law.pmf(np.arange(low + 1, high)), law.sf(high - 1)])


def released(build, y, noise, epsilon=0.7, **domain):
    """The release and its noise scales, and the log-likelihood on the grid as the private model has it."""
    with pm.Model() as model:
        build(pm.Uniform("p", 0, 1, default_transform=None), y)
    with dp.testing.insecure_randomness(5):
        private = dp.privatize(
            model, epsilon=epsilon, delta=NOISES[noise], statistics=dp.Statistics(noise), domain=dp.Domain(**domain)
        )
    release, logp = dp.Release.of(private), private.compile_logp(vars=[private["y"]])
    return release.tables["y"], release.record.tables[0].scales, np.array([logp({"p": np.array(p)}) for p in GRID])


def same(found, exact, error):
    """Up to a constant, and wherever the posterior may be."""
    near = exact > exact.max() - 15
    assert near.sum() > 5 and np.ptp((found - exact)[near]) < error, found - exact


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", CASES)
def test_sums_of_whole_numbers_are_summed_out(name, noise):
    build, law, (low, high), n = CASES[name]
    bounds = {} if high in (1, 6) else {"bounds": {"y": (low, high)}}
    ((value,),), (scale,), found = released(build, np.clip(np.arange(n) % 7, low, high), noise, **bounds)
    sums = n * low + np.arange(n * (high - low) + 1)
    exact = [
        logsumexp(log_noise(value - sums, scale, noise), b=reduce(np.convolve, [row(law(p), low, high)] * n))
        for p in GRID
    ]
    same(found, np.array(exact), 1e-5)


@pytest.mark.parametrize("noise", NOISES)
def test_a_private_number_of_rows_is_integrated_out(noise):
    """Counts of both levels are Poisson, given a size of which nothing is known but its bound."""
    build, most = CASES["Bernoulli"][0], 200
    hidden = {"neighbours": "add_remove", "n_max": most}
    ((zeros, ones),), scales, found = released(build, np.arange(90) % 3 // 2, noise, **hidden)
    size, counts = np.linspace(0.05, most - 0.05, 2000), np.arange(most + 100)[:, None]
    exact = []
    for p in GRID:
        terms = [
            logsumexp(stats.poisson.logpmf(counts, size * share) + log_noise(value - counts, scales[0], noise), axis=0)
            for value, share in ((zeros, 1 - p), (ones, p))
        ]
        exact.append(logsumexp(sum(terms)))
    same(found, np.array(exact), 0.01)


@pytest.mark.parametrize("noise", NOISES)
def test_sums_of_normal_numbers_are_normal_and_noised(noise, rng):
    """Of a known standard deviation, and bounds that clamp next to nothing."""
    n, sd = 50, 1.5
    y = rng.normal(2, sd, n)
    given = {"bounds": {"y": (-10, 14)}, "epsilon": 2.0}
    build = lambda p, y: pm.Normal("y", 4 * p, sd, observed=y)  # noqa: E731
    ((value,),), (scale,), found = released(build, y, noise, **given)
    at = np.linspace(-400, 400, 200_001)  # sums less 2 n, of which the release is one
    exact = [
        logsumexp(stats.norm.logpdf(at, n * (4 * p - 2), sd * np.sqrt(n)) + log_noise(value - at, scale, noise))
        for p in GRID
    ]
    same(found, np.array(exact), 1e-3)
