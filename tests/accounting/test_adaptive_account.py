import functools
import math
from fractions import Fraction

import pytest
from scipy.special import ndtr

from pymc_dp.accounting import (
    ApproximateEvent,
    GaussianEvent,
    GDPEvent,
    total_epsilon,
)
from pymc_dp.accounting.written import account_from_dict, account_to_dict
from pymc_dp.kernel.accounting import adaptive_account
from pymc_dp.kernel.accounting.adaptive_account import Account
from tests.accounting.oracle import pure

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


def opened(epsilon, delta, *events):
    spent = Account(epsilon=epsilon, delta=delta)
    for event in events:
        spent, _ = spent.after(event, total_epsilon(event, delta))
    return spent


def test_failures_of_spends_add_and_the_rest_of_delta_is_for_what_follows():
    levels = ApproximateEvent(epsilon=0.5, delta=1e-7)
    spent = opened(3.0, 1e-6, levels, pure(0.25), levels)
    assert (spent.added, spent.failed, spent.rules) == (Fraction(5, 4), Fraction(2, 10**7), ())
    assert spent.delta_left == 8e-7
    noised = GaussianEvent(noise_multiplier=8.0)
    after, total = spent.after(noised, total_epsilon(noised, 1e-6))
    assert sum(rule.delta for rule in after.rules) <= 8e-7 and total.delta == 1e-6
    assert total.epsilon == pytest.approx(1.25 + total_epsilon(noised, 8e-7).epsilon, rel=1e-12)
    assert account_from_dict(account_to_dict(after)) == after
