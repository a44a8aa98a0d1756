import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from pymc_dp.accounting import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    ZCDPEvent,
    deltas,
    gdp,
    rdp,
    zcdp,
)
from pymc_dp.kernel.accounting.events.base import rho_of_pure
from tests.accounting import oracle
from tests.accounting.oracle import gaussian, laplace, poisson, pure, times, without_replacement


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


@pytest.mark.parametrize("scale, shifts", [(1 / 3, (1,)), (0.8, (1, 1)), (7.1, (4, 2)), (1e9, (10**9, 1))], ids=repr)
def test_rho_of_discrete_gaussian_noise_is_exact(scale, shifts):
    squares = sum(shift**2 for shift in shifts)
    known, unknown = gaussian(scale, *shifts), DiscreteGaussianEvent(scale=scale, l2_squared=squares)
    assert known.zcdp_rho() == unknown.zcdp_rho() == squares / (2 * Fraction(scale) ** 2)
    assert Fraction(repr(zcdp.rho(times(known, 3)))) >= 3 * known.zcdp_rho()


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
        assert exact <= deltas.delta_of_rho(rho, epsilon) <= exact * (1 + mpmath.mpf(10) ** -4)
        assert epsilon == 0 or exact <= delta


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_rho_for_a_budget_never_overspends_nor_wastes(epsilon, delta):
    rho = zcdp.rho_for(epsilon, delta)
    assert zcdp.epsilon_at(ZCDPEvent(rho=rho), delta) <= epsilon
    assert zcdp.epsilon_at(ZCDPEvent(rho=rho * (1 + 1e-9)), delta) > epsilon


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


ORDERS = (1.1, 1.5, 2.0, 3.5, 8.0, 32.0, 100.0)


def renyi(p, q, order, reach):
    """Renyi divergence of two log-densities, by adaptive quadrature with its peak taken out."""
    grid = np.linspace(-reach, reach, 4001)
    log = lambda x: order * p(x) + (1 - order) * q(x)  # noqa: E731
    top = max(map(log, grid))
    at = grid[int(np.argmax([log(x) for x in grid]))]
    value, _ = quad(lambda x: math.exp(log(x) - top), -reach, reach, points=[0.0, at], limit=2000, epsrel=1e-11)
    return (math.log(value) + top) / (order - 1)


def mixture(s, q, centre):
    """Log-density of (1-q) N(0, s^2) + q N(centre, s^2)."""

    def log(x):
        near, far = -((x / s) ** 2) / 2, -(((x - centre) / s) ** 2) / 2
        return np.logaddexp(math.log1p(-q) + near, math.log(q) + far) - math.log(s * math.sqrt(2 * math.pi))

    return log


@pytest.mark.few(9)
@pytest.mark.parametrize("s, q", [(1.0, 0.01), (4.0, 0.2), (0.7, 0.5)])
@pytest.mark.parametrize("order", [1.5, 2.0, 4.0, 11.0])
def test_batches_have_the_divergence_of_their_pair(s, q, order):
    stay, out, back = mixture(s, 1e-300, 1.0), mixture(s, q, 1.0), mixture(s, q, -1.0)
    reach = order + 12 * s
    exact = max(renyi(out, stay, order, reach), renyi(stay, out, order, reach))
    claimed = rdp.leaf_divergence(poisson(s, q, "add_remove"), order)
    assert exact * (1 - 1e-8) <= claimed
    if order == int(order):
        assert claimed <= exact * (1 + 1e-6) + 1e-12
    replaced = renyi(out, back, order, reach)
    assert replaced * (1 - 1e-8) <= rdp.leaf_divergence(poisson(s, q), order) <= replaced * (1 + 1e-6) + 1e-11


@pytest.mark.parametrize("s, q", [(10.0, 1 - 1e-9), (12.0, 1 - 1e-6), (50.0, 1 - 1e-3), (8.0, 0.5)])
@pytest.mark.parametrize("order", [2.0, 100.0, 1024.0])
def test_batches_of_nearly_all_rows_are_integrated_as_far_as_their_peak(s, q, order):
    # P^a Q^(1-a) peaks near 2a - 1 where Q is near N(-1, s^2); by a plain sum over far more than that
    x = np.linspace(-3 * order - 60 * s, 3 * order + 60 * s, 200_001)
    stay = np.log1p(-q)
    out, back = (np.log(q) + (sign * x - 0.5) / s**2 for sign in (1, -1))
    logs = order * np.logaddexp(stay, out) + (1 - order) * np.logaddexp(stay, back) - (x / s) ** 2 / 2
    top = logs.max()
    total = top + math.log(np.exp(logs - top).sum() * (x[1] - x[0]) / (s * math.sqrt(2 * math.pi)))
    exact = min(total / (order - 1), order * 2 / s**2)  # all rows: std over sensitivity s / 2
    assert exact * (1 - 1e-9) <= rdp.leaf_divergence(poisson(s, q), order) <= exact * (1 + 1e-6) + 1e-11


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(-12, 3), st.floats(-3, 4), st.floats(-300, -0.001))
def test_conversions_of_one_order_are_proposition_12(log_divergence, log_order, log_delta):
    divergence, order, delta = 10**log_divergence, 1 + 10**log_order, 10**log_delta
    with mpmath.workdps(60):
        d, a = mpmath.mpf(divergence), mpmath.mpf(order)
        exact = max(0, d + (-mpmath.log(delta) - mpmath.log(a)) / (a - 1) + mpmath.log1p(-1 / a))
        claimed = rdp.epsilon_of(divergence, order, delta)
        assert exact <= claimed <= exact + mpmath.mpf(10) ** -12 * (10 + d + 1000 / (a - 1))
        back = min(1, mpmath.e ** ((a - 1) * (d - mpmath.mpf(claimed))) * (1 - 1 / a) ** (a - 1) / a)
        assert back <= deltas.delta_of_divergence(divergence, order, claimed) <= back * (1 + mpmath.mpf(10) ** -7)


@pytest.mark.parametrize("noise_multiplier, batch, rows", [(2.0, 3, 100), (16.0, 180, 32561), (1.0, 50, 100)])
@pytest.mark.parametrize("order", [2, 3, 8, 33])
def test_fixed_batches_have_the_divergence_of_theorem_27(noise_multiplier, batch, rows, order):
    # Wang, Balle, Kasiviswanathan 2019, in 100 digits and without dp_accounting; the noise is over the sensitivity 2 C
    with mpmath.workdps(100):
        q, s = mpmath.mpf(batch) / rows, mpmath.mpf(noise_multiplier) / 2

        def moment(x):
            return mpmath.e ** (mpmath.mpf(x) * (x + 1) / (2 * s**2))

        def difference(n):
            return mpmath.fsum((-1) ** i * mpmath.binomial(n, i) * moment(i - 1) for i in range(n + 1))

        two = moment(1)  # e^(D_2)
        total = 1 + q**2 * mpmath.binomial(order, 2) * min(4 * (two - 1), 2 * two)
        for j in range(3, order + 1):
            bound = 4 * mpmath.sqrt(difference(2 * (j // 2)) * difference(2 * ((j + 1) // 2)))
            total += q**j * mpmath.binomial(order, j) * min(bound, 2 * moment(j - 1))
        exact = mpmath.log(total) / (order - 1)
    claimed = rdp.leaf_divergence(without_replacement(noise_multiplier, batch, rows), float(order))
    assert exact <= claimed <= min(exact * (1 + 1e-6) + 1e-12, order * 2 / noise_multiplier**2 * (1 + 1e-9))


@pytest.mark.few(22)
@pytest.mark.parametrize("eta", [1e-6, 0.01, 0.5, 3.0, 30.0])
@pytest.mark.parametrize("order", ORDERS)
def test_a_bounded_range_has_the_divergence_of_its_worst_two_points(eta, order):
    claimed = rdp.leaf_divergence(BoundedRangeEvent(eta=eta), order)
    with mpmath.workdps(50):
        worst = mpmath.mpf(0)
        for share in np.linspace(0.0005, 0.9995, 400):
            t = mpmath.mpf(eta) * share  # loss t or t - eta, and E_Q[e^loss] = 1
            q = (1 - mpmath.e ** (t - eta)) / (mpmath.e**t - mpmath.e ** (t - eta))
            moment = q * mpmath.e ** (order * t) + (1 - q) * mpmath.e ** (order * (t - eta))
            worst = max(worst, mpmath.log(moment) / (order - 1))
    assert worst <= claimed <= worst * (1 + 1e-2)
    assert claimed <= min(eta, order * eta**2 / 8) * (1 + 1e-12)


@pytest.mark.parametrize("event", [pure(0.3), laplace(5.0, 3), laplace(2.0, 1, 1), laplace(90.0, 70)], ids=repr)
@pytest.mark.parametrize("order", ORDERS)
def test_discrete_laplace_noise_has_the_divergence_of_its_atoms(event, order):
    scale, shifts = (1 / event.epsilon, (1,)) if not hasattr(event, "shifts") else (event.scale, event.shifts)
    places = np.arange(-math.ceil(45 * scale), math.ceil(45 * scale) + max(shifts))
    exact = 0.0
    for shift in shifts:
        p, q = oracle.noise(scale, places), oracle.noise(scale, places - shift)
        exact += math.log(float(np.sum(p * np.exp((order - 1) * (np.log(p) - np.log(q)))))) / (order - 1)
    claimed = rdp.leaf_divergence(event, order)
    assert exact * (1 - 1e-9) <= claimed <= exact * 1.01


@pytest.mark.parametrize("loss", [0.1, 0.3, 1 / 3, 5.0])
@pytest.mark.parametrize("digits", [1, 2, 1000])
def test_delta_is_rounded_up_to_the_last_digits_of_the_loss(loss, digits):
    epsilon = loss - digits * math.ulp(loss)
    with mpmath.workdps(60):
        high, low = mpmath.mpf(repr(loss)), mpmath.mpf(repr(epsilon))
        exact = (mpmath.e**high - mpmath.e**low) / (1 + mpmath.e**high)
        assert exact <= deltas.pure(pure(loss), epsilon) <= exact * (1 + mpmath.mpf(10) ** -12)
