"""The chain: the right target at any noise, within its budget, and nothing but what was paid for."""

import logging
import pickle

import numpy as np
import pymc as pm
import pytest
import scipy.stats as st
from arviz import ess

import pymc_dp as dp
from pymc_dp.accounting import Budget, total_epsilon
from pymc_dp.audit import contains_canary, differing, plant
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError, ReleaseError, UnsupportedModelError
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.hamiltonian.gradient import Climb
from pymc_dp.testing import insecure_randomness
from tests.step_methods.hamiltonian.models import (
    BUDGET,
    PLAIN,
    UNIT_ROWS,
    begun,
    held,
    logistic,
    normal,
    poisson,
    ready,
    sample,
    table,
    walked,
)

# The target.


def mcmc_agrees(draws, truth, least):
    """ESS first, then mean and variance within five of their standard errors, then Kolmogorov-Smirnov."""
    size = float(ess(draws[None, :]))
    assert size > least, size
    assert abs(draws.mean() - truth.mean()) < 5 * draws.std() / np.sqrt(size)
    squares = (draws - truth.mean()) ** 2
    assert abs(squares.mean() - truth.var()) < 5 * squares.std() / np.sqrt(float(ess(squares[None, :])))
    thinned = draws[:: int(np.ceil(2 * len(draws) / size))]
    assert st.kstest(thinned, truth.cdf).pvalue > 0.001


@pytest.mark.slow
def test_a_normal_target_is_sampled_right_under_heavy_noise():
    """Noise of gradients above the gradients met, that of ratios of sd about 1.5; nearly all gradients are clipped."""
    values = np.linspace(-1, 2, 7)
    step = ready("normal", clip_norm=0.05, clamp=20.0)
    step.settings |= {"n_leapfrog": 2, "step_size": 0.2}
    noise = (40.0, 0.1)  # of sensitivities 0.1, and 40 times a distance
    begun(step, draws=1500, noise=noise)
    spreads, reach = [], step.limits.ratio.reach
    step.limits.ratio.reach = lambda *places: spreads.append(noise[1] * reach(*places)) or reach(*places)
    draws, share = walked(step, 1500, "mu")
    assert step.gradient_noise == pytest.approx(4.0) and 0.2 < share < 0.8
    assert np.mean(spreads) > 1.2
    mcmc_agrees(draws, st.norm(values.sum() / 8, 1 / np.sqrt(8)), 40)


@pytest.mark.slow
def test_a_skewed_target_is_sampled_right():
    step = held(poisson([0, 1, 0]), clip_norm=50.0, n_leapfrog=3, step_size=0.4)
    draws, share = walked(begun(step, draws=600, noise=(0.002, 0.002)), 600, "rate_log__")
    truth = st.gamma(3, scale=1 / 4)
    assert share > 0.7 and truth.stats("s") > 1
    mcmc_agrees(np.exp(draws), truth, 120)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "size", "least"), [((0.5, 0.01), 0.4, 2000), ((60.0, 0.2), 0.15, 300)], ids=["little", "much"]
)
def test_a_skewed_target_is_sampled_right_over_a_long_chain(noise, size, least):
    """Sensitivities 0.2 and 16 times a distance on log rates: noise of 12 on gradients of some units, and about 1.5."""
    step = held(poisson([0, 1, 0]), clip_norm=0.1, clamp=8.0, n_leapfrog=3, step_size=size)
    draws, share = walked(begun(step, draws=20_000, noise=noise), 20_000, "rate_log__")
    assert share > 0.1
    mcmc_agrees(np.exp(draws), st.gamma(3, scale=1 / 4), least)


@pytest.mark.slow
def test_a_clamp_changes_the_target_and_says_so():
    """Rows at 3 pull by at most the clamp."""
    step = held(normal([3.0] * 5), clip_norm=0.2, step_size=0.5)
    draws, _ = walked(begun(step, draws=400, noise=(0.01, 0.01)), 400, "mu")
    assert draws[100:].mean() < 1.5 < 15 / 6 and "the target changes" in str(step.describe())


@pytest.mark.slow
def test_a_chain_that_begins_far_away_arrives_while_it_tunes():
    """A hundred standard deviations; each row pulls by at most the clip norm."""
    step = ready("normal", clip_norm=0.05, clamp=20.0)
    step.gradient.hold([np.full(400, 5.0)])
    step.population = 400
    step.climb = Climb(step.gradient, np.zeros(1), step.units, clip_norm=0.05, population=400)
    begun(step, tune=40, draws=1, noise=(0.1, 0.01))
    draws, _ = walked(step, 20, "mu")
    assert abs(draws[0] - 5.0) > 2.0 and abs(draws[-1] - 4.9875) < 0.5


# The budget.


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_the_trace_holds_what_was_paid_for(relation):
    chains = {"chains": 2, "cores": 1}
    tree = sample(
        logistic(*table()), 4, relation, UNIT_ROWS, tune=3, step=PrivateHMC(steps_per_draw=2, n_leapfrog=2), **chains
    )
    assert (tree.dp.delta, tree.dp.guarantee) == (1e-5, "stepwise")
    assert tree["posterior"]["b"].shape == (2, 4, 2)
    assert sorted(tree["sample_stats"].data_vars) == ["acceptance_rate", SPENT, "step_size"]
    assert set(np.unique(tree["sample_stats"]["acceptance_rate"])) <= {0.0, 0.5, 1.0}
    assert np.ptp(tree["sample_stats"]["step_size"].values, axis=1).max() == 0.0
    spent = np.concatenate([tree[name][SPENT].values for name in ("warmup_sample_stats", "sample_stats")], axis=1)
    assert (np.diff(spent, axis=1) > 0).all() and 2.999 < spent.max() == tree.dp.epsilon <= 3.0
    text = str(tree.dp.report())
    assert all(part in text for part in ("PrivateHMC", "2 x 14", "the posterior, not tempered", "exact"))
    assert ("60" if relation == "add_remove" else "40") in text


def test_a_whole_chain_spends_the_budget():
    step = begun(ready("normal", clip_norm=0.05, clamp=20.0), tune=2, draws=3)
    assert step.spent() == 0.0
    point = step.prior_model.initial_point()
    for _ in range(5):
        point, (stats,) = step.step(point)
    assert stats[SPENT] == pytest.approx(3.0, rel=1e-6) and stats[SPENT] <= 3.0
    assert total_epsilon(step.event, 1e-5).epsilon <= 3.0
    with pytest.raises(BudgetExceeded, match="All 5 steps"):
        step.step(point)


def test_delta_is_needed_and_the_way_out_named():
    step = ready("normal", clip_norm=0.05, clamp=20.0)
    with pytest.raises(ArgumentError, match=r"no guarantee at delta=0.*delta > 0"):
        step.price(Funding(budget=Budget(1.0), chains=1, steps=5))
    found = PrivateHMC(clip_norm=1.0).preview(normal([0.0]), None, Budget(1.0))
    assert not found.fits and "delta > 0" in found.problem


def test_rows_are_read_after_the_charge(monkeypatch):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    for limit, error in ((0.01, BudgetExceeded), (4.0, ReleaseError)):
        ledger = dp.Ledger(epsilon=limit, delta=1e-5)
        with pytest.raises(error):
            sample(normal([0.0, 1.0]), 3, step=PrivateHMC(clip_norm=1.0), ledger=ledger)
    assert 2.9 < ledger.spent.epsilon <= 3.0, "a failure after the charge loses budget, never privacy"


# Life of the step.


def test_state_is_saved_and_restored():
    step = begun(ready("logistic", clip_norm=1.0), tune=8, draws=8)
    point = step.prior_model.initial_point()
    for _ in range(5):
        point, _ = step.step(point)
    saved = pickle.loads(pickle.dumps(step.sampling_state))

    def go_on():
        at, seen = point, []
        for _ in range(8):
            at, stats = step.step(at)
            seen.append((at, stats))
        return repr(seen)

    first = go_on()
    step.sampling_state = saved
    assert go_on() == first
    step.sampling_state = saved
    with pytest.raises(PrivacyError, match="goes on from its last state only"):
        step.step({name: value + 1 for name, value in point.items()})
    step._size = None
    with pytest.raises(PrivacyError, match="call setup_chain first"):
        step.sampling_state = saved


@pytest.mark.slow
def test_points_keep_their_keys_shapes_and_dtypes():
    step = ready("logistic", clip_norm=1.0)
    step.settings["step_size"] = 1e-3
    begun(step, noise=(1e-3, 1e-3))
    point = dict(reversed(step.prior_model.initial_point().items()))
    new, (stats,) = step.step(point)
    assert stats["acceptance_rate"] == 1.0 and list(new) == list(point)
    assert all(new[k].shape == point[k].shape and new[k].dtype == point[k].dtype for k in point)
    assert all((new[k] != point[k]).all() for k in point)


@pytest.mark.parametrize("cores", [1, 2])
def test_one_core_and_two_mean_the_same(cores):
    with normal([0.0, 0.5]) as model:
        step = PrivateHMC(clip_norm=2.0, chains=2, step_size=1e-3, **BUDGET)
        tree = dp.scrub(pm.sample(6, tune=3, step=step, chains=2, cores=cores, **PLAIN), model)
        with pytest.raises(BudgetExceeded, match="all of them have begun"):
            pm.sample(6, tune=3, step=step, chains=1, **PLAIN)
    one, other = tree["posterior"]["mu"].values
    assert not np.isin(one[one != 0], other).any(), "chains must not repeat each other"
    assert (tree["sample_stats"][SPENT].values[:, -1] > 0).all()


@pytest.mark.slow
def test_workers_that_share_nothing_mean_the_same():
    with logistic(*table()) as model:
        step = PrivateHMC(chains=2, domain=dp.Domain(**UNIT_ROWS), **BUDGET)
        tree = dp.scrub(pm.sample(6, tune=3, step=step, chains=2, cores=2, mp_ctx="spawn", **PLAIN), model)
    one, other = tree["posterior"]["a"].values
    assert not np.isin(one[one != 0], other).any()


def test_places_without_prior_density_are_refused_unseen():
    """Values of a uniform prior without a transform; the rows are not asked."""
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("mu", -1, 1, default_transform=None, initval=0.9), 1.0, observed=np.array([9.0] * 5))
    step = begun(held(model, clip_norm=9.0, step_size=0.3, n_leapfrog=1), draws=40, noise=(0.01, 0.01))
    asked, moved = [], step.limits.ratio.moved
    step.limits.ratio.moved = lambda here, there: asked.append(there.values) or moved(here, there)
    draws, _ = walked(step, 40, "mu")
    assert (np.abs(draws) <= 1).all() and len(asked) < 40
    assert (np.abs(asked) <= 1).all()


# What leaves.


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_with_the_same_randomness_only_released_things_differ(relation):
    trees = []
    for change in (False, True):
        x, y = table()
        x[7], y[7] = (1e300, 1 - y[7]) if change else (x[7], y[7])
        rows = slice(0, 40 - (change and relation == "add_remove"))
        with insecure_randomness(4):
            trees.append(sample(logistic(x[rows], y[rows]), 6, relation, tune=2, step=PrivateHMC(clip_norm=1.0)))
    found = {path for path in differing(*trees) if "manifest" not in path}
    assert found and all("posterior" in path or "sample_stats" in path for path in found), found


def test_no_canary_leaves(caplog, recwarn):
    x, y = table()
    column = plant(x[:, 1], low=-9, high=9)
    x[:, 1] = column.values
    step = PrivateHMC(clip_norm=1.0)
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.WARNING, logger="numba"):
        tree = sample(logistic(x, y), 8, tune=4, step=step)
    seen = [tree, str(tree.dp.report()), caplog.records, list(recwarn), repr(step), step]
    assert contains_canary(seen, column.canaries) == []


def test_models_that_cannot_start_or_whose_rows_meet_are_refused():
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("mu", 0, 1, default_transform=None, initval=2.0), 1.0, observed=np.zeros(3))
    with pytest.raises(UnsupportedModelError, match="initial point"):
        held(model, clip_norm=1.0)
    ledger = dp.Ledger(**BUDGET)
    with pm.Model() as model:
        x = pm.Data("x", np.linspace(0, 1, 30))
        pm.Normal("y", pm.Normal("m", x.mean(), 1), 1.0, observed=np.zeros(30))
    with pytest.raises(UnsupportedModelError, match="'x'.*reach"):
        sample(model, 3, step=PrivateHMC(clip_norm=1.0), ledger=ledger)
    assert ledger.spent.epsilon == 0
