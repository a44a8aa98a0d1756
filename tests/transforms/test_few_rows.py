"""Sums of few whole numbers against brute force: their density, its slopes, its tables, and draws."""

from functools import reduce

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

from pymc_dp.families import FAMILIES
from pymc_dp.families.feature_family import bounded_count
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.density import ReleaseDensity
from tests.transforms.test_noise_aware import LOG_NOISE, function, noise

SIZES = np.array([1, 2, 5, 1, 3000])
"""The last cell has too many rows."""
CASES = {
    "poisson": ((0, 20), lambda x: stats.poisson(x), (None,), [0.01, 0.9, 10.0, 40.0]),
    "poisson from 2": ((2, 9), lambda x: stats.poisson(x), (None,), [0.3, 5.0]),
    "geometric": ((1, 12), lambda x: stats.geom(x), (None,), [0.03, 0.5, 0.97]),
    "negative_binomial": ((0, 15), lambda x: stats.nbinom(1.7, x), (1.7, None), [0.05, 0.4, 0.9]),
    "binomial": ((0, 6), lambda x: stats.binom(6, x), (6.0, None), [0.02, 0.5, 0.99]),
}


def density_of(name, kind, scale, sizes=SIZES):
    return ReleaseDensity(
        family=FAMILIES[name.split()[0]], statistic=bounded_count(*CASES[name][0], sizes_known=True),
        sizes=Sizes(public=True, bound=sizes, n_private=1, kind=kind), scales=np.array([scale]), steps=np.ones(1),
        noise_aware=True,
    )  # fmt: skip


def parameters(name, unknown):
    return [unknown if item is None else pt.constant(np.array([item])) for item in CASES[name][2]]


def row(name, parameter):
    """Probabilities of a clamped row."""
    (low, high), of = CASES[name][0], CASES[name][1](parameter)
    return np.array([of.cdf(low), *of.pmf(np.arange(low + 1, high)), of.sf(high - 1)])


def exact(name, parameter, n, value, kind, scale):
    """Log density of one cell, in half widths."""
    low, high = CASES[name][0]
    masses = reduce(np.convolve, [row(name, parameter)] * n)
    log_noise = LOG_NOISE[kind](value - n * low - np.arange(len(masses)), scale)
    return logsumexp(log_noise, b=masses) + np.log((high - low) / 2)


def released(name, kind, scale, rng):
    low, high = CASES[name][0]
    exact_sums = [low * n + rng.choice(high - low + 1, n, p=row(name, CASES[name][3][1])).sum() for n in SIZES]
    return (exact_sums + noise(rng, kind, scale, len(SIZES)))[:, None].astype(float)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [[3], [2, 3000]], ids=["few", "mixed"])
def test_draws_follow_the_density(name, sizes, seed):
    density, parameter = density_of(name, "laplace", 2.0, np.array(sizes)), CASES[name][3][1]
    batch = [np.full((20_000, len(sizes)), parameter if item is None else item) for item in CASES[name][2]]
    draws = density.random(*batch, rng=np.random.default_rng(seed))[:, 0, 0]
    low, high = CASES[name][0]
    values = np.arange(sizes[0] * low - 20, sizes[0] * high + 21)
    p = np.exp([exact(name, parameter, sizes[0], x, "laplace", 2.0) for x in values]) / ((high - low) / 2)
    expected = p * len(draws)
    inside = expected > 10
    counts = np.array([(draws == x).sum() for x in values])
    assert stats.chisquare([*counts[inside], len(draws) - counts[inside].sum()],
                           [*expected[inside], len(draws) - expected[inside].sum()]).pvalue > 1e-4  # fmt: skip


# --- private sizes ---------------------------------------------------------------------------------------------------


OF_SIZE = {"laplace": 0.1, "gaussian": 0.3}
"""Scale of the noise on sizes."""


def private_density(name, kind, scale, release, bound=40, of_size=None, **given):
    statistic = bounded_count(*CASES[name][0], sizes_known=False)
    sizes = Sizes(public=False, bound=np.full(len(release), bound), n_private=1, kind=kind, **given)
    return ReleaseDensity(
        family=FAMILIES[name.split()[0]], statistic=statistic, sizes=sizes,
        scales=np.array([of_size or OF_SIZE[kind], scale * statistic.unit]), steps=np.array([1.0, statistic.unit]),
        noise_aware=True, release=release,
    )  # fmt: skip


def prior_of_size(n, rate, bound):
    """Of what is rounded to n."""
    return quad(lambda x: (1 + rate * x) ** -2, max(n - 0.5, 0), min(n + 0.5, bound))[0] * (1 + rate * bound) / bound


def exact_of_private_size(name, parameter, released, kind, scale, prior, of_size=None):
    """Log density of one cell, in half widths: of all sizes and all sums of each."""
    (low, high), (count, value) = CASES[name][0], released
    unit, terms = bounded_count(low, high, sizes_known=False).unit, []
    for n, p in enumerate(prior):
        masses = reduce(np.convolve, [row(name, parameter)] * n, np.ones(1))
        steps = (value - np.arange(len(masses)) + n * (high - low) / 2) / unit
        shown = LOG_NOISE[kind](count - n, of_size or OF_SIZE[kind])
        terms.append(np.log(p) + shown + logsumexp(LOG_NOISE[kind](steps, scale), b=masses))
    return logsumexp(terms) + np.log((high - low) / 2 / unit)


def released_of_private_size(name, kind, scale, rng, sizes):
    low, high = CASES[name][0]
    masses, unit = row(name, CASES[name][3][1]), bounded_count(low, high, sizes_known=False).unit
    sums = [rng.choice(high - low + 1, n, p=masses).sum() - n * (high - low) / 2 for n in sizes]
    counts = sizes + noise(rng, kind, OF_SIZE[kind], len(sizes))
    return np.column_stack([counts, sums + unit * noise(rng, kind, scale, len(sizes))]).astype(float)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("kind", "scale"), [("laplace", 0.4), ("laplace", 4.0), ("gaussian", 0.8), ("gaussian", 3.0)])
def test_all_private_sizes_are_added_up(name, kind, scale, rng):
    value, at = released_of_private_size(name, kind, scale, rng, np.array([0, 1, 1, 3])), pt.vector("at", shape=(1,))
    density, held = private_density(name, kind, scale, value, rate=0.3), pt.constant(value)
    assert density.few.cells.all()
    graph, table = (of(held, *parameters(name, at)) for of in (density.graph, density.logp))
    evaluate = function([at], [item for logp in (graph, table) for item in (logp, pt.grad(logp.sum(), at))])
    prior = [prior_of_size(n, 0.3, 40) for n in range(12)]
    for parameter in CASES[name][3]:
        found, slope, tabulated, of_table = evaluate([parameter])
        expected = [exact_of_private_size(name, parameter, item, kind, scale, prior) for item in value]
        np.testing.assert_allclose(np.exp(found), np.exp(expected), rtol=1e-6, atol=1e-9)  # noise reaches further
        np.testing.assert_allclose(tabulated, found, rtol=1e-5, atol=1e-5)
        step = 1e-5 * min(parameter, abs(1 - parameter))
        ends = [evaluate([parameter + sign * step])[0].sum() for sign in (1, -1)]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(of_table, slope, rtol=1e-3, atol=1e-3)
