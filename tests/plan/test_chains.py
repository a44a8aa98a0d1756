"""Chains reach the posterior that grids reach, and begin anew for every release."""

import numpy as np
import pymc as pm
import pytensor
import pytest

from pymc_dp.inspection.interpreted import NUMPY
from pymc_dp.plan import posteriors
from pymc_dp.plan.posteriors import Chain


@pytest.fixture(scope="module")
def chain():
    held = pytensor.shared(np.array([1.0, 2.0, 3.0]), shape=(3,))
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 10, shape=1), 0.5, observed=held)
    with pytensor.config.change_flags(**NUMPY), pytest.MonkeyPatch.context() as patch:
        patch.setattr(posteriors, "TUNE", 100)
        patch.setattr(posteriors, "DRAWS_OF_CHAIN", 150)
        yield Chain(model, np.zeros(1), [(1,)]), held


def test_a_chain_follows_its_release(chain):
    sampler, held = chain
    for centre in (2.0, 7.0):
        held.set_value(centre + np.array([-1.0, 0.0, 1.0]))
        drawn = sampler.draws(1)
        assert drawn.shape == (150, 1)
        # A posterior sd of 0.29; an independent draw in five.
        assert abs(drawn.mean() - centre) < 5 * 0.29 / np.sqrt(30)
        assert 0.15 < drawn.std() < 0.6


def test_a_seed_gives_the_same_chain_whatever_came_before(chain):
    sampler, held = chain
    held.set_value(np.zeros(3))
    first = sampler.draws(4)
    held.set_value(np.full(3, 50.0))
    sampler.draws(5)
    held.set_value(np.zeros(3))
    np.testing.assert_array_equal(sampler.draws(4), first)
