"""Arguments are checked and explained."""

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.hamiltonian.settings import units_of
from pymc_dp.step_methods.metropolis.coefficients import Coefficients
from tests.step_methods.hamiltonian.models import normal


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip_norm": 0.0}, "clip_norm must"),
        ({"clip_norm": float("nan")}, "clip_norm must"),
        ({"clamp": -1.0}, "clamp must"),
        ({"n_leapfrog": 0}, "n_leapfrog must"),
        ({"step_size": 0.0}, "step_size must"),
        ({"scale": 0.0}, "scale must"),
        ({"scale": {"mu": -1.0}}, r"scale\['mu'\] must"),
        ({"gradient_share": 1.0}, "gradient_share must"),
        ({"steps_per_draw": 0}, "steps_per_draw must"),
    ],
)
def test_wrong_arguments_are_explained(settings, message):
    with pytest.raises(ArgumentError, match=message):
        PrivateHMC(**settings)


def test_units_are_those_of_the_free_variables():
    prior_model = normal([0.0])
    places = Coefficients(prior_model, (), quick=True)
    with pytest.raises(ArgumentError, match="scale names.*'nu'"):
        units_of({"nu": 1.0}, places)
    with pytest.raises(ArgumentError, match="do not fit"):
        units_of({"mu": np.ones(2)}, places)
    assert units_of({"mu": 0.5}, places).tolist() == [0.5] and units_of(None, places).tolist() == [1.0]


def test_a_specification_shows_what_was_said():
    assert repr(PrivateHMC()) == "PrivateHMC()"
    assert repr(PrivateHMC(clip_norm=1.0, n_leapfrog=5)) == "PrivateHMC(clip_norm=1.0, n_leapfrog=5)"
