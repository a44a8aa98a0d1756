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



@pytest.fixture
def start():
    """A step inside a chain, with repeatable randomness."""

    def begin(step, tune=0, draws=100, seed=1):
        with insecure_randomness(seed):
            step.setup_chain(np.random.default_rng(0), tune, draws)
        return step

    return begin


# The target.




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


















# What it refuses.




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
