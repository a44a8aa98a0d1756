"""Theorems on stochastically Lipschitz likelihoods, against quadrature."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from pymc_dp import theorems
from pymc_dp.theorems import StochasticLipschitz, families

LOW, HIGH, PRIOR, BOUND = 0.1, 2.0, 3.0, 2.0
THETA = np.linspace(LOW, HIGH, 20_001)
EXPONENTIAL = families.exponential((LOW, HIGH), bound=BOUND, prior_rate=PRIOR).stochastic


def posterior(x):
    """Of an exponential rate under the trimmed exponential prior of lemma 19, on a grid."""
    weights = THETA * np.exp(-THETA * (x + PRIOR))
    return weights / weights.sum()


@pytest.mark.parametrize("x, y", [(0.0, 2.0), (2.0, 0.0), (1.0, 1.01), (0.0, 0.3)])
def test_posteriors_of_lemma_19_are_within_theorems_7_and_8(x, y):
    one, two = posterior(x), posterior(y)
    divergence, apart = float((one * np.log(one / two)).sum()), float(np.abs(one - two).sum() / 2)
    assert 0 < divergence <= theorems.stochastic_divergence(EXPONENTIAL, distance=abs(x - y), step=0.0).value
    assert 0 < apart <= theorems.stochastic_total_variation(EXPONENTIAL, distance=abs(x - y), step=0.0).value


@pytest.mark.parametrize("alpha", [13.0, 40.0])
def test_posteriors_of_lemma_21_are_within_theorem_8_in_steps_of_one(alpha):
    given = families.beta_binomial(alpha, trials=10).stochastic
    theta = (np.arange(20_000) + 0.5) / 20_000
    one, two = (beta.pdf(theta, alpha + k, alpha + 10 - k) / 20_000 for k in (10, 9))
    found = theorems.stochastic_divergence(given, distance=1.0, step=1.0)
    assert not found.vacuous
    assert float((one * np.log(one / two)).sum()) <= found.value
    assert theorems.stochastic_total_variation(given, distance=1.0, step=1.0).vacuous  # as in the paper


@pytest.mark.parametrize(
    "given, step, why",
    [
        (StochasticLipschitz(offset=0.1, rate=0.9, ratio=2.0), 0.0, "c > 1"),
        (StochasticLipschitz(offset=0.1, rate=1.5, ratio=2.0), 1.0, "steps"),
        (StochasticLipschitz(offset=0.1, rate=3.0, ratio=math.inf), 0.0, "infinite"),
        (families.beta_binomial(12.0, trials=10).stochastic, 1.0, "steps"),
    ],
)
def test_theorems_whose_conditions_fail_say_nothing(given, step, why):
    for found in (
        theorems.stochastic_divergence(given, distance=0.01, step=step),
        theorems.stochastic_total_variation(given, distance=0.01, step=step),
        theorems.stochastic_distinguishing_distance(given, samples=1, delta=0.1, step=step),
    ):
        assert found.vacuous and why in found.reason and found.proof is None


def test_mass_of_steep_parameters_is_within_corollary_9():
    for lipschitz in (0.1, 0.5, 1.0, 1.9):
        steep = 1 - (1 - math.exp(-PRIOR * (lipschitz - LOW))) / (1 - math.exp(-PRIOR * (HIGH - LOW)))
        assert steep <= theorems.random_privacy(EXPONENTIAL, lipschitz=lipschitz).value
    assert theorems.random_privacy(EXPONENTIAL, lipschitz=EXPONENTIAL.offset).vacuous
