"""Graphs that PyMC writes with arrays of its own are written again without any."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.made_by_pymc import without_arrays

pytestmark = pytest.mark.usefixtures("interpreted")
RNG = np.random.default_rng(20)
X, Y, GROUP = RNG.uniform(0.1, 0.7, (30, 2)), RNG.normal(size=30), RNG.integers(0, 6, 30)
BOUNDS = {"X": (0, 1), "y": (-4, 4)}


@pytest.mark.parametrize(
    "joined",
    [
        lambda eta: pt.concatenate([pt.zeros((30, 1)), eta], axis=1),
        lambda eta: pt.concatenate([eta, pt.full((30, 2), 1.5)], axis=1),
        lambda eta: pt.stack([pt.zeros(30), eta[:, 0]], axis=1),
        lambda eta: pt.stack([eta[:, 0], pt.ones(30), eta[:, 1]]).T,
    ],
)
def test_a_number_beside_columns_is_as_long_as_they_are(joined):
    """A category that others are compared with; its length, which a graph has as a number, is of the table."""
    rows = pt.matrix("rows", shape=(None, 2))
    written = joined(rows)
    (same,) = without_arrays([written])
    np.testing.assert_array_equal(same.eval({rows: X}), written.eval({rows: X}))
    assert len(same.eval({rows: X[:7]})) == 7, "any number of rows"
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        pm.Categorical("y", logit_p=joined(b * pm.Data("X", X)), observed=GROUP % 2)
    assert not inspect(model, Domain(bounds=BOUNDS)).rows.problems
