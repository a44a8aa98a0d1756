"""The step: what it costs, what it refuses, what its chains are and what they show."""

import logging
import math
import pickle

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dp.accounting import Budget, ComposedEvent, Ledger, SelfComposedEvent, total_epsilon
from pymc_dp.audit import contains_canary, plant
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, BudgetExceeded, UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.sampling import sample
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.gibbs.tempered import largest_beta, scans_event
from pymc_dp.testing import insecure_randomness
from pymc_dp.trace.scrub import scrub
from pymc_dp.transforms.truncate import truncate
from tests.step_methods.conftest import bernoulli
from tests.step_methods.gibbs.conftest import bound, normal, scans

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
R = 2 * math.log(19)  # of one probability in (.05, .95)


# --- cost -------------------------------------------------------------------------------------------------------------


def test_pure_budgets_divide_by_the_sum_of_ranges():
    model, public = normal([0.0, 1.0])
    step, event = bound(model, public, 1.0, steps=10, read=False)
    (mean,), (sd,) = (update.ranges for update in step.scan.updates)
    assert step.beta == pytest.approx(1.0 / (10 * (mean + sd)))
    assert isinstance(event, SelfComposedEvent) and event.count == 10
    assert isinstance(event.event, ComposedEvent) and len(event.event.events) == 2
    assert total_epsilon(event).epsilon == pytest.approx(1.0) and total_epsilon(event).epsilon <= 1.0


def test_the_cost_of_two_blocks_adds_up():
    model, public = normal([0.0, 1.0])
    both, _ = bound(model, public, read=False)
    one, _ = bound(*normal([0.0, 1.0], sd=0.5), read=False)
    other, _ = bound(*normal([0.0, 1.0], mean=-2.0), read=False)
    assert sum(both.scan.ranges) == pytest.approx(sum(one.scan.ranges) + sum(other.scan.ranges), rel=1e-6)


def test_four_hundred_updates_of_range_one_hundredth_are_told_at_their_price():
    """The papers add up to 4. A chain whose budget comes to such a β says what it really costs."""
    event = scans_event([0.01], 1.0, 400)
    assert total_epsilon(event).epsilon == pytest.approx(4.0)
    assert 0.37 < total_epsilon(event, 1e-5).epsilon <= 0.376
    with bernoulli([0, 1] * 50):
        step = TemperedGibbs()
        idata = sample(400, tune=0, epsilon=0.376, delta=1e-5, step=step, **QUIET)
    beta = largest_beta([R], Budget(0.376, 1e-5), 400)
    assert f"{beta:.6g}" in str(idata.dp.report())
    assert 0.01 <= beta * R < 0.0101
    assert idata.posterior.sizes["draw"] == 400 and idata.sample_stats.epsilon_spent.values.max() <= 0.376


@pytest.mark.slow
def test_delta_buys_more_for_many_scans():
    """Theory: 400 updates of range .01 at δ = 1e-5 cost ε = .375, where pure losses add up to 4."""
    beta = largest_beta([1.0], Budget(0.375, 1e-5), 400)
    assert 0.01 * (1 - 5e-3) < beta < 0.013
    assert largest_beta([1.0], Budget(4.0), 400) == pytest.approx(0.01)
    for epsilon, delta, uses in ((0.1, 0.0, 1), (1.0, 1e-6, 7), (3.0, 1e-9, 12345), (1e-4, 0.0, 10**6), (1.0, 0.5, 2)):
        step, event = bound(bernoulli([0, 1]), None, epsilon, delta, steps=uses, read=False)
        spent = total_epsilon(event, delta).epsilon
        assert spent <= epsilon and (spent > 0.999 * epsilon or step.beta == 1)


def test_no_likelihood_is_sharpened():
    step, event = bound(bernoulli([0, 1]), None, 1e6, read=False)
    assert step.beta == 1
    assert total_epsilon(event).epsilon == pytest.approx(R)


def test_chains_thinning_and_tuning_are_all_paid_for():
    plain, _ = bound(bernoulli([0, 1]), None, 1.0, steps=12, read=False)
    chains, _ = bound(bernoulli([0, 1]), None, 1.0, steps=6, chains=2, read=False)
    assert plain.beta == pytest.approx(1 / (12 * R)) and chains.beta == plain.beta
    with bernoulli([0, 1, 1, 0]):
        idata = sample(3, tune=1, epsilon=1.0, step=TemperedGibbs(steps_per_draw=3), **QUIET)
    np.testing.assert_allclose(idata.sample_stats.epsilon_spent.values.ravel(), [0.5, 0.75, 1.0])
    assert idata["warmup_posterior"].sizes["draw"] == 1


def test_updates_that_see_no_row_are_free():
    with pm.Model() as model:
        a, b = pm.Gamma("a", 2.0, 1.0), pm.Gamma("b", 2.0, 1.0)
        p = pm.Truncated("p", pm.Beta.dist(a, b), 0.05, 0.95)
        pm.Bernoulli("y", p, observed=np.array([0, 1, 1]))
    step, _ = bound(model, None, 1.0, read=False)
    plain, _ = bound(bernoulli([0, 1, 1]), None, 1.0, read=False)
    assert step.beta == plain.beta
    assert [update.ranges for update in step.scan.updates][:2] == [(), ()]


def test_the_ledger_is_charged_before_the_rows_are_read():
    ledger = Ledger(epsilon=1.0)
    with bernoulli([0, 1]):
        sample(2, epsilon=0.6, step=TemperedGibbs(), ledger=ledger, **QUIET)
        with pytest.raises(BudgetExceeded):
            sample(2, epsilon=0.6, step=TemperedGibbs(), ledger=ledger, **QUIET)


# --- law --------------------------------------------------------------------------------------------------------------


def check(sample, cdf, mean, least=200):
    """It mixes first; then it is right."""
    chain = sample[None]
    ess, error = float(az.ess(chain)), float(az.mcse(chain))
    assert ess >= least
    assert abs(sample.mean() - mean) < 5 * error
    thinned = sample[:: max(1, math.ceil(len(sample) / ess))]
    assert stats.kstest(thinned, cdf).pvalue > 0.001


def marginal(log_density, axes, place):
    """CDF and mean of one coordinate of a density on a grid."""
    mesh = np.meshgrid(*axes, indexing="ij")
    height = log_density(*mesh)
    mass = np.exp(height - height.max())
    mass = mass.sum(axis=tuple(other for other in range(len(axes)) if other != place))
    mass /= mass.sum()
    axis = axes[place]
    return (lambda x: np.interp(x, axis, np.cumsum(mass))), float((axis * mass).sum())


@pytest.mark.slow
def test_a_gaussian_target(rng):
    """Mean and sd of a normal, each drawn given the other."""
    rows = rng.normal(0.5, 1.0, 30)
    step, _ = bound(*normal(rows), 1e9)
    found = scans(step, 1200, rng)
    clamped = np.clip(rows, -3, 3)

    def log_density(mean, sd):
        squares = (clamped**2).sum() - 2 * mean * clamped.sum() + len(rows) * mean**2
        return -(mean**2) / 2 - len(rows) * np.log(sd) - squares / (2 * sd**2)

    axes = [np.linspace(-2, 2, 1201), np.linspace(0.5, 2, 1201)]
    for place, name in enumerate(("mean", "sd")):
        check(found[name], *marginal(log_density, axes, place))


def test_a_skewed_target_at_a_temperature(rng):
    """A rate with most of its mass near its least value, β < 1."""
    with pm.Model() as model:
        rate = pm.Truncated("rate", pm.Gamma.dist(0.5, 0.3), 0.01, 9.0)
        pm.Poisson("y", rate, observed=np.array([0, 0, 1]))
    step, _ = bound(model, Domain(bounds={"y": (0, 3)}), 12.0)
    assert 0.3 < step.beta < 0.9
    found = scans(step, 1000, rng)
    cdf, mean = marginal(
        lambda rate: -0.5 * np.log(rate) - 0.3 * rate + step.beta * (np.log(rate) - 3 * rate),
        [np.linspace(0.01, 9.0, 90001)],
        0,
    )
    check(found["rate"], cdf, mean)


@pytest.mark.slow
def test_a_skewed_hierarchy_at_a_temperature(rng):
    """A rate and its prior's scale, both skewed, few rows, β < 1: the scale is free, the rate is paid for."""
    with pm.Model() as model:
        scale = pm.Uniform("scale", 0.1, 4.0)
        rate = pm.Truncated("rate", pm.Gamma.dist(0.5, 1 / scale), 0.01, 9.0)
        pm.Poisson("y", rate, observed=np.array([0, 0, 1]))
    step, _ = bound(model, Domain(bounds={"y": (0, 3)}), 12.0)
    found = scans(step, 4000, rng)

    def log_density(scale, rate):
        tail = stats.gamma(0.5, scale=scale)
        prior = tail.logpdf(rate) - np.log(tail.cdf(9.0) - tail.cdf(0.01))
        return prior + step.beta * (np.log(rate) - 3 * rate)

    axes = [np.linspace(0.1, 4.0, 400), np.linspace(0.01, 9.0, 4000)]
    for place, name in enumerate(("scale", "rate")):
        check(found[name], *marginal(log_density, axes, place))


def test_a_mixture_of_discrete_and_continuous(rng):
    """A class of the whole table, and a probability on a grid: enumeration and grid in turn."""
    rows = np.array([0, 1, 1, 1])
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.4)
        q = pm.Uniform("q", 0.1, 0.9)
        pm.Bernoulli("y", pm.math.switch(z, q, 0.3), observed=rows)
    step, _ = bound(model, None, 1e9, grid=256)
    found = scans(step, 1000, rng)
    q = np.linspace(0.1, 0.9, 2001)
    heavy = 0.4 * np.mean(q**3 * (1 - q))
    truth = heavy / (heavy + 0.6 * 0.3**3 * 0.7)
    z = found["z"].astype(float)
    assert float(az.ess(z[None])) > 200
    assert abs(z.mean() - truth) < 5 * float(az.mcse(z[None]))


# --- chains -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cores", [1, 2])
def test_chains_differ_and_are_all_paid_for(cores):
    with bernoulli([0, 1, 1, 0], 0.2, 0.7):
        idata = sample(20, epsilon=1.0, delta=1e-6, step=TemperedGibbs(), chains=2, cores=cores, **QUIET)
    p = idata.posterior["p"].values
    assert p.shape == (2, 20) and (p > 0.2).all() and (p < 0.7).all()
    assert len(np.unique(p)) == 40
    assert idata.dp.guarantee == "stepwise" and idata.dp.epsilon == pytest.approx(1.0, rel=1e-3)
    assert idata.sample_stats.epsilon_spent.values.max() <= 1.0
    assert "truncated beta" in str(idata.dp.report())


def test_private_numbers_of_rows_never_show():
    """Under add_remove the trace of 4 and of 5 rows have the same shapes, dims, statistics and report."""
    seen = []
    for rows in ([0, 1, 1, 0], [0, 1, 1, 0, 1]):
        ledger = Ledger(epsilon=1.0, delta=1e-6, neighbours="add_remove")
        with insecure_randomness(2), bernoulli(rows, 0.1, 0.6, groups=[0, 1, 0, 1, 1][: len(rows)]):
            idata = sample(3, epsilon=1.0, delta=1e-6, step=TemperedGibbs(), ledger=ledger,
                           domain=Domain(neighbours="add_remove", n_max=50, bounds={"group": (0, 1)}),
                           **QUIET)  # fmt: skip
        spent = idata.sample_stats.epsilon_spent.values.tolist()
        seen.append((str(idata.dp.report()), dict(idata.posterior.sizes), spent))
    assert seen[0] == seen[1]


def test_a_funded_step_works_in_pm_sample():
    with bernoulli([0, 1, 1, 0]) as model:
        step = TemperedGibbs(epsilon=1.0, chains=1)
        idata = pm.sample(10, tune=0, chains=1, cores=1, step=step, progressbar=False, quiet=True,
                          compute_convergence_checks=False)  # fmt: skip
        with pytest.raises(BudgetExceeded):
            pm.sample(10, tune=0, chains=1, cores=1, step=step, progressbar=False, quiet=True)
    safe = scrub(idata, model)
    assert safe.dp.epsilon == pytest.approx(1.0, rel=1e-12) and set(safe.posterior.data_vars) == {"p"}


def test_tables_of_simplexes_run_from_end_to_end():
    with pm.Model(coords={"g": range(2), "k": range(3)}) as model:
        p = pm.Dirichlet("p", np.ones(3), dims=("g", "k"))
        group, level = np.array([0, 0, 1, 1, 1, 0, 0]), np.array([0, 1, 2, 2, 1, 0, 0])
        pm.Categorical("y", p[pm.Data("group", group)], observed=level)
    with truncate(model, {"p": (0.05, None)}):
        idata = sample(20, epsilon=1e6, step=TemperedGibbs(), **QUIET)
    p = idata.posterior["p"].values
    assert p.shape == (1, 20, 2, 3) and (p >= 0.05 - 1e-9).all() and np.allclose(p.sum(axis=-1), 1)


def test_a_preview_says_what_is_paid():
    model, public = normal([0.0, 1.0])
    found = TemperedGibbs().preview(model, public, Budget(1.0, 1e-6))
    assert found.problem is None or not found.problem
    facts = dict(found.facts)
    assert "truncated normal; range" in facts["update of mean"]
    assert "beta" in facts and found.guarantee == "stepwise"


def test_states_can_be_saved_and_restored(rng):
    step, _ = bound(*normal([0.0, 1.0, 0.3]), 1e3, steps=6)
    with insecure_randomness(3):
        step.setup_chain(rng, 0, 6)
    point = {name: np.asarray(value) for name, value in step.prior_model.initial_point().items()}
    point, _ = step.step(point)
    state = pickle.loads(pickle.dumps(step.sampling_state))
    once = [point]
    for _ in range(3):
        once.append(step.step(once[-1])[0])
    step.sampling_state = state
    again = [point]
    for _ in range(3):
        again.append(step.step(again[-1])[0])
    for one, other in zip(once, again, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_same_randomness_repeats_a_run():
    runs = []
    for _ in range(2):
        with insecure_randomness(5), bernoulli([0, 1, 1, 0]):
            idata = sample(5, epsilon=5.0, step=TemperedGibbs(), ledger=Ledger(epsilon=5.0), **QUIET)
        runs.append(idata.posterior["p"].values)
        assert idata.dp.guarantee == "none"
    assert np.array_equal(*runs)


def test_nothing_but_the_states_leaves(caplog, recwarn):
    line, public = normal([0.0] * 8, bounds=(-2.0, 2.0))
    column = plant(line["d"].get_value(), low=-2, high=2)
    line["d"].set_value(column.values)
    assert contains_canary(line, column.canaries)
    with line, caplog.at_level(logging.DEBUG), caplog.at_level(logging.WARNING, logger="numba"):
        idata = sample(5, epsilon=1.0, domain=public, step=TemperedGibbs(), **QUIET)
    assert contains_canary([idata, idata.dp.report(), caplog.records, list(recwarn)], column.canaries) == []
    assert set(idata.children) <= {"posterior", "sample_stats", "privacy"}
    assert set(idata.sample_stats.data_vars) == {"epsilon_spent"}


def test_neighbours_share_everything_but_the_states():
    """Same randomness, another row: the states differ, and nothing else does."""
    trees = []
    for rows in ([0, 1, 1, 0], [0, 1, 1, 1]):
        with insecure_randomness(7), bernoulli(rows):
            trees.append(sample(4, epsilon=20.0, step=TemperedGibbs(), ledger=Ledger(epsilon=20.0), **QUIET))
    one, other = trees
    assert not np.array_equal(one.posterior["p"].values, other.posterior["p"].values)
    np.testing.assert_array_equal(one.sample_stats.epsilon_spent.values, other.sample_stats.epsilon_spent.values)
    assert str(one.dp.report()) == str(other.dp.report())


# --- refusals ---------------------------------------------------------------------------------------------------------


def refused(model, public=None, **settings):
    with pytest.raises(UnsupportedModelError) as caught:
        TemperedGibbs(**settings).bound(inspect(model, public).sums, Budget(1.0), chains=1, steps=1)
    return "\n".join(map(str, caught.value.problems))


def test_unbounded_parameters_are_refused_all_at_once_with_the_truncation():
    with pm.Model() as model:
        p, rate = pm.Beta("p", 1, 1), pm.Gamma("rate", 1, 1)
        mean, sd = pm.Normal("mean"), pm.HalfNormal("sd")
        pm.Bernoulli("y", p, observed=np.array([0, 1]))
        pm.Poisson("c", rate, observed=np.array([0, 1]))
        pm.Normal("x", mean, sd, observed=np.array([0.0, 1.0]))
    text = refused(model, Domain(bounds={"c": (0, 5), "x": (-2, 2)}))
    assert "dp.truncate(model, {'p': (0.01, 0.99)})" in text
    assert "dp.truncate(model, {'rate': (0.1, 10.0)})" in text
    assert "dp.truncate(model, {'mean': (-10.0, 10.0), 'sd': (0.1, 10.0)})" in text


def test_bounds_that_hang_on_other_parameters_do_not_count():
    with pm.Model() as model:
        top = pm.Uniform("top", 0.2, 0.9)
        p = pm.Uniform("p", 0.1, top)
        pm.Bernoulli("y", p, observed=np.array([0, 1]))
    assert "one row can move the conditional of 'p'" in refused(model)


def test_computed_simplexes_and_unknown_operations_are_refused():
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(3), shape=3)
        pm.Categorical("y", w[::-1], observed=np.array([0, 1, 1, 2]))
    assert "is not itself the parameter" in refused(model)
    with pm.Model() as model:
        a = pm.Uniform("a", 0.1, 0.2, shape=2)
        pm.Bernoulli("y", pt.cumsum(a)[1], observed=np.array([0, 1, 1, 2]))
    assert "its density contains CumOp, which no rule bounds" in refused(model)


def test_models_that_no_row_tells_anything_about_are_refused():
    with pm.Model() as model:
        pm.Normal("x")
        pm.Bernoulli("y", 0.5, observed=np.array([0, 1, 1]))
    with pytest.raises(UnsupportedModelError):
        bound(model)


def test_priors_under_a_transform_of_their_own_are_not_taken_for_bounded():
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9, transform=pm.distributions.transforms.Interval(0.2, 0.4))
        pm.Bernoulli("y", p, observed=np.array([0, 1, 1]))
    assert "one row can move the conditional of 'p'" in refused(model)


def test_infinite_discrete_latents_are_refused():
    with pm.Model() as model:
        k = pm.Poisson("k", 2.0)
        p = pm.Truncated("p", pm.Beta.dist(1 + k, 1.0), 0.1, 0.9)
        pm.Bernoulli("y", p, observed=np.array([0, 1, 1]))
    assert "'k' is discrete without a known finite set of levels" in refused(model)


def test_arguments_are_checked():
    with pytest.raises(ArgumentError, match="grid"):
        TemperedGibbs(grid=1)
    with pytest.raises(ArgumentError, match="steps_per_draw"):
        TemperedGibbs(steps_per_draw=0)
    with pytest.raises(ArgumentError, match="has no budget"):
        TemperedGibbs(delta=1e-6)
    with bernoulli([0, 1]) as model:
        pm.Normal("other")
        with pytest.raises(ArgumentError, match="does not move other"):
            TemperedGibbs([model["p"]], epsilon=1.0).setup_chain(None, 0, 1)
    assert repr(TemperedGibbs(grid=64)) == "TemperedGibbs(grid=64)"
