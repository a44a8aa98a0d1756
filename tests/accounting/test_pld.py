import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from pymc_dp.accounting import (
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    GDPEvent,
    ZCDPEvent,
    gdp,
    pairs,
    pld,
    pure,
    rdp,
    zcdp,
)
from pymc_dp.accounting import (
    pld as loss_grid,
)
from pymc_dp.accounting.events import subsampled_gaussian
from pymc_dp.accounting.pairs import LaplacePair
from tests.accounting import oracle
from tests.accounting.contract import EVENTS, AccountantContract
from tests.accounting.oracle import laplace, poisson, times, without_replacement
from tests.accounting.oracle import pure as pure_event


@pytest.fixture(autouse=True)
def fresh_cache():
    pld.compose.cache_clear()
    yield
    pld.compose.cache_clear()


class TestPLD(AccountantContract):
    within = 0.01

    def epsilon_at(self, event, delta):
        return pld.epsilon_at(event, delta)

    def delta_at(self, event, epsilon):
        return pld.delta_at(event, epsilon)


def test_one_pure_loss_is_randomised_response():
    for epsilon in (0.0, 0.5, 0.999):
        exact = pure.delta_at(pure_event(1.0), epsilon)
        assert exact <= pld.delta_at(pure_event(1.0), epsilon) <= exact * (1 + 2e-9) + 1e-12
    assert pld.delta_at(laplace(1.0, 1), 0.5) == pld.delta_at(pure_event(1.0), 0.5)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0, 2.8])
def test_different_scales_compose(epsilon):
    # incommensurable losses: the grid cannot hold them, and rounding must stay an upper bound
    parts = [(1.3, 2), (math.pi / 2, 1), (0.9, 1)]
    event = ComposedEvent(events=tuple(laplace(scale, shift) for scale, shift in parts))
    oracle.assert_upper_bound(pld.delta_at, event, lambda at: oracle.by_definition(parts, at), [epsilon], within=1e-3)


def test_pure_losses_and_noise_compose():
    # a pure loss e behaves as noise of scale 1 / e against a shift of 1
    event = ComposedEvent(events=(pure_event(0.7), laplace(1.3, 2), pure_event(0.7)))
    parts = [(1 / 0.7, 1), (1 / 0.7, 1), (1.3, 2)]
    oracle.assert_upper_bound(
        pld.delta_at, event, lambda at: oracle.by_definition(parts, at), [0.0, 0.5, 1.5, 2.5], within=1e-3
    )


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("delta", [1e-8, 1e-4])
def test_never_above_the_pure_loss(event, count, delta):
    epsilon = pld.epsilon_at(times(event, count), delta)
    assert epsilon <= pure.pure_epsilon(times(event, count)) or epsilon == math.inf


@pytest.mark.parametrize("epsilon, count", [(0.1, 30), (0.5, 8), (2.0, 5), (0.01, 400)])
def test_equal_pure_losses_compose_as_well_as_can_be(epsilon, count):
    # Kairouz, Oh, Viswanath 2017, theorem 3.3, in 60 digits
    event = times(pure_event(epsilon), count)
    with mpmath.workdps(60):
        e = mpmath.mpf(repr(epsilon))
        for i in range(0, count // 2 + 1, max(1, count // 10)):
            at = (count - 2 * i) * e
            terms = (
                mpmath.binomial(count, j) * (mpmath.e ** ((count - j) * e) - mpmath.e ** (at + j * e)) for j in range(i)
            )
            exact = mpmath.fsum(terms) / (1 + mpmath.e**e) ** count
            claimed = pld.delta_at(event, float(at))
            assert exact * (1 - mpmath.mpf(10) ** -12) <= claimed <= exact * (1 + mpmath.mpf(10) ** -6) + 1e-11


@pytest.mark.parametrize("mu", [0.01, 0.4, 3.0])
def test_shifted_normal_distributions_have_the_delta_of_their_curve(mu):
    for event in (GDPEvent(mu=mu), times(GDPEvent(mu=mu / 2), 4), times(GaussianEvent(noise_multiplier=4 / mu), 16)):
        for share in (0.0, 0.5, 2.0, 4.0):
            exact = gdp.delta_of_mu(mu, share * mu)
            assert exact * (1 - 1e-9) <= pld.delta_at(event, share * mu) <= exact * (1 + 1e-3) + 1e-9


def test_mechanisms_of_known_mu_compose_with_the_rest():
    # with randomised response, by summing the curve over its two answers
    mu, loss = 0.8, 0.5
    p = 1 / (1 + math.exp(-loss))

    def exact(epsilon):
        return sum(
            mass * (ndtr(-at / mu + mu / 2) - math.exp(at) * ndtr(-at / mu - mu / 2))
            for mass, at in ((p, epsilon - loss), (1 - p, epsilon + loss))
        )

    event = ComposedEvent(events=(GDPEvent(mu=0.48), pure_event(loss), GaussianEvent(noise_multiplier=1 / 0.64)))
    oracle.assert_upper_bound(pld.delta_at, event, exact, [0.0, 0.5, 1.5, 3.0], within=1e-3)


def scale_needed(epsilon_at, count):
    low, high = 1.0, 10.0 * count
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if epsilon_at(times(laplace(middle, 1), count)) <= 1 else (middle, high)
    return high


def test_two_hundred_releases_need_the_scales_of_theory_9():
    best = scale_needed(lambda event: pld.epsilon_at(event, 1e-5), 200)
    assert scale_needed(pure.pure_epsilon, 200) / best == pytest.approx(3.8, abs=0.05)
    assert scale_needed(lambda event: zcdp.epsilon_at(event, 1e-5), 200) / best == pytest.approx(1.09, abs=0.005)
    # the scale itself, against the truth
    assert oracle.by_convolution(best, 1, 200, 1.0) <= 1e-5
    assert oracle.by_convolution(best * 0.999, 1, 200, 1.0) > 1e-5


@pytest.mark.parametrize("count", [3_000, 30_000])
@pytest.mark.parametrize("other", [(), (laplace(333.3, 1),)], ids=["one scale", "two scales"])
def test_many_steps_stay_better_than_zcdp(count, other):
    # a grid of 1e-3 over 3e4 steps is worse than Renyi accounting
    event = ComposedEvent(events=(times(laplace(1000.0, 1), count), *other))
    assert pld.epsilon_at(event, 1e-5) < zcdp.epsilon_at(event, 1e-5)


@pytest.mark.slow
def test_transform_errors_are_far_below_the_margin():
    scale, count = 50.0, 2000
    event = times(laplace(scale, 2), count)
    composed = pld.compose(event)
    for epsilon in np.linspace(0, 25, 26):
        exact = oracle.by_convolution(scale, 2, count, epsilon)
        assert abs(composed.distribution.get_delta_for_epsilon(float(epsilon)) - exact) < composed.margin * (
            0.01 + 0.2 * exact
        )


@pytest.mark.parametrize(
    "pair", [LaplacePair(Fraction(1, 3), 1), LaplacePair(Fraction(2, 7), 9), LaplacePair(Fraction(1, 100), 500)]
)
@pytest.mark.parametrize("interval", [Fraction(1, 10**3), Fraction(1, 7), Fraction(2)])
def test_the_grid_keeps_both_masses(pair, interval):
    masses = loss_grid.laplace_on_grid(pair, interval)
    assert sum(masses.values()) == pytest.approx(1, abs=1e-12)
    # the other distribution: never more than 1, and next to nothing lost
    other = sum(mass * math.exp(-index * interval) for index, mass in masses.items())
    assert 1 - 1e-7 < other <= 1 + 1e-12


@pytest.mark.parametrize("step", [2, 3, 5])
def test_coarsened_noise_dominates(step, monkeypatch):
    monkeypatch.setattr(pairs, "_MOST_ATOMS", 60 // step)
    pair = LaplacePair(Fraction(1, 25), 59).coarse()
    assert pair == LaplacePair(Fraction(step, 25), -(-59 // step))
    event = laplace(25.0, 59)
    for epsilon in (0.0, 0.3, 1.0, 2.0, 2.35):
        exact = oracle.by_definition([(25.0, 59)], epsilon)
        assert exact <= pld.delta_at(event, epsilon) <= exact + 0.03 * step


def test_huge_shifts_are_affordable_and_tight():
    small, huge = laplace(2.0**12, 2**12), laplace(2.0**40, 2**40)
    for epsilon in (0.1, 0.5, 0.9):
        assert pld.delta_at(huge, epsilon) == pytest.approx(pld.delta_at(small, epsilon), rel=1e-3)
    assert pld.epsilon_at(times(laplace(2.0**40, 2**40 + 12345), 10), 1e-6) < 10


def test_agrees_with_dp_accounting_on_a_scalar():
    # its parameter is 1 / scale; a table that moves by (1, 1) is two of its mechanisms, not one of sensitivity 2
    from dp_accounting.pld import privacy_loss_distribution as other

    single = other.from_discrete_laplace_mechanism(
        1 / 8.0, 3, use_connect_dots=True, value_discretization_interval=1e-4
    )
    table = other.from_discrete_laplace_mechanism(1 / 8.0, 1, value_discretization_interval=1 / 8.0).self_compose(2)
    for epsilon in (0.0, 0.1, 0.2):
        assert pld.delta_at(laplace(8.0, 3), epsilon) == pytest.approx(single.get_delta_for_epsilon(epsilon), rel=1e-4)
        assert pld.delta_at(laplace(8.0, 1, 1), epsilon) == pytest.approx(
            table.get_delta_for_epsilon(epsilon), rel=1e-4
        )


def test_agrees_with_dp_accounting_on_pure_losses():
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as other

    theirs = other.from_privacy_parameters(common.DifferentialPrivacyParameters(0.1, 0.0), 1e-5).self_compose(100)
    ours = pld.epsilon_at(times(pure_event(0.1), 100), 1e-6)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=1e-3)
    assert ours <= theirs.get_epsilon_for_delta(1e-6) * (1 + 1e-6)


@pytest.mark.parametrize(
    "event",
    [
        ZCDPEvent(rho=0.1),
        ComposedEvent(events=(pure_event(0.1), ZCDPEvent(rho=1e-9))),
        times(pure_event(0.1), 10**7),
        pure_event(1e4),
        without_replacement(4.0, 10, 1000),
        poisson(0.05, 0.01),
        ComposedEvent(events=tuple(BoundedRangeEvent(eta=0.01 + k / 1e4) for k in range(100))),
    ],
    ids=repr,
)
def test_what_it_cannot_account_for_is_infinite_not_free(event):
    assert pld.epsilon_at(event, 1e-6) == math.inf
    assert pld.delta_at(event, 1.0) == 1.0


@pytest.mark.parametrize("event", [poisson(1.0, 0.05, "add_remove"), times(laplace(20.0, 1), 100), GDPEvent(mu=3.0)])
def test_many_deltas_at_once_are_the_single_ones(event):
    epsilons = [0.0, 0.01, 0.3, 1.0, 5.0]
    for at, together in zip(epsilons, pld.deltas_at(event, epsilons), strict=True):
        alone = pld.delta_at(event, at)
        assert alone <= together <= alone * (1 + 2e-6)
    assert pld.deltas_at(ZCDPEvent(rho=0.1), epsilons) == [1.0] * 5


def test_deltas_below_its_arithmetic_are_left_to_others():
    event = times(laplace(20.0, 1), 100)
    assert pld.epsilon_at(event, 1e-13) == pld.epsilon_at(event, 0.0) == math.inf


def test_without_shifts_only_the_pure_loss_counts():
    assert pld.delta_at(DiscreteLaplaceEvent(scale=8.0, sensitivity=2), 0.1) == pld.delta_at(pure_event(0.25), 0.1)


PAIRS = (DiscreteLaplaceEvent, "loss_pairs")
MUTANTS = {
    "count dropped": (pld, "leaves", lambda true: lambda event: dict.fromkeys(true(event), 1)),
    "half the shifts": (*PAIRS, lambda true: lambda leaf: true(leaf)[: (len(true(leaf)) + 1) // 2]),
    "scale doubled": (*PAIRS, lambda true: lambda leaf: tuple(LaplacePair(p.unit / 2, p.shift) for p in true(leaf))),
    "shift one less": (*PAIRS, lambda true: lambda leaf: tuple(LaplacePair(p.unit, p.shift - 1) for p in true(leaf))),
    "losses mirrored": (LaplacePair, "atoms", lambda true: lambda pair: (-true(pair)[0], true(pair)[1])),
    "rounded down": (loss_grid, "laplace_on_grid", lambda true: lambda *a: {k - 1: m for k, m in true(*a).items()}),
}


@pytest.mark.parametrize("name", [None, *MUTANTS])
def test_a_wrong_accountant_fails_the_oracle(name, monkeypatch):
    event = times(laplace(1.7, 2, 2), 2)

    def check():
        truth = lambda epsilon: oracle.by_convolution(1.7, 2, 4, epsilon)  # noqa: E731
        oracle.assert_upper_bound(pld.delta_at, event, truth, [0.1, 1.0, 2.0, 3.0])

    if name is None:
        return check()
    where, function, mutate = MUTANTS[name]
    monkeypatch.setattr(where, function, mutate(getattr(where, function)))
    with pytest.raises(AssertionError, match="the truth is"):
        check()


@pytest.mark.parametrize("neighbours, sensitivity", [("replace", 2), ("add_remove", 1)])
@pytest.mark.parametrize("count", [1, 30, 5000])
def test_a_batch_of_all_rows_is_plain_gaussian_noise(neighbours, sensitivity, count):
    # the silent factor 2: noise over clip norm is half of it over sensitivity under replace
    step, plain = (
        poisson(10.0 * count**0.5, 1.0, neighbours),
        GaussianEvent(noise_multiplier=10 * count**0.5 / sensitivity),
    )
    for accountant in (pld, rdp, gdp, zcdp):
        whole = accountant.epsilon_at(times(step, count), 1e-6)
        assert whole == pytest.approx(accountant.epsilon_at(times(plain, count), 1e-6), rel=1e-12)
        nearly = accountant.epsilon_at(times(poisson(step.noise_multiplier, 1 - 1e-9, neighbours), count), 1e-6)
        assert nearly == pytest.approx(whole, rel=1e-3) or (accountant is gdp and nearly == math.inf)
    fixed = without_replacement(10.0 * count**0.5, 7, 7)
    if neighbours == "replace":
        for accountant in (pld, rdp, gdp, zcdp):
            expected = accountant.epsilon_at(times(plain, count), 1e-6)
            assert accountant.epsilon_at(times(fixed, count), 1e-6) == pytest.approx(expected, rel=1e-12)
    # and by the formula itself
    mu = sensitivity / 10
    epsilon = pld.epsilon_at(times(step, count), 1e-6)
    assert ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2) == pytest.approx(
        1e-6, rel=1e-2
    )


def hockey_stick(s, q, centre, epsilon, swapped):
    """Of one Poisson batch against its neighbour at `centre` (0 for a row that is not there), by quadrature."""
    normal = lambda x, at: math.exp(-(((x - at) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))  # noqa: E731
    p = lambda x: (1 - q) * normal(x, 0) + q * normal(x, 1)  # noqa: E731
    other = lambda x: (1 - q) * normal(x, 0) + q * normal(x, centre)  # noqa: E731
    p, other = (other, p) if swapped else (p, other)
    grid = np.linspace(-12 * s - 1, 12 * s + 1, 2001)
    signs = np.sign([p(x) - math.exp(epsilon) * other(x) for x in grid])
    points = grid[1:][signs[1:] != signs[:-1]]
    integrand = lambda x: max(0.0, p(x) - math.exp(epsilon) * other(x))  # noqa: E731
    return quad(integrand, grid[0], grid[-1], points=points if len(points) else None, limit=1000, epsabs=1e-13)[0]


@pytest.mark.parametrize("s, q", [(1.0, 0.05), (0.6, 0.3), (3.0, 0.7)])
@pytest.mark.parametrize("neighbours, centre", [("replace", -1.0), ("add_remove", 0.0)])
def test_one_batch_has_the_divergence_of_its_pair(s, q, neighbours, centre):
    event = poisson(s, q, neighbours)
    for epsilon in (0.0, 0.05, 0.3, 1.0):
        exact = max(hockey_stick(s, q, centre, epsilon, swapped) for swapped in (False, True))
        assert exact * (1 - 1e-7) - 1e-12 <= pld.delta_at(event, epsilon) <= exact * (1 + 5e-3) + 1e-12


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("s, q, count", [(1.0, 0.01, 100), (7.5, 180 / 32561, 32561), (2.0, 0.3, 7)])
def test_agrees_with_dp_accounting_on_batches(neighbours, s, q, count):
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as other

    relation = NeighboringRelation.REPLACE_ONE if neighbours == "replace" else NeighboringRelation.ADD_OR_REMOVE_ONE
    theirs = other.from_gaussian_mechanism(
        s, sampling_prob=q, value_discretization_interval=1e-4, neighboring_relation=relation
    ).self_compose(count)
    ours = pld.epsilon_at(times(poisson(s, q, neighbours), count), 1e-5)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-5), rel=3e-3)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("count", [3_000, 30_000])
def test_many_batches_stay_better_than_renyi(neighbours, count):
    event = times(poisson(6.0, 0.005, neighbours), count)
    assert pld.epsilon_at(event, 1e-5) < rdp.epsilon_at(event, 1e-5)


@pytest.mark.parametrize("eta", [0.01, 0.5, 4.0])
def test_one_bounded_range_has_the_divergence_of_its_worst_two_points(eta):
    for share in (0.0, 0.2, 0.7, 0.95, 1.0):
        epsilon = share * eta
        t = np.linspace(max(epsilon, 1e-9), eta - 1e-12, 4001)  # losses t and t - eta
        q = -np.expm1(t - eta) / (np.exp(t) * -math.expm1(-eta))
        exact = float(np.max(q * (np.exp(t) - math.exp(epsilon))))
        assert exact - 1e-12 <= pld.delta_at(BoundedRangeEvent(eta=eta), epsilon) <= exact * (1 + 1e-3) + 2e-5


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.5, 1.0])
def test_bounded_ranges_compose_whatever_their_two_points(shift):
    # uses with the same or alternating worst points; binomial sums are the truth
    eta, count = 0.4, 6
    for alternate in (False, True):
        p, other = np.ones(1), np.ones(1)
        for use in range(count):
            t = eta * (1 - shift if alternate and use % 2 else shift)
            t = min(max(t, 1e-9), eta - 1e-9)
            q = np.array([-math.expm1(t - eta), math.expm1(t)]) / (math.exp(t) - math.exp(t - eta))
            other = np.outer(other, q).ravel()
            p = np.outer(p, q * np.exp([t, t - eta])).ravel()
        for epsilon in (0.0, 0.2, 0.8, 1.5):
            exact = float(np.maximum(p - math.exp(epsilon) * other, 0).sum())
            assert exact <= pld.delta_at(times(BoundedRangeEvent(eta=eta), count), epsilon)


def test_continuous_and_discrete_losses_compose():
    # laplace(1.7, 2) and Gaussian noise, by summing the Gaussian's curve over the atoms of the other
    mu, places = 0.8, np.arange(-80, 83)
    p, q = oracle.noise(1.7, places), oracle.noise(1.7, places - 2)

    def exact(epsilon):
        moved = epsilon - np.log(p / q)
        curve = ndtr(-moved / mu + mu / 2) - np.exp(moved) * ndtr(-moved / mu - mu / 2)
        return float(p @ curve)

    event = ComposedEvent(events=(laplace(1.7, 2), GaussianEvent(noise_multiplier=1 / mu)))
    oracle.assert_upper_bound(pld.delta_at, event, exact, [0.0, 0.5, 1.5, 3.0], within=1e-3)


def test_a_schedule_of_noises_costs_more_than_itself_but_little():
    steps = [3.0 + place / 20 for place in range(64)]
    event = ComposedEvent(events=tuple(times(poisson(noise, 0.02), 10) for noise in steps))
    alone = [ComposedEvent(events=event.events[at : at + 32]) for at in (0, 32)]
    order = 8.0
    exact = sum(rdp.divergence(half, order) for half in alone)
    assert exact <= rdp.divergence(event, order) <= exact * 1.08
    bounds = [pld.epsilon_at(ComposedEvent(events=(times(poisson(noise, 0.02), 640),)), 1e-6) for noise in (3.0, 6.2)]
    assert bounds[1] < pld.epsilon_at(event, 1e-6) < bounds[0]


BATCH = (subsampled_gaussian, "Batch")
CONTINUOUS_MUTANTS = {
    "count dropped": (pld, "leaves", lambda true: lambda event: dict.fromkeys(true(event), 1)),
    "noise over sensitivity": (*BATCH, lambda true: lambda s, q, opposite: true(2 * s, q, opposite)),
    "add_remove's pair for replace": (*BATCH, lambda true: lambda s, q, opposite: true(s, q, False)),
    "one order of the pair": (loss_grid, "distribution", lambda true: lambda *a: type(true(*a))(true(*a)._pmf_add)),
    "rounded down": (loss_grid, "cells_on_grid", lambda true: lambda *a: (np.append(true(*a)[0][1:], 0), 0.0)),
}


@pytest.mark.parametrize("name", [None, *CONTINUOUS_MUTANTS])
def test_a_wrong_accountant_of_batches_fails_the_oracle(name, monkeypatch):
    # two batches of all rows but for a hair, and one half of them
    def check():
        truth = gdp.delta_of_mu(2 / 3 * 2**0.5, 1.0)
        assert pld.delta_at(times(poisson(3.0, 1 - 1e-12), 2), 1.0) >= truth * (1 - 1e-6)
        exact = max(hockey_stick(1.0, 0.5, 0.0, 0.5, swapped) for swapped in (False, True))
        assert pld.delta_at(poisson(1.0, 0.5, "add_remove"), 0.5) >= exact * (1 - 1e-6)

    if name is None:
        return check()
    where, function, mutate = CONTINUOUS_MUTANTS[name]
    monkeypatch.setattr(where, function, mutate(getattr(where, function)))
    with pytest.raises(AssertionError):
        check()
