"""Gibbs sampling by rows: draws against tempered posteriors that are integrated, what β is, and what is paid for it."""

import warnings
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import kstest, t

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.samplers.gibbs import GibbsRows
from pymc_dp.transforms.prior_model import prior_model

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1, "chains": 1, "tune": 0}
ROWS = np.random.default_rng(1).normal(0.4, 1.0, 40)
GROUP = np.arange(40) % 3


def drawn(model, draws, domain, **given):
    """The trace, and what its report says."""
    with dp.testing.insecure_randomness(3):
        idata = dp.sample(draws, model=model, step=dp.TemperedGibbs(), domain=domain, **{**QUIET, **given})
    return idata, dict(idata.dp.report().record["sampler"]["facts"])


def facts_of(model, domain, epsilon, delta):
    return dict(dp.TemperedGibbs().preview(model, domain, dp.Budget(epsilon, delta)).facts)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_one_variable_is_drawn_from_its_tempered_posterior(neighbours):
    with pm.Model() as model:
        pm.StudentT("y", nu=4, mu=pm.Uniform("mu", -2, 2), sigma=1.0, observed=ROWS)
    n_max = 60 if neighbours == "add_remove" else None
    domain = dp.Domain(bounds={"y": (-4, 4)}, neighbours=neighbours, n_max=n_max)
    idata, facts = drawn(model, 500, domain, epsilon=1000.0)
    beta, at = float(facts["beta"]), np.linspace(-2, 2, 4001)
    assert 0.1 < beta < 1
    logs = beta * t.logpdf(ROWS, 4, at[:, None]).sum(axis=1)
    mass = np.cumsum(np.exp(logs - logs.max()))
    found = idata["posterior"]["mu"].values.ravel()
    assert kstest(found, lambda mu: np.interp(mu, at, mass / mass[-1])).pvalue > 1e-3


@pytest.mark.parametrize("public", [[], ["g", "x"]])
def test_elements_of_groups_are_drawn_at_once_whoever_may_know_the_group(public):
    """Three normals of known scale, on a grid: each has its own rows, less what a public column adds."""
    x = np.linspace(-1, 1, 40)
    with pm.Model() as model:
        a = pm.Uniform("a", -2, 2, shape=3)
        pm.CustomDist(
            "y",
            a[pm.Data("g", GROUP)] + 0.5 * pm.Data("x", x),
            logp=lambda value, mean: -0.5 * (value - mean) ** 2,
            observed=ROWS,
        )
    domain = dp.Domain(bounds={"y": (-4, 4), "g": (0, 2), "x": (-1, 1)}, public=public)
    idata, facts = drawn(model, 200, domain, epsilon=2000.0)
    beta, at = float(facts["beta"]), np.linspace(-2, 2, 2001)
    assert 0.05 < beta < 1
    for group in range(3):
        left = (ROWS - 0.5 * x)[group == GROUP]
        logs = -0.5 * beta * ((left - at[:, None]) ** 2).sum(axis=1)
        mass = np.cumsum(np.exp(logs - logs.max()))
        found = idata["posterior"]["a"].values[0, :, group]
        assert kstest(found, lambda a, mass=mass: np.interp(a, at, mass / mass[-1])).pvalue > 1e-3


def hierarchy(public=(), low=-1.0, count=40):
    """Levels of groups with a slope, and the log of the scale: ranges differ much from state to state."""
    with pm.Model() as model:
        mu = pm.Truncated("mu", pm.Normal.dist(0, 2), -3, 3)
        log_sd, slope = pm.Uniform("log_sd", low, 1), pm.Uniform("b", -1, 1)
        a = pm.Truncated("a", pm.Normal.dist(0, 1), -2, 2, shape=8)
        mean = mu + a[pm.Data("g", np.arange(count) % 8)] + slope * pm.Data("x", np.linspace(-1, 1, count))
        pm.Normal("y", mean, pt.exp(log_sd), observed=np.resize(ROWS, count))
    return model, dp.Domain(bounds={"y": (-5, 5), "x": (-1, 1), "g": (0, 7)}, public=public)


BEFORE = {("public", 1e-6): 2.14052e-05, ("public", 0.0): 2.48216e-07, ("", 1e-6): 2.57033e-05, ("", 0.0): 5.05753e-07}
"""β for 1000 scans at ε = 2 (δ > 0) or 1, where each choice paid for the largest range of all states."""


@pytest.mark.parametrize(("which", "delta"), BEFORE)
def test_a_hierarchy_has_twice_the_beta_of_its_largest_ranges(which, delta):
    facts = facts_of(*hierarchy(["x", "g"] if which else []), 2.0 if delta else 1.0, delta)
    assert float(facts["beta"]) > 2 * BEFORE[which, delta]
    assert facts["payment"].startswith("a pool of ")


def test_the_same_range_at_all_states_is_paid_for_by_a_grant():
    with pm.Model() as model:
        pm.Poisson("y", pt.exp(pm.Uniform("a", -1, 1) + pm.Uniform("b", -1, 1) * pm.Data("x", ROWS)), observed=GROUP)
    facts = facts_of(model, dp.Domain(bounds={"y": (0, 9), "x": (-1, 1)}, public=["x"]), 2.0, 1e-6)
    assert facts["payment"].startswith("a grant") and float(facts["beta"]) >= 0.0010428


def test_means_of_a_hierarchy_are_those_of_its_tempered_posterior():
    """Two parameters and a pool: the means of a chain against sums over a grid."""
    with pm.Model() as model:
        mu, log_sd = pm.Uniform("mu", -2, 2), pm.Uniform("log_sd", -1, 1)
        pm.StudentT("y", nu=4, mu=mu, sigma=pt.exp(log_sd), observed=ROWS)
    idata, facts = drawn(model, 400, dp.Domain(bounds={"y": (-4, 4)}), epsilon=200.0, delta=1e-6)
    beta = float(facts["beta"])
    assert facts["payment"].startswith("a pool of ρ") and 0.02 < beta < 1
    means, logs = np.meshgrid(np.linspace(-2, 2, 201), np.linspace(-1, 1, 201), indexing="ij")
    density = sum(beta * t.logpdf(y, 4, means, np.exp(logs)) for y in ROWS)
    weights = np.exp(density - density.max())
    for name, grid in (("mu", means), ("log_sd", logs)):
        found = idata["posterior"][name].values.ravel()
        mean = (weights * grid).sum() / weights.sum()
        sd = np.sqrt((weights * (grid - mean) ** 2).sum() / weights.sum())
        assert abs(found.mean() - mean) < 5 * sd / np.sqrt(len(found) / 4)
        assert found.std() == pytest.approx(sd, rel=0.2)
    spent = idata["sample_stats"]["epsilon_spent"].values.ravel()
    assert (np.diff(spent) >= 0).all() and spent[-1] <= 200.0 and spent[-2] < 200.0


def test_a_chain_ends_before_its_pool_is_exceeded():
    """Rows that are all 0, of a scale that its prior hardly has: there coefficients range far more than planned."""
    x = np.random.default_rng(2).uniform(-1, 1, (3000, 3))
    with pm.Model() as model:
        log_sd = pm.Truncated("log_sd", pm.Normal.dist(1, 1), -3, 1)
        pm.Normal("y", pm.Data("x", x) @ pm.Uniform("b", -1, 1, shape=3), pt.exp(log_sd), observed=np.zeros(3000))
    domain = dp.Domain(bounds={"y": (-2, 2), "x": (-1, 1)})
    with pytest.warns(dp.errors.BudgetWarning, match="of 12 draws: its filter ended it"):
        idata, facts = drawn(model, 12, domain, epsilon=300.0, delta=1e-6)
    spent = idata["sample_stats"]["epsilon_spent"].values.ravel()
    assert facts["payment"].startswith("a pool") and spent.max() <= 300.0


def test_a_metric_is_refused():
    with pm.Model() as model:
        pm.StudentT("y", nu=4, mu=pm.Uniform("mu", -1, 1), sigma=1.0, observed=ROWS)
    domain = dp.Domain(bounds={"y": (-3, 3)}, metric=dp.metrics.L1("y"))
    for call in (
        lambda: dp.sample(2, model=model, step=dp.TemperedGibbs(), epsilon=1.0, domain=domain, **QUIET),
        lambda: dp.sample_ais(2, model=model, epsilon=1.0, domain=domain, progressbar=False),
    ):
        with pytest.raises(dp.errors.UnsupportedModelError, match=r"(?s)use dp.OPS\(\).*not per unit of a metric"):
            call()


def test_rows_without_bounds_and_densities_that_are_not_finite_are_refused():
    with pm.Model() as loose:
        pm.StudentT("y", nu=4, mu=pm.Uniform("mu", -1, 1), sigma=1.0, observed=ROWS)
    with pytest.raises(dp.errors.UnsupportedModelError, match="'y' has no bounds"):
        drawn(loose, 2, None, epsilon=1.0)
    with pm.Model() as model:
        pm.Uniform("y", 0, pm.Uniform("end", 1, 3), observed=np.abs(ROWS) / 4)
    with pytest.raises(dp.errors.UnsupportedModelError, match="infinite or NaN"):
        drawn(model, 2, dp.Domain(bounds={"y": (0, 2)}), epsilon=1.0)


def test_a_real_table_has_no_less_beta_than_before_and_the_sign_that_is_known():
    """Affairs of the wives who rate their marriage low: Fair (1978), with statsmodels."""
    data = pytest.importorskip("statsmodels.api").datasets.fair.load_pandas().data
    with pm.Model() as model:
        x = pm.Data("x", (data["rate_marriage"].to_numpy() - 3) / 2)
        z = pm.Data("z", (data["religious"].to_numpy() - 2.5) / 1.5)
        eta = pm.Uniform("a", -3, 3) + pm.Uniform("b", -2, 2) * x + pm.Uniform("c", -2, 2) * z
        pm.Bernoulli("y", logit_p=eta, observed=(data["affairs"].to_numpy() > 0).astype(int))
    domain = dp.Domain(bounds={"x": (-1, 1), "z": (-1, 1)})
    assert float(facts_of(model, domain, 2.0, 1e-6)["beta"]) >= 0.00166373
    idata, _ = drawn(model, 20, domain, epsilon=4.0, delta=1e-6)
    assert idata["posterior"]["b"].mean() < -0.5


def test_a_state_that_is_taken_up_again_has_used_what_it_had():
    with pm.Model() as model:
        pm.StudentT("y", nu=4, mu=pm.Uniform("mu", -1, 1), sigma=1.0, observed=ROWS)
        step = dp.TemperedGibbs(epsilon=1.0, domain=dp.Domain(bounds={"y": (-3, 3)}))
    step.setup_chain(np.random.default_rng(1), 0, 3)
    point = model.initial_point()
    point, _ = step.step(point)
    saved = step.sampling_state
    for _ in range(2):
        point, _ = step.step(point)
    with pytest.raises(dp.errors.BudgetExceeded):
        step.step(point)
    assert saved.walk["payment"]["used"] == [1]


@pytest.mark.parametrize(("neighbours", "public"), [("replace", []), ("replace", ["x"]), ("add_remove", [])])
def test_particles_by_rows_weigh_the_evidence(neighbours, public):
    """One variable, whose scans are draws from each tempered posterior: the mean weight is near what is integrated."""
    x, n_max = np.linspace(-1, 1, 40), 60 if neighbours == "add_remove" else None
    with pm.Model() as model:
        mean = pm.Uniform("mu", -2, 2) + 0.5 * pm.Data("x", x)
        pm.StudentT("y", nu=4, mu=mean, sigma=1.0, observed=ROWS)
    domain = dp.Domain(bounds={"y": (-4, 4), "x": (-1, 1)}, public=public, neighbours=neighbours, n_max=n_max)
    given = {"particles": 8, "temperatures": 6, "model": model, "domain": domain, "random_seed": 1}
    with dp.testing.insecure_randomness(1):
        idata = dp.sample_ais(3, epsilon=5e3, marginal_likelihood=True, progressbar=False, **given)
    at = np.linspace(-2, 2, 2001)
    logs = t.logpdf(ROWS - 0.5 * x, 4, at[:, None]).sum(axis=1)
    exact = np.log(np.exp(logs - logs.max()).mean()) + logs.max()
    assert idata.dp.report().record["sampler"]["power"] == 1 and idata.dp.epsilon <= 5e3
    assert abs(float(idata["released"]["log_evidence"]) - exact) < 1
    with pytest.raises(dp.errors.UnsupportedModelError, match="resampling='range'"):
        dp.sample_ais(3, epsilon=1.0, resampling="laplace", progressbar=False, **given)


def test_levels_beside_a_walk_are_moved_at_the_cost_of_a_shared_budget():
    with pm.Model() as model:
        k, mu = pm.DiscreteUniform("k", 0, 9), pm.Uniform("mu", -2, 2)
        pm.StudentT("y", nu=4, mu=mu * pt.exp(-0.1 * k), sigma=1.0, observed=ROWS)
    steps = [dp.TemperedGibbs(["k"]), dp.BarkerMetropolis(["mu"])]
    idata = dp.sample(3, model=model, step=steps, epsilon=1.0, domain=dp.Domain(bounds={"y": (-3, 3)}), **QUIET)
    assert set(idata["posterior"]["k"].values.ravel()) <= set(range(10)) and idata.dp.epsilon <= 1.0


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_level_that_few_rows_have_moves_its_coefficient(noise):
    """Those rows alone tell anything of it, and simulated rows have to stand beside that level."""
    rng, n = np.random.default_rng(0), 4000
    x = np.zeros(n)
    x[rng.permutation(n)[:8]] = 1.0
    y = np.clip(0.5 + 2.0 * x + 0.5 * noise * rng.normal(size=n), -3, 3)
    with pm.Model() as model:
        a, b = pm.Uniform("a", -2, 2), pm.Uniform("b", -3, 3)
        pm.StudentT("y", nu=8, mu=a + b * pm.Data("x", x), sigma=0.5, observed=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ε is large
        trace = dp.sample(
            60,
            model=model,
            step=dp.TemperedGibbs(grid=64),
            epsilon=3000.0,
            domain=dp.Domain(bounds={"y": (-3, 3)}, public=["x"]),
            **QUIET,
        )
    assert abs(float(trace.posterior["b"][:, 10:].mean()) - 2.0) < 0.4


def test_a_candidate_at_which_a_row_has_no_number_is_excluded_and_does_not_cost_the_row():
    """A row with NaN at any candidate would count for nothing at all of them."""
    with pm.Model() as model:
        mu, c = pm.Uniform("mu", -1, 3), pm.Uniform("c", 0, 1)
        wrong = pt.switch(mu + c > 2.5, np.nan, 0.0)
        pm.CustomDist("y", mu, wrong, logp=lambda value, m, w: -0.5 * (value - m) ** 2 + w, observed=ROWS)
    inspection = inspect(model, dp.Domain(bounds={"y": (-4, 4)})).rows
    rows, asked = GibbsRows(inspection, prior_model(inspection)), []
    given, at = rows.given("mu"), np.linspace(-1, 3, 9)
    here = given.look({"mu": np.array(0.0), "c": np.array(0.9)}, at)
    assert here.possible.tolist() == (at + 0.9 <= 2.5).tolist() and here.range > 0
    rows._kernel = SimpleNamespace(choose=lambda *asking, **how: asked.append((asking, how)) or 0)
    given.choose(here, 1.0, np.zeros(9), None)
    ((_, (_, candidates, centre), _), how) = asked[0]
    assert (candidates[here.possible] == at[here.possible]).all() and candidates.max() + 0.9 <= 2.5
    assert np.isfinite(centre).all() and (np.isneginf(how["public"]) == ~here.possible).all()
