"""Draws are from the exact posterior given the release, which brute force finds on tiny tables."""

import itertools
import math

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

import pymc_dp as dp

UNIT = np.linspace(0.0005, 0.9995, 1000)
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1}
pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]


def coins(n=20):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.arange(n) % 3 == 0)
    return model


def drawn(model, draws, **settings):
    """Return the posterior, the released tables, and the scale of the noise of each."""
    with dp.testing.insecure_randomness(3):
        private = dp.privatize(model, **settings)
    release = dp.Release.of(private)
    trace = pm.sample(
        draws, tune=60, chains=1, step=dp.DataAugmentation(model=private), model=private, random_seed=1, **QUIET
    )
    return trace["posterior"], release.tables, {table.name: table.scales[0] for table in release.record.tables}


def agrees(chain, grid, log_density, *, least=100):
    """Mixes, has the mean of a density on a grid, and its distribution (Kolmogorov, Smirnov, on thinned draws)."""
    mass = np.exp(log_density - np.max(log_density))
    mass /= mass.sum()
    ess = float(az.ess(chain[None]))
    assert ess > least, ess
    assert abs(chain.mean() - grid @ mass) < 5 * float(az.mcse(chain[None])), (chain.mean(), grid @ mass)
    thinned = chain[:: math.ceil(len(chain) / ess)]
    below = np.cumsum(mass) - mass / 2
    assert stats.kstest(thinned, lambda x: np.interp(x, grid, below)).pvalue > 0.001


def sum_of(masses, n):
    """Probabilities of sums of n independent rows, each on 0..k with probabilities along the last axis."""
    found = np.ones((*masses.shape[:-1], 1))
    for _ in range(n):
        longer = np.zeros((*masses.shape[:-1], found.shape[-1] + masses.shape[-1] - 1))
        for k in range(masses.shape[-1]):
            longer[..., k : k + found.shape[-1]] += found * masses[..., [k]]
        found = longer
    return found


def log_laplace(distance, scale):
    return -np.abs(distance) / scale


def log_gaussian(distance, scale):
    return -0.5 * (distance / scale) ** 2


@pytest.mark.slow
def test_posteriors_of_a_proportion_are_exact():
    posterior, tables, scales = drawn(coins(), 500, epsilon=0.5)
    terms = stats.binom.logpmf(np.arange(21), 20, UNIT[:, None]) + log_laplace(
        tables["y"][0, 0] - np.arange(21), scales["y"]
    )
    agrees(posterior["p"].values[0], UNIT, special.logsumexp(terms, axis=1))


@pytest.mark.parametrize("noise", [pytest.param("laplace", marks=pytest.mark.slow), "gaussian"])
def test_posteriors_of_counts_that_are_clamped_are_exact(noise):
    """Three rows, half of them at a bound: far from the central limit."""
    settings = {"delta": 1e-3, "statistics": dp.Statistics(noise="gaussian")} if noise == "gaussian" else {}
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=np.array([0, 5, 1]))
    posterior, tables, scales = drawn(model, 500, epsilon=2.0, domain=dp.Domain(bounds={"y": (1, 3)}), **settings)
    grid = np.linspace(-6, 2.5, 1200)
    rates = np.exp(grid)[:, None]
    masses = [stats.poisson.cdf(1, rates), stats.poisson.pmf(2, rates), stats.poisson.sf(2, rates)]
    noised = log_gaussian if noise == "gaussian" else log_laplace
    terms = np.log(sum_of(np.concatenate(masses, axis=1), 3)) + noised(
        tables["y"][0, 0] - 3 - np.arange(7), scales["y"]
    )
    truth = special.logsumexp(terms, axis=1) + stats.gamma.logpdf(rates[:, 0], 2) + grid
    agrees(np.log(posterior["rate"].values[0]), grid, truth)


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
@pytest.mark.parametrize("observed_class", [False, True])
def test_posteriors_by_private_group_and_of_naive_bayes_are_exact(observed_class):
    """Every split of the rows between the levels has the same prior probability."""
    groups, answers = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        p = pm.Beta("p", 1, 1, dims="group")
        index = pm.Bernoulli("label", pm.Beta("q", 1, 1), observed=groups) if observed_class else pm.Data("g", groups)
        pm.Bernoulli("y", p[index], observed=answers)
    posterior, tables, scales = drawn(model, 2000 if observed_class else 400, epsilon=3.0)

    def noise(table):
        found = log_laplace(table - tables["y"], scales["y"]).sum()
        return found + (log_laplace(table[1].sum() - tables["label"][0, 0], scales["label"]) if observed_class else 0.0)

    for place, density in enumerate(multinomial_posteriors(noise, 6, lambda *sizes: 0.0)):
        agrees(posterior["p"].values[0, :, place], UNIT, density)


def infinite():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1 + pm.Poisson("k", 2.0), 1.0), observed=np.array([0, 1, 1]))
    return model


REFUSED = {
    "private numbers of rows": (
        coins,
        {"domain": dp.Domain(neighbours="add_remove", n_max=50)},
        "data augmentation has",
    ),
    "plug-in models": (coins, {"statistics": dp.Statistics(noise_aware=False)}, "treats the release as exact sums"),
    "large tables": (lambda: coins(100_001), {}, "all 100001 rows, more than 100000"),
    "infinite discrete variables": (infinite, {}, "without a known finite set of levels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_augmented_is_refused_before_anything_is_spent(name, monkeypatch):
    build, settings, text = REFUSED[name]
    ledger, model = dp.Ledger(1.0), build()
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda leaf: pytest.fail("rows were read"))
    with pytest.raises(dp.errors.UnsupportedModelError, match=text):
        dp.sample(epsilon=1.0, step=dp.DataAugmentation(), ledger=ledger, model=model, **settings)
    assert not ledger.history


def test_releases_without_noise_are_refused():
    with dp.testing.without_noise():
        private = dp.privatize(coins(), epsilon=1.0)
    with pytest.raises(dp.errors.UnsupportedModelError, match="no noise"):
        dp.DataAugmentation(model=private)
