"""What one posterior sample is charged: never less than what two neighbouring posteriors differ by."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import optimize, special

from pymc_dp.accounting import Budget, GDPEvent, PureEvent, SelfComposedEvent, total_delta, total_epsilon
from pymc_dp.accounting.rdp import divergence
from pymc_dp.audit.quadrature import compare_with_event, privacy_loss
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.ops.price import by_concavity, by_papers, by_range
from tests.step_methods.ops.models import LINES, bound, domain

SIZES = {"replace": (1, 20, 200), "add_remove": (0, 1, 200)}
ORDERS = np.array([1.5, 2.0, 8.0, 32.0])
SHARES = np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.95])
"""Of the loss that is charged (of 4 mu, for a Gaussian one): where hockey-sticks are compared."""
RELATIONS = ("replace", "add_remove")
RULES = {"logistic": GDPEvent, "narrow Poisson": GDPEvent}


@cache
def planned(name, relation):
    """A step without data, for a model and a relation."""
    line = LINES[name]
    model = line.model([(1.0, 0)] * 3, line.wide, line.sd)
    return bound(model, domain(relation, bounds=line.bounds), 1.0, 1e-6, read=False)[0]


def priced(name, relation, epsilon=1.0):
    """A step at the temperature of a budget, and the event of one draw."""
    step, delta = planned(name, relation), 1e-6 if name in RULES else 0.0
    event = step.price(Funding(budget=Budget(epsilon, delta), chains=1, steps=1))
    return step, event.event


def loss_of(line, pair, step, share=1.0):
    """Privacy loss of two data sets at the temperature of a step, times `share`."""
    (p, weights), (q, _) = (line.posterior(rows, step.temperature.inverse / share) for rows in pair)
    return privacy_loss(p, q, weights)


def reach(event):
    return 4 * event.mu if isinstance(event, GDPEvent) else event.eta


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.3, 20.0])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", sorted(LINES))
def test_no_row_shows_more_than_is_charged(name, relation, epsilon):
    """theory.md 10: hockey-sticks and Rényi divergences; sup log-ratios where a range is what is charged."""
    step, event = priced(name, relation, epsilon)
    assert isinstance(event, RULES.get(name, type(event)))
    places = SHARES * reach(event)
    deltas = np.array([total_delta(event, place) for place in places])
    moments = np.array([divergence(event, order) for order in ORDERS])
    line, worst = LINES[name], None
    for pair in (pair for size in SIZES[relation] for pair in line.neighbours(size, relation)):
        loss = loss_of(line, pair, step)
        assert (loss.hockey_stick(places) <= deltas * (1 + 1e-6) + 1e-12).all()
        assert (loss.renyi(ORDERS) <= moments * (1 + 1e-6)).all()
        worst = max(worst or loss, loss, key=lambda one: one.epsilon)
    found = compare_with_event(worst, event)
    assert found.passed, found.report()


def used(event, loss):
    """The part of the charge that a loss uses up."""
    if not isinstance(event, GDPEvent):
        return loss.epsilon / event.eta
    places = np.append(0.0, SHARES) * reach(event)
    return gaussian(places, loss.hockey_stick(places)) / event.mu


def gaussian(epsilons, deltas):
    """The least mu of which a loss is mu-GDP, as far as some points of its curve tell."""

    def excess(mu, epsilon, delta):
        low, high = -epsilon / mu - mu / 2, -epsilon / mu + mu / 2
        return special.ndtr(high) - math.exp(epsilon) * special.ndtr(low) - delta

    pairs = [(epsilon, delta) for epsilon, delta in zip(epsilons, deltas, strict=True) if delta > 1e-9]
    return max((optimize.brentq(excess, 1e-6, 50.0, args=pair) for pair in pairs), default=0.0)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("name", "least"), [("logistic", 0.86), ("truncated logistic", 0.93), ("Poisson", 0.98), ("narrow Poisson", 0.94)]
)
def test_some_row_shows_nearly_what_is_charged(name, relation, least):
    """So half a gradient bound, or half a range, would be found out."""
    step, event = priced(name, relation)
    line, sizes = LINES[name], {"replace": (1, 200), "add_remove": (0, 200)}[relation]
    pairs = [pair for size in sizes for pair in line.neighbours(size, relation)]
    share, pair = max((used(event, loss_of(line, pair, step)), pair) for pair in pairs)
    assert least < share <= 1
    assert used(event, loss_of(line, pair, step, 0.5)) > 1.5


# --- rules ------------------------------------------------------------------------------------------------------------


def test_fewer_or_cooler_draws_than_the_budget_allows_are_never_charged_less():
    for budget in (Budget(0.1, 1e-6), Budget(3.0, 1e-4)):
        for uses in (1, 2, 50):
            for size in (1e-3, 0.7, 40.0, 1e6):
                for rule in (by_range, by_concavity):
                    found = rule(size, budget, uses)
                    event = SelfComposedEvent(event=found.event, count=uses)
                    assert total_epsilon(event, budget.delta).epsilon <= budget.epsilon
                    assert 0 < found.inverse <= 1
                    size_of_event = found.event.mu if rule is by_concavity else found.event.eta
                    assert found.inverse * size <= size_of_event  # beta R <= eta, beta G / sqrt(m) <= mu
                papers = by_papers(size, Budget(budget.epsilon), uses)
                assert 2 * papers.inverse * size <= papers.event.epsilon <= budget.epsilon / uses
                assert papers.prior


def test_a_posterior_that_the_budget_allows_as_it_is_costs_what_it_shows():
    assert by_range(0.5, Budget(1.0), 1).event.eta == 0.5
    assert by_concavity(0.01, Budget(1.0, 1e-6), 1).event == GDPEvent(mu=0.01)
    assert by_papers(0.2, Budget(1.0), 1).event == PureEvent(epsilon=0.4)
