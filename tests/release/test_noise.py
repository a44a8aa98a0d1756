import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.accounting import DiscreteGaussianEvent, calibrated
from pymc_dp.accounting.noise_kinds import laplace_scale
from pymc_dp.kernel.noise import GAUSSIAN, LAPLACE, NOISES, mechanism

# OpenDP's noise cannot be seeded: a test of its distribution must fail by chance less than once in a million runs.
CHANCE = 1e-6
DRAWS, SCALES, WIDEST = 20_000, (0.5, 1.0, 3.7), 1e12

each_noise = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)


def chi_square_p(draws, scale, noise=LAPLACE):
    """Probability of draws this far from discrete noise of a scale, tails pooled."""
    if noise is LAPLACE:
        edge = int(5 * scale) + 1
        support = np.arange(-edge, edge + 1)
        p = np.tanh(1 / (2 * scale)) * np.exp(-np.abs(support) / scale)
        p[[0, -1]] = np.exp(-edge / scale) / (1 + np.exp(-1 / scale))
    else:
        edge = int(2.8 * scale) + 1
        support = np.arange(-60 * edge, 60 * edge + 1)
        p = np.bincount(np.clip(support, -edge, edge) + edge, weights=np.exp(-((support / scale) ** 2) / 2))
    observed = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=len(p))
    return stats.chisquare(observed, p / p.sum() * len(draws)).pvalue


@pytest.mark.few(16)
@each_noise
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("source", ["secure", "seeded", "simulated"])
def test_noise_has_its_distribution(noise, scale, source, seed):
    zeros = np.zeros(DRAWS, dtype=np.int64)
    if source == "secure":
        draws = noise.add(zeros, scale)
    elif source == "seeded":
        with dp.testing.insecure_randomness(seed):
            draws = noise.add(zeros, scale)
    else:
        draws = noise.simulated(np.random.default_rng(seed), scale, zeros.shape)
    assert draws.dtype == np.int64
    assert chi_square_p(draws, scale, noise) > CHANCE
    for factor in (1.2, 1 / 1.2, 1 / math.sqrt(2)):
        assert chi_square_p(draws, scale * factor, noise) < CHANCE


@each_noise
@pytest.mark.parametrize("scale", [1023.0, 1025.0, 2.25 * 2.0**30, WIDEST])
@pytest.mark.parametrize("secure", [True, False])
def test_noise_of_a_fine_grid_has_the_scale_asked_for(noise, scale, secure, seed):
    """On many steps the noise is a continuous variable: Kolmogorov-Smirnov."""
    centre, continuous = np.full(5000, 2**40, dtype=np.int64), stats.laplace() if noise is LAPLACE else stats.norm()
    if secure:
        draws = noise.add(centre, scale) - 2**40
    else:
        with dp.testing.insecure_randomness(seed):
            draws = noise.add(centre, scale) - 2**40
    assert stats.kstest(draws / scale, continuous.cdf).pvalue > CHANCE
    assert stats.kstest(draws / scale * math.sqrt(2), continuous.cdf).pvalue < CHANCE
    assert scale < 1e6 or len(np.unique(draws)) > 4980


@each_noise
def test_entries_get_noise_of_their_own_and_keep_their_place(noise):
    sums = np.arange(12, dtype=np.int64).reshape(3, 4) * 10**9
    before = sums.copy()
    noised = noise.add(sums, 2.0)
    assert noised.shape == (3, 4)
    assert np.abs(noised - sums).max() < 2.0 * (60 if noise is LAPLACE else 12)
    assert (sums == before).all() and not np.shares_memory(noised, sums)
    many = noise.add(np.zeros((5000, 2), dtype=np.int64), 2.0)
    assert abs(np.corrcoef(many.T)[0, 1]) < 5 / np.sqrt(5000)


@each_noise
def test_sums_at_the_ends_of_int64_saturate(noise):
    ends = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min])
    for _ in range(20):
        assert (np.abs(noise.add(ends, 1000.0).astype(float)) > 9.2e18).all()


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 9 * 2**28 + 1, 2**31, 2**32])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.3, 1 / 3, 1.0, 2.9, 10.0])
def test_calibrated_noise_never_overspends_and_wastes_nothing(sensitivity, epsilon):
    scale = laplace_scale(sensitivity, epsilon)
    assert mechanism(LAPLACE, scale).map(sensitivity) <= epsilon
    assert sensitivity / Fraction(scale) <= Fraction(epsilon)
    assert sensitivity / Fraction(scale) <= Fraction(repr(epsilon))
    assert scale <= sensitivity / epsilon * (1 + 1e-14)


def test_an_epsilon_for_which_no_noise_is_enough_is_refused():
    with pytest.raises(dp.errors.ArgumentError, match="too small for sensitivity 1"):
        laplace_scale(1, 5e-324)


def rho_by_opendp(scale, l2_squared):
    """OpenDP's own upper bound of ρ, at the least float whose square is not below that of the sensitivity."""
    root = math.sqrt(l2_squared)
    while Fraction(root) ** 2 < l2_squared:
        root = math.nextafter(root, math.inf)
    return mechanism(GAUSSIAN, scale).map(root)


@pytest.mark.parametrize("l2_squared", [1, 2, 3, 9, 2**31 + 1, 2**62, 2**61, 10**30 + 7])
@pytest.mark.parametrize("scale", [0.1, 1 / 3, 1.0, 4.23, 1e6 + 0.1, 1e12])
def test_the_rho_that_is_charged_is_that_of_opendp(l2_squared, scale):
    """An exact fraction, which their floats round up."""
    rho, other = DiscreteGaussianEvent(scale=scale, l2_squared=l2_squared).rho, rho_by_opendp(scale, l2_squared)
    assert rho == Fraction(l2_squared) / (2 * Fraction(scale) ** 2)
    assert rho <= Fraction(other) <= rho * (1 + Fraction(1, 10**14))


def test_calibrated_gaussian_noise_has_the_rho_that_opendp_finds():
    event = calibrated(DiscreteGaussianEvent(scale=1.0, l2_squared=2), 1.0, 1e-6)
    assert rho_by_opendp(event.scale, event.l2_squared) == pytest.approx(float(event.rho), rel=1e-14)
    assert rho_by_opendp(event.scale / math.sqrt(2), 2) == pytest.approx(2 * float(event.rho), rel=1e-14)


@each_noise
def test_seeded_noise_repeats_and_secure_noise_does_not(noise):
    zeros = np.zeros(200, dtype=np.int64)
    draws = []
    for seed in (1, 1, 2):
        with dp.testing.insecure_randomness(seed):
            draws.append(noise.add(zeros, 5.0).tolist())
    assert draws[0] == draws[1] != draws[2]
    assert noise.add(zeros, 5.0).tolist() != noise.add(zeros, 5.0).tolist()


@each_noise
@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_noise_that_cannot_be_drawn_is_refused_with_a_way_out(noise, scale):
    zeros = np.zeros(1, dtype=np.int64)
    with pytest.raises(dp.errors.PrivacyError, match="must be finite and > 0, got .*; choose a larger epsilon"):
        noise.add(zeros, scale)
    with dp.testing.without_noise(), pytest.raises(dp.errors.PrivacyError, match="must be finite and > 0"):
        noise.add(zeros, scale)
    with pytest.raises(dp.errors.PrivacyError, match=f"OpenDP refuses {noise.name}"):
        mechanism(noise, -1.0)
