"""Products of rows with a vector: one operation, whose result for a row depends on no other row."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dp.step_methods.row_functions.builder import RowProducts, compiled_rows


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


def test_numbers_that_are_none_stay_in_their_row(rng):
    made, rows = function(20), rng.normal(size=(5, 20))
    rows[1, 3], rows[3, 19] = np.nan, np.inf
    found = made(rows, np.ones(20))
    assert np.isnan(found[1]) and found[3] == 1.0 and np.isfinite(found[[0, 2, 4]]).all()


@pytest.mark.slow
def test_rows_of_another_layout(rng):
    rows, vector = pt.matrix("rows", shape=(12, None)), pt.vector("vector", shape=(12,))
    made = compiled_rows([rows, vector], (rows * vector[:, None]).sum(axis=0))
    table, numbers = rng.normal(size=(12, 30)), rng.normal(size=12)
    assert products_in(made) == 1
    np.testing.assert_allclose(made(table, numbers), table.T @ numbers, rtol=1e-12)


@pytest.mark.slow
def test_whole_numbers_and_numpy_are_left_as_they_are(rng):
    rows, vector = rng.integers(0, 5, size=(6, 4)), rng.normal(size=4)
    for made in (function(4, dtype="int64"), function(4, mode="FAST_COMPILE")):
        assert not products_in(made)
    np.testing.assert_allclose(function(4, dtype="int64")(rows, vector), 1 / (1 + np.exp(-rows @ vector)), rtol=1e-12)


def test_numpy_evaluates_the_operation_too(rng):
    rows, vector = pt.matrix("rows"), pt.vector("vector")
    graph = RowProducts()(rows, vector)
    table, numbers = rng.normal(size=(5, 3)), rng.normal(size=3)
    made = pytensor.function([rows, vector], [graph, graph.shape[0]], mode="FAST_COMPILE")
    found, count = made(table, numbers)
    np.testing.assert_allclose(found, table @ numbers, rtol=1e-12)
    assert count == 5
