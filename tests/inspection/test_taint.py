"""Which expressions keep rows apart, and how the others are refused."""

import pytensor.tensor as pt
import pytest
from pytensor.tensor.shape import Shape_i

from pymc_dp.inspection.taint import NUMBER_OF_ROWS, trace_rows

X = pt.vector("x")
I, J = pt.lvector("i"), pt.lvector("j")
P = pt.vector("p", shape=(3,))
S = pt.scalar("s")
LATENT = pt.vector("latent")
WIDE, FACTOR = pt.matrix("wide", shape=(None, 3)), pt.matrix("factor", shape=(3, 3))
MATRICES = pt.tensor3("matrices", shape=(None, 3, 3))
ROWS = {X: 0, I: 0, J: 0, WIDE: 0, MATRICES: 0}
COUPLED = {
    "centred": (X - X.mean(), "shape"),
    "sum": (X.sum(), "runs over the rows"),
    "cumulated": (pt.cumsum(X), "runs over the rows"),
    "multiplied on": (pt.cumprod(WIDE, axis=0), "runs over the rows"),
    "softmax over rows": (pt.special.softmax(X, axis=0), "runs over the rows"),
    "every pair": (X[:, None] - X[None, :], "different axes"),
    "shifted": (X[1:], "picks some rows"),
    "reversed": (X[::-1], "picks some rows"),
    "first row": (X[0], "picks some rows"),
    "row picked by a row": (X[I], "picks or reorders"),
    "sorted": (pt.sort(X), "not known"),
    "number of rows": (S * X.shape[0], "number of rows"),
    "number of rows counted from the end": (S * WIDE.shape[-2], "number of rows"),
    "whole shape": (WIDE.shape, "number of rows"),
    "whole shape in a sum": (WIDE.shape.sum() * S, "number of rows"),
    "part of the shape": (WIDE.shape[:1], "number of rows"),
    "length picked by a parameter": (WIDE.shape[pt.iscalar("place")], "number of rows"),
    "rows solved together": (pt.linalg.solve_triangular(FACTOR, WIDE.T, b_ndim=2), "not known"),
    "matrices of rows solved": (pt.linalg.solve_triangular(MATRICES, P, b_ndim=1), "not known"),
    "latent per row": (X * LATENT, "one latent per row"),
    "mask": (P[(X > 0)], "mask"),
    "rows joined to rows": (pt.concatenate([X, X]), "appends rows"),
    "sum of products": (X @ X, "sums over rows"),
    "matrix of rows": (pt.outer(X, X), "sums over rows"),
    "repeated": (pt.repeat(X, 2), "not known"),
    "written into": (pt.set_subtensor(P[I], 1.0), "not known"),
    "one row's index": (P[I[0]], "picks some rows"),
    "slice to a row's value": (P[: I[0]], "picks some rows"),
}


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_expressions_are_refused_by_name(name):
    expression, text = COUPLED[name]
    problems = trace_rows([expression], ROWS).problems
    assert any(text in problem for problem in problems), problems


@pytest.mark.parametrize("place", [0, -2])
def test_the_number_of_rows_is_found_from_either_end(place):
    x = pt.matrix("x")
    assert trace_rows([x * Shape_i(place)(x)], {x: 0}).problems == [NUMBER_OF_ROWS]
