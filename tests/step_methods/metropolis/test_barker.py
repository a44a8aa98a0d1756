"""Barker's chain: the right target, within its budget, ended by its filter, and nothing but what was paid for."""

import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest
import scipy.stats as st
from arviz import ess
from pymc.step_methods.state import equal_dataclass_values

import pymc_dp as dp
from pymc_dp.accounting import zcdp
from pymc_dp.audit import contains_canary, differing, plant
from pymc_dp.errors import ArgumentError, BudgetWarning, PrivacyError, UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.metropolis import BarkerMetropolis, proposals
from pymc_dp.step_methods.metropolis.barker import sigmoid
from pymc_dp.step_methods.metropolis.coefficients import Coefficients, exact_sums
from pymc_dp.testing import insecure_randomness
from pymc_dp.transforms.likelihood import table_likelihoods
from tests.step_methods.metropolis.models import (
    MODELS,
    PLAIN,
    WORST,
    bernoulli,
    categorical,
    domain,
    held,
    normal,
    places,
    poisson,
    sample,
)
from tests.transforms import zoo

pytestmark = pytest.mark.usefixtures("paid")

ANSWERS = np.arange(60) % 3 == 0


@pytest.fixture
def start():
    """A step inside a chain, with repeatable randomness."""

    def begin(step, tune=0, draws=100, seed=1):
        with insecure_randomness(seed):
            step.setup_chain(np.random.default_rng(0), tune, draws)
        return step

    return begin


# The target.


@pytest.mark.slow
def test_coefficients_give_the_likelihood_ratio_of_every_family_and_grouping(rng):
    n = 40
    value = rng.uniform(-3, 3, n)
    with pm.Model(coords={"two": range(2), "three": range(3), "four": range(4)}) as model:
        a, region = pm.Data("a", rng.integers(0, 3, n)), pm.Data("region", np.arange(n) % 2)
        p, q = pm.Beta("p", 2, 3, dims="three"), pm.Dirichlet("q", np.ones(4), dims=("two", "four"))
        rate, mu, sigma = (
            pm.Gamma("rate", 2, 1, dims=("three", "two")),
            pm.Normal("mu", dims="three"),
            pm.HalfNormal("s"),
        )
        pm.Bernoulli("binary", p[a], observed=rng.integers(0, 2, n))
        pm.Categorical("level", q[region], observed=rng.integers(0, 4, n))
        pm.Poisson("count", rate[a, region], observed=rng.integers(2, 10, n))
        pm.Normal("both", mu[a], sigma, observed=value)
        pm.Normal("mean", mu[a], 1.5, observed=value)
        pm.Normal("scale", np.float64(0.7), sigma, observed=value)
    bounds = {"count": (2, 9), **dict.fromkeys(("both", "mean", "scale"), (-3.0, 4.0))}
    prior_model, tables = table_likelihoods(inspect(model, dp.Domain(bounds=bounds, public=("region",))).sums)
    at = Coefficients(prior_model, tables)
    points = zoo.points(model, rng, 3)
    true = zoo.log_likelihoods(model, points)
    priors = model.compile_fn(model.varlogp, mode="FAST_COMPILE")
    spots = [at.at(at.flatten(point)) for point in points]
    np.testing.assert_allclose([spot.prior for spot in spots], [priors(p) for p in points], rtol=1e-9)
    begin = 0
    for table in tables:
        sums = np.array(exact_sums(table.statistic, table.read_integers()), dtype=float)
        found = [spot.coefficients[begin : begin + len(sums)] @ sums for spot in spots]
        begin += len(sums)
        np.testing.assert_allclose(np.diff(found), np.diff(true[table.name]), rtol=1e-6, err_msg=table.name)


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize("name", sorted(MODELS))
def test_detailed_balance(name, rng):
    """Flows between any two of a few places are equal, under the model's own density."""
    rows = [value for value in np.resize(WORST[name], 12) if value in range(-4, 5)]  # on the grid
    model, step = held(name, rows)
    logp = model.compile_logp(mode="FAST_COMPILE")
    spots = places(step, rng, 5, 0.3)
    point = model.initial_point()
    target = np.array([float(logp(step.coefficients.point(spot.values, point))) for spot in spots])
    stationary = np.exp(target - target.max()) / np.exp(target - target.max()).sum()
    accept = np.array([[sigmoid(step._odds(here, there)) for there in spots] for here in spots])
    flow = stationary[:, None] * accept
    np.testing.assert_allclose(flow, flow.T, rtol=1e-12, atol=0)


@pytest.mark.slow
def test_proposals_are_symmetric_once_tuning_is_over(start):
    """The shape and scale that a chain has at the end of its tuning are those of every draw."""
    _, step = held("grouped", [0, 1, 1, 0, 1, 1], epsilon=1e5)
    start(step, tune=300, draws=300)
    point = step.prior_model.initial_point()
    for _ in range(300):
        point, _ = step.step(point)
    fixed = step.proposals[0].state()
    for _ in range(300):
        point, _ = step.step(point)
    after = step.proposals[0].state()
    for name in ("scale", "cap", "factor"):
        np.testing.assert_array_equal(fixed[name], after[name])
    assert np.isfinite(fixed["cap"]) and not np.array_equal(fixed["factor"], np.diag(np.diag(fixed["factor"])))


def mcmc_agrees(draws, truth, least):
    """ESS first, then the mean within five of its standard errors, then Kolmogorov-Smirnov on thinned draws."""
    size = float(ess(draws[None, :]))
    assert size > least, size
    error = draws.std() / np.sqrt(size)
    assert abs(draws.mean() - truth.mean()) < 5 * error
    thinned = draws[:: int(np.ceil(2 * len(draws) / size))]
    assert st.kstest(thinned, truth.cdf).pvalue > 0.001


@pytest.mark.slow
def test_a_normal_target_is_sampled_right(seed):
    values = np.linspace(-1, 2, 7)
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("value", mu, np.float64(1.0), observed=values)
    with insecure_randomness(seed):
        tree = sample(model, 2000, tune=200, epsilon=1e4, delta=1e-6, step=BarkerMetropolis())
    truth = st.norm(values.sum() / 8, 1 / np.sqrt(8))
    mcmc_agrees(tree["posterior"]["mu"].values[0], truth, 150)


@pytest.mark.slow
def test_a_skewed_target_is_sampled_right(seed):
    with insecure_randomness(seed):
        tree = sample(poisson([0, 1, 0]), 3000, tune=0, epsilon=1e7, delta=1e-6, step=BarkerMetropolis(scale=1.4))
    truth = st.gamma(3, scale=1 / 4)
    assert truth.stats("s") > 1
    mcmc_agrees(tree["posterior"]["rate"].values[0], truth, 200)


@pytest.mark.slow
def test_the_target_is_exact_where_most_proposals_are_refused_for_their_price(seed, monkeypatch):
    """The cap changes the speed of a chain, not its target: the range is the same both ways."""
    monkeypatch.setattr(proposals, "CAPS", {1: 0.5, 2: 0.5})
    step = BarkerMetropolis()
    with insecure_randomness(seed):
        tree = sample(bernoulli([0, 1, 0, 0]), 3000, tune=200, epsilon=3000.0, delta=1e-6, step=step)
    draws = tree["posterior"]["p"].values[0]
    assert (np.diff(draws) == 0).mean() > 0.65
    mcmc_agrees(draws, st.beta(2, 4), 50)


# The budget.


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("chains", [1, 2])
def test_a_chain_ends_before_its_budget_is_exceeded(delta, chains, start):
    _, step = held("bernoulli", [0, 1, 1], epsilon=1.0, delta=delta, chains=chains, scale=0.1)
    start(step, draws=5000)
    point = step.prior_model.initial_point()
    losses, states, spent = [], [point], 0.0
    for _ in range(5000):
        before = step.coefficients.at(step.coefficients.flatten(point))
        point, [stats] = step.step(point)
        assert stats[SPENT] <= 1.0 and stats[SPENT] >= spent - 1e-12
        spent = stats[SPENT]
        states.append(point)
        losses.append(step.spending.spent)
        if not stats["active"]:
            break
        assert before.possible
    assert not stats["active"], "the budget lasts for less than 5000 such steps"
    reserved = (1.0 if delta == 0 else zcdp.rho_for(1.0, 1e-6)) / chains
    assert losses[-1] <= reserved and losses[-1] > 0.5 * reserved
    end, [again] = step.step(point)
    assert end is point and again[SPENT] == spent and not again["active"]
    if chains == 1:
        assert spent > 0.7


def test_the_trace_is_cut_where_a_filter_ended_a_chain():
    with pytest.warns(BudgetWarning, match="of 2000 draws: its filter ended it"):
        tree = sample(
            bernoulli(ANSWERS), 2000, tune=0, epsilon=0.5, delta=1e-6, step=BarkerMetropolis(scale=0.03), chains=2
        )
    kept = tree["posterior"].sizes["draw"]
    assert 0 < kept < 2000 and tree["sample_stats"].sizes["draw"] == kept
    assert tree["sample_stats"][SPENT].values.max() <= 0.5
    tree.dp.report()


@pytest.mark.parametrize("scale", [0.03, 50.0])
def test_a_budget_spent_while_tuning_leaves_no_draws_and_says_so(scale):
    with pytest.warns(BudgetWarning, match="after 0 of 100 draws"):
        tree = sample(bernoulli(ANSWERS), 100, tune=2000, epsilon=0.5, delta=1e-6, step=BarkerMetropolis(scale=scale))
    assert "posterior" not in tree.children and tree.dp.epsilon == 0.5
    tree.dp.report()


@pytest.mark.few(1)
@pytest.mark.parametrize(("delta", "relation"), [(0.0, "replace"), (1e-6, "replace"), (1e-6, "add_remove")])
def test_default_proposals_reach_the_end_and_use_the_budget(delta, relation, seed):
    with insecure_randomness(seed):
        tree = sample(bernoulli(ANSWERS), 400, relation, tune=200, epsilon=1.0, delta=delta, step=BarkerMetropolis())
    assert tree["posterior"].sizes["draw"] == 400
    spent = tree["sample_stats"][SPENT].values[0]
    assert 0.6 < spent[-1] <= 1.0
    assert (np.diff(spent) >= 0).all()


def test_the_report_says_what_was_done():
    tree = sample(bernoulli(ANSWERS), 5, tune=2, epsilon=1.0, delta=1e-6, step=BarkerMetropolis())
    assert (tree.dp.epsilon, tree.dp.delta, tree.dp.guarantee, tree.dp.arithmetic) == (1.0, 1e-6, "stepwise", "float64")
    assert all(word in str(tree.dp.report()) for word in ("BarkerMetropolis", "1 x 7", "sup g - inf g", "not tempered"))


@pytest.mark.slow
def test_the_ledger_is_charged_the_whole_budget():
    ledger = dp.Ledger(epsilon=1.0, delta=1e-6)
    sample(bernoulli(ANSWERS), 10, tune=0, epsilon=0.75, delta=1e-6, step=BarkerMetropolis(scale=1e-4), ledger=ledger)
    assert 0.74 < ledger.spent.epsilon <= 0.75


def test_the_spent_epsilon_is_what_the_accountant_says(start):
    _, step = held("bernoulli", [0, 1], epsilon=2.0)
    start(step)
    for reach in (1e-6, 0.001, 0.03, 0.1):
        for _ in range(20):
            assert step.spending.affords(reach)
        converted = zcdp.epsilon_of_rho(step.spending.spent, 1e-6)
        exact = min(converted, step.spending.pure_sum)
        assert exact * (1 - 1e-9) <= step.spending.epsilon <= 1.02 * exact + 1e-6
    assert not step.spending.affords(5.0) and not step.spending.affords(np.inf)


@pytest.mark.slow
def test_a_place_outside_of_the_support_is_refused_at_no_cost(start):
    """The sd of a normal without a transform: half of its proposals are negative."""
    with pm.Model():
        sigma = pm.HalfNormal("sigma", default_transform=None, initval=0.5)
        pm.Normal("value", 0.0, sigma, observed=np.array([0.1, -0.4]))
        step = BarkerMetropolis(epsilon=1e4, delta=1e-6, scale=1.0, domain=domain(bounds={"value": (-1, 1)}))
    start(step)
    point = {"sigma": np.array(0.5)}
    for _ in range(100):
        before = step.spending.spent
        new, _ = step.step(point)
        assert new["sigma"] > 0
        assert new is point or step.spending.spent > before
        point = new
    assert step.spending.spent < 100 * step.spending.loss(1e3)


# Life of the step.


def test_state_is_saved_and_restored(start):
    _, step = held("grouped", [0, 1, 1, 0], epsilon=30.0)
    start(step, tune=60, draws=60)
    point = step.prior_model.initial_point()
    for _ in range(40):
        point, _ = step.step(point)
    saved = step.sampling_state

    def go_on():
        at, stats = point, []
        for _ in range(60):
            at, [one] = step.step(at)
            stats.append(one[SPENT])
        return at, stats, step.sampling_state

    first = go_on()
    step.sampling_state = saved
    assert equal_dataclass_values(step.sampling_state, saved)
    second = go_on()
    assert equal_dataclass_values(first[2], second[2])
    np.testing.assert_array_equal(first[1], second[1])
    for name in point:
        np.testing.assert_array_equal(first[0][name], second[0][name])


@pytest.mark.parametrize("cores", [1, 2])
def test_one_core_and_two_mean_the_same(cores):
    with bernoulli(ANSWERS) as model:
        step = BarkerMetropolis(epsilon=1.0, delta=1e-6, chains=2)
        tree = dp.scrub(pm.sample(30, tune=10, step=step, chains=2, cores=cores, **PLAIN), model)
    one, other = tree["posterior"]["p"].values
    assert one.shape == other.shape and len(one) > 20 and not np.isin(one, other).all(), (
        "chains must not repeat each other"
    )
    assert (tree["sample_stats"][SPENT].values[:, -1] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
@pytest.mark.parametrize("clamp", [None, 5.0])
def test_every_start_method_means_the_same(method, clamp):
    with bernoulli(ANSWERS) as model:
        step = BarkerMetropolis(epsilon=1.0, delta=1e-6, chains=2, clamp=clamp)
        tree = dp.scrub(pm.sample(30, tune=10, step=step, chains=2, cores=2, mp_ctx=method, **PLAIN), model)
    one, other = tree["posterior"]["p"].values
    assert len(one) > 20 and not np.isin(one, other).all()


def test_a_copy_has_no_account_until_its_chain_begins():
    with bernoulli(ANSWERS):
        step = pickle.loads(cloudpickle.dumps(BarkerMetropolis(epsilon=1.0, delta=1e-6)))
    assert not hasattr(step.spending, "filter")
    step.setup_chain(np.random.default_rng(1), 0, 5)
    assert step.spending.remaining == step.spending.reserved
    saved, step.proposals = step.sampling_state, ()
    with pytest.raises(PrivacyError, match="call setup_chain first"):
        step.sampling_state = saved


def test_points_keep_their_keys_shapes_and_dtypes(start):
    _, step = held("grouped", [0, 1, 1, 0], epsilon=100.0, scale={"mu": 0.1, "tau": 0.2, "z": np.array([0.1, 0.3])})
    start(step)
    point = dict(reversed(step.prior_model.initial_point().items()))
    for _ in range(30):
        new, _ = step.step(point)
        assert list(new) == list(point)
        assert all(isinstance(new[k], np.ndarray) and new[k].shape == point[k].shape for k in point)
        point = new


def test_steps_between_draws_are_all_charged():
    tree = sample(bernoulli(ANSWERS), 5, tune=2, epsilon=1.0, step=BarkerMetropolis(scale=0.01, steps_per_draw=3))
    assert tree["posterior"].sizes["draw"] == 5 and "1 x 21" in str(tree.dp.report())


def test_the_trace_holds_nothing_of_the_rows():
    planted = plant(np.linspace(-1, 1, 9), rows=(2, 6), low=-4, high=4)
    tree = sample(normal(planted.values), 20, tune=5, epsilon=9.0, step=BarkerMetropolis())
    assert not contains_canary(tree, planted.canaries)


def test_seeded_runs_on_neighbours_differ_in_states_alone():
    def run(rows):
        with insecure_randomness(5):
            return sample(bernoulli(rows), 200, tune=20, epsilon=20.0, delta=1e-6, step=BarkerMetropolis())

    rows = np.array([0] * 30 + [1] * 30)
    other = rows.copy()
    other[:25] = 1
    found = [name for name in map(str, differing(run(rows), run(other))) if "dp_manifest" not in name]
    assert found and all("posterior" in name or SPENT in name for name in found), found


# What it refuses.


@pytest.mark.slow
def test_wrong_arguments_are_named():
    for wrong in ({"scale": 0.0}, {"scale": {"p": -1.0}}, {"clamp": 0}, {"steps_per_draw": 0}):
        with pytest.raises(ArgumentError):
            BarkerMetropolis(**wrong)
    with pytest.raises(ArgumentError, match="scale names.*'q'"):
        sample(bernoulli([0, 1]), 5, epsilon=1.0, step=BarkerMetropolis(scale={"q": 1.0}))
    with pytest.raises(ArgumentError, match="do not fit"):
        sample(categorical([0, 1]), 5, epsilon=1.0, step=BarkerMetropolis(scale={"q": np.ones(4)}))


@pytest.mark.slow
def test_models_without_a_way_are_refused_before_rows_are_read():
    with pm.Model() as model:
        k = pm.Poisson("k", 2)
        pm.Poisson("count", 1.0 + k, observed=np.array([1, 2]))
    with pytest.raises(UnsupportedModelError, match="discrete"):
        sample(model, 5, epsilon=1.0, step=BarkerMetropolis())
    with pm.Model() as model:
        mu = pm.Normal("mu", initval=2.0)
        pm.Bernoulli("binary", mu, observed=np.array([1, 0]))
    with pytest.raises(UnsupportedModelError, match="initial point"):
        sample(model, 5, epsilon=1.0, step=BarkerMetropolis())
