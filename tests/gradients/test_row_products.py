"""Products of rows with a vector: one operation, whose result for a row depends on no other row."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dp.gradients.compiled_rows import RowProducts, compiled_rows


def function(width, dtype="float64", mode=None):
    """Logistic of products as they are written out row by row, with axes of length 1 beside."""
    rows, vector = pt.matrix("rows", shape=(None, width), dtype=dtype), pt.vector("vector", shape=(width,))
    products = (rows[:, None, :, None] * vector[None, None, :, None]).sum(axis=2)
    return compiled_rows([rows, vector], pt.sigmoid(products[:, 0, 0]), mode)


def products_in(made):
    return sum(isinstance(node.op, RowProducts) for node in made.maker.fgraph.toposort())


@pytest.mark.parametrize("width", [2, 7, 8, 15, 16, 17, 100])
def test_rows_give_the_same_wherever_they_stand(width, rng):
    """Also where terms cancel, so that another order of them would show in every digit."""
    made = function(width)
    assert products_in(made) == 1 and len(made.maker.fgraph.toposort()) == 2
    rows, vector = rng.normal(size=(67, width)), rng.normal(size=width)
    np.testing.assert_allclose(made(rows, vector), 1 / (1 + np.exp(-rows @ vector)), rtol=1e-12)
    rows[:, 0] -= rows @ vector / vector[0]
    rows *= 1e15
    found = made(rows, vector)
    assert width < 15 or len(np.unique(found)) > 10
    for first in range(len(rows)):
        assert (made(rows[first : first + 3].copy(), vector) == found[first : first + 3]).all()
