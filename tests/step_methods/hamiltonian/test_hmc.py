"""The chain: the right target at any noise, within its budget, and nothing but what was paid for."""

import numpy as np
import pymc as pm

from tests.step_methods.hamiltonian.models import (
    begun,
    held,
    walked,
)

# Life of the step.


def test_places_without_prior_density_are_refused_unseen():
    """Values of a uniform prior without a transform; the rows are not asked."""
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("mu", -1, 1, default_transform=None, initval=0.9), 1.0, observed=np.array([9.0] * 5))
    step = begun(held(model, clip_norm=9.0, step_size=0.3, n_leapfrog=1), draws=40, noise=(0.01, 0.01))
    asked, moved = [], step.limits.ratio.moved
    step.limits.ratio.moved = lambda here, there: asked.append(there.values) or moved(here, there)
    draws, _ = walked(step, 40, "mu")
    assert (np.abs(draws) <= 1).all() and len(asked) < 40
    assert (np.abs(asked) <= 1).all()
