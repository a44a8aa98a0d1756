"""Draws are from the exact posterior given the release, which brute force finds on tiny tables."""

import itertools

import numpy as np
import pymc as pm
import pytensor
import pytest
from scipy import special, stats

from pymc_dp.accounting import Ledger
from pymc_dp.audit import contains_canary, plant
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.inspection.interpreted import NUMPY
from pymc_dp.privatize import privatize
from pymc_dp.release.statistics import Statistics
from pymc_dp.released import Release, condition
from pymc_dp.sampling import sample
from pymc_dp.step_methods.augmentation import DataAugmentation
from pymc_dp.testing import insecure_randomness, without_noise
from pymc_dp.trace.scrub import scrub
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


@pytest.mark.slow
def test_given_rows_what_is_conjugate_is_drawn_exactly(rng):
    """A mean given the spread, which is sliced; a rate of another table, and what no row touches."""
    with pm.Model() as model:
        mean, sd = pm.Normal("mean", 0.5, 1.0), pm.HalfNormal("sd", 1.0)
        pm.Normal("y", mean, sd, observed=np.linspace(-1, 2, 30))
        pm.Exponential("w", pm.Gamma("rate", 2.0, 1.0), observed=np.linspace(0.1, 2, 30))
        pm.Beta("alone", 2.0, 3.0)
    private, _ = released(model, epsilon=5.0, domain=Domain(bounds={"y": (-2, 3), "w": (0, 3)}))
    step = bound(private)
    assert set(step.scan.exact) == {"mean", "rate_log__", "alone_logodds__"}
    point = private.initial_point()
    point["sd_log__"] = np.log(0.8)
    step._augment(point)
    held = dict(
        zip(step.scan.tables, [(rows, n) for model in step.augmented for rows, n in [model.sums()]], strict=True)
    )
    step.scan.given = [item for pair in held.values() for item in pair]
    found = {name: np.array([step.scan.update(rng, point, name) for _ in range(600)]) for name in step.scan.exact}
    statistic = step.augmented[step.scan.tables.index("y")].model.tables[0].statistic
    total = held["y"][0][0, 0] + 30 * statistic.centre
    precision = 1 + 30 / 0.64
    law = stats.norm((0.5 + total / 0.64) / precision, precision**-0.5)
    assert stats.kstest(found["mean"], law.cdf).pvalue > 0.001
    waits = stats.gamma(2 + 30, scale=1 / (1 + held["w"][0][0, 0]))
    assert stats.kstest(np.exp(found["rate_log__"]), waits.cdf).pvalue > 0.001
    assert stats.kstest(special.expit(found["alone_logodds__"]), stats.beta(2, 3).cdf).pvalue > 0.001


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


@pytest.mark.slow
def test_posteriors_of_two_sums_of_clamped_numbers_are_exact():
    """Bounds well within the bulk of the normal, and the joint density of both sums of two rows."""
    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 1)
        sd = pm.LogNormal("sd", 0, 0.5)
        pm.Normal("y", mean, sd, observed=np.array([0.3, 4.0]))
    private, release = released(model, epsilon=6.0, domain=Domain(bounds={"y": (-1, 1)}))
    seen, scales = release.tables["y"][0], release.record.tables[0].scales
    chain = run(bound(private), private, 2500)
    edges = np.linspace(-1, 1, 101)
    x = np.concatenate([[-1], (edges[1:] + edges[:-1]) / 2, [1]])
    noise = log_laplace(seen[0] - x[:, None] - x, scales[0]) + log_laplace(seen[1] - x[:, None] ** 2 - x**2, scales[1])
    means, logs = np.linspace(-4, 4, 121), np.linspace(-2.5, 2.5, 101)
    z = (edges - means[:, None, None]) / np.exp(logs)[None, :, None]
    below = stats.norm.cdf(z)
    masses = np.concatenate([below[..., :1], np.diff(below, axis=-1), 1 - below[..., -1:]], axis=-1)
    mass = np.einsum("msi,ij,msj->ms", masses, np.exp(noise), masses, optimize=True)
    density = np.log(mass) + stats.norm.logpdf(means)[:, None] + stats.norm.logpdf(logs, 0, 0.5)
    agrees(chain["mean"], means, special.logsumexp(density, axis=1))
    agrees(chain["sd_log__"], logs, special.logsumexp(density, axis=0))


@pytest.mark.slow
def test_posteriors_by_public_group_are_exact():
    group = np.repeat([0, 1], [12, 5])
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        index = pm.Data("index", group)
        p = pm.Beta("p", 1, 1, dims="group")
        pm.Bernoulli("y", p[index], observed=np.arange(17) % 2)
    private, release = released(model, epsilon=0.7, domain=Domain(public=["index"]))
    chain = special.expit(run(bound(private), private, 2000)["p_logodds__"])
    for place, n in enumerate([12, 5]):
        s = np.arange(n + 1)
        terms = stats.binom.logpmf(s, n, UNIT[:, None]) + log_laplace(
            release.tables["y"][place, 0] - s, release.record.tables[0].scales[0]
        )
        agrees(chain[:, place], UNIT, special.logsumexp(terms, axis=1))


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


def test_a_saved_state_goes_on_with_the_same_chain():
    private, _ = released(coins(), epsilon=1.0)
    step = bound(private, scans_per_draw=2)
    point = {"p_logodds__": np.asarray(0.3)}
    step.setup_chain(np.random.default_rng(1), 5, 5)
    for _ in range(3):
        point, _ = step.step(point)
    saved = step.sampling_state
    first = [step.step(point) for _ in range(2)]
    step.sampling_state = saved
    assert first == [step.step(point) for _ in range(2)]


def test_proposals_are_accepted_as_often_as_epsilon_says():
    private, _ = released(coins(100), epsilon=0.2)
    step = bound(private)
    step.setup_chain(np.random.default_rng(1), 0, 50)
    point, rates = {"p_logodds__": np.asarray(0.0)}, []
    for _ in range(50):
        point, (found,) = step.step(point)
        rates.append(found["acceptance_rate"])
    assert np.exp(-0.2) - 0.02 < np.mean(rates) <= 1 and repr(step) == "DataAugmentation()"


def test_pymc_samples_with_the_step_and_the_trace_keeps_its_statistics():
    options = {"quiet": True, "compute_convergence_checks": False}
    with pytensor.config.change_flags(**NUMPY), coins():
        idata = sample(20, tune=10, chains=1, epsilon=1.0, step=DataAugmentation(), progressbar=False, random_seed=1,
                       **options)  # fmt: skip
    assert idata.dp.epsilon == 1.0 and idata.privacy.attrs["guarantee"] == "exact"
    assert set(idata.sample_stats.data_vars) == {"acceptance_rate"}
    private = privatize(coins(40), epsilon=1.0)
    with pytensor.config.change_flags(**NUMPY), private:
        bare = pm.sample(5, tune=5, chains=1, step=DataAugmentation(vars=["p"]), progressbar=False, **options)
        with pytest.raises(ArgumentError, match="free variables are"):
            DataAugmentation(vars=["q"])
    assert scrub(bare, private).dp.epsilon == 1.0


def test_a_specification_has_no_rows():
    with coins():
        step = DataAugmentation(scans_per_draw=3)
        assert repr(step) == "DataAugmentation(scans_per_draw=3)"
        with pytest.raises(ArgumentError, match="works on a private model"):
            step.setup_chain(1, 0, 1)
        with pytest.raises(ArgumentError, match="outside of a private model"):
            DataAugmentation(vars=["p"])


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
