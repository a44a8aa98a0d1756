import math

import mpmath
import pytest

from pymc_dp.accounting import (
    ComposedEvent,
    GaussianEvent,
    ZCDPEvent,
    basic,
    gdp,
    group,
    pld,
    rdp,
    replace_from_add_remove,
    sum_of_parts,
    total_delta,
    total_epsilon,
    zcdp,
)
from pymc_dp.accounting import pure as pure_accountant
from pymc_dp.errors import ArgumentError
from tests.accounting import contract, oracle
from tests.accounting.oracle import laplace, poisson, pure, times


def total_or_inf(event, delta, **options):
    """A total, infinite where there is none: what fails with a probability of its own has none at smaller deltas."""
    try:
        return total_epsilon(event, delta, **options).epsilon
    except ArgumentError as error:
        if "No finite epsilon" in str(error):
            return math.inf
        raise


class TestTotal(contract.AccountantContract):
    within = 0.01

    def epsilon_at(self, event, delta):
        return total_or_inf(event, delta)

    def delta_at(self, event, epsilon):
        return total_delta(event, epsilon) if epsilon > 0 else pld.delta_at(event, epsilon)


class TestAdaptiveTotal(contract.AccountantContract):
    def epsilon_at(self, event, delta):
        return total_or_inf(event, delta, adaptive=True)

    def delta_at(self, event, epsilon):
        return min(pure_accountant.delta_at(event, epsilon), zcdp.delta_at(event, epsilon))


@pytest.mark.parametrize("event", contract.EVENTS, ids=repr)
@pytest.mark.parametrize("count", [1, 100])
def test_the_least_of_all_accountants_wins(event, count):
    event = times(event, count)
    answers = {
        "pure": pure_accountant.epsilon_at(event, 1e-6),
        "zcdp": zcdp.epsilon_at(event, 1e-6),
        "gdp": gdp.epsilon_at(event, 1e-6),
        "rdp": rdp.epsilon_at(event, 1e-6),
        "pld": pld.epsilon_at(event, 1e-6),
        "sum": sum_of_parts.epsilon_at(event, 1e-6),
        "basic": basic.epsilon_at(event, 1e-6),
    }
    best = total_epsilon(event, 1e-6)
    assert best.epsilon == min(answers.values()) == answers[best.accountant]


def test_without_delta_only_pure_losses_count():
    total = total_epsilon(times(laplace(20.0, 1), 100))
    assert (total.epsilon, total.delta, total.accountant) == (5.0, 0.0, "pure")


def test_zcdp_without_delta_is_refused_with_the_way_out():
    with pytest.raises(ArgumentError, match="Allow a delta > 0"):
        total_epsilon(ComposedEvent(events=(pure(0.1), ZCDPEvent(rho=0.1))))


def test_adaptive_totals_leave_out_the_fixed_schedule_accountant():
    event = times(laplace(20.0, 1), 200)
    assert total_epsilon(event, 1e-6).accountant == "pld"
    assert total_epsilon(event, 1e-6, adaptive=True).accountant == "zcdp"


def test_one_order_fixed_in_advance_counts_for_adaptive_totals():
    event = times(poisson(4.0, 0.01), 1000)
    order = zcdp.order_for(1.0, 1e-6)
    filtered = total_epsilon(event, 1e-6, adaptive=True, order=order)
    assert filtered.accountant == "rdp"
    assert rdp.epsilon_at(event, 1e-6) <= filtered.epsilon * (1 + 1e-3)
    assert filtered.epsilon == rdp.epsilon_at_order(event, order, 1e-6)
    assert filtered.epsilon < total_epsilon(event, 1e-6, adaptive=True).epsilon / 3


def test_gaussian_noise_alone_has_its_own_accountant_but_no_filter_where_anything_may_follow():
    event = times(GaussianEvent(noise_multiplier=30.0), 20)
    assert total_epsilon(event, 1e-6).accountant == "gdp"
    assert total_epsilon(event, 1e-6, adaptive=True).accountant == "zcdp"


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan, "1e-6"])
def test_bad_delta_is_refused(delta):
    with pytest.raises(ArgumentError, match="delta"):
        total_epsilon(pure(1.0), delta)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_group_is_the_sum_over_the_steps(epsilon, rows):
    delta = 1e-20
    total, grown = group(epsilon, delta, rows=rows)
    with mpmath.workdps(40):
        exact = mpmath.fsum(delta * mpmath.e ** (i * mpmath.mpf(epsilon)) for i in range(rows))
        assert exact * (1 - mpmath.mpf(10) ** -15) <= grown <= exact * (1 + mpmath.mpf(10) ** -11)
    assert total == pytest.approx(rows * epsilon, rel=1e-15)


@pytest.mark.parametrize("rows", [2, 3])
def test_group_covers_a_count_that_moves_further(rows):
    # one row moves the count by 1; a person with several rows moves it by as many
    delta = oracle.by_convolution(5.0, 1, 20, 1.0)
    epsilon, grown = group(1.0, delta, rows=rows)
    assert oracle.by_convolution(5.0, rows, 20, epsilon) <= grown


def test_group_without_end_says_nothing():
    assert group(1.0, 1e-6, rows=10**6) == (1e6, 1.0)
    assert group(1e300, 1e-6, rows=10**100) == (math.inf, 1.0)
    assert group(1.0, rows=10**6) == (1e6, 0.0)


def test_replace_is_one_removal_and_one_addition():
    epsilon, delta = replace_from_add_remove(0.5, 1e-6)
    assert epsilon == 1.0
    assert delta == pytest.approx((1 + math.exp(0.5)) * 1e-6, rel=1e-11)
    assert replace_from_add_remove(0.5) == (1.0, 0.0)


@pytest.mark.parametrize("rows", [0, 1.5, "2"])
def test_rows_must_be_a_positive_whole_number(rows):
    with pytest.raises(ArgumentError, match="rows"):
        group(1.0, rows=rows)
