"""A chain that begins at a posterior sample: it is drawn once, whatever state is restored."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp


def test_a_state_that_is_restored_draws_no_second_start():
    with pm.Model() as model:
        pm.Laplace("y", pm.Uniform("mu", -4, 4), 1.0, observed=np.linspace(-1, 3, 60))
        domain = dp.Domain(bounds={"y": (-5, 5)})
        step = dp.SGLD(epsilon=1.0, delta=1e-6, domain=domain, start=dp.OPS(grid=64))
    step.setup_chain(None, 0, 3)
    before, point = step.sampling_state, model.initial_point()
    step.step(point)
    step.sampling_state = before
    with pytest.raises(dp.errors.BudgetExceeded, match="No use"):
        step.step(point)
