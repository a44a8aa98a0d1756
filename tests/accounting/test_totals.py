import math

import mpmath
import pytest

import pymc_dp as dp
from pymc_dp.accounting import (
    ApproximateEvent,
    ComposedEvent,
    GDPEvent,
    PureEvent,
    ZCDPEvent,
    basic,
    deltas,
    gdp,
    group,
    sum_of_parts,
    total_epsilon,
)
from tests.accounting.oracle import pure, times


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_group_is_the_sum_over_the_steps(epsilon, rows):
    delta = 1e-20
    total, grown = group(epsilon, delta, rows=rows)
    with mpmath.workdps(40):
        exact = mpmath.fsum(delta * mpmath.e ** (i * mpmath.mpf(epsilon)) for i in range(rows))
        assert exact * (1 - mpmath.mpf(10) ** -15) <= grown <= exact * (1 + mpmath.mpf(10) ** -11)
    assert total == pytest.approx(rows * epsilon, rel=1e-15)


@pytest.mark.parametrize("mu, other", [(1.0, 0.1), (0.3, 0.3), (0.05, 2.0)])
def test_covers_gaussian_noise_that_is_known_by_its_rho_alone(mu, other):
    event = ComposedEvent(events=(GDPEvent(mu=mu), ZCDPEvent(rho=other**2 / 2)))
    whole = math.hypot(mu, other)
    for epsilon in (0.1 * whole, whole, 3 * whole):
        assert gdp.delta_of_mu(whole, epsilon) <= deltas.sum_of_parts(event, epsilon) * (1 + 1e-12)
    for delta in (1e-9, 1e-3):
        assert gdp.epsilon_of_mu(whole, delta) <= sum_of_parts.epsilon_at(event, delta)


def one(epsilon=0.1, delta=1e-7):
    return ApproximateEvent(epsilon=epsilon, delta=delta)


def test_losses_and_failures_add_exactly():
    many = ComposedEvent(events=(times(one(), 10), pure(0.5)))
    assert total_epsilon(times(one(), 10), 1e-6).epsilon <= 1.0
    assert basic.epsilon_at(many, 1e-6) == 1.5 and basic.epsilon_at(many, math.nextafter(1e-6, 0)) == math.inf
    assert deltas.basic(many, 1.5) == 1e-6 and deltas.basic(many, 1.49) > 1e-6


def test_a_ledger_takes_it_with_all_of_delta_and_pure_losses_beside():
    ledger = dp.Ledger(epsilon=3.0, delta=1e-6)
    ledger.spend(PureEvent(epsilon=1.0), label="a", neighbours="replace")
    ledger.spend(one(1.0, 1e-6), label="b", neighbours="replace")
    assert ledger.spent.epsilon == pytest.approx(2.0)
    ledger.spend(PureEvent(epsilon=0.5), label="c", neighbours="replace")
    with pytest.raises(dp.errors.BudgetExceeded):
        ledger.spend(one(0.1, 1e-7), label="d", neighbours="replace")
    other = dp.Ledger(epsilon=3.0, delta=1e-6)
    other.spend(ZCDPEvent(rho=0.001), label="a", neighbours="replace")
    with pytest.raises(dp.errors.BudgetExceeded):
        other.spend(one(0.1, 1e-6), label="b", neighbours="replace")
