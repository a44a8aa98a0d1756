"""Theorems on Lipschitz likelihoods, against posteriors computed by quadrature."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pymc_dp import theorems

THETA = np.linspace(-1, 1, 4001)


def posterior(data, sigma=1.0):
    """Of a normal mean, uniform on [-1, 1], on a grid: probabilities."""
    logs = -((np.asarray(data)[:, None] - THETA) ** 2).sum(axis=0) / (2 * sigma**2)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


LIPSCHITZ = 4.0  # of a normal log-density, sd 1, means in [-1, 1], values in [-3, 3], per unit of |x - y|
PAIRS = [([3.0], [-3.0]), ([0.5], [0.499]), ([3.0] * 5 + [1.0], [3.0] * 5 + [-3.0]), ([-3.0, 0.0], [3.0, 0.0])]


@pytest.mark.parametrize("x, y", PAIRS)
def test_divergence_and_loss_of_posteriors_are_within_theorems_7_and_8(x, y):
    distance = float(np.abs(np.subtract(x, y)).sum())
    one, two = posterior(x), posterior(y)
    logs = np.log(one) - np.log(two)
    divergence, loss = float((one * logs).sum()), float(np.abs(logs).max())
    assert 0 < divergence <= theorems.posterior_divergence(LIPSCHITZ, distance=distance).value
    assert divergence < loss <= theorems.posterior_privacy(LIPSCHITZ, distance=distance).proof.epsilon


def test_theorem_8_is_attained_up_to_a_half_by_two_parameters():
    # log p(x|0) = -a, log p(x|1) = a, and the other way round for y: L ρ = 2 a, and the loss is 2 a.
    for a in (0.1, 1.0):
        claim = theorems.posterior_privacy(2 * a, distance=1.0).proof.epsilon
        loss = math.log(math.exp(a) / math.exp(-a))
        assert loss == pytest.approx(claim / 2)
    # A prior that nearly leaves out one parameter uses up the rest.
    a, rare = 1.0, 1e-6
    x, y = (rare * math.exp(s * a) / (rare * math.exp(s * a) + math.exp(-s * a)) for s in (1, -1))
    assert math.log(x / y) == pytest.approx(theorems.posterior_privacy(2 * a, distance=1.0).proof.epsilon, rel=1e-5)


def test_nearly_exact_draws_are_as_private_as_proposition_10_says():
    epsilon, off = 1.0, 0.05
    x, y = np.array([math.e, 1.0]) / (1 + math.e), np.array([1.0, math.e]) / (1 + math.e)
    moved = np.array([off, -off]) / 2  # at L1 distance `off`
    near_x, near_y = x + moved, y - moved
    delta = float(np.maximum(near_x - math.exp(epsilon) * near_y, 0).sum())
    found = theorems.approximate_sampling(epsilon, l1_distance=off)
    assert 0 < delta <= found.proof.delta
    # The paper's distance is twice the total variation, which is what counts: half of it is attained.
    assert delta == pytest.approx(found.proof.delta / 2)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 1.2, 5.0])
@pytest.mark.parametrize("l1_distance", [5e-324, 1e-320, 1e-300, 1e-9])
def test_a_delta_is_never_rounded_down_even_where_floats_are_sparse(epsilon, l1_distance):
    found = theorems.approximate_sampling(epsilon, l1_distance=l1_distance).proof
    assert Fraction(found.delta) > (1 + Fraction(math.exp(epsilon))) * Fraction(l1_distance) * (1 - Fraction(1, 10**15))
    assert found.delta <= (1 + math.exp(epsilon)) * l1_distance * (1 + 1e-14) + 1e-322
