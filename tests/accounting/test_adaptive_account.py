import functools
import math
from fractions import Fraction

import pytest
from scipy.special import ndtr

from pymc_dp.accounting import (
    ApproximateEvent,
    GaussianEvent,
    GDPEvent,
    ZCDPEvent,
    adaptive_account,
    rdp,
    total_epsilon,
    zcdp,
)
from pymc_dp.accounting.adaptive_account import Account, Concentrated, OneSum
from pymc_dp.accounting.events import BoundedRangeEvent
from tests.accounting.oracle import pure, times

BUDGET = 1.0


@pytest.fixture(autouse=True)
def totals_are_kept(monkeypatch):
    monkeypatch.setattr(adaptive_account, "total_epsilon", functools.cache(total_epsilon))


def response(epsilon):
    """Randomised response: an event and the chances of its first outcome on two neighbours."""
    p = 1 / (1 + math.exp(-epsilon))
    return pure(epsilon), p, 1 - p


def threshold(mu, at):
    """Whether N(mu, 1), or N(0, 1) on the neighbour, is above `at`."""
    return GDPEvent(mu=mu), float(ndtr(mu - at)), float(ndtr(-at))


def failing(epsilon, delta):
    """Show all with a probability, which cannot happen on the neighbour, and nothing else."""
    return ApproximateEvent(epsilon=epsilon, delta=delta), delta, 0.0


# Spends of which few fit, with a large delta, so that what an analyst gains shows.
CHOICES = [response(0.7), response(0.31), response(0.03), threshold(0.5, 0.6), threshold(0.5, -0.2), threshold(0.25, 1)]
CHOICES += [failing(0.2, 0.001), failing(0.1, 0.0015)]


def worst(spent, p, q, depth):
    """Largest integral of (P - e^epsilon Q)+ that an analyst reaches who chooses by all results so far."""
    best = max(0.0, p - math.exp(BUDGET) * q)
    if depth == 0:
        return best
    for event, here, there in CHOICES:
        after, total = spent.after(event, adaptive_account.total_epsilon(event, spent.delta))
        if total.epsilon <= spent.epsilon:
            yes = worst(after, p * here, q * there, depth - 1)
            best = max(best, yes + worst(after, p * (1 - here), q * (1 - there), depth - 1))
    return best


@pytest.mark.slow
def test_no_analyst_who_looks_at_results_gains_more_than_delta():
    assert worst(Account(epsilon=BUDGET, delta=0.003), 1.0, 1.0, 4) <= 0.003


MUTANTS = {
    "later costly spends are free": (
        OneSum,
        "after",
        lambda true: lambda rule, event: rule if rule.one else true(rule, event),
    ),
    "added losses are forgotten": (Account, "left", lambda true: property(lambda account: account.epsilon)),
    "failures are forgotten": (
        Account,
        "delta_left",
        lambda true: property(lambda account: account.delta),
    ),
    "concentrated losses are forgotten": (Concentrated, "after", lambda true: lambda rule, event: rule),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", MUTANTS)
def test_an_account_that_forgets_is_seen(name, monkeypatch):
    kind, method, mutate = MUTANTS[name]
    monkeypatch.setattr(kind, method, mutate(getattr(kind, method)))
    if name == "added losses are forgotten":
        monkeypatch.setattr(Account, "_with_added", lambda account, total: total)
    assert worst(Account(epsilon=BUDGET, delta=0.003), 1.0, 1.0, 4) > 0.003


def opened(epsilon, delta, *events):
    spent = Account(epsilon=epsilon, delta=delta)
    for event in events:
        spent, _ = spent.after(event, total_epsilon(event, delta))
    return spent


def test_the_rules_share_delta_and_what_was_not_added():
    spent = opened(3.0, 1e-6, pure(1.0), ZCDPEvent(rho=0.001))
    assert spent.added == 1
    assert [(rule.left, rule.delta) for rule in spent.rules] == [(2.0, 5e-7), (2.0, 5e-7)]


def test_a_spend_of_more_than_half_has_all_of_delta():
    spent = opened(3.0, 1e-6, GDPEvent(mu=0.4))
    assert [(rule.left, rule.delta) for rule in spent.rules] == [(3.0, 1e-6)]
    assert spent.rules[0].one == total_epsilon(GDPEvent(mu=0.4), 1e-6)


def test_a_delta_that_cannot_be_halved_is_left_whole():
    spent = opened(1e3, 5e-324, ZCDPEvent(rho=1e-3))
    assert [rule.delta for rule in spent.rules] == [5e-324]


def test_where_nothing_is_left_a_spend_that_costs_nothing_fits():
    free = ZCDPEvent(rho=1e-9)
    assert total_epsilon(free, 0.1).epsilon == 0.0
    spent = opened(1.0, 0.1, pure(1.0))
    after, total = spent.after(free, total_epsilon(free, 0.1))
    assert total.epsilon == 1.0 and after.remaining == 0.0


def test_failures_of_spends_add_and_the_rest_of_delta_is_for_what_follows():
    levels = ApproximateEvent(epsilon=0.5, delta=1e-7)
    spent = opened(3.0, 1e-6, levels, pure(0.25), levels)
    assert (spent.added, spent.failed, spent.rules) == (Fraction(5, 4), Fraction(2, 10**7), ())
    assert spent.delta_left == 8e-7
    noised = GaussianEvent(noise_multiplier=8.0)
    after, total = spent.after(noised, total_epsilon(noised, 1e-6))
    assert sum(rule.delta for rule in after.rules) <= 8e-7 and total.delta == 1e-6
    assert total.epsilon == pytest.approx(1.25 + total_epsilon(noised, 8e-7).epsilon, rel=1e-12)
    assert Account.from_dict(after.to_dict()) == after


def test_where_all_of_delta_has_failed_only_pure_losses_follow():
    spent = opened(3.0, 1e-6, ApproximateEvent(epsilon=0.5, delta=1e-6))
    assert spent.delta_left == 0
    assert spent.after(pure(0.01), total_epsilon(pure(0.01), 1e-6))[1].epsilon == 0.51
    for event in (ApproximateEvent(epsilon=0.1, delta=1e-300), ZCDPEvent(rho=1e-9)):
        assert spent.after(event, total_epsilon(event, 1e-6))[1].epsilon == math.inf


def test_an_account_without_failures_is_written_as_before_there_were_any():
    written = opened(1.0, 1e-6, pure(0.5)).to_dict()
    assert set(written) == {"epsilon", "delta", "added", "rules"}
    assert Account.from_dict(written) == opened(1.0, 1e-6, pure(0.5))


def test_older_versions_cannot_read_an_account_that_has_failed():
    """They know "added" alone, and would spend all of delta once more."""
    written = opened(3.0, 1e-6, ApproximateEvent(epsilon=0.5, delta=9e-7)).to_dict()
    assert "added" not in written
    assert Account.from_dict(written) == opened(3.0, 1e-6, ApproximateEvent(epsilon=0.5, delta=9e-7))


def test_without_delta_everything_adds():
    spent = opened(1.0, 0.0, *[pure(0.01)] * 7, times(pure(0.1), 2))
    assert (spent.added, spent.rules) == (Fraction(27, 100), ())


def test_one_sum_is_one_sum():
    rule = OneSum(left=3.0, delta=1e-6).after(pure(0.5)).after(GDPEvent(mu=0.1)).after(pure(0.25))
    assert rule.one == total_epsilon(GDPEvent(mu=0.1), 1e-6)
    assert rule.total.epsilon == pytest.approx(0.75 + rule.one.epsilon, rel=1e-15)
    assert rule.after(ZCDPEvent(rho=1e-9)).total.epsilon == math.inf
    assert rule.after(ZCDPEvent(rho=1e-9)).after(pure(0.1)).remaining == 0.0


def test_concentrated_losses_are_those_of_the_composition():
    events = [ZCDPEvent(rho=0.01), GaussianEvent(noise_multiplier=9.0), pure(0.1)]
    rule = Concentrated.opened(1.0, 1e-6)
    for event in events:
        rule = rule.after(event)
    assert rule.rho == sum(zcdp.total(event) for event in events)
    assert rule.divergence == pytest.approx(sum(rdp.divergence(event, rule.order) for event in events), rel=1e-12)
    assert rule.divergence >= math.fsum(rdp.divergence(event, rule.order) for event in events)


def test_what_zcdp_lets_through_the_order_lets_through():
    # the two are one rule with one delta
    for left, delta in ((0.1, 1e-9), (1.0, 5e-7), (8.0, 1e-3)):
        rule = Concentrated.opened(left, delta)
        rho = zcdp.rho_for(left, delta)
        for share in (0.2, 0.3, 0.4999999):
            rule = rule.after(ZCDPEvent(rho=rho * share))
        assert zcdp.epsilon_of_rho(float(rule.rho), delta) <= left
        assert rdp.epsilon_of(rule.divergence, rule.order, delta) <= left


@pytest.mark.parametrize("rule", [OneSum(left=1.0, delta=1e-6), Concentrated.opened(1.0, 1e-6)])
def test_what_remains_of_a_rule_fits_and_hardly_more(rule):
    spent = rule.after(ZCDPEvent(rho=0.002)).after(pure(0.05))
    assert spent.after(pure(spent.remaining)).total.epsilon <= 1.0
    assert spent.after(pure(spent.remaining * (1 + 1e-9))).total.epsilon > 1.0


def test_a_spend_that_fits_only_by_its_delta_is_let_through():
    """Although the delta saves less than would be worth sharing."""
    event = BoundedRangeEvent(eta=1.0)
    alone = total_epsilon(event, 1e-5)
    assert 0.99 < alone.epsilon < 0.999
    budget = (1.0 + alone.epsilon) / 2
    account, total = Account(epsilon=budget, delta=1e-5).after(event, alone)
    assert total.epsilon <= budget and account.remaining < 0.01
