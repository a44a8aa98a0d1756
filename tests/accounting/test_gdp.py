import math
from fractions import Fraction

import mpmath
import pytest

from pymc_dp.accounting import (
    BoundedRangeEvent,
    ComposedEvent,
    GaussianEvent,
    GDPEvent,
    ZCDPEvent,
    gdp,
    pld,
    pure_epsilon,
    rdp,
    total_epsilon,
    zcdp,
)
from pymc_dp.errors import ArgumentError
from tests.accounting.contract import AccountantContract
from tests.accounting.oracle import gaussian, laplace, poisson, pure, times, without_replacement


class TestGDP(AccountantContract):
    def epsilon_at(self, event, delta):
        return gdp.epsilon_at(event, delta)

    def delta_at(self, event, epsilon):
        return gdp.delta_at(event, epsilon)


@pytest.mark.parametrize("mu", [1e-4, 0.02, 0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("share", [0.0, 1e-6, 0.1, 1.0, 5.0, 12.0])
def test_delta_is_that_of_two_shifted_gaussians(mu, share):
    epsilon = mu * share
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(-e / m + m / 2) - mpmath.e**e * mpmath.ncdf(-e / m - m / 2)
        claimed = gdp.delta_of_mu(mu, epsilon)
        assert exact <= claimed
        assert claimed <= exact * (1 + mpmath.mpf(10) ** -6) or claimed < 1e-30


@pytest.mark.parametrize("mu", [1e-3, 0.2, 2.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_epsilon_is_the_inverse_of_delta(mu, delta):
    epsilon = gdp.epsilon_of_mu(mu, delta)
    assert gdp.delta_of_mu(mu, epsilon) <= delta
    assert epsilon == 0 or gdp.delta_of_mu(mu, epsilon * (1 - 1e-9)) > delta


def test_squares_add_exactly():
    event = ComposedEvent(events=(times(GaussianEvent(noise_multiplier=2.0), 3), GaussianEvent(noise_multiplier=4.0)))
    assert gdp.mu(event) == pytest.approx(math.sqrt(3 / 4 + 1 / 16), rel=1e-15)
    assert Fraction(gdp.mu(event)) ** 2 >= Fraction(13, 16)
    assert gdp.mu(times(GaussianEvent(noise_multiplier=3.0), 9)) >= 1.0


@pytest.mark.parametrize("mu", [0.1, 0.3, 1 / 3, 2.0])
def test_a_mechanism_of_known_mu_costs_what_gaussian_noise_of_that_mu_costs(mu):
    proved, noise = GDPEvent(mu=mu), GaussianEvent(noise_multiplier=1 / mu)
    assert gdp.mu(proved) == pytest.approx(mu, rel=1e-15)
    assert Fraction(gdp.mu(proved)) >= Fraction(repr(mu))
    for accountant in (gdp, zcdp, rdp, pld):
        expected = accountant.epsilon_at(times(noise, 7), 1e-6)
        assert accountant.epsilon_at(times(proved, 7), 1e-6) == pytest.approx(expected, rel=1e-9)
    assert rdp.leaf_divergence(proved, 3.0) == pytest.approx(3 * mu**2 / 2, rel=1e-12)
    assert pure_epsilon(proved) == math.inf
    assert total_epsilon(ComposedEvent(events=(proved, noise)), 1e-6).accountant == "gdp"


@pytest.mark.parametrize("mu", [5e-324, 1e-300, 1e-160, 1e-8, 1e3, 1e160, 1.7e308])
@pytest.mark.parametrize("count", [1, 10**9])
def test_extreme_mu_has_bounds_that_are_numbers(mu, count):
    event = times(GDPEvent(mu=mu), count)
    assert Fraction(repr(mu)) ** 2 * count <= (Fraction(gdp.mu(event)) ** 2 if gdp.mu(event) < math.inf else math.inf)
    for delta in (1e-300, 1e-6, 0.5):
        epsilon = gdp.epsilon_at(event, delta)
        assert epsilon >= 0
        assert epsilon == math.inf or gdp.delta_at(event, epsilon) <= delta


def test_less_than_zcdp_says():
    for count in (1, 10, 1000):
        event = times(GaussianEvent(noise_multiplier=20.0), count)
        assert gdp.epsilon_at(event, 1e-6) < zcdp.epsilon_at(event, 1e-6)


@pytest.mark.parametrize(
    "event",
    [
        pure(0.1),
        laplace(10.0, 1),
        gaussian(10.0, 1),
        gaussian(1e9, 1),
        ZCDPEvent(rho=1e-9),
        BoundedRangeEvent(eta=1e-3),
        poisson(10.0, 0.01),
        without_replacement(10.0, 1, 100),
    ],
    ids=repr,
)
def test_anything_but_gaussian_noise_on_all_rows_is_infinite_not_free(event):
    for composed in (event, ComposedEvent(events=(GaussianEvent(noise_multiplier=100.0), event))):
        assert gdp.epsilon_at(composed, 1e-6) == math.inf
        assert gdp.delta_at(composed, 100.0) == 1.0


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_mu_for_a_budget_never_overspends_nor_wastes(epsilon, delta):
    mu = gdp.mu_for(epsilon, delta)
    assert gdp.epsilon_of_mu(mu, delta) <= epsilon < gdp.epsilon_of_mu(mu * (1 + 1e-9), delta)


def test_mu_for_needs_delta():
    with pytest.raises(ArgumentError, match="delta > 0"):
        gdp.mu_for(1.0, 0.0)
