from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from pymc_dp.errors import PrivacyError
from pymc_dp.release.laplace import add_noise, calibrate, discrete_laplace, privacy_map
from pymc_dp.testing import insecure_randomness, without_noise

# OpenDP's noise cannot be seeded: a test of its distribution must fail by chance less than once in a million runs.
CHANCE = 1e-6


def chi_square_p(draws, scale):
    """Probability of draws this far from discrete Laplace of a scale, tails pooled."""
    edge = int(5 * scale) + 1
    support = np.arange(-edge, edge + 1)
    p = np.tanh(1 / (2 * scale)) * np.exp(-np.abs(support) / scale)
    p[[0, -1]] = np.exp(-edge / scale) / (1 + np.exp(-1 / scale))
    observed = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=len(support))
    return stats.chisquare(observed, p / p.sum() * len(draws)).pvalue


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.7])
@pytest.mark.parametrize("source", ["secure", "seeded", "simulated"])
def test_noise_is_discrete_laplace(scale, source, seed):
    zeros = np.zeros(20_000, dtype=np.int64)
    if source == "secure":
        draws = add_noise(zeros, scale)
    elif source == "seeded":
        with insecure_randomness(seed):
            draws = add_noise(zeros, scale)
    else:
        draws = discrete_laplace(np.random.default_rng(seed), scale, zeros.shape)
    assert chi_square_p(draws, scale) > CHANCE
    assert chi_square_p(draws, scale * 1.2) < CHANCE
    assert chi_square_p(draws, scale / 1.2) < CHANCE


def test_noise_of_a_fine_grid_has_the_scale_asked_for():
    """On 2**30 steps the noise is a Laplace variable: Kolmogorov-Smirnov."""
    scale = 2.25 * 2.0**30
    draws = add_noise(np.full(5000, 2**40, dtype=np.int64), scale) - 2**40
    assert stats.kstest(draws / scale, stats.laplace().cdf).pvalue > CHANCE
    assert len(np.unique(draws)) == 5000


def test_entries_get_noise_of_their_own_and_keep_their_place():
    sums = np.arange(12, dtype=np.int64).reshape(3, 4) * 10**9
    noised = add_noise(sums, 2.0)
    assert noised.shape == (3, 4)
    assert np.abs(noised - sums).max() < 2.0 * 60
    many = add_noise(np.zeros((5000, 2), dtype=np.int64), 2.0)
    assert abs(np.corrcoef(many.T)[0, 1]) < 5 / np.sqrt(5000)


def test_sums_at_the_ends_of_int64_saturate():
    ends = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min])
    for _ in range(20):
        assert (np.abs(add_noise(ends, 1000.0).astype(float)) > 9.2e18).all()


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 9 * 2**28 + 1, 2**31, 2**32])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.3, 1 / 3, 1.0, 2.9, 10.0])
def test_calibrated_noise_never_overspends_and_wastes_nothing(sensitivity, epsilon):
    scale = calibrate(sensitivity, epsilon)
    assert privacy_map(scale, sensitivity) <= epsilon
    assert sensitivity / Fraction(scale) <= Fraction(epsilon)
    assert sensitivity / Fraction(scale) <= Fraction(repr(epsilon))
    assert scale <= sensitivity / epsilon * (1 + 1e-14)


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
        assert not add_noise(zeros, 5.0).any()
    assert add_noise(zeros, 5.0).any()


def test_noise_that_cannot_be_drawn_is_refused_with_a_way_out():
    with pytest.raises(PrivacyError, match=r"scale inf; choose a larger epsilon"):
        add_noise(np.zeros(1, dtype=np.int64), float("inf"))
