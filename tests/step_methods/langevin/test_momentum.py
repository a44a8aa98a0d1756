"""Samplers with momentum through the step: what is priced, what is remembered, what is said."""

import pytest

from pymc_dp.accounting import total_epsilon
from pymc_dp.step_methods.langevin import SGHMC, SGNHT, AlphaPhase, PolynomialDecay

from .conftest import BATCH, BUDGET, CLIP


def noised(step):
    """σ of the noise on estimated gradients, from the event that pays for it."""
    return step.event.event.noise_multiplier * CLIP * step.population / BATCH


@pytest.mark.parametrize("method", [SGHMC, SGNHT])
@pytest.mark.parametrize("rule", [None, 1e-6, PolynomialDecay(), AlphaPhase(0.3)])
def test_the_event_has_the_noise_that_every_gradient_gets(begin, method, rule):
    step = begin(method=method, step_size=rule, steps=1)
    assert step._loop.sigma == pytest.approx(noised(step), rel=1e-9) and step._loop.sigma >= noised(step)
    assert total_epsilon(step.event, BUDGET["delta"]).epsilon <= BUDGET["epsilon"]
