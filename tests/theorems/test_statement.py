"""What a theorem says enters a budget only as a proof of (ε, δ)."""

import itertools

import pytest

import pymc_dp as dp
from pymc_dp import theorems
from pymc_dp.accounting import ComposedEvent, PureEvent, SelfComposedEvent, total_epsilon
from pymc_dp.theorems import StochasticLipschitz

GIVEN = StochasticLipschitz(offset=0.1, rate=3.0, ratio=2.0)
STATEMENTS = {
    "divergence": theorems.posterior_divergence(0.5, distance=1.0),
    "privacy": theorems.posterior_privacy(0.5, distance=1.0),
    "nearly exact": theorems.approximate_sampling(1.0, l1_distance=1e-6),
    "far from exact": theorems.approximate_sampling(1.0, l1_distance=0.5),
    "stochastic divergence": theorems.stochastic_divergence(GIVEN, distance=0.1, step=0.0),
    "stochastic distance": theorems.stochastic_total_variation(GIVEN, distance=0.1, step=0.0),
    "vacuous distance": theorems.stochastic_total_variation(GIVEN, distance=1.0, step=0.0),
    "random privacy": theorems.random_privacy(GIVEN, lipschitz=2.0),
    "distinguishing": theorems.distinguishing_distance(1.0, samples=3, delta=0.1),
    "stochastic distinguishing": theorems.stochastic_distinguishing_distance(GIVEN, samples=3, delta=0.1, step=0.0),
    "queries": theorems.query_loss(samples=1000, delta=0.1),
    "restricted prior": theorems.restricted_prior_loss(0.1, samples=1000, delta=0.1),
    "updates": theorems.laplace_updates_divergence(
        n_rows=100, epsilon=1.0, nodes=1, alpha=[1.0], beta=[1.0], delta=0.1
    ),
    "tables": theorems.fourier_updates_error(epsilon=1.0, closure=4, parents=1, delta=0.1, increment=1.0),
}
PROOFS = {"privacy", "nearly exact"}

every = pytest.mark.parametrize("name", STATEMENTS)


@every
def test_only_two_theorems_prove_privacy(name):
    proof = STATEMENTS[name].proof
    assert (proof is not None) == (name in PROOFS)
    if proof is not None:
        assert dp.Budget(proof.epsilon, proof.delta).epsilon > 0


@every
@pytest.mark.parametrize(
    "use",
    [
        lambda given: dp.Budget(given),
        lambda given: dp.Budget(1.0, given),
        lambda given: dp.Ledger(given),
        lambda given: dp.Ledger(1.0, given),
        lambda given: PureEvent(epsilon=given),
        lambda given: ComposedEvent(events=(PureEvent(epsilon=0.1), given)),
        lambda given: SelfComposedEvent(event=given, count=2),
        lambda given: total_epsilon(given, 1e-6),
        lambda given: dp.Ledger(1.0, 1e-6).spend(given, label="a theorem", neighbours="replace"),
    ],
)
def test_no_budget_ledger_or_event_takes_a_statement_for_a_number_or_an_event(name, use):
    with pytest.raises(dp.errors.PrivacyError):
        use(STATEMENTS[name])
    if (proof := STATEMENTS[name].proof) is not None:
        with pytest.raises(dp.errors.PrivacyError):
            use(proof)


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), "1", True, None])
def test_arguments_out_of_range_are_refused(bad):
    calls = [
        lambda: theorems.posterior_privacy(bad, distance=1.0),
        lambda: theorems.posterior_privacy(1.0, distance=bad),
        lambda: theorems.posterior_divergence(1.0, distance=bad),
        lambda: theorems.approximate_sampling(bad, l1_distance=0.1),
        lambda: theorems.approximate_sampling(1.0, l1_distance=bad),
        lambda: theorems.random_privacy(GIVEN, lipschitz=bad),
        lambda: theorems.distinguishing_distance(bad, samples=1, delta=0.1),
        lambda: theorems.distinguishing_distance(1.0, samples=1, delta=bad),
        lambda: theorems.query_loss(samples=5, delta=bad),
        lambda: theorems.fourier_updates_error(epsilon=bad, closure=4, parents=1, delta=0.1, increment=1.0),
        lambda: StochasticLipschitz(offset=0.1, rate=bad, ratio=2.0),
    ]
    for call in calls:
        with pytest.raises((dp.errors.ArgumentError, TypeError)):
            call()


def test_pure_losses_are_never_rounded_down():
    from fractions import Fraction

    for lipschitz, distance, count in itertools.product((0.1, 0.7, 1 / 3), (0.3, 1.0, 1e-7), (1, 3, 10)):
        proof = theorems.posterior_privacy(lipschitz, distance=distance, samples=count).proof
        exact = 2 * count * Fraction(repr(lipschitz)) * Fraction(repr(distance))
        assert exact <= Fraction(repr(proof.epsilon)) <= exact * (1 + Fraction(1, 10**15))
