"""Real tables of `make calibrate`: their models can be released, and what is said of a release is what it should be."""

import numpy as np
import pytest

import pymc_dp as dp
from benchmarks.real.measure import score
from benchmarks.real.posterior import Posterior, scalars
from benchmarks.real.reference import load
from benchmarks.real.tables import TABLES

PLAIN = Posterior(["a", "b"], np.array([0.0, 1.0]), np.diag([1.0, 4.0]))
RELEASE = {"warnings": [], "verdict": None, "seconds": 1.0, "warm": True}


def test_z_is_in_deviations_of_what_privacy_adds():
    found = score(RELEASE | {"mean": [2.0, 1.0], "sd": [np.sqrt(2), 4.0]}, PLAIN)
    np.testing.assert_allclose(found.z, [2.0, 0.0])
    np.testing.assert_allclose(found.width, [np.sqrt(2), 2.0])
    assert found.inside.tolist() == [True, True]


def test_a_private_variance_below_that_without_privacy_is_named():
    found = score(RELEASE | {"mean": [0.0, 1.0], "sd": [0.97, 1.96]}, PLAIN)
    assert found.narrow.tolist() == [True, False]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_a_posterior_without_privacy(name):
    held = load()[name]
    covariance = np.array(held["covariance"])
    assert len(held["names"]) == len(held["mean"]) == len(covariance)
    assert {f"b[{column.name}]" for column in TABLES[name].columns} <= set(held["names"])
    assert (np.linalg.eigvalsh(covariance) > 0).all()


@pytest.mark.slow(cases=6)
@pytest.mark.parametrize("name", TABLES)
def test_a_model_can_be_released(name):
    table = TABLES[name]
    if table.missing is not None:
        pytest.skip(table.missing)
    model = table.model()
    assert scalars(model) == load()[name]["names"]
    assert dp.explain(model, table.domain, epsilon=1, delta=1e-6).ok
