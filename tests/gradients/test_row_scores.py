"""Scores of rows: their sum is the gradient of the log-likelihood, and each is a Jacobian times few derivatives."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular

import pymc_dp as dp
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.rows.gate import read
from tests.gradients import models

pytestmark = pytest.mark.usefixtures("paid")

PREDICTORS = {
    "bernoulli": 1,
    "poisson": 1,
    "negative_binomial": 2,
    "normal": 2,
    "student_t": 2,
    "tobit": 2,
    "ordered": 3,
    "softmax": 3,
    "groups": 1,
    "two": 3,
    "in_turn": 3,
}


def gradient_by_pymc(model, interface, values):
    """Likelihood's gradient with respect to all value variables, and the Jacobian of η with respect to these."""
    flat = model.replace_rvs_by_values([interface.flat])[0]
    total = model.observedlogp
    gradient = pt.concatenate([one.ravel() for one in pytensor.grad(total, model.value_vars)])
    rows = [
        pt.concatenate([g.ravel() for g in pytensor.grad(flat[k], model.value_vars, disconnected_inputs="ignore")])
        for k in range(interface.size)
    ]
    function = plain_function(model.value_vars, [flat, gradient, pt.stack(rows)])
    return function(*values)


@pytest.mark.few(1)
@pytest.mark.parametrize("build", models.ALL)
def test_scores_add_up_to_the_gradient_of_the_model(build, rng):
    model, domain = build()
    interface = interface_of(model, domain)
    rows = RowScores.of(interface, mode="FAST_COMPILE")
    assert rows.count == PREDICTORS[build.__name__]
    start = model.initial_point(0)
    values = [
        np.asarray(start[value.name] + rng.normal(0, 0.3, np.shape(start[value.name]))) for value in model.value_vars
    ]
    at, gradient, jacobian = gradient_by_pymc(model, interface, values)
    columns = [read(column) for column in interface.inspection.columns]
    predictors, own = rows.predicted(at, *columns)
    scores = np.einsum("nq,nqd->nd", rows.scored(predictors, *columns)[0], own)
    np.testing.assert_allclose(scores.sum(axis=0) @ jacobian, gradient, rtol=1e-7, atol=1e-8)


def test_rows_are_solved_one_by_one_and_not_by_one_call_of_a_library(rng):
    """PyTensor makes one solve of all rows out of many; a library may treat a row by those beside it."""
    with pm.Model() as model:
        b, x = pm.Normal("b", shape=3), pm.Data("x", rng.uniform(-1, 1, size=(40, 3)))
        lower = 5 * pt.eye(3) + pt.tril(pt.outer(b, b))
        solved = pt.linalg.solve_triangular(lower, x, lower=True, b_ndim=1)
        pm.Bernoulli("y", logit_p=(solved * b).sum(axis=1), observed=rng.integers(0, 2, 40))
    scores = RowScores.of(interface_of(model, dp.Domain(bounds={"x": (-1, 1)})))
    ops = [getattr(node.op, "core_op", node.op) for call in (scores.predicted, scores.scored) for node in call.nodes]
    solves = [op for op in ops if isinstance(op, SolveTriangular)]
    assert solves and all(op.b_ndim == 1 for op in solves)


@pytest.mark.slow
def test_the_number_of_rows_is_in_no_compiled_function():
    """Where it is private, other code for one row than for two could give its neighbours other last digits."""

    def compiled(n_rows):
        rng = np.random.default_rng(n_rows)
        with pm.Model() as model:
            eta = pm.Normal("b", shape=2) * pt.constant(rng.normal(size=(n_rows, 2)))
            logit = pt.concatenate([pt.zeros((n_rows, 1)), pt.cumsum(eta, axis=1)], axis=1)
            pm.Categorical("y", logit_p=logit, observed=np.zeros(n_rows, dtype=int))
        rows = RowScores.of(interface_of(model, dp.Domain(neighbours="add_remove", n_max=9)))
        functions = rows.predicted, rows.scored, rows.by_values
        return [pytensor.printing.debugprint(one._whole.maker.fgraph, print_type=True, file="str") for one in functions]

    first, *others = (compiled(n_rows) for n_rows in (2, 0, 1, 3))
    assert all(other == first for other in others)
