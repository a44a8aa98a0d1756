"""Latents of rows, integrated out: the density is that of an exact integral, rows separate, and all else is refused."""

import numpy as np
import pymc as pm
import pytest
from scipy import integrate as quadrature
from scipy import stats
from scipy.special import expit

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.integrated import is_integrated

FAST = "FAST_COMPILE"
N, ITEMS = 6, 3
RNG = np.random.default_rng(sum(map(ord, "integrate")))
ANSWERS, COUNTS = RNG.integers(0, 2, (N, ITEMS)), RNG.poisson(3, N)
X, GROUP = RNG.uniform(-1, 1, N), RNG.integers(0, 3, N)
RELATIONS = [{}, {"neighbours": "add_remove", "n_max": 50}]
AT = {
    "a_log__": np.array([0.3, -0.2, 0.1]),
    "b": np.array([-0.5, 0.2, 1.0]),
    "level": np.array([0.1, 0.8, 1.3]),
    "slope": np.array(0.4),
    "spread_log__": np.array(np.log(0.7)),
    "error_log__": np.array(np.log(0.6)),
}


def wide():
    with pm.Model(coords={"person": range(N), "item": range(ITEMS)}) as model:
        a, b = pm.LogNormal("a", 0, 0.5, dims="item"), pm.Normal("b", 0, 1, dims="item")
        theta = pm.Normal("theta", 0, 1, dims="person")
        pm.Deterministic("ability", 2 * theta, dims="person")
        pm.Deterministic("ease", -b, dims="item")
        pm.Bernoulli("y", logit_p=a * (theta[:, None] - b), observed=ANSWERS, dims=("person", "item"))
    return model


def overdispersed():
    """A latent whose mean depends on the columns of its row."""
    with pm.Model(coords={"of": range(3)}) as model:
        level, slope, spread = pm.Normal("level", dims="of"), pm.Normal("slope"), pm.HalfNormal("spread")
        theta = pm.Normal("theta", level[pm.Data("group", GROUP)] + slope * pm.Data("x", X), spread, shape=N)
        pm.Poisson("count", pm.math.exp(theta), observed=COUNTS)
    return model


def measured():
    """Two observed variables of other distributions."""
    with pm.Model(coords={"row": range(N)}) as model:
        slope, error = pm.Normal("slope"), pm.HalfNormal("error")
        theta = pm.Normal("theta", 0, 1, dims="row")
        pm.Normal("x", theta, error, observed=X, dims="row")
        pm.Bernoulli("ill", logit_p=0.3 + slope * theta, observed=ANSWERS[:, 0], dims="row")
    return model


def two():
    """Two latents of a row."""
    with pm.Model() as model:
        b = pm.Normal("b", shape=ITEMS)
        theta = pm.Normal("theta", 0, 1, shape=(N, 2))
        pm.Bernoulli("y", logit_p=theta @ np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]) - b, observed=ANSWERS)
    return model


def bernoulli(y, logit):
    return np.where(y == 1, expit(logit), expit(-logit))


def of_wide(row, t):
    return bernoulli(ANSWERS[row], np.exp(AT["a_log__"]) * (t - AT["b"])).prod()


def of_counts(row, t):
    mean = AT["level"][GROUP[row]] + AT["slope"] * X[row]
    return stats.poisson.pmf(COUNTS[row], np.exp(mean + np.exp(AT["spread_log__"]) * t))


def of_measured(row, t):
    said = stats.norm.pdf(X[row], t, np.exp(AT["error_log__"]))
    return said * bernoulli(ANSWERS[row, 0], 0.3 + AT["slope"] * t)


DENSITIES = {wide: of_wide, overdispersed: of_counts, measured: of_measured}


def log_density(model, at):
    """Log-density of every row: the sum over all observed variables."""
    point = {name: at[name] for name in (var.name for var in model.value_vars)}
    terms = model.compile_logp(vars=model.observed_RVs, sum=False, mode=FAST)(point)
    return np.sum([term.reshape(N, -1).sum(axis=1) for term in terms], axis=0)


@pytest.mark.parametrize("build", DENSITIES, ids=lambda build: build.__name__)
def test_the_density_of_a_row_is_the_integral_over_its_latent(build):
    model = dp.integrate(build(), "theta", nodes=41)
    exact = [
        quadrature.quad(lambda t: DENSITIES[build](row, t) * stats.norm.pdf(t), -9, 9, epsabs=1e-12)[0]  # noqa: B023
        for row in range(N)
    ]
    np.testing.assert_allclose(log_density(model, AT), np.log(exact), atol=2e-5)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_latent_that_is_the_mean_of_a_normal_variable_needs_no_quadrature(scaled):
    y, x, error = np.linspace(-2, 2, N), np.linspace(-1, 1, N), np.linspace(0.02, 0.5, N)
    with pm.Model() as model:
        slope, spread = pm.Normal("slope"), pm.HalfNormal("spread")
        theta = pm.Normal("theta", slope * pm.Data("x", x), spread, shape=N)
        pm.Normal("y", theta * 2 / 2 if scaled else theta, pm.Data("error", error), observed=y)
    found = dp.integrate(model, "theta", nodes=5)
    assert is_integrated(found["y"]) == scaled and not inspect(found, dp.Domain()).rows.problems
    if not scaled:
        density = log_density(found, {"slope": 0.3, "spread_log__": np.log(0.7)})
        np.testing.assert_allclose(density, stats.norm.logpdf(y, 0.3 * x, np.hypot(0.7, error)), rtol=1e-12)
        draws = pm.draw(found["y"], draws=4000, random_seed=1, mode=FAST)
        assert draws.shape == (4000, N) and abs(draws.mean()) < 0.02


@pytest.mark.parametrize("relation", RELATIONS, ids=["replace", "add_remove"])
@pytest.mark.parametrize("build", [wide, overdispersed, measured, two], ids=lambda build: build.__name__)
def test_rows_separate_where_they_did_not(build, relation):
    domain = dp.Domain(**relation)
    unnamed = build is two and bool(relation)  # loadings, which are assumed public where lengths are
    assert any("one latent per row" in problem.what for problem in inspect(build(), domain).rows.problems)
    problems = inspect(dp.integrate(build(), "theta", nodes=5), domain).rows.problems
    assert ["does not have the row axis" in problem.what for problem in problems] == [True] * unnamed


def test_draws_of_a_row_share_its_latent():
    """Answers of one row are correlated, those of two rows are not; several variables share a latent as well."""
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=4000)
        pm.Bernoulli("y", logit_p=3 * theta[:, None] * np.ones(2), observed=np.zeros((4000, 2), dtype=int))
        pm.Normal("z", theta, 0.1, observed=np.zeros(4000))
    y, z = pm.draw([*dp.integrate(model, "theta").observed_RVs], random_seed=1, mode=FAST)
    assert y.shape == (4000, 2) and abs(z.mean()) < 0.06 and abs(z.std() - 1) < 0.05
    together = np.corrcoef(y[:, 0], y[:, 1])[0, 1]
    assert 0.4 < together < 0.6 and abs(np.corrcoef(y[:-1, 0], y[1:, 1])[0, 1]) < 0.06
    assert np.corrcoef(y[:, 0], z)[0, 1] > 0.6


def long():
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=3)
        pm.Bernoulli("y", logit_p=theta[pm.Data("person", GROUP)], observed=ANSWERS[:, 0])
    return model


def as_long_as_the_table():
    with pm.Model() as model:
        theta = pm.Normal("theta", shape=N)
        pm.Bernoulli("y", logit_p=theta[pm.Data("person", np.arange(N))], observed=ANSWERS[:, 0])
    return model


def with_latent(latent, use=lambda theta: theta):
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=use(latent()), observed=ANSWERS[:, 0])
    return model


def in_a_prior():
    return with_latent(lambda: pm.Normal("other", pm.Normal("theta", shape=N), shape=N))


def with_potential():
    model = wide()
    with model:
        pm.Potential("limit", -(model["theta"].sum() ** 2))
    return model


REFUSED = {
    "an index": (long, "theta", ["does not have one entry per row", "table.pivot(", "theta[:, None]"]),
    "an index as long as the table": (as_long_as_the_table, "theta", ["indexed by a column", "table.pivot("]),
    "a sum over rows": (lambda: with_latent(lambda: pm.Normal("theta", shape=N), lambda t: t - t.sum()), "theta", [
        "not known to depend on the latents of its own row alone"]),
    "another latent that stays": (
        lambda: with_latent(lambda: pm.Normal("theta", shape=N), lambda t: t + pm.Normal("u", shape=N)), "theta",
        ["'u' has an entry of its own", "in one call"]),
    "another prior": (lambda: with_latent(lambda: pm.Gamma("theta", 1, 1, shape=N)), "theta", ["plain pm.Normal"]),
    "a multivariate prior": (lambda: with_latent(lambda: pm.MvNormal("theta", np.zeros(N), np.eye(N))), "theta", [
        "the prior multivariate_normal", "z @ chol.T"]),
    "a shared one": (lambda: with_latent(lambda: pm.Normal("theta") + np.zeros(N)), "theta", ["no latent of rows"]),
    "a prior of another": (in_a_prior, "theta", ["the prior of 'other' depends on 'theta'"]),
    "a Potential": (with_potential, "theta", ["Potential 'limit'"]),
    "what is observed": (wide, "y", ["'y' is observed", "a, b, theta"]),
    "a name of nothing": (wide, "thets", ["no free variable", "Did you mean 'theta'?"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_normal_latent_of_rows_is_refused(case):
    build, name, texts = REFUSED[case]
    with pytest.raises(dp.errors.ArgumentError) as caught:
        dp.integrate(build(), name, nodes=5)
    assert all(text in str(caught.value) for text in texts), str(caught.value)
