"""Draws are from the exact posterior given the release, which brute force finds on tiny tables."""

import itertools

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

from pymc_dp.accounting import Ledger
from pymc_dp.audit import contains_canary, plant
from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.privatize import privatize
from pymc_dp.release.statistics import Statistics
from pymc_dp.released import Release, condition
from pymc_dp.sampling import sample
from pymc_dp.step_methods.augmentation import DataAugmentation
from pymc_dp.testing import insecure_randomness, without_noise
from tests.step_methods.augmentation.exact import agrees, bound, run, sum_of
from tests.transforms.zoo import no_reading

UNIT = np.linspace(0.0005, 0.9995, 1000)


def coins(n=20, rows=None):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("y", p, observed=np.arange(n) % 3 == 0 if rows is None else rows)
    return model


def released(model, **settings):
    with insecure_randomness(3):
        private = privatize(model, **settings)
    return private, Release.of(private)


def log_laplace(distance, scale):
    return -np.abs(distance) / scale


def log_gaussian(distance, scale):
    return -0.5 * (distance / scale) ** 2


NOISES = {
    "laplace": (log_laplace, {"epsilon": 2.0}),
    "gaussian": (log_gaussian, {"epsilon": 2.0, "delta": 1e-3, "statistics": Statistics(noise="gaussian")}),
}


@pytest.mark.slow
def test_posteriors_of_a_proportion_are_exact():
    private, release = released(coins(), epsilon=0.5)
    ones, scale = release.tables["y"][0, 0], release.record.tables[0].scales[0]
    chain = special.expit(run(bound(private), private, 500)["p_logodds__"])
    s = np.arange(21)
    terms = stats.binom.logpmf(s, 20, UNIT[:, None]) + log_laplace(ones - s, scale)
    agrees(chain, UNIT, special.logsumexp(terms, axis=1))


@pytest.mark.parametrize("noise", [pytest.param("laplace", marks=pytest.mark.slow), "gaussian"])
def test_posteriors_of_counts_that_are_clamped_are_exact(noise):
    """Three rows, half of them at a bound: far from the central limit."""
    log_noise, settings = NOISES[noise]
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("y", rate, observed=np.array([0, 5, 1]))
    private, release = released(model, domain=Domain(bounds={"y": (1, 3)}), **settings)
    total, scale = release.tables["y"][0, 0], release.record.tables[0].scales[0]
    chain = run(bound(private), private, 500)["rate_log__"]
    grid = np.linspace(-6, 2.5, 1200)
    rates = np.exp(grid)[:, None]
    masses = np.concatenate(
        [stats.poisson.cdf(1, rates), stats.poisson.pmf(2, rates), stats.poisson.sf(2, rates)], axis=1
    )
    terms = np.log(sum_of(masses, 3)) + log_noise(total - 3 - np.arange(7), scale)
    agrees(chain, grid, special.logsumexp(terms, axis=1) + stats.gamma.logpdf(rates[:, 0], 2) + grid)


def multinomial_posteriors(seen_of, n, weigh):
    """Densities of two proportions on `UNIT`, given noised functions of counts of (level, value) = 00, 01, 10, 11."""
    found = [np.full(len(UNIT), -np.inf) for _ in range(2)]
    for a, b, c in itertools.product(range(n + 1), repeat=3):
        if (d := n - a - b - c) < 0:
            continue
        weight = weigh(a + b, c + d) + seen_of(np.array([[a, b], [c, d]]))
        level = [(a, b), (c, d)]
        whole = [special.betaln(one + 1, zero + 1) + np.log(special.comb(zero + one, one)) for zero, one in level]
        for k, (zero, one) in enumerate(level):
            term = stats.binom.logpmf(one, zero + one, UNIT) + whole[1 - k] + weight
            found[k] = np.logaddexp(found[k], term)
    return found


@pytest.mark.slow
def test_posteriors_by_private_group_are_exact():
    """Every split of the rows between the levels has the same prior probability."""
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        index = pm.Data("index", np.array([0, 0, 0, 0, 1, 1, 1]))
        p = pm.Beta("p", 1, 1, dims="group")
        pm.Bernoulli("y", p[index], observed=np.array([0, 0, 0, 1, 1, 1, 1]))
    private, release = released(model, epsilon=2.0)
    seen, scale = release.tables["y"], release.record.tables[0].scales[0]
    chain = special.expit(run(bound(private), private, 400)["p_logodds__"])
    truth = multinomial_posteriors(lambda table: log_laplace(table - seen, scale).sum(), 7, lambda *sizes: 0.0)
    for place, density in enumerate(truth):
        agrees(chain[:, place], UNIT, density)


@pytest.mark.slow
def test_posteriors_of_naive_bayes_are_exact():
    """The augmented class of a row is the one that its features are of."""
    with pm.Model(coords={"class": ["a", "b"]}) as model:
        q = pm.Beta("q", 1, 1)
        p = pm.Beta("p", 1, 1, dims="class")
        label = pm.Bernoulli("label", q, observed=np.array([0, 0, 0, 1, 1, 1]))
        pm.Bernoulli("y", p[label], observed=np.array([0, 0, 1, 1, 1, 1]))
    private, release = released(model, epsilon=3.0)
    ones, seen = release.tables["label"][0, 0], release.tables["y"]
    scales = [table.scales[0] for table in release.record.tables]
    chain = special.expit(run(bound(private), private, 2000)["p_logodds__"])

    def noise(table):
        return log_laplace(table - seen, scales[1]).sum() + log_laplace(table[1].sum() - ones, scales[0])

    for place, density in enumerate(multinomial_posteriors(noise, 6, lambda *sizes: 0.0)):
        agrees(chain[:, place], UNIT, density)


@pytest.mark.slow
def test_chains_depend_on_the_release_alone():
    """Another model with other rows, conditioned on the same release, makes the same chain; no row is in the step."""
    rows = plant(np.linspace(-1, 1, 30), rows=[3, 20], low=-1, high=1)

    def build(values):
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mean", 0, 1), 1.0, observed=values)
        return model

    private, release = released(build(rows.values), epsilon=1.0, domain=Domain(bounds={"y": (-2, 2)}))
    rows.values[:] = np.nan
    step = bound(private)
    first = run(step, private, 20, tune=0)["mean"]
    assert not contains_canary(step, rows.canaries)
    other = condition(build(np.zeros(2)), release)
    assert np.array_equal(first, run(bound(other), other, 20, tune=0)["mean"])


def infinite():
    with pm.Model() as model:
        k = pm.Poisson("k", 2.0)
        pm.Bernoulli("y", pm.Beta("p", 1 + k, 1.0), observed=np.array([0, 1, 1]))
    return model


REFUSED = {
    "private numbers of rows": (
        coins,
        {"domain": Domain(neighbours="add_remove", n_max=50)},
        "data augmentation has to",
    ),
    "plug-in models": (coins, {"statistics": Statistics(noise_aware=False)}, "treats the release as exact sums"),
    "large tables": (lambda: coins(100_001), {}, "all 100001 rows, more than 100000"),
    "infinite discrete variables": (infinite, {}, "without a known finite set of levels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_augmented_is_refused_before_anything_is_spent(name, monkeypatch):
    build, settings, text = REFUSED[name]
    ledger = Ledger(1.0)
    with build(), no_reading(monkeypatch), pytest.raises(UnsupportedModelError, match=text):
        sample(epsilon=1.0, step=DataAugmentation(), ledger=ledger, **settings)
    assert not ledger.history


def test_releases_without_noise_are_refused():
    with without_noise():
        private = privatize(coins(), epsilon=1.0)
    with pytest.raises(UnsupportedModelError, match="no noise"):
        DataAugmentation(model=private)
