"""Public constants, from made-up rows alone."""

import pymc as pm
import pytest

from pymc_dp.errors import UnsupportedModelError
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.simulated import Simulated
from tests.gradients import models


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr("pymc_dp.gradients.simulated.DRAWS", 20)


def simulated(build, rng, covariates=None):
    rows = RowScores.of(interface_of(*build()), mode="FAST_COMPILE")
    return Simulated.of(rows, covariates or {}, rng)


def test_scaled_scores_have_about_unit_size(few, rng):
    """Of a normal response the mean square of the score of log sigma is 2, whatever the parameters."""
    found = simulated(models.normal, rng)
    assert found.scale[-1] == pytest.approx(2**-0.5, rel=0.01)


def test_covariates_can_be_stated_and_have_to_be_where_nothing_bounds_them(few, rng):
    model, _ = models.bernoulli()
    rows = RowScores.of(interface_of(model), mode="FAST_COMPILE")
    with pytest.raises(UnsupportedModelError, match="how this private column is distributed"):
        Simulated.of(rows, {}, rng)
    found = Simulated.of(rows, {"x": pm.Normal.dist(0, 3, shape=3)}, rng)
    assert found.scale[1] < found.scale[0], "slopes of wide covariates have large scores"


def test_a_location_and_a_scale_are_not_related(few, rng):
    found = simulated(models.normal, rng)
    assert [list(one) for one in found.blocks] == [[0, 1, 2, 3], [4]]
    assert len(simulated(models.bernoulli, rng).blocks) == 1
