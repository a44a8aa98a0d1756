import math

import pytest

from pymc_dp.accounting import (
    ApproximateEvent,
    ComposedEvent,
    Ledger,
    PureEvent,
    ZCDPEvent,
    basic,
    calibrated,
    group_event,
    pld,
    rdp,
    total_delta,
    total_epsilon,
    zcdp,
)
from pymc_dp.errors import ArgumentError, BudgetExceeded
from tests.accounting.contract import AccountantContract
from tests.accounting.oracle import pure, times


class TestBasic(AccountantContract):
    def epsilon_at(self, event, delta):
        return basic.epsilon_at(event, delta)

    def delta_at(self, event, epsilon):
        return basic.delta_at(event, epsilon)


def one(epsilon=0.1, delta=1e-7):
    return ApproximateEvent(epsilon=epsilon, delta=delta)


def test_losses_and_failures_add_exactly():
    many = ComposedEvent(events=(times(one(), 10), pure(0.5)))
    assert total_epsilon(times(one(), 10), 1e-6).epsilon <= 1.0
    assert basic.epsilon_at(many, 1e-6) == 1.5 and basic.epsilon_at(many, math.nextafter(1e-6, 0)) == math.inf
    assert basic.delta_at(many, 1.5) == 1e-6 and basic.delta_at(many, 1.49) > 1e-6


def test_curve_of_one_is_that_of_a_failure_or_randomised_response():
    epsilon, delta = 0.7, 0.01
    p = 1 / (1 + math.exp(-epsilon))
    for at in (0.0, 0.3, 0.69):
        exact = delta + (1 - delta) * (p - math.exp(at) * (1 - p))
        assert basic.delta_at(one(epsilon, delta), at) == pytest.approx(exact, rel=1e-12)
        assert exact <= pld.delta_at(one(epsilon, delta), at) <= exact * (1 + 1e-6)


def test_its_distribution_composes_to_less_than_the_sum():
    """Binomial tails of randomised response, and the failures."""
    count, epsilon, delta = 50, 0.1, 1e-9
    p = 1 / (1 + math.exp(-epsilon))
    for at in (0.5, 1.5, 3.0):
        losses = [(k, (2 * k - count) * epsilon) for k in range(count + 1)]
        inner = sum(
            math.comb(count, k) * p**k * (1 - p) ** (count - k) * max(0.0, 1 - math.exp(at - loss))
            for k, loss in losses
        )
        exact = 1 - (1 - delta) ** count * (1 - inner)
        assert exact * (1 - 1e-6) <= pld.delta_at(times(one(epsilon, delta), count), at) <= exact * (1 + 1e-4) + 1e-11
    assert total_epsilon(times(one(epsilon, delta), count), 1e-6).epsilon < 0.8 * basic.epsilon_at(
        times(one(epsilon, delta), count), 1e-6
    )


def test_other_currencies_say_nothing_of_it():
    assert zcdp.rho(one()) == math.inf and rdp.divergence(one(), 2.0) == math.inf
    with pytest.raises(ArgumentError, match="No finite epsilon"):
        total_epsilon(one(delta=1e-6), 1e-7)
    assert total_delta(ComposedEvent(events=(one(), ZCDPEvent(rho=1e-4))), 1.0) < 1e-5


def test_groups_and_calibration():
    assert group_event(one(), rows=2).epsilon == 0.2
    assert group_event(one(), rows=2).delta == pytest.approx(1e-7 * (1 + math.exp(0.1)))
    with pytest.raises(ArgumentError, match="promises nothing"):
        group_event(one(1.0, 0.1), rows=9)
    found = calibrated(one(1.0, 1e-8), 1.0, 1e-6, uses=10)
    assert found.delta == 1e-8 and 0.1 <= found.epsilon < 0.3
    with pytest.raises(ArgumentError, match="delta must be > 0 here"):
        ApproximateEvent(epsilon=1.0, delta=0.0)


def test_a_ledger_takes_it_with_all_of_delta_and_pure_losses_beside():
    ledger = Ledger(epsilon=3.0, delta=1e-6)
    ledger.spend(PureEvent(epsilon=1.0), label="a", neighbours="replace")
    ledger.spend(one(1.0, 1e-6), label="b", neighbours="replace")
    assert ledger.spent.epsilon == pytest.approx(2.0)
    ledger.spend(PureEvent(epsilon=0.5), label="c", neighbours="replace")
    with pytest.raises(BudgetExceeded):
        ledger.spend(one(0.1, 1e-7), label="d", neighbours="replace")
    other = Ledger(epsilon=3.0, delta=1e-6)
    other.spend(ZCDPEvent(rho=0.001), label="a", neighbours="replace")
    with pytest.raises(BudgetExceeded):
        other.spend(one(0.1, 1e-6), label="b", neighbours="replace")
