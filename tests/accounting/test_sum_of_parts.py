import math

import pytest

from pymc_dp.accounting import (
    BoundedRangeEvent,
    ComposedEvent,
    GaussianEvent,
    GDPEvent,
    ZCDPEvent,
    gdp,
    pld,
    rdp,
    sum_of_parts,
    total_epsilon,
)
from tests.accounting.contract import AccountantContract
from tests.accounting.oracle import laplace, poisson, pure, times, without_replacement


class TestSumOfParts(AccountantContract):
    def epsilon_at(self, event, delta):
        return sum_of_parts.epsilon_at(event, delta)

    def delta_at(self, event, epsilon):
        return sum_of_parts.delta_at(event, epsilon)


@pytest.mark.parametrize("mu, other", [(1.0, 0.1), (0.3, 0.3), (0.05, 2.0)])
def test_covers_gaussian_noise_that_is_known_by_its_rho_alone(mu, other):
    event = ComposedEvent(events=(GDPEvent(mu=mu), ZCDPEvent(rho=other**2 / 2)))
    whole = math.hypot(mu, other)
    for epsilon in (0.1 * whole, whole, 3 * whole):
        assert gdp.delta_of_mu(whole, epsilon) <= sum_of_parts.delta_at(event, epsilon) * (1 + 1e-12)
    for delta in (1e-9, 1e-3):
        assert gdp.epsilon_of_mu(whole, delta) <= sum_of_parts.epsilon_at(event, delta)


def test_a_small_zcdp_event_does_not_take_the_distributions_away():
    steps, small = times(poisson(1.0, 0.01), 3), ZCDPEvent(rho=1e-5)
    event = ComposedEvent(events=(steps, small))
    alone = total_epsilon(steps, 1e-6).epsilon
    total = total_epsilon(event, 1e-6)
    assert total.accountant == "sum"
    assert alone < total.epsilon < alone * 1.08 < rdp.epsilon_at(event, 1e-6)
    assert pld.epsilon_at(event, 1e-6) == math.inf


@pytest.mark.parametrize(
    "event",
    [
        poisson(1.0, 0.01),
        ComposedEvent(events=(ZCDPEvent(rho=0.1), without_replacement(3.0, 1, 10))),
        ComposedEvent(events=(ZCDPEvent(rho=0.1), pure(1.0), laplace(3.0, 1), BoundedRangeEvent(eta=0.1))),
    ],
    ids=repr,
)
def test_what_is_no_two_parts_or_better_read_as_one_is_left_to_others(event):
    assert sum_of_parts.epsilon_at(event, 1e-6) == math.inf
    assert sum_of_parts.delta_at(event, 1.0) == 1.0


def test_every_leaf_is_in_one_part():
    leaves = (GDPEvent(mu=0.1), times(poisson(1.0, 0.01), 5), pure(0.1), GaussianEvent(noise_multiplier=3.0))
    known, other = sum_of_parts.split(ComposedEvent(events=(*leaves, times(ZCDPEvent(rho=0.1), 3))))
    assert {part.event: part.count for part in other.events} == {ZCDPEvent(rho=0.1): 3}
    assert {part.event: part.count for part in known.events} == {
        leaves[0]: 1,
        poisson(1.0, 0.01): 5,
        leaves[2]: 1,
        leaves[3]: 1,
    }
