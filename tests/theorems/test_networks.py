"""Noise on the counts of networks: bounds against the divergences and errors that occur."""

import math

import numpy as np
import pytest
from scipy.special import betaln, digamma

from pymc_dp import theorems


def divergence(a, b, c, d):
    """KL of beta laws (a, b) from (c, d)."""
    return betaln(c, d) - betaln(a, b) + (a - c) * digamma(a) + (b - d) * digamma(b) + (c - a + d - b) * digamma(a + b)


@pytest.mark.parametrize("n_rows, epsilon, prior", [(20, 5.0, 1.0), (20, 0.1, 1.0), (100, 2.0, 0.3), (5, 1.0, 10.0)])
def test_divergences_of_noised_updates_are_within_theorem_1(rng, n_rows, epsilon, prior):
    scale, repeats, m, delta = 2 / epsilon, 2000, 3, 0.05
    ones = np.array([0, n_rows, n_rows // 2])[:m]
    exact = np.stack([ones, n_rows - ones], axis=1)
    noised = np.clip(exact + rng.laplace(scale=scale, size=(repeats, m, 2)), 0, n_rows)
    parameters = [item for pair in ((prior + exact), (prior + noised)) for item in (pair[..., 0], pair[..., 1])]
    total = divergence(*parameters).sum(axis=1)
    found = theorems.laplace_updates_divergence(
        n_rows=n_rows, epsilon=epsilon, nodes=1, alpha=[prior] * m, beta=[prior] * m, delta=delta
    )
    assert (total > found.value).mean() <= delta
    assert found.value < math.inf and found.proof is None


def test_the_papers_constant_of_theorem_1_is_too_small_for_weak_priors():
    """c = (2n + 1) log(α + β + 2n + 2) would bound the divergence of any two updates."""
    n, prior = 1, 0.01
    printed = (2 * n + 1) * math.log(2 * (prior + n + 1))
    # One success in one trial, noised to one failure.
    reached = divergence(prior, prior + n, prior + n, prior)
    assert reached > 20 * printed
    own = n * 2 * (digamma(2 * prior + 2 * n) - digamma(prior))
    assert reached <= own
