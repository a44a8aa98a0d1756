"""Totals beside the exact divergences of many mechanisms: never below them, and hardly above."""

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from pymc_dp.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    GDPEvent,
    ZCDPEvent,
    calibrated,
    deltas,
    gdp,
    pld,
    rdp,
    rho_budget,
    total_delta,
    total_epsilon,
    zcdp,
)
from pymc_dp.kernel.accounting.events import discrete_gaussian
from pymc_dp.kernel.accounting.pairs import Shift
from tests.accounting import oracle
from tests.accounting.oracle import gaussian, laplace, poisson, pure, times, without_replacement


@pytest.fixture(autouse=True)
def fresh_cache():
    pld.compose.cache_clear()
    yield
    pld.compose.cache_clear()


def together(*events):
    return ComposedEvent(events=events)


def failing(epsilon, delta):
    return ApproximateEvent(epsilon=epsilon, delta=delta)


def noise_on_a_shift(noise_multiplier, at):
    """The curve of normal noise, of one loss or of many."""
    mu = 1 / noise_multiplier
    return ndtr(-at / mu + mu / 2) - np.exp(at) * ndtr(-at / mu - mu / 2)


def with_noise(noise_multiplier, p, q):
    """Of outcomes with these probabilities and normal noise on a number beside."""
    held = p > 1e-250
    losses = np.log(p[held] / q[held])
    return lambda epsilon: float(p[held] @ noise_on_a_shift(noise_multiplier, epsilon - losses))


def in_many_digits(scale, shift, epsilon):
    """Of one coordinate of discrete Gaussian noise, in 60 digits."""
    with mpmath.workdps(60):
        two = 2 * mpmath.mpf(scale) ** 2
        reach = math.ceil(25 * scale) + shift
        p = [mpmath.e ** (-(mpmath.mpf(k) ** 2) / two) for k in range(-reach, reach + shift + 1)]
        q = [mpmath.e ** (-(mpmath.mpf(k - shift) ** 2) / two) for k in range(-reach, reach + shift + 1)]
        factor = mpmath.e ** mpmath.mpf(epsilon)
        return float(mpmath.fsum(max(0, a - factor * b) for a, b in zip(p, q, strict=True)) / mpmath.fsum(p))


def of_randomised_responses(epsilon, count, at):
    """Kairouz, Oh, Viswanath 2017, theorem 3.3, in 60 digits."""
    with mpmath.workdps(60):
        e = mpmath.mpf(repr(epsilon))
        terms = (
            mpmath.binomial(count, k) * (mpmath.e ** ((count - k) * e) - mpmath.e ** (mpmath.mpf(at) + k * e))
            for k in range(count + 1)
            if (count - 2 * k) * e > at
        )
        return float(mpmath.fsum(terms) / (1 + mpmath.e**e) ** count)


def of_a_batch(s, q, neighbours):
    """Of one Poisson batch and the neighbour's, in both orders, by quadrature."""
    centre = -1.0 if neighbours == "replace" else 0.0
    normal = lambda x, at: math.exp(-(((x - at) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))  # noqa: E731
    densities = [lambda x, c=c: (1 - q) * normal(x, 0) + q * normal(x, c) for c in (1.0, centre)]
    grid = np.linspace(-12 * s - 1, 12 * s + 1, 2001)

    def one(p, other, epsilon):
        difference = lambda x: p(x) - math.exp(epsilon) * other(x)  # noqa: E731
        signs = np.sign([difference(x) for x in grid])
        points = grid[1:][signs[1:] != signs[:-1]]
        found = quad(
            lambda x: max(0.0, difference(x)),
            grid[0],
            grid[-1],
            points=points if len(points) else None,
            limit=1000,
            epsabs=1e-13,
        )
        return found[0]

    return lambda epsilon: max(one(*densities, epsilon), one(*densities[::-1], epsilon)) * (1 - 1e-7) - 1e-12


def of_a_range(eta):
    """The worst two points t and t - eta of a bounded range."""

    def exact(epsilon):
        t = np.linspace(max(epsilon, 1e-9), eta - 1e-12, 4001)
        q = -np.expm1(t - eta) / (np.exp(t) * -math.expm1(-eta))
        return float(np.max(q * (np.exp(t) - math.exp(epsilon)))) - 1e-12

    return exact


def by_vectors(noise, *parts):
    return lambda epsilon: noise(list(parts), epsilon)


LAPLACE, GAUSSIAN = oracle.by_definition, oracle.gaussian_by_definition
PLACES = np.arange(-80, 83)
PARTS = [(1.3, 2), (math.pi / 2, 1), (0.9, 1)]
RESPONSE = np.array([1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(0.5))])
TRUTH = {
    # incommensurable losses: the grid cannot hold them, and rounding must stay an upper bound
    "scales": (together(*(laplace(*part) for part in PARTS)), by_vectors(LAPLACE, *PARTS), [0.1, 0.7, 2.0, 2.8], 1e-3),
    # a pure loss e behaves as noise of scale 1 / e against a shift of 1
    "pure losses and noise": (
        together(pure(0.7), laplace(1.3, 2), pure(0.7)),
        by_vectors(LAPLACE, (1 / 0.7, 1), (1 / 0.7, 1), (1.3, 2)),
        [0.1, 0.5, 1.5, 2.5],
        1e-3,
    ),
    "30 responses": (times(pure(0.1), 30), lambda at: of_randomised_responses(0.1, 30, at), [0.2, 1.0, 2.0], 1e-5),
    "400 responses": (times(pure(0.01), 400), lambda at: of_randomised_responses(0.01, 400, at), [0.1, 0.5], 1e-5),
    "5 responses": (times(pure(2.0), 5), lambda at: of_randomised_responses(2.0, 5, at), [1.0, 5.9, 9.0], 1e-5),
    "mu and a response": (
        together(GDPEvent(mu=0.48), pure(0.5), GaussianEvent(noise_multiplier=1 / 0.64)),
        with_noise(1 / 0.8, RESPONSE, RESPONSE[::-1]),
        [0.1, 0.5, 1.5, 3.0],
        1e-3,
    ),
    "discrete and continuous": (
        together(laplace(1.7, 2), GaussianEvent(noise_multiplier=1 / 0.8)),
        with_noise(1 / 0.8, oracle.noise(1.7, PLACES), oracle.noise(1.7, PLACES - 2)),
        [0.1, 0.5, 1.5, 3.0],
        1e-3,
    ),
    "three kinds of noise": (
        together(gaussian(2.1, 2), laplace(1.7, 1), GaussianEvent(noise_multiplier=1 / 0.6)),
        with_noise(
            1 / 0.6,
            np.outer(oracle.gaussian_noise(2.1, PLACES), oracle.noise(1.7, PLACES)),
            np.outer(oracle.gaussian_noise(2.1, PLACES - 2), oracle.noise(1.7, PLACES - 1)),
        ),
        [0.1, 0.5, 1.5, 3.0],
        2e-3,
    ),
    "failures": (
        ApproximateEvent(epsilon=0.7, delta=0.01),
        lambda at: 0.01 + 0.99 * of_randomised_responses(0.7, 1, at),
        [0.1, 0.3, 0.69],
        1e-5,
    ),
    "50 failures": (
        times(failing(0.1, 1e-9), 50),
        lambda at: 1 - (1 - 1e-9) ** 50 * (1 - of_randomised_responses(0.1, 50, at)),
        [0.5, 1.5, 3.0],
        1e-3,
    ),
    **{
        f"discrete Gaussian, {scale}, {shift}": (
            gaussian(scale, shift),
            lambda at, scale=scale, shift=shift: in_many_digits(scale, shift, at),
            [shift / scale * share for share in (0.01, 0.5, 1.0, 2.5, 4.5)],
            1e-3,
        )
        for scale, shift in ((0.5, 1), (1.0, 1), (1.56, 1), (4.23, 1), (2.0, 3), (30.0, 3), (9.7, 12))
    },
    **{
        f"discrete Gaussian, {shifts}": (
            gaussian(2.3, *map(abs, shifts)),
            by_vectors(GAUSSIAN, *((2.3, shift) for shift in shifts)),
            [0.2, 1.0, 2.0, 4.0],
            2e-3,
        )
        for shifts in ((1, 1), (3, 1), (3, -1), (2, -2, 1))
    },
    **{
        f"discrete Gaussian, {count} uses": (
            times(gaussian(scale, shift), count),
            lambda at, of=(scale, shift, count): oracle.gaussian_by_convolution(*of, at),
            [shift / scale * count**0.5 * share for share in (0.1, 1.0, 2.5, 4.0)],
            2e-3,
        )
        for scale, shift, count in ((4.0, 1, 2), (9.0, 2, 10), (20.0, 1, 50), (0.9, 1, 7))
    },
    **{
        f"discrete Gaussian, scale {scale:g}": (
            gaussian(scale, shift),
            by_vectors(GAUSSIAN, (scale, shift)),
            [shift / scale * share for share in (0.5, 1.0, 2.5, 4.5)],
            1e-3,
        )
        for scale, shift in ((5e3, 5000), (2e4, 10**4), (2e4, 3))
    },
    **{
        f"batch {s} {q} {neighbours}": (poisson(s, q, neighbours), of_a_batch(s, q, neighbours), [0.05, 0.3, 1.0], 5e-3)
        for s, q in ((1.0, 0.05), (0.6, 0.3), (3.0, 0.7))
        for neighbours in ("replace", "add_remove")
    },
    **{
        f"range {eta}": (BoundedRangeEvent(eta=eta), of_a_range(eta), [0.2 * eta, 0.7 * eta, 0.95 * eta], 1e-2)
        for eta in (0.5, 4.0)
    },
}


@pytest.mark.parametrize("name", TRUTH)
def test_totals_are_those_of_the_distributions(name):
    event, truth, epsilons, within = TRUTH[name]
    oracle.assert_upper_bound(total_delta, event, truth, epsilons, within=within)


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.5, 1.0])
def test_bounded_ranges_compose_whatever_their_two_points(shift):
    """Uses with the same or alternating worst points; binomial sums are the truth."""
    eta, count = 0.4, 6
    for alternate in (False, True):
        p, other = np.ones(1), np.ones(1)
        for use in range(count):
            t = min(max(eta * (1 - shift if alternate and use % 2 else shift), 1e-9), eta - 1e-9)
            q = np.array([-math.expm1(t - eta), math.expm1(t)]) / (math.exp(t) - math.exp(t - eta))
            other = np.outer(other, q).ravel()
            p = np.outer(p, q * np.exp([t, t - eta])).ravel()
        for epsilon in (0.1, 0.2, 0.8, 1.5):
            exact = float(np.maximum(p - math.exp(epsilon) * other, 0).sum())
            assert exact <= total_delta(times(BoundedRangeEvent(eta=eta), count), epsilon)


@pytest.mark.parametrize("neighbours, sensitivity", [("replace", 2), ("add_remove", 1)])
@pytest.mark.parametrize("count", [1, 5000])
def test_a_batch_of_all_rows_is_plain_gaussian_noise(neighbours, sensitivity, count):
    """The silent factor 2: noise over clip norm is half of it over sensitivity under replace."""
    step = poisson(10.0 * count**0.5, 1.0, neighbours)
    plain = GaussianEvent(noise_multiplier=10 * count**0.5 / sensitivity)
    fixed = [without_replacement(10.0 * count**0.5, 7, 7)] if neighbours == "replace" else []
    for accountant in (pld, rdp, gdp, zcdp):
        expected = accountant.epsilon_at(times(plain, count), 1e-6)
        for whole in (step, *fixed):
            assert accountant.epsilon_at(times(whole, count), 1e-6) == pytest.approx(expected, rel=1e-12)
        nearly = accountant.epsilon_at(times(poisson(step.noise_multiplier, 1 - 1e-9, neighbours), count), 1e-6)
        assert nearly == pytest.approx(expected, rel=1e-3) or (accountant is gdp and nearly == math.inf)
    assert noise_on_a_shift(10 / sensitivity, pld.epsilon_at(times(step, count), 1e-6)) == pytest.approx(1e-6, rel=1e-2)


@pytest.mark.parametrize(
    "event",
    [
        ZCDPEvent(rho=0.1),
        together(pure(0.1), ZCDPEvent(rho=1e-9)),
        times(pure(0.1), 10**7),
        pure(1e4),
        without_replacement(4.0, 10, 1000),
        poisson(0.05, 0.01),
        together(*(BoundedRangeEvent(eta=0.01 + k / 1e4) for k in range(100))),
    ],
    ids=repr,
)
def test_what_has_no_distribution_is_infinite_not_free(event):
    assert pld.epsilon_at(event, 1e-6) == math.inf
    assert deltas.pld(event, 1.0) == 1.0 and pld.deltas_at(event, [0.1, 1.0]) == [1.0, 1.0]


def test_without_shifts_only_what_is_known_counts():
    unknown = DiscreteLaplaceEvent(scale=8.0, sensitivity=2)
    assert deltas.pld(unknown, 0.1) == deltas.pld(pure(0.25), 0.1)
    total = total_epsilon(DiscreteGaussianEvent(scale=8.0, l2_squared=2), 1e-6)
    assert (total.accountant, total.epsilon) == ("zcdp", zcdp.epsilon_of_rho(2 / 128, 1e-6))
    assert total_epsilon(gaussian(8.0, 1, 1), 1e-6).epsilon < total.epsilon


@pytest.mark.parametrize("epsilon", [0.1, 3.0])
@pytest.mark.parametrize("shifts", [(1,), (1, 1), (3,)], ids=repr)
def test_the_least_scale_is_the_exact_sums(epsilon, shifts):
    found = calibrated(gaussian(1.0, *shifts), epsilon, 1e-6)
    assert found.scale < 0.96 * math.sqrt(sum(shift**2 for shift in shifts) / (2 * rho_budget(epsilon, 1e-6)))

    def truth(scale):
        if len(shifts) == 1:
            return in_many_digits(scale, shifts[0], epsilon)
        return oracle.gaussian_by_convolution(scale, 1, 2, epsilon)

    assert truth(found.scale) <= 1e-6 < truth(found.scale * (1 - 1e-3))


@pytest.mark.parametrize("shifts", [(1,), (8,), (3, 2, 1)], ids=repr)
def test_nearness_to_normal_noise_is_paid_for_where_it_matters(shifts, monkeypatch):
    monkeypatch.setattr(discrete_gaussian, "MOST_SCALE", 5.0)
    (pair,) = pld.pairs_of({gaussian(6.0, *shifts): 1}).continuous
    assert isinstance(pair, Shift) and pair.excess > 0.09 * len(shifts)
    for epsilon in (0.1, 0.5, 2.0, 4.0):
        truth = oracle.gaussian_by_definition([(6.0, shift) for shift in shifts], epsilon)
        assert truth <= deltas.pld(gaussian(6.0, *shifts), epsilon)


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
    for epsilon in (0.1, 1.0, 3.0):
        one, same = vector(5000.0, 4321, 1), gaussian(5000.0, 4321)
        assert total_delta(one, epsilon) == pytest.approx(total_delta(same, epsilon), rel=1e-9)
    assert total_epsilon(vector(100.0, 30, 4), 1e-6).accountant in ("zcdp", "rdp")  # too little noise for the norm
