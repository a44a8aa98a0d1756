"""The posterior is that of the same clamped rows without privacy, also where the model is wrong; with little noise."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.gradients.posteriors import posterior, without_privacy

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning"),
]
N = 4000
SLOPES = np.array([0.8, -0.5])


def covariates(rng):
    return np.clip(rng.exponential(0.5, (N, 2)) - 0.5, -1, 1)


def logistic(rng):
    x = covariates(rng)
    y = (rng.random(N) < 1 / (1 + np.exp(-x @ SLOPES))).astype(int)
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2), observed=y)
    return model, {"x": (-1, 1)}, [1, 1, 1]


def counts(rng, spread=0.0):
    x = covariates(rng)
    rate = np.exp(1 + x @ SLOPES)
    rate = rate * rng.gamma(1 / spread, spread, N) if spread else rate
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", sigma=0.5, shape=2)
        pm.Poisson("y", pm.math.exp(eta), observed=np.minimum(rng.poisson(rate), 60))
    return model, {"x": (-1, 1), "y": (0, 60)}, [1, 0.5, 0.5]


def overdispersed(rng):
    return counts(rng, 1.0)


def heavy(rng):
    """A normal likelihood for rows that have the tails of Student's t with three degrees of freedom."""
    x = covariates(rng)
    y = np.clip(1 + x @ SLOPES + rng.standard_t(3, N), -20, 20)
    with pm.Model() as model:
        mean = pm.Normal("a", sigma=2) + pm.Data("x", x) @ pm.Normal("b", sigma=2, shape=2)
        pm.Normal("y", mean, pm.LogNormal("scale"), observed=y)
    return model, {"x": (-1, 1), "y": (-20, 20)}, [2, 2, 2, 1]


def vague(rng):
    """Means of groups whose priors hardly know of the bounds: a walk must not fall back to these."""
    group = rng.integers(0, 5, N)
    y = 0.4 + rng.normal(0, 0.3, 5)[group] + rng.normal(0, 0.2, N)
    with pm.Model() as model:
        level = pm.Normal("level", 0, 100, shape=5)[pm.Data("g", group)]
        pm.Normal("y", level, pm.LogNormal("scale", 0, 3), observed=np.clip(y, -2, 3))
    return model, {"y": (-2, 3), "g": (0, 4)}, [100] * 5 + [3]


def few_levels(rng):
    """Whole numbers alone, so that rows of one cell are evaluated once."""
    g, h = rng.integers(0, 3, N), rng.integers(0, 2, N)
    y = rng.negative_binomial(2, 1 / (1 + 0.5 * np.exp(np.array([0.5, 1, 1.4])[g] + 0.3 * h)))
    with pm.Model() as model:
        eta = pm.Normal("a", shape=3)[pm.Data("g", g)] + pm.Normal("b") * pm.Data("h", h)
        pm.NegativeBinomial("y", mu=pm.math.exp(eta), alpha=pm.LogNormal("alpha"), observed=np.minimum(y, 40))
    return model, {"g": (0, 2), "h": (0, 1), "y": (0, 40)}, [1] * 5


def items(rng):
    """Answers to several items, of persons whose latents are integrated out."""
    b = np.array([-0.5, 0, 0.8])
    y = rng.random((N, 3)) < 1 / (1 + np.exp(b - rng.normal(size=(N, 1))))
    with pm.Model() as model:
        log_a, b = pm.Normal("log_a", shape=3), pm.Normal("b", shape=3)
        theta = pm.Normal("theta", shape=N)
        pm.Bernoulli("y", logit_p=pm.math.exp(log_a) * (theta[:, None] - b), observed=y.astype(int))
    return dp.integrate(model, "theta", nodes=9), {}, [1] * 6


def excess(rng):
    """Counts with a latent of each row, whose mean depends on columns."""
    x = covariates(rng)
    y = rng.poisson(np.exp(1 + x @ SLOPES + 0.5 * rng.normal(size=N)))
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2)
        pm.Poisson("y", pm.math.exp(pm.Normal("e", eta, pm.LogNormal("spread"), shape=N)), observed=np.minimum(y, 60))
    return dp.integrate(model, "e", nodes=9), {"x": (-1, 1), "y": (0, 60)}, [1] * 4


def trials(rng):
    """Counts of levels that add up to a total of their row."""
    n = rng.integers(3, 9, N)
    with pm.Model() as model:
        p = pm.math.softmax(pm.math.concatenate([np.zeros(1), pm.Normal("a", shape=2)]))
        pm.Multinomial("y", n=pm.Data("n", n), p=p, observed=rng.multinomial(n, [0.2, 0.3, 0.5]))
    return model, {"n": (3, 8), "y": (0, 8)}, [1, 1]


def vectors(rng):
    x, factor = covariates(rng)[:, 0], np.array([[1.0, 0.0], [-0.6, 0.8]])
    y = np.clip([0.3, -0.2] + x[:, None] * [0.5, -0.5] + rng.normal(size=(N, 2)) @ factor.T, -9, 9)
    with pm.Model() as model:
        mean = pm.Normal("a", shape=2) + pm.Normal("b", shape=2) * pm.Data("x", x)[:, None]
        chol = pm.math.stack([pm.math.stack(list(line)) for line in factor.tolist()])
        pm.MvNormal("y", mean, chol=chol, observed=y)
    return model, {"x": (-1, 1), "y": (-9, 9)}, [1] * 4


def shares(rng):
    """Rows of shares that add up to one."""
    with pm.Model() as model:
        a = pm.math.exp(pm.Normal("log_a", shape=3))
        pm.Dirichlet("y", a, observed=rng.dirichlet([1.2, 2.5, 0.8], N).clip(1e-4, 1))
    return model, {"y": (0, 1)}, [1] * 3


def persons(rng):
    """Four rows of each person."""
    model, *others = logistic(rng)
    with model:
        pm.Data("who", np.arange(N) // 4)
    return model, *others


UNIT = {"neighbours": "add_remove", "n_max": N, "unit": dp.Unit("who", max_rows=4)}


def released(model, bounds, **given):
    settings = {"epsilon": 1000.0, "delta": 1e-5, "domain": dp.Domain(bounds=bounds, **given.pop("declared", {}))}
    with dp.testing.insecure_randomness(3):
        return dp.privatize(model, statistics=dp.Gradients(**given), progressbar=False, **settings)


MODELS = [logistic, counts, overdispersed, heavy, vague]
MODELS += [few_levels, items, excess, trials, vectors, shares, persons]


@pytest.mark.few(9, cases="all")
@pytest.mark.parametrize("build", MODELS)
def test_it_is_that_of_the_rows(build, rng):
    model, bounds, deviations = build(rng)
    private = released(model, bounds, declared=UNIT if build is persons else {})
    mean, covariance = posterior(private, deviations)
    wanted, around = without_privacy(model)
    own, exact = (np.sqrt(np.diag(one)) for one in (covariance, around))
    noise = np.maximum(np.sqrt(np.maximum(own**2 - exact**2, 0)), 0.22 * own)
    assert (np.abs(mean - wanted) < 2.5 * noise).all(), (mean - wanted) / noise
    assert ((own > 0.96 * exact) & (own < 1.25 * exact)).all(), own / exact


def test_a_model_that_is_trusted_leads_elsewhere_where_it_is_wrong(rng):
    """And is narrower for it; the release says that nobody has checked."""
    model, bounds, deviations = heavy(rng)
    private = released(model, bounds, trust_model=True)
    mean, _ = posterior(private, deviations)
    wanted, around = without_privacy(model)
    assert np.abs((mean - wanted) / np.sqrt(np.diag(around))).max() > 3
    assert "if rows are of the model (not checked)" in " ".join(dp.Release.of(private).record.tables[0].approximations)


def sandwich(x, scores, curvature):
    bread = np.linalg.inv(curvature)
    return bread @ (scores.T @ scores) @ bread


def test_robust_intervals_are_those_of_sampling(rng):
    """Of counts that vary more than a Poisson distribution: H⁻¹ J H⁻¹ of the rows."""
    model, bounds, _ = overdispersed(rng)
    _, covariance = posterior(released(model, bounds, robust=True), [1e3] * 3)
    x = np.column_stack([np.ones(N), model["x"].get_value()])
    (observed,) = (model.rvs_to_values[one].data for one in model.observed_RVs)
    rate = np.exp(x @ without_privacy(model)[0])
    wanted = sandwich(x, x * (observed - rate)[:, None], (x * rate[:, None]).T @ x)
    ratio = np.diag(covariance) / np.diag(wanted)
    assert ((ratio > 0.9) & (ratio < 2.2)).all(), ratio
    _, plain = posterior(released(model, bounds), [1e3] * 3)
    assert (np.diag(plain) < 0.6 * np.diag(covariance)).all(), "as the model says, rows vary less"


def test_weighted_rows_are_those_of_the_population(rng):
    """Rows with rare responses were left out of the sample more often: estimate and covariance of the weighted rows."""
    x, w = covariates(rng), rng.uniform(0.2, 4, N)
    y = (rng.random(N) < 1 / (1 + np.exp(-0.5 - x @ SLOPES + 0.8 * (w > 2)))).astype(int)
    with pm.Model() as model:
        pm.Data("w", w)
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2), observed=y)
    private = released(model, {"x": (-1, 1), "w": (0, 4)}, declared={"weights": {"y": "w"}})
    mean, covariance = posterior(private, [1e3] * 3)
    x, at = np.column_stack([np.ones(N), x]), np.zeros(3)
    for _ in range(20):
        p = 1 / (1 + np.exp(-x @ at))
        curvature = (x * (w * p * (1 - p))[:, None]).T @ x
        at = at + np.linalg.solve(curvature, x.T @ (w * (y - p)))
    wanted = sandwich(x, x * (w * (y - p))[:, None], curvature)
    assert (np.abs(mean - at) < 0.35 * np.sqrt(np.diag(wanted))).all()
    ratio = np.diag(covariance) / np.diag(wanted)
    assert ((ratio > 0.9) & (ratio < 1.4)).all(), ratio


def test_a_direction_along_which_no_row_changes_is_left_to_the_prior(rng):
    """Levels of two factors: their sums are known, and noise must not seem to know the rest."""
    g, h = rng.integers(0, 3, 300), rng.integers(0, 4, 300)
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 10, shape=3), pm.Normal("b", 0, 10, shape=4)
        pm.Normal("y", a[pm.Data("g", g)] + b[pm.Data("h", h)], 1, observed=rng.normal(size=300))
    private = released(model, {"y": (-9, 9), "g": (0, 2), "h": (0, 3)})
    _, covariance = posterior(private, [10.0] * 7)
    along = np.array([1, 1, 1, -1, -1, -1, -1]) / np.sqrt(7)
    assert along @ covariance @ along == pytest.approx(100, rel=0.02)
    total = np.eye(7)[0] + np.eye(7)[3]
    assert total @ covariance @ total < 1
