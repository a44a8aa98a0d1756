import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from pymc_dp.accounting import DiscreteGaussianEvent, calibrated
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.release.gaussian import add_noise, discrete_gaussian, privacy_map
from pymc_dp.testing import insecure_randomness, without_noise

# OpenDP's noise cannot be seeded: a test of its distribution must fail by chance less than once in a million runs.
CHANCE = 1e-6


def chi_square_p(draws, scale):
    """Probability of draws this far from discrete Gaussian of a scale, tails pooled."""
    edge = int(2.8 * scale) + 1
    support = np.arange(-60 * edge, 60 * edge + 1)
    p = np.exp(-((support / scale) ** 2) / 2)
    pooled = np.bincount(np.clip(support, -edge, edge) + edge, weights=p)
    observed = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=len(pooled))
    return stats.chisquare(observed, pooled / pooled.sum() * len(draws)).pvalue


@pytest.mark.few(8)
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.7])
@pytest.mark.parametrize("source", ["secure", "seeded", "simulated"])
def test_noise_is_discrete_gaussian(scale, source, seed):
    zeros = np.zeros(20_000, dtype=np.int64)
    if source == "secure":
        draws = add_noise(zeros, scale)
    elif source == "seeded":
        with insecure_randomness(seed):
            draws = add_noise(zeros, scale)
    else:
        draws = discrete_gaussian(np.random.default_rng(seed), scale, zeros.shape)
    assert draws.dtype == np.int64
    assert chi_square_p(draws, scale) > CHANCE
    assert chi_square_p(draws, scale * 1.2) < CHANCE
    assert chi_square_p(draws, scale / 1.2) < CHANCE
    assert chi_square_p(draws, scale / math.sqrt(2)) < CHANCE


@pytest.mark.parametrize("scale", [1023.0, 1025.0, 2.25 * 2.0**30, 1e12])
@pytest.mark.parametrize("secure", [True, False])
def test_noise_of_a_fine_grid_has_the_scale_asked_for(scale, secure, seed):
    """On many steps the noise is a normal variable: Kolmogorov-Smirnov."""
    centre = np.full(5000, 2**40, dtype=np.int64)
    if secure:
        draws = add_noise(centre, scale) - 2**40
    else:
        with insecure_randomness(seed):
            draws = add_noise(centre, scale) - 2**40
    assert stats.kstest(draws / scale, stats.norm().cdf).pvalue > CHANCE
    assert stats.kstest(draws / scale * math.sqrt(2), stats.norm().cdf).pvalue < CHANCE
    assert scale < 1e6 or len(np.unique(draws)) > 4980


def test_simulated_tables_hold_all_but_nothing_of_the_noise(seed):
    rng = np.random.default_rng(seed)
    assert not discrete_gaussian(rng, 0.01, (1000,)).any()
    draws = discrete_gaussian(rng, 0.3, (200_000,))
    assert set(np.unique(draws)) <= {-2, -1, 0, 1, 2}
    share = math.exp(-1 / (2 * 0.09))
    assert np.mean(np.abs(draws) == 1) == pytest.approx(2 * share / (1 + 2 * share), abs=5 * (0.008 / 200_000) ** 0.5)


def test_entries_get_noise_of_their_own_and_keep_their_place():
    sums = np.arange(12, dtype=np.int64).reshape(3, 4) * 10**9
    before = sums.copy()
    noised = add_noise(sums, 2.0)
    assert noised.shape == (3, 4)
    assert np.abs(noised - sums).max() < 2.0 * 12
    assert (sums == before).all() and not np.shares_memory(noised, sums)
    many = add_noise(np.zeros((5000, 2), dtype=np.int64), 2.0)
    assert abs(np.corrcoef(many.T)[0, 1]) < 5 / np.sqrt(5000)


def test_views_of_tables_are_read_in_their_order():
    table = np.arange(24, dtype=np.int64).reshape(4, 6) * 10**6
    for view in (table.T, table[::2, ::-3], table[:, 1]):
        assert np.abs(add_noise(view, 1.0) - view).max() < 12
    assert add_noise(np.zeros((0, 3), dtype=np.int64), 1.0).shape == (0, 3)


def test_sums_at_the_ends_of_int64_saturate():
    ends = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min])
    for _ in range(20):
        assert (np.abs(add_noise(ends, 1000.0).astype(float)) > 9.2e18).all()


@pytest.mark.parametrize("l2_squared", [1, 2, 3, 9, 2**31 + 1, 2**62, 2**61, 10**30 + 7])
@pytest.mark.parametrize("scale", [0.1, 1 / 3, 1.0, 4.23, 1e6 + 0.1, 1e12])
def test_the_map_is_rho_rounded_up(l2_squared, scale):
    event = DiscreteGaussianEvent(scale=scale, l2_squared=l2_squared)
    rho = privacy_map(scale, l2_squared)
    assert Fraction(rho) >= event.rho == Fraction(l2_squared) / (2 * Fraction(scale) ** 2)
    assert rho <= float(event.rho) * (1 + 1e-14)


def test_the_map_of_a_calibrated_release_fits_its_rho():
    event = calibrated(DiscreteGaussianEvent(scale=1.0, l2_squared=2), 1.0, 1e-6)
    assert privacy_map(event.scale, event.l2_squared) == pytest.approx(float(event.rho), rel=1e-14)
    assert privacy_map(event.scale / math.sqrt(2), 2) == pytest.approx(2 * float(event.rho), rel=1e-14)


def test_seeded_noise_repeats_and_secure_noise_does_not():
    zeros = np.zeros(200, dtype=np.int64)
    draws = []
    for seed in (1, 1, 2):
        with insecure_randomness(seed):
            draws.append(add_noise(zeros, 5.0).tolist())
    assert draws[0] == draws[1] != draws[2]
    assert add_noise(zeros, 5.0).tolist() != add_noise(zeros, 5.0).tolist()


def test_insecure_noise_ends_with_its_block():
    zeros = np.zeros(200, dtype=np.int64)
    with without_noise():
        released = add_noise(zeros, 5.0)
        assert not released.any() and not np.shares_memory(released, zeros)
    assert add_noise(zeros, 5.0).any()


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_noise_that_cannot_be_drawn_is_refused_with_a_way_out(scale):
    zeros = np.zeros(1, dtype=np.int64)
    for release in (lambda: add_noise(zeros, scale), lambda: privacy_map(scale, 1)):
        with pytest.raises(PrivacyError, match="finite scale > 0"):
            release()
    with without_noise(), pytest.raises(PrivacyError, match="finite scale > 0"):
        add_noise(zeros, scale)


def test_a_map_needs_a_sensitivity():
    with pytest.raises(ArgumentError, match="l2_squared must be >= 1"):
        privacy_map(1.0, 0)
