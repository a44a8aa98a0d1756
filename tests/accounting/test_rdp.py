import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from pymc_dp.accounting import BoundedRangeEvent, ComposedEvent, GaussianEvent, GDPEvent, ZCDPEvent, pld, rdp, zcdp
from tests.accounting import oracle
from tests.accounting.contract import AccountantContract
from tests.accounting.oracle import laplace, poisson, pure, times, without_replacement

ORDERS = (1.1, 1.5, 2.0, 3.5, 8.0, 32.0, 100.0)


class TestRDP(AccountantContract):
    def epsilon_at(self, event, delta):
        return rdp.epsilon_at(event, delta)

    def delta_at(self, event, epsilon):
        return rdp.delta_at(event, epsilon)


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


@pytest.mark.parametrize("order", [1.25, 2.0, 3.5, 16.0, 111.0])
@pytest.mark.parametrize("noise", [0.7, 3.0, 40.0])
def test_agrees_with_dp_accounting(order, noise):
    from dp_accounting import dp_event, privacy_accountant
    from dp_accounting.rdp import RdpAccountant

    gaussian = dp_event.GaussianDpEvent(noise)
    fine = 2**30  # discrete Laplace noise on a fine grid is Laplace noise
    pairs = [
        (GaussianEvent(noise_multiplier=noise), gaussian),
        (GDPEvent(mu=1 / noise), gaussian),
        (laplace(noise * fine, fine), dp_event.LaplaceDpEvent(noise)),
    ]
    if order == int(order):  # between whole orders ours is the chord of a convex function
        pairs.append((poisson(noise, 0.03, "add_remove"), dp_event.PoissonSampledDpEvent(0.03, gaussian)))
    for ours, theirs in pairs:
        accountant = RdpAccountant([order], privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE)
        exact = float(accountant.compose(dp_event.SelfComposedDpEvent(theirs, 7)).rdp[0])
        least = min(exact, order * 7 * float(ours.zcdp_rho()))
        assert least * (1 - 1e-9) <= rdp.divergence(times(ours, 7), order) <= least * (1 + 1e-3) + 1e-9


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
        assert back <= rdp.delta_of(divergence, order, claimed) <= back * (1 + mpmath.mpf(10) ** -7)


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


def test_huge_shifts_are_coarsened():
    for order in ORDERS:
        small, huge = (rdp.leaf_divergence(laplace(2.0**k, 2**k), order) for k in (14, 40))
        assert huge == pytest.approx(small, rel=1e-9)


def test_two_hundred_releases_need_the_scale_of_theory_9():
    def scale(epsilon_at):
        low, high = 1.0, 2000.0
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (low, middle) if epsilon_at(times(laplace(middle, 1), 200), 1e-5) <= 1 else (middle, high)
        return high

    assert scale(rdp.epsilon_at) / scale(pld.epsilon_at) == pytest.approx(1.08, abs=0.01)


@pytest.mark.parametrize(
    "event", [poisson(1.0, 0.3, "add_remove"), poisson(2.0, 0.3), without_replacement(2.0, 30, 100)]
)
def test_covers_what_the_distributions_or_all_rows_prove(event):
    for order in ORDERS:
        assert rdp.leaf_divergence(event, order) <= order * float(event.whole.rho) * (1 + 1e-12)
    for epsilon in (0.1, 1.0, 3.0):
        exact = pld.delta_at(times(event, 5), epsilon)
        assert exact == 1.0 or rdp.delta_at(times(event, 5), epsilon) >= exact * (1 - 1e-3)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.floats(0.3, 30), st.floats(1e-4, 1.0), st.integers(1, 1000), st.sampled_from(["replace", "add_remove"]))
def test_renyi_bounds_of_batches_are_ordered(noise_multiplier, rate, count, neighbours):
    event = poisson(noise_multiplier, rate, neighbours)
    orders = (1.3, 2.0, 5.0, 17.0, 64.0)
    values = [rdp.divergence(times(event, count), order) for order in orders]
    assert all(0 < low <= high * (1 + 1e-6) for low, high in itertools.pairwise(values))
    assert values[1] <= rdp.divergence(times(poisson(noise_multiplier, rate, "replace"), count), 2.0) * (1 + 1e-6)
    assert rdp.divergence(times(event, count), 2.0) == pytest.approx(count * rdp.leaf_divergence(event, 2.0), rel=1e-12)


def test_one_order_proves_the_budget_whenever_zcdp_does():
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)):
        rho, order = zcdp.rho_for(epsilon, delta), zcdp.order_for(epsilon, delta)
        assert rdp.epsilon_at_order(ZCDPEvent(rho=rho), order, delta) <= epsilon * (1 + 1e-13)
        halves = ComposedEvent(events=(GaussianEvent(noise_multiplier=rho**-0.5), ZCDPEvent(rho=rho / 2)))
        assert rdp.epsilon_at_order(halves, order, delta) <= epsilon * (1 + 1e-13)


@pytest.mark.parametrize("noise_multiplier", [1e-5, 1e5, 1e11])
def test_extreme_noise_has_a_finite_bound_that_is_no_zero(noise_multiplier):
    for event in (without_replacement(noise_multiplier, 1, 10**9), poisson(noise_multiplier, 1e-9, "add_remove")):
        for order in ORDERS:
            assert 0 < rdp.leaf_divergence(event, order) < math.inf


def test_no_order_says_anything_without_delta():
    assert rdp.epsilon_at(pure(0.1), 0.0) == math.inf


MUTANTS = {
    "count dropped": ("leaves", lambda true: lambda event: dict.fromkeys(true(event), 1)),
    "sampler ignored": ("leaf_divergence", lambda true: lambda leaf, order: true(poisson(8.0, 0.05), order)),
    "noise over clip norm under replace": (
        "leaf_divergence",
        lambda true: lambda leaf, order: true(without_replacement(16.0, 50, 1000), order),
    ),
}


@pytest.mark.parametrize("name", [None, *MUTANTS])
def test_a_wrong_accountant_claims_too_little(name, monkeypatch):
    # the truth is at least the sampled pair of the mechanism: the worst row replaced, in a batch of fixed size
    event = times(without_replacement(8.0, 50, 1000), 400)
    right = rdp.epsilon_at(event, 1e-5)
    if name is None:
        assert right > pld.epsilon_at(times(poisson(8.0, 0.05), 400), 1e-5)
        return
    function, mutate = MUTANTS[name]
    monkeypatch.setattr(rdp, function, mutate(getattr(rdp, function)))
    assert rdp.epsilon_at(event, 1e-5) < 0.7 * right
