import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, ndtr

from pymc_dp.accounting import DiscreteGaussianEvent, DiscreteLaplaceEvent, ZCDPEvent, zcdp
from pymc_dp.accounting.events.base import rho_of_pure
from pymc_dp.errors import ArgumentError
from tests.accounting.contract import AccountantContract
from tests.accounting.oracle import gaussian, laplace, noise, pure, times


class TestZCDP(AccountantContract):
    def epsilon_at(self, event, delta):
        return zcdp.epsilon_at(event, delta)

    def delta_at(self, event, epsilon):
        return zcdp.delta_at(event, epsilon)


def renyi_of_response(epsilon, order):
    """Renyi divergence of randomised response, by its definition, in 60 digits."""
    with mpmath.workdps(60):
        p = mpmath.e**epsilon / (1 + mpmath.e**epsilon)
        q = 1 - p
        return mpmath.log(p**order * q ** (1 - order) + q**order * p ** (1 - order)) / (order - 1)


@pytest.mark.parametrize("epsilon", ["0.0001", "0.00011", "0.01", "0.3", "1", "4", "30"])
def test_rho_of_a_pure_loss_is_the_least_one(epsilon):
    rho = rho_of_pure(Fraction(epsilon))
    exact = mpmath.mpf(epsilon)
    orders = [1 + mpmath.mpf(10) ** k for k in np.linspace(-6, 6, 60)]
    assert all(renyi_of_response(exact, order) <= float(rho) * order for order in orders)
    tight = renyi_of_response(exact, 1 + mpmath.mpf(10) ** -8)
    assert float(rho) == pytest.approx(float(tight), rel=1e-6)
    assert rho <= Fraction(epsilon) ** 2 / 2


@pytest.mark.parametrize("shifts", [(1,), (1, 1), (4, 2)], ids=repr)
def test_rho_covers_the_renyi_divergence_of_the_noise(shifts):
    scale, rho = 3.0, zcdp.rho(laplace(3.0, *shifts))
    places = np.arange(-300, 301)
    for order in (1.0001, 1.5, 2, 4, 16, 100):
        logs = [
            logsumexp(order * np.log(noise(scale, places)) + (1 - order) * np.log(noise(scale, places - shift)))
            for shift in shifts
        ]
        assert sum(logs) / (order - 1) <= rho * order * (1 + 1e-9)


@pytest.mark.parametrize("scale, shifts", [(1 / 3, (1,)), (0.8, (1, 1)), (7.1, (4, 2)), (1e9, (10**9, 1))], ids=repr)
def test_rho_of_discrete_gaussian_noise_is_exact(scale, shifts):
    squares = sum(shift**2 for shift in shifts)
    known, unknown = gaussian(scale, *shifts), DiscreteGaussianEvent(scale=scale, l2_squared=squares)
    assert known.zcdp_rho() == unknown.zcdp_rho() == squares / (2 * Fraction(scale) ** 2)
    assert Fraction(repr(zcdp.rho(times(known, 3)))) >= 3 * known.zcdp_rho()


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.0])
def test_rho_covers_the_renyi_divergence_of_discrete_gaussian_noise(scale):
    places, rho = np.arange(-600, 601), zcdp.rho(gaussian(scale, 2))
    log = lambda at: -(at**2) / (2 * scale**2) - logsumexp(-(places**2) / (2 * scale**2))  # noqa: E731
    for order in (1.0001, 1.5, 2, 4, 16, 100):
        exact = logsumexp(order * log(places) + (1 - order) * log(places - 2)) / (order - 1)
        assert exact <= rho * order * (1 + 1e-9)
        if order == int(order):
            assert exact == pytest.approx(rho * order, rel=1e-9)


def test_shifts_halve_the_rho_of_a_table():
    known, unknown = laplace(40.0, 1, 1), DiscreteLaplaceEvent(scale=40.0, sensitivity=2)
    assert zcdp.rho(known) / zcdp.rho(unknown) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.few(7)
@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_conversion_is_the_optimum_over_orders(rho, delta):
    # the formula once more, by another road: minimise over a in 40 digits
    def log_delta(a, epsilon):
        return (a - 1) * (a * rho - epsilon) - mpmath.log(a - 1) + a * mpmath.log1p(-1 / a)

    claimed = zcdp.epsilon_of_rho(rho, delta)
    with mpmath.workdps(40):
        orders = [1 + mpmath.e**y for y in np.linspace(-6, 16, 1200)]
        best = min(a * rho + (-mpmath.log(delta) - mpmath.log(a)) / (a - 1) + mpmath.log1p(-1 / a) for a in orders)
        assert claimed == pytest.approx(max(0.0, float(best)), rel=1e-3, abs=1e-9)
        assert float(min(log_delta(a, claimed) for a in orders)) <= math.log(delta) + 1e-2
    if claimed > 0:
        assert zcdp.delta_of_rho(rho, claimed) == pytest.approx(delta, rel=1e-6)
        assert zcdp.delta_of_rho(rho, claimed) >= delta * (1 - 1e-9)
    assert claimed < rho + 2 * math.sqrt(rho * -math.log(delta))  # the looser bound of Bun and Steinke


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.floats(-9, 4), st.floats(-250, -0.01))
def test_no_order_proves_less_than_is_claimed(log_rho, log_delta):
    # corollary 13 in 60 digits, at the order where its derivative is 0
    rho, delta = 10**log_rho, 10**log_delta
    epsilon = zcdp.epsilon_of_rho(rho, delta)
    with mpmath.workdps(60):
        r, e = mpmath.mpf(rho), mpmath.mpf(epsilon)
        low, high = mpmath.mpf(10) ** -30, mpmath.mpf(10) ** 30  # of x = a - 1
        for _ in range(250):
            x = mpmath.sqrt(low * high)
            low, high = (x, high) if (1 + 2 * x) * r - e + mpmath.log(x / (1 + x)) < 0 else (low, x)
        exact = min(1, mpmath.e ** (x * ((1 + x) * r - e) + x * mpmath.log(x) - (1 + x) * mpmath.log1p(x)))
        assert exact <= zcdp.delta_of_rho(rho, epsilon) <= exact * (1 + mpmath.mpf(10) ** -4)
        assert epsilon == 0 or exact <= delta


@pytest.mark.parametrize("rho", [0.01, 0.5, 3.0])
def test_conversion_covers_gaussian_noise(rho):
    mu = math.sqrt(2 * rho)  # this Gaussian pair has Renyi divergence rho a at every order
    for epsilon in np.linspace(0, 6 * mu, 13):
        exact = ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2)
        assert exact <= zcdp.delta_of_rho(rho, epsilon) <= max(10 * exact, 1e-14)


@pytest.mark.parametrize("rho", [5e-324, 1e-200, 1e-9, 1e3, 1e100, 1.7e308])
@pytest.mark.parametrize("delta", [5e-324, 1e-6, 0.5, 1 - 1e-16])
def test_conversions_of_extremes_are_numbers(rho, delta):
    assert zcdp.epsilon_of_rho(rho, delta) >= 0
    assert 0 <= zcdp.delta_of_rho(rho, 1.0) <= 1


def test_no_pure_guarantee_comes_out_of_zcdp():
    assert zcdp.epsilon_at(ZCDPEvent(rho=1e-9), 0.0) == math.inf


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_rho_for_a_budget_never_overspends_nor_wastes(epsilon, delta):
    rho = zcdp.rho_for(epsilon, delta)
    assert zcdp.epsilon_at(ZCDPEvent(rho=rho), delta) <= epsilon
    assert zcdp.epsilon_at(ZCDPEvent(rho=rho * (1 + 1e-9)), delta) > epsilon


def test_rho_for_needs_delta():
    with pytest.raises(ArgumentError, match="delta > 0"):
        zcdp.rho_for(1.0, 0.0)


def test_a_dropped_count_would_be_seen():
    assert zcdp.rho(times(pure(0.1), 400)) == pytest.approx(400 * 0.005, rel=1e-2)
