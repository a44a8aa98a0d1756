"""The shape of a regression, and what its loops hold on whole numbers; its sums are in test_tallies.py."""

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.kernel import Column, Regression, Table, gram_loops
from tests.kernel.pairs import Lookup, kernel


def test_shapes_that_are_none_are_refused():
    for given in ({"boxes": 0}, {"boxes": 1, "bits": 21}, {"balls": (1,)}, {"boxes": 1, "known": True, "sizes": True}):
        with pytest.raises(ArgumentError):
            Regression(**given)


def test_a_row_map_gives_no_products():
    k = kernel(Table({"i": Column([0], 0, 0)}))
    with pytest.raises(ArgumentError, match="certified"):
        k.sums(Lookup([[0.0, 0.0]]), [], Regression(boxes=1), noise="laplace", scale=1.0)


def test_a_ball_is_checked_on_whole_numbers_also_where_floats_are_wrong(monkeypatch):
    monkeypatch.setattr(gram_loops.np, "sqrt", lambda value: 0.5)
    rows, held, lengths = np.array([[0.9, 0.1], [0.3, 0.4]]), np.zeros((2, 2)), np.zeros(2)
    gram_loops.hold_ball.py_func(rows, np.ones(2), 16.0, held, lengths)
    assert held.T.tolist() == [[0.0, 0.0], [9.0, 12.0]]
