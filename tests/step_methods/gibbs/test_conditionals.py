"""Draws of every conditional against its density, computed from the rows themselves."""

import math

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from pymc_dp.step_methods.gibbs.conjugate_draws import (
    BetaChance,
    DirichletShares,
    GammaPower,
    NormalMean,
)
from pymc_dp.step_methods.gibbs.grid import Free, Grid
from pymc_dp.transforms.truncate import truncate
from tests.step_methods.gibbs.conftest import bound, normal, scans

DRAWS = 1000
BETA = 0.6
BINARY = [0, 1, 1, 0, 1, 1, 1]
COUNTS = [0, 3, 1, 2, 9, 1]
VALUES = [-1.0, 0.3, 0.8, 2.5, 7.0, 0.1]


def update(step, name):
    return next(item for item in step.scan.updates if item.name == name)


def draw(step, name, values, rng, beta=BETA, count=DRAWS):
    held = {key: np.asarray(value, dtype=float) for key, value in values.items()}
    return np.array([update(step, name).draw(rng, held, step.sums, beta) for _ in range(count)])


def follows(sample, log_density, low, high):
    """Kolmogorov-Smirnov against an unnormalised log-density on an interval."""
    grid = np.linspace(low, high, 20001)
    height = log_density(grid)
    mass = np.cumsum(np.exp(height - height.max()))
    return stats.kstest(sample, lambda x: np.interp(x, grid, mass / mass[-1])).pvalue > 0.001


def probability(prior):
    with pm.Model() as model:
        p = prior()
        pm.Bernoulli("y", p, observed=np.array(BINARY))
    return model


@pytest.mark.parametrize(
    ("prior", "log_prior"),
    [
        (lambda: pm.Truncated("p", pm.Beta.dist(2.0, 0.5), 0.1, 0.9), lambda p: np.log(p) - 0.5 * np.log1p(-p)),
        (lambda: pm.Uniform("p", 0.1, 0.9), lambda p: 0 * p),
        (
            lambda: pm.Truncated("p", pm.Beta.dist(mu=0.3, sigma=0.2), 0.1, 0.9),
            lambda p: stats.beta.logpdf(p, 1.275, 2.975),
        ),
    ],
    ids=["beta", "uniform", "mean and sd"],
)  # fmt: skip
def test_probabilities(prior, log_prior, rng):
    step, _ = bound(probability(prior))
    assert isinstance(update(step, "p"), BetaChance)
    ones, zeros = sum(BINARY), len(BINARY) - sum(BINARY)
    sample = draw(step, "p", {"p": 0.5}, rng)
    assert follows(sample, lambda p: log_prior(p) + BETA * (ones * np.log(p) + zeros * np.log1p(-p)), 0.1, 0.9)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("prior", "log_prior"),
    [
        (lambda: pm.Truncated("rate", pm.Gamma.dist(2.0, 3.0), 0.2, 6.0), lambda r: np.log(r) - 3 * r),
        (lambda: pm.Truncated("rate", pm.Exponential.dist(0.5), 0.2, 6.0), lambda r: -0.5 * r),
        (lambda: pm.Uniform("rate", 0.2, 6.0), lambda r: 0 * r),
    ],
    ids=["gamma", "exponential", "uniform"],
)
def test_rates_of_clamped_counts(prior, log_prior, rng):
    with pm.Model() as model:
        pm.Poisson("y", prior(), observed=np.array(COUNTS))
    step, _ = bound(model, Domain(bounds={"y": (0, 5)}))
    assert isinstance(update(step, "rate"), GammaPower)
    total = np.minimum(COUNTS, 5).sum()
    sample = draw(step, "rate", {"rate": 1.0}, rng)
    assert follows(sample, lambda r: log_prior(r) + BETA * (total * np.log(r) - len(COUNTS) * r), 0.2, 6.0)


def log_normal(mean, sd):
    clamped = np.clip(VALUES, -3, 3)[:, None]
    return -len(VALUES) * np.log(sd) - ((clamped - mean) ** 2).sum(axis=0) / (2 * sd**2)


@pytest.mark.parametrize("sd", [0.7, None])
def test_means(sd, rng):
    model, public = normal(VALUES, sd=sd)
    step, _ = bound(model, public)
    assert isinstance(update(step, "mean"), NormalMean)
    held = 0.7 if sd else 1.3
    sample = draw(step, "mean", {"mean": 0.0, "sd": held}, rng)
    assert follows(sample, lambda m: -(m**2) / 2 + BETA * log_normal(m, held), -2, 2)


@pytest.mark.parametrize("mean", [0.4, None])
def test_deviations_with_a_uniform_prior(mean, rng):
    model, public = normal(VALUES, mean=mean)
    step, _ = bound(model, public)
    assert isinstance(update(step, "sd"), GammaPower)
    sample = draw(step, "sd", {"mean": 0.4, "sd": 1.0}, rng)
    assert follows(sample, lambda s: BETA * log_normal(0.4, s), 0.5, 2)


def test_deviations_with_any_bounded_prior(rng):
    model, public = normal(VALUES, sd=lambda: pm.Truncated("sd", pm.HalfNormal.dist(1.0), 0.5, 4.0))
    step, _ = bound(model, public)
    assert isinstance(update(step, "sd"), Grid)
    sample = draw(step, "sd", {"mean": 0.4, "sd": 1.0}, rng, count=500)
    assert follows(sample, lambda s: -(s**2) / 2 + BETA * log_normal(0.4, s), 0.5, 4)


@pytest.mark.slow
def test_simplexes_and_tables_of_them(rng):
    group, level = np.array([0, 0, 1, 1, 1, 0, 0]), np.array([0, 1, 2, 2, 1, 0, 0])
    with pm.Model(coords={"g": range(2), "k": range(3)}) as model:
        p = pm.Dirichlet("p", [1.0, 2.0, 0.5], dims=("g", "k"))
        pm.Categorical("y", p[pm.Data("group", group)], observed=level)
    step, _ = bound(truncate(model, {"p": (0.05, None)}))
    found = update(step, "p")
    assert isinstance(found, DirichletShares) and found.shape == (2, 3)
    sample = draw(step, "p", {"p": np.full((2, 3), 1 / 3)}, rng)
    assert (sample >= 0.05).all() and np.allclose(sample.sum(axis=-1), 1)
    counts = np.zeros((2, 3))
    np.add.at(counts, (group, level), 1)
    grid = np.linspace(0.05, 0.9, 801)
    a, b = np.meshgrid(grid, grid)
    inside = a + b <= 0.95
    for place in range(2):
        powers = np.array([1.0, 2.0, 0.5]) + BETA * counts[place] - 1
        with np.errstate(invalid="ignore"):
            weight = np.where(inside, a ** powers[0] * b ** powers[1] * np.abs(1 - a - b) ** powers[2], 0)
        mean = (a * weight).sum() / weight.sum()
        spread = math.sqrt(((a - mean) ** 2 * weight).sum() / weight.sum() / DRAWS)
        assert abs(sample[:, place, 0].mean() - mean) < 5 * spread


def test_elements_in_groups_are_drawn_from_their_own_rows(rng):
    group = np.array([0, 1, 1, 2, 2, 2, 0])
    with pm.Model(coords={"g": range(3)}) as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.1, 0.9, dims="g")
        pm.Bernoulli("y", p[::-1][pm.Data("group", group)], observed=np.array(BINARY))
    step, _ = bound(model)
    assert isinstance(update(step, "p"), BetaChance)
    sample = draw(step, "p", {"p": np.full(3, 0.5)}, rng)
    for place in range(3):
        rows = np.array(BINARY)[group == 2 - place]
        ones, zeros = rows.sum(), (1 - rows).sum()
        assert follows(sample[:, place], lambda p: BETA * (ones * np.log(p) + zeros * np.log1p(-p)), 0.1, 0.9)  # noqa: B023


def test_independent_elements_on_a_grid_are_one_mechanism(rng):
    group = np.array([0, 1, 1, 1, 0, 1, 0])
    with pm.Model(coords={"g": range(2)}) as model:
        a = pm.Uniform("a", -2, 2, dims="g")
        pm.Bernoulli("y", logit_p=a[pm.Data("group", group)], observed=np.array(BINARY))
    step, _ = bound(model, grid=512)
    found = update(step, "a")
    assert isinstance(found, Grid) and found.together and len(found.ranges) == 1
    sample = draw(step, "a", {"a": np.zeros(2)}, rng, count=300)
    for place in range(2):
        rows = np.array(BINARY)[group == place]
        ones, n = rows.sum(), len(rows)
        assert follows(sample[:, place], lambda a: BETA * (ones * a - n * np.logaddexp(0, a)), -2, 2)  # noqa: B023


def test_coupled_elements_are_drawn_one_by_one(rng):
    """Two coefficients of one logit: each given the other, each a mechanism of its own."""
    x = np.array([0, 1, 2, 1, 0, 2, 2])
    with pm.Model() as model:
        b = pm.Uniform("b", -1, 1, shape=2)
        pm.Bernoulli("y", logit_p=b[0] + b[1] * pm.Data("x", x), observed=np.array(BINARY))
    step, _ = bound(model, Domain(bounds={"x": (0, 2)}), grid=256)
    found = update(step, "b")
    assert isinstance(found, Grid) and not found.together and len(found.ranges) == 2

    def log_density(b0, b1):
        eta = b0 + b1 * x[:, None]
        return BETA * (np.array(BINARY)[:, None] * eta - np.logaddexp(0, eta)).sum(axis=0)

    start = np.array([0.0, 0.5])
    sample = draw(step, "b", {"b": start}, rng, count=300)
    assert follows(sample[:, 0], lambda b: log_density(b, 0.5), -1, 1)


def test_discrete_latents_are_enumerated(rng):
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.3)
        pm.Bernoulli("y", pm.math.switch(z, 0.2, 0.6), observed=np.array(BINARY))
    step, _ = bound(model)
    sample = draw(step, "z", {"z": 0}, rng)
    ones, zeros = sum(BINARY), len(BINARY) - sum(BINARY)
    odds = math.log(0.3 / 0.7) + BETA * (ones * math.log(0.2 / 0.6) + zeros * math.log(0.8 / 0.4))
    assert stats.binomtest(int(sample.sum()), DRAWS, 1 / (1 + math.exp(-odds))).pvalue > 0.001


def test_latent_classes_of_public_groups(rng):
    """One class per region, whose rows share its probability."""
    group = np.array([0, 0, 0, 1, 1, 1, 1])
    with pm.Model(coords={"region": range(2)}) as model:
        z = pm.Bernoulli("z", 0.5, dims="region")
        pm.Bernoulli("y", pm.math.switch(z[pm.Data("group", group)], 0.2, 0.6), observed=np.array(BINARY))
    step, _ = bound(model, Domain(public=["group"]))
    found = update(step, "z")
    assert found.together and len(found.ranges) == 1
    sample = draw(step, "z", {"z": np.zeros(2)}, rng)
    for place in range(2):
        rows = np.array(BINARY)[group == place]
        odds = BETA * (rows.sum() * math.log(0.2 / 0.6) + (1 - rows).sum() * math.log(0.8 / 0.4))
        assert stats.binomtest(int(sample[:, place].sum()), DRAWS, 1 / (1 + math.exp(-odds))).pvalue > 0.001


def test_probabilities_of_some_entries_of_a_latent(rng):
    with pm.Model() as model:
        share = pm.Beta("share", 2.0, 3.0)
        z = pm.Bernoulli("z", pt.stack([0.3, share, share]), shape=3)
        rate = pm.Uniform("rate", 0.5, 4.0, shape=2)
        pm.Poisson("y", rate[z[np.array([0, 1, 2, 2])]], observed=pm.Data("d", np.arange(4)))
    step, _ = bound(model, Domain(bounds={"y": (0, 4)}))
    update = next(item for item in step.scan.updates if item.name == "share")
    assert isinstance(update, BetaChance) and update.ranges == () and "sees no row" in update.fact[1]
    values = {"z": np.array([1, 1, 0]), "rate": np.ones(2)}
    assert update.links[0].evidence(values, {}).sums.tolist() == [[1.0, 1.0]]
    drawn = [float(update.draw(rng, values, step.sums, 1.0)) for _ in range(500)]
    assert stats.kstest(drawn, stats.beta(3, 4).cdf).pvalue > 1e-4


def test_rows_and_a_latent_tell_of_one_probability(rng):
    """Rows tempered, and the latent as it is; one mechanism, whose range is that of the rows."""
    with pm.Model() as model:
        pm.Beta("share", 2.0, 3.0)
        p = pm.Uniform("p", 0.1, 0.9)
        z = pm.Bernoulli("z", p, shape=3)
        pm.Bernoulli("y", p, observed=np.array(BINARY[:6]))
        pm.Normal("x", pt.switch(z[0], -0.9, 1.1), 1.0, observed=np.array(VALUES))
    step, _ = bound(model, Domain(bounds={"x": (-3, 3)}), epsilon=1e9)
    assert isinstance(update(step, "p"), BetaChance)
    assert update(step, "p").ranges == pytest.approx((2 * math.log(9),))
    assert isinstance(update(step, "share"), BetaChance)  # nothing depends on it: it is drawn from its prior
    held = {"z": np.array([1, 1, 0]), "p": np.float64(0.5), "share": np.float64(0.5)}
    ones = BETA * sum(BINARY[:6]) + 2
    zeros = BETA * (6 - sum(BINARY[:6])) + 1
    assert follows(draw(step, "p", held, rng), lambda p: ones * np.log(p) + zeros * np.log1p(-p), 0.1, 0.9)
    assert stats.kstest(draw(step, "share", held, rng), stats.beta(2, 3).cdf).pvalue > 0.001


@pytest.mark.slow
def test_hyperparameters_reach_the_conditional_and_are_free(rng):
    """x ~ N(0, 1), mean ~ N(x, 1): with mean given, x ~ N(mean / 2, 1 / 2), and costs nothing."""
    with pm.Model() as model:
        x = pm.Normal("x")
        mean = pm.TruncatedNormal("mean", x, 1.0, lower=-9, upper=9)
        pm.Normal("y", mean, 1.0, observed=np.array(VALUES))
    step, _ = bound(model, Domain(bounds={"y": (-3, 3)}), epsilon=1e9)
    assert isinstance(update(step, "x"), Free) and update(step, "x").ranges == ()
    values = {"x": np.float64(0.0), "mean": np.float64(1.5)}
    found = []
    for _ in range(600):
        values["x"] = update(step, "x").draw(rng, values, step.sums, 1.0)
        found.append(float(values["x"]))
    thinned = np.array(found)[::2]
    assert stats.kstest(thinned, stats.norm(0.75, math.sqrt(0.5)).cdf).pvalue > 0.001
    sample = draw(step, "mean", {"x": 2.0, "mean": 0.0}, rng, beta=1.0)
    total, n = np.clip(VALUES, -3, 3).sum(), len(VALUES)
    assert stats.kstest(sample, stats.norm((2.0 + total) / (n + 1), 1 / math.sqrt(n + 1)).cdf).pvalue > 0.001


@pytest.mark.slow
def test_a_potential_takes_conjugacy_away(rng):
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9)
        pm.Potential("tilt", 3 * p)
        pm.Bernoulli("y", p, observed=np.array(BINARY))
    step, _ = bound(model)
    assert isinstance(update(step, "p"), Grid)
    ones, zeros = sum(BINARY), len(BINARY) - sum(BINARY)
    sample = draw(step, "p", {"p": 0.5}, rng, count=1000)
    assert follows(sample, lambda p: 3 * p + BETA * (ones * np.log(p) + zeros * np.log1p(-p)), 0.1, 0.9)


def test_a_variable_with_two_roles_is_not_conjugate():
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9)
        pm.Bernoulli("y", p, observed=np.array(BINARY))
        pm.Bernoulli("z", p**2, observed=np.array(BINARY))
    step, _ = bound(model)
    assert isinstance(update(step, "p"), Grid)
    both = 2 * math.log(9) + math.log(0.81 / 0.01) + math.log(0.99 / 0.19)
    assert update(step, "p").ranges[0] == pytest.approx(both, rel=1e-9)


def test_one_parameter_of_two_likelihoods_adds_their_rows(rng):
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9)
        pm.Bernoulli("y", p, observed=np.array(BINARY))
        pm.Bernoulli("z", p, observed=np.array([0] * len(BINARY)))
    step, _ = bound(model)
    assert isinstance(update(step, "p"), BetaChance)
    assert update(step, "p").ranges[0] == pytest.approx(4 * math.log(9))
    ones, zeros = sum(BINARY), 2 * len(BINARY) - sum(BINARY)
    sample = draw(step, "p", {"p": 0.5}, rng)
    assert follows(sample, lambda p: BETA * (ones * np.log(p) + zeros * np.log1p(-p)), 0.1, 0.9)


def test_states_stay_within_bounds_and_points_come_back(rng):
    model, public = normal(VALUES)
    step, _ = bound(model, public, epsilon=1e9)
    found = scans(step, 50, rng)
    assert (abs(found["mean"]) <= 2).all() and (found["sd"] >= 0.5).all() and (found["sd"] <= 2).all()
    values = {"mean": np.float64(-2.0), "sd": np.float64(2.0)}
    point = {name: np.asarray(value) for name, value in step.prior_model.initial_point().items()}
    there = step.scan.points.point(values, point)
    assert list(there) == list(point) and all(np.isfinite(value).all() for value in there.values())
    back = step.scan.points.values(there)
    assert back["mean"] == pytest.approx(-2.0) and back["sd"] == pytest.approx(2.0)
