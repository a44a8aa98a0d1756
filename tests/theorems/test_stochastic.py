"""Theorems on stochastically Lipschitz likelihoods, against quadrature."""

import math

import numpy as np
import pytest
from scipy.special import xlogy
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


def test_marginal_likelihoods_grow_no_faster_than_the_proof_of_theorem_7_needs():
    """The paper's step, log(C e^a) <= C a, is false for small a; 1 + C (e^a - 1) <= e^(C a) is what holds."""
    ratio, a = 2.0, 0.1
    assert math.log(ratio * math.exp(a)) > ratio * a
    for c in (1.0, 2.0, 50.0):
        for nats in (1e-6, 0.1, 3.0):
            assert math.log1p(c * math.expm1(nats)) <= c * nats * (1 + 1e-12)


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


def test_a_probability_of_one_or_more_says_nothing():
    found = theorems.stochastic_total_variation(EXPONENTIAL, distance=1.0, step=0.0)
    assert found.value >= 1 and found.vacuous
    near = theorems.stochastic_total_variation(EXPONENTIAL, distance=1e-3, step=0.0)
    assert near.value < 1 and not near.vacuous and near.proof is None


def test_mass_of_steep_parameters_is_within_corollary_9():
    for lipschitz in (0.1, 0.5, 1.0, 1.9):
        steep = 1 - (1 - math.exp(-PRIOR * (lipschitz - LOW))) / (1 - math.exp(-PRIOR * (HIGH - LOW)))
        assert steep <= theorems.random_privacy(EXPONENTIAL, lipschitz=lipschitz).value
    assert theorems.random_privacy(EXPONENTIAL, lipschitz=EXPONENTIAL.offset).vacuous


@pytest.mark.parametrize("lipschitz", [250.0, 1e4, 1e300])
def test_mass_of_steep_parameters_is_never_said_to_be_none(lipschitz):
    found = theorems.random_privacy(EXPONENTIAL, lipschitz=lipschitz)
    assert 0 < found.value < 1e-300 and not found.vacuous


def test_corollary_9_says_nothing_of_the_posterior_itself():
    """Few parameters are steep, and yet the posterior's loss is above 2 L ρ: the printed event does not happen."""
    lipschitz, x, y = 0.2, 0.0, 2.0
    loss = float(np.abs(np.log(posterior(x) / posterior(y))).max())
    assert loss > 2 * lipschitz * abs(x - y)
    kept = lipschitz >= THETA  # of the prior restricted to smooth parameters it is true
    one, two = (posterior(value)[kept] / posterior(value)[kept].sum() for value in (x, y))
    restricted = theorems.posterior_privacy(lipschitz, distance=abs(x - y)).proof
    assert float(np.abs(np.log(one / two)).max()) <= restricted.epsilon


def test_posteriors_nearer_than_the_bound_cannot_be_told_apart():
    """Errors of the best test between posteriors of lemma 19, N samples: at least what theorem 13's bound says."""
    found = theorems.stochastic_distinguishing_distance(EXPONENTIAL, samples=1, delta=0.4, step=0.0)
    x, y = 0.0, found.value
    apart = float(np.abs(posterior(x) - posterior(y)).sum() / 2)
    assert 1 - apart >= 2 * 0.4  # the two errors together


def test_one_trial_is_fitted_exactly():
    assert families.beta_binomial(2.0, trials=1).stochastic.offset == 0.0
    ratios = [math.exp(xlogy(k, k) + xlogy(1 - k, 1 - k)) / 0.5 for k in (0, 1)]
    assert families.beta_binomial(2.0, trials=1).stochastic.ratio == pytest.approx(max(ratios))
