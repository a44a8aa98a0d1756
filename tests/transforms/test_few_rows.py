"""Sums of few whole numbers against brute force: their density, its slopes, its tables, and draws."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import logsumexp

from pymc_dp.families import FAMILIES
from pymc_dp.families.family import MOST_VALUES
from pymc_dp.families.feature_family import bounded_count
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.cell_tables import TableLogp
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


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("kind", "scale"), [("laplace", 0.2), ("laplace", 4.0), ("gaussian", 0.5), ("gaussian", 3.0)])
def test_the_density_adds_up_all_sums_and_so_do_its_tables(name, kind, scale, rng):
    density, value = density_of(name, kind, scale), released(name, kind, scale, rng)
    assert density.few.tolist() == [True, True, True, True, False]
    at = pt.vector("at", shape=(1,))
    held = pt.constant(value)
    graph = density.graph(held, *parameters(name, at))
    table = replace(density, release=value).logp(held, *parameters(name, at))
    assert isinstance(table.owner.op, TableLogp) or scale < 1
    evaluate = function([at], [item for logp in (graph, table) for item in (logp, pt.grad(logp[:4].sum(), at))])
    for parameter in CASES[name][3]:
        found, slope, tabulated, of_table = evaluate([parameter])
        expected = [exact(name, parameter, n, x, kind, scale) for n, x in zip(SIZES[:4], value[:4, 0], strict=True)]
        np.testing.assert_allclose(found[:4], expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(tabulated, found, rtol=1e-5, atol=1e-5)
        step = 1e-5 * min(parameter, abs(1 - parameter))
        ends = [evaluate([parameter + sign * step])[0][:4].sum() for sign in (1, -1)]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(of_table, slope, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_the_density_is_finite_at_extreme_parameters_and_releases(name):
    density, at = density_of(name, "gaussian", 0.2), pt.vector("at", shape=(1,))
    value = pt.matrix("value", shape=(len(SIZES), 1))
    logp = density.graph(value, *parameters(name, at))
    evaluate = function([value, at], [logp, pt.grad(logp.sum(), at)])
    for level in (-1e4, 0.0, 3.0, 1e4):
        for parameter in (1e-12, 1e-3, 1 - 1e-12, *([1e3, 1e9] if name.startswith("poisson") else [])):
            assert all(np.isfinite(item).all() for item in evaluate(np.full((len(SIZES), 1), level), [parameter]))


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


def test_cells_whose_sums_have_many_values_or_private_sizes_are_taken_for_normal():
    assert density_of("poisson", "laplace", 1.0, np.array([0, 12, 13])).few.tolist() == [False, True, False]
    assert 12 * 20 < MOST_VALUES <= 13 * 20
    private = Sizes(public=False, bound=SIZES, n_private=1)
    assert not replace(density_of("poisson", "laplace", 1.0), sizes=private).few.any()


@pytest.mark.slow(parts=6)
@pytest.mark.parametrize("kind", LOG_NOISE)
@pytest.mark.parametrize("mean", [0.9, 3.1, 10.0])
def test_intervals_of_cells_of_one_row_hold_what_they_say(mean, kind, rng):
    """Of the common rate of 40 cells, counts between 0 and 20, the noise of ε = 100: by normal sums .83 to .88."""
    scale, cells = {"laplace": 0.2, "gaussian": 1.6}[kind], 40
    rates = mean * np.exp(np.linspace(-0.6, 0.6, 201))
    density = density_of("poisson", kind, scale, np.ones(cells * len(rates), dtype=int))
    value = pt.matrix("value", shape=(cells * len(rates), 1))
    logp = density.graph(value, pt.constant(np.repeat(rates, cells))).reshape((len(rates), cells)).sum(axis=1)
    evaluate = pytensor.function([value], logp, mode="FAST_COMPILE")
    below = []
    for truth in rng.choice(rates, 200):
        counts = np.clip(rng.poisson(truth, cells), 0, 20) + noise(rng, kind, scale, cells)
        found = evaluate(np.tile(counts, len(rates))[:, None].astype(float))
        weights = np.exp(found - logsumexp(found))
        below.append(weights[rates < truth].sum() + weights[rates == truth].sum() / 2)
    held = np.mean((np.array(below) > 0.05) & (np.array(below) < 0.95))
    assert 0.86 <= held <= 0.94, held
