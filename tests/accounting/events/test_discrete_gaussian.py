import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from pymc_dp.accounting import (
    ComposedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    calibrated,
    gaussian_multiplier,
    gdp,
    pld,
    rho_budget,
    total_delta,
    total_epsilon,
    zcdp,
)
from pymc_dp.accounting import (
    pld as loss_grid,
)
from pymc_dp.accounting.events import discrete_gaussian
from pymc_dp.accounting.pairs import Normal, Shift
from tests.accounting import oracle
from tests.accounting.oracle import gaussian, laplace, times


@pytest.fixture(autouse=True)
def fresh_cache():
    pld.compose.cache_clear()
    yield
    pld.compose.cache_clear()


def in_many_digits(scale, shift, epsilon):
    """The hockey-stick divergence of one coordinate, in 60 digits."""
    with mpmath.workdps(60):
        two = 2 * mpmath.mpf(scale) ** 2
        reach = math.ceil(25 * scale) + shift
        p = [mpmath.e ** (-(mpmath.mpf(k) ** 2) / two) for k in range(-reach, reach + shift + 1)]
        q = [mpmath.e ** (-(mpmath.mpf(k - shift) ** 2) / two) for k in range(-reach, reach + shift + 1)]
        factor = mpmath.e ** mpmath.mpf(epsilon)
        return mpmath.fsum(max(0, a - factor * b) for a, b in zip(p, q, strict=True)) / mpmath.fsum(p)


@pytest.mark.parametrize("scale, shift", [(0.5, 1), (1.0, 1), (1.56, 1), (4.23, 1), (2.0, 3), (30.0, 3), (9.7, 12)])
def test_one_coordinate_has_its_exact_divergence(scale, shift):
    mu = shift / scale
    truth = lambda epsilon: float(in_many_digits(scale, shift, epsilon))  # noqa: E731
    epsilons = [mu * share for share in (0.0, 0.01, 0.5, 1.0, 2.5, 4.5)]
    oracle.assert_upper_bound(pld.delta_at, gaussian(scale, shift), truth, epsilons, within=1e-3)


@pytest.mark.parametrize("shifts", [(1, 1), (3, 1), (2, 2, 1)], ids=repr)
@pytest.mark.parametrize("sign", [1, -1])
def test_vectors_in_every_direction(shifts, sign):
    scale = 2.3
    signed = [(scale, shift * sign**place) for place, shift in enumerate(shifts)]
    truth = lambda epsilon: oracle.gaussian_by_definition(signed, epsilon)  # noqa: E731
    oracle.assert_upper_bound(pld.delta_at, gaussian(scale, *shifts), truth, [0.0, 0.2, 1.0, 2.0, 4.0], within=2e-3)


@pytest.mark.parametrize("less", [(2,), (1,), (1, 1), (2, 1)])
def test_sensitivities_within_the_shifts_cost_no_more(less):
    event = gaussian(1.3, 3, 1)
    for epsilon in (0.01, 0.5, 1.5, 4.0):
        truth = oracle.gaussian_by_definition([(1.3, shift) for shift in less], epsilon)
        assert truth <= total_delta(event, epsilon)


@pytest.mark.parametrize("scale, shift, count", [(4.0, 1, 2), (9.0, 2, 10), (20.0, 1, 50), (0.9, 1, 7)])
def test_many_uses(scale, shift, count):
    truth = lambda epsilon: oracle.gaussian_by_convolution(scale, shift, count, epsilon)  # noqa: E731
    mu = shift / scale * count**0.5
    epsilons = [mu * share for share in (0.0, 0.1, 1.0, 2.5, 4.0)]
    oracle.assert_upper_bound(pld.delta_at, times(gaussian(scale, shift), count), truth, epsilons, within=2e-3)


def test_different_kinds_of_noise_compose():
    # with continuous noise, by summing its curve over the outcomes of the discrete ones
    mu, places = 0.6, np.arange(-60, 62)
    p = np.outer(oracle.gaussian_noise(2.1, places), oracle.noise(1.7, places))
    q = np.outer(oracle.gaussian_noise(2.1, places - 2), oracle.noise(1.7, places - 1))

    def exact(epsilon):
        held = p > 1e-250
        moved = epsilon - np.log(p[held] / q[held])
        return float(p[held] @ (ndtr(-moved / mu + mu / 2) - np.exp(moved) * ndtr(-moved / mu - mu / 2)))

    event = ComposedEvent(events=(gaussian(2.1, 2), laplace(1.7, 1), GaussianEvent(noise_multiplier=1 / mu)))
    oracle.assert_upper_bound(pld.delta_at, event, exact, [0.0, 0.5, 1.5, 3.0], within=2e-3)


@pytest.mark.parametrize("epsilon, ratio", [(2.0, 1.10), (3.0, 1.38)])
def test_the_curve_of_continuous_noise_is_too_low(epsilon, ratio):
    scale = gaussian_multiplier(epsilon, 1e-6)
    curve = gdp.delta_of_mu(1 / scale, epsilon)
    assert float(in_many_digits(scale, 1, epsilon)) / curve == pytest.approx(ratio, abs=0.005)
    assert total_delta(gaussian(scale, 1), epsilon) / curve == pytest.approx(ratio, abs=0.005)


@pytest.mark.few(6)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("shifts", [(1,), (1, 1), (3,)], ids=repr)
def test_the_least_scale_is_the_exact_sums(epsilon, shifts):
    found = calibrated(gaussian(1.0, *shifts), epsilon, 1e-6)
    by_rho = math.sqrt(sum(shift**2 for shift in shifts) / (2 * rho_budget(epsilon, 1e-6)))
    assert found.scale < 0.96 * by_rho

    def truth(scale):
        if len(shifts) == 1:
            return in_many_digits(scale, shifts[0], epsilon)
        return oracle.gaussian_by_convolution(scale, 1, 2, epsilon)

    assert truth(found.scale) <= 1e-6 < truth(found.scale * (1 - 1e-3))


def test_without_shifts_only_its_rho_counts():
    event = DiscreteGaussianEvent(scale=8.0, l2_squared=2)
    total = total_epsilon(event, 1e-6)
    assert (total.accountant, total.epsilon) == ("zcdp", zcdp.epsilon_of_rho(2 / 128, 1e-6))
    assert pld.delta_at(event, 1.0) == 1.0
    assert total_epsilon(gaussian(8.0, 1, 1), 1e-6).epsilon < total.epsilon


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 12.0])
def test_rounded_normal_variables_are_as_near_as_proved(scale):
    with mpmath.workdps(60):
        s = mpmath.mpf(scale)
        reach = math.ceil(15 * scale)
        total = mpmath.fsum(mpmath.e ** (-(mpmath.mpf(k) ** 2) / (2 * s**2)) for k in range(-9 * reach, 9 * reach + 1))
        for k in range(reach + 1):
            k = mpmath.mpf(k)
            noise = mpmath.e ** (-(k**2) / (2 * s**2)) / total
            rounded = (mpmath.erfc((k - 0.5) / s / mpmath.sqrt(2)) - mpmath.erfc((k + 0.5) / s / mpmath.sqrt(2))) / 2
            assert noise <= rounded * mpmath.e ** (1 / (24 * s**2))
            # the sum over the lattice is above s sqrt(2 pi), by far less than a digit at the scales where this is used
            assert noise * total / (s * mpmath.sqrt(2 * mpmath.pi)) >= rounded * mpmath.e ** (-(k**2) / (24 * s**4))


def test_the_mass_left_out_is_that_of_the_tails():
    assert mpmath.ncdf(-8.99) * 2 <= discrete_gaussian.TAIL_MASS
    for scale in (0.3, 1.0, 7.7):
        noise = oracle.gaussian_noise(scale, np.arange(math.ceil(9 * scale) + 1, 60))
        assert 2 * math.fsum(noise) <= discrete_gaussian.TAIL_MASS


@pytest.mark.parametrize("scale, shift", [(5e3, 5000), (2e4, 10**4), (2e4, 3)])
def test_large_scales_are_never_below_the_sum_and_near_it(scale, shift):
    mu = shift / scale
    epsilons = [mu * share for share in (0.0, 0.5, 1.0, 2.5, 4.5)]
    truth = lambda epsilon: oracle.gaussian_by_definition([(scale, shift)], epsilon)  # noqa: E731
    oracle.assert_upper_bound(pld.delta_at, gaussian(scale, shift), truth, epsilons, within=1e-3)


@pytest.mark.parametrize("shifts", [(1,), (8,), (3, 2, 1)], ids=repr)
@pytest.mark.parametrize("count", [1, 5])
def test_nearness_to_normal_noise_is_paid_for_where_it_matters(shifts, count, monkeypatch):
    monkeypatch.setattr(discrete_gaussian, "MOST_SCALE", 5.0)
    event = times(gaussian(6.0, *shifts), count)
    (pair,) = pld.pairs_of({gaussian(6.0, *shifts): count}).continuous
    assert isinstance(pair, Shift) and pair.excess > 0.09 * count * len(shifts)
    for epsilon in (0.0, 0.1, 0.5, 2.0, 4.0):
        truth = (
            oracle.gaussian_by_convolution(6.0, shifts[0], count, epsilon)
            if len(shifts) == 1
            else oracle.gaussian_by_definition([(6.0, shift) for shift in shifts], epsilon)
        )
        assert truth <= pld.delta_at(event, epsilon)


def test_the_two_readings_meet():
    below, above = (gaussian(math.nextafter(discrete_gaussian.MOST_SCALE, to), 900) for to in (0.0, math.inf))
    for delta in (1e-9, 1e-6, 1e-2):
        first, second = pld.epsilon_at(below, delta), pld.epsilon_at(above, delta)
        assert first <= second * (1 + 1e-9) and second == pytest.approx(first, rel=1e-4)


@pytest.mark.parametrize(
    "event", [gaussian(0.01, 1), gaussian(1e150, 1), gaussian(5e-324**0.25, 1), gaussian(1e4, 10**7)]
)
@pytest.mark.parametrize("count", [1, 10**30, 10**400])
def test_extremes_have_bounds_that_are_numbers(event, count):
    for delta in (1e-300, 1e-6, 0.5):
        assert pld.epsilon_at(times(event, count), delta) >= 0
    assert 0 <= pld.delta_at(times(event, count), 1.0) <= 1


MUTANTS = {
    "scale divided by sqrt 2": (
        discrete_gaussian,
        "Lattice",
        lambda true: lambda scale, shift: true(scale * math.sqrt(2), shift),
    ),
    "shift one less": (discrete_gaussian, "Lattice", lambda true: lambda scale, shift: true(scale, shift - 1)),
    "one coordinate only": (DiscreteGaussianEvent, "loss_pairs", lambda true: lambda event: true(event)[:1]),
    "the curve of continuous noise": (
        DiscreteGaussianEvent,
        "loss_pairs",
        lambda true: lambda event: (Normal(event.rho),),
    ),
    "rounded down": (loss_grid, "cells_on_grid", lambda true: lambda *a: (np.append(true(*a)[0][1:], 0), 0.0)),
}


@pytest.mark.parametrize("name", [None, *MUTANTS])
def test_a_wrong_accountant_fails_the_oracle(name, monkeypatch):
    # scales at which the curve is too low
    parts = [(1.54, 2), (1.54, 2)]

    def check():
        truth = lambda epsilon: oracle.gaussian_by_definition(parts, epsilon)  # noqa: E731
        oracle.assert_upper_bound(pld.delta_at, gaussian(1.54, 2, 2), truth, np.linspace(0.1, 9, 30), within=2e-3)

    if name is None:
        return check()
    module, function, mutate = MUTANTS[name]
    monkeypatch.setattr(module, function, mutate(getattr(module, function)))
    with pytest.raises(AssertionError, match="the truth is"):
        check()


def test_noise_of_a_scale_divided_by_sqrt_2_breaks_the_claim():
    claimed = calibrated(gaussian(1.0, 1), 1.0, 1e-6)
    assert in_many_digits(claimed.scale, 1, 1.0) <= 1e-6
    assert in_many_digits(claimed.scale / math.sqrt(2), 1, 1.0) > 1e-4


# --- vectors of which only the norm of the sensitivity is known
# ----------------------------------------------------------


def vector(scale, norm, coordinates):
    return DiscreteGaussianEvent(scale=scale, l2_squared=norm**2, coordinates=coordinates)


def test_a_norm_covers_every_way_to_move():
    """No shifts with that norm are further from normal noise, or cost more."""
    rng, scale, norm, count = np.random.default_rng(3), 2.0**13, 5000, 7
    (known,) = vector(scale, norm, count).loss_pairs()
    for _ in range(50):
        direction = rng.normal(size=count) * rng.choice([0.01, 1, 10], size=count)
        shifts = np.floor(np.abs(direction) / np.linalg.norm(direction) * norm).astype(int)
        (some,) = DiscreteGaussianEvent(scale=scale, shifts=tuple(shifts[shifts > 0].tolist())).loss_pairs()
        assert some.rho <= known.rho and some.excess <= known.excess and some.tail <= known.tail


def test_the_norm_of_one_coordinate_is_its_shift():
    one, same = vector(5000.0, 4321, 1), gaussian(5000.0, 4321)
    for epsilon in (0.1, 1.0, 3.0):
        assert total_delta(one, epsilon) == pytest.approx(total_delta(same, epsilon), rel=1e-9)


def test_a_whole_fit_by_noised_gradients_costs_what_continuous_noise_does():
    """63 vectors, of up to 20,100 coordinates, at the scales that integers of rows have."""
    shares = np.r_[0.05, 0.07, 0.18, np.full(60, 0.7 / 60)]
    for epsilon in (0.3, 1.0, 3.0):
        multiplier = gaussian_multiplier(epsilon, 1e-5)
        norms = [2**24] * len(shares)
        discrete = [
            vector(norm * multiplier / math.sqrt(share), norm, count)
            for norm, share, count in zip(norms, shares, [20_100] * 3 + [200] * 60, strict=True)
        ]
        plain = [GaussianEvent(noise_multiplier=multiplier / math.sqrt(share)) for share in shares]
        found = total_epsilon(ComposedEvent(events=tuple(discrete)), 1e-5)
        assert found.accountant == "pld"
        assert found.epsilon == pytest.approx(total_epsilon(ComposedEvent(events=tuple(plain)), 1e-5).epsilon, rel=3e-4)
        assert found.epsilon >= epsilon * (1 - 1e-6)


def test_small_noise_on_vectors_has_its_zcdp_alone():
    event = vector(100.0, 30, 4)
    assert event.loss_pairs() is None and total_epsilon(event, 1e-6).accountant in ("zcdp", "rdp")


def test_vectors_are_written_down_and_read_back():
    from pymc_dp.accounting import event_from_dict

    event = vector(5000.0, 70, 3)
    assert event_from_dict(event.to_dict()) == event and "coordinates" not in gaussian(5000.0, 3).to_dict()
    with pytest.raises(ValueError, match="shifts or coordinates"):
        DiscreteGaussianEvent(scale=2.0, shifts=(1,), coordinates=1)
    with pytest.raises(ValueError, match="coordinates"):
        DiscreteGaussianEvent(scale=2.0, l2_squared=1, coordinates=0)
