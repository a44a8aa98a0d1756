"""The cost of a chain by hand, and no more than the budget."""

import math

import pytest

from pymc_dp.accounting import Budget, ComposedEvent, GaussianEvent, SelfComposedEvent, gdp, total_epsilon, zcdp
from pymc_dp.step_methods.hamiltonian.settings import HamiltonianNoise, evaluations, noise_within


def test_cost_is_that_of_the_paper_but_for_gradients_that_are_kept():
    """Räisä et al.: k / (2 τ_l² n) + k (L + 1) / (2 τ_g² n), stds 2 b τ √n; here k L + 1 gradients."""
    n, k, length, of_ratio, of_gradient = 10_000, 30, 4, 0.7, 1.3
    noise = HamiltonianNoise(gradient=of_gradient * math.sqrt(n), ratio=of_ratio * math.sqrt(n), n_leapfrog=length)
    event = noise.event(steps=k)
    rho = k / (2 * of_ratio**2 * n) + (k * length + 1) / (2 * of_gradient**2 * n)
    assert float(zcdp.rho(event)) == pytest.approx(rho, rel=1e-12)
    assert gdp.mu(event) == pytest.approx(math.sqrt(2 * rho), rel=1e-12)
    paper = k / (2 * of_ratio**2 * n) + k * (length + 1) / (2 * of_gradient**2 * n)
    assert rho < paper
    # Noise of 2 b τ √n moves by b only where a row comes or goes: a quarter.
    lone = HamiltonianNoise(gradient=2 * noise.gradient, ratio=2 * noise.ratio, n_leapfrog=length)
    assert float(zcdp.rho(lone.event(steps=k))) == pytest.approx(rho / 4, rel=1e-12)


def test_the_event_is_that_of_every_mechanism_one_by_one():
    noise = HamiltonianNoise(gradient=9.0, ratio=5.0, n_leapfrog=3)
    ratios, gradients = [GaussianEvent(noise_multiplier=5.0)], [GaussianEvent(noise_multiplier=9.0)]
    each = ComposedEvent(events=tuple(gradients * (7 * 3 + 1) + ratios * 7))
    assert gdp.mu(noise.event(steps=7)) == gdp.mu(each)
    assert gdp.mu(noise.event(steps=7, chains=2)) == gdp.mu(SelfComposedEvent(event=each, count=2))
    assert gdp.epsilon_at(noise.event(steps=7), 1e-5) == gdp.epsilon_at(each, 1e-5)
    assert evaluations(1, 1) == 2


@pytest.mark.parametrize("share", [0.05, 0.4, 0.9])
@pytest.mark.parametrize(("chains", "steps", "length"), [(1, 1, 1), (2, 500, 3), (4, 37, 10)])
def test_calibrated_noise_spends_the_budget_and_no_more(chains, steps, length, share):
    budget = Budget(0.7, 1e-6)
    noise = noise_within(budget, chains=chains, steps=steps, n_leapfrog=length, gradient_share=share)
    event = noise.event(steps=steps, chains=chains)
    total = total_epsilon(event, budget.delta).epsilon
    assert 0.7 * (1 - 1e-6) < total <= 0.7
    of_gradients = chains * (steps * length + 1) / noise.gradient**2
    assert of_gradients / gdp.mu(event) ** 2 == pytest.approx(share, rel=1e-9)
