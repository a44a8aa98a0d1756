"""Barker's chain: the right target, within its budget, ended by its filter, and nothing but what was paid for."""

import numpy as np
import pymc as pm
import pytest

from pymc_dp.accounting import zcdp
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.testing import insecure_randomness
from tests.step_methods.metropolis.models import (
    domain,
    held,
)

pytestmark = pytest.mark.usefixtures("paid")


@pytest.fixture
def start():
    """A step inside a chain, with repeatable randomness."""

    def begin(step, tune=0, draws=100, seed=1):
        with insecure_randomness(seed):
            step.setup_chain(np.random.default_rng(0), tune, draws)
        return step

    return begin


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
