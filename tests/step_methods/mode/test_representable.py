"""Places that transforms lead back to are kept, edges too; others would be recorded as places that nobody chose."""

import numpy as np
import pymc as pm
import pytest
from pymc.distributions.transforms import ordered

from pymc_dp.inspection.priors import priors_of
from pymc_dp.step_methods.mode.candidates import kept


def bounded():
    pm.Uniform("u", -1e30, 3.0)
    pm.HalfNormal("s")
    return [[0.0, 1.0], [3.0, 0.0], [-1e30, 1e-320], [2.9999, 1e300]], [True] * 4


def simplex():
    pm.Dirichlet("w", np.ones(3))
    places = [
        [0.2, 0.3, 0.5],
        [1e-9, 1 - 2e-9, 1e-9],
        [0.2, 0.2, 0.2],
        [0.4, 0.4, 0.4],
        [0.0, 0.5, 0.5],
        [-0.1, 0.6, 0.5],
    ]
    return places, [True, True, False, False, False, False]


def ascending():
    pm.Normal("m", 0, 1, shape=3, transform=ordered, initval=[0.0, 1.0, 2.0])
    return [[-1.0, 0.0, 5.0], [0.0, 0.0, 1.0], [1.0, 0.0, 2.0]], [True, True, False]


def free():
    pm.Normal("b")
    return [[-1e300], [0.0]], [True, True]


@pytest.mark.parametrize("write", [bounded, simplex, ascending, free])
def test_places_are_kept_that_their_values_lead_back_to(write):
    with pm.Model() as model:
        places, expected = write()
    assert kept(model, priors_of(model), np.array(places)).tolist() == expected
