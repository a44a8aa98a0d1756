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


@pytest.mark.few(1)
@pytest.mark.parametrize("build", models.ALL)
def test_jacobian_and_scores_are_those_of_finite_differences(build, rng):
    interface = interface_of(*build())
    rows = RowScores.of(interface, mode="FAST_COMPILE")
    columns = [read(column)[:8] for column in interface.inspection.columns]
    at, step = rng.normal(0, 0.3, interface.size), 1e-5
    predictors, jacobian = rows.predicted(at, *columns)
    scores, *_ = rows.scored(predictors, *columns)
    for k in range(interface.size):
        ends = [rows.predicted(at + sign * step * np.eye(interface.size)[k], *columns)[0] for sign in (1, -1)]
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), jacobian[:, :, k], atol=1e-6)
    for k in range(rows.count):
        shift = step * np.eye(rows.count)[k]
        logps = [sum(rows.scored(predictors + sign * shift, *columns)[1:]) for sign in (1, -1)]
        np.testing.assert_allclose((logps[0] - logps[1]) / (2 * step), scores[:, k], rtol=1e-5, atol=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [models.groups, models.ordered])
def test_compiled_code_gives_the_same(build, rng):
    interface = interface_of(*build())
    plain, fast = (RowScores.of(interface, mode=mode) for mode in ("FAST_COMPILE", "NUMBA"))
    columns = [read(column)[:32] for column in interface.inspection.columns]
    at = rng.normal(size=interface.size)
    for one, other in zip(plain.predicted(at, *columns), fast.predicted(at, *columns), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


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


@pytest.mark.few(2)
@pytest.mark.parametrize("build", [models.bernoulli, models.poisson, models.negative_binomial, models.softmax])
def test_all_values_of_a_response_are_scored_together_as_each_by_itself(build, rng):
    rows = RowScores.of(interface_of(*build()), mode="FAST_COMPILE")
    (one,), count = rows.interface.responses, models.ROWS
    columns = [read(column) for column in rows.interface.inspection.columns]
    predictors, _ = rows.predicted(rng.normal(0, 0.3, rows.interface.size), *columns)
    scores, logps = rows.by_values(predictors, *columns, one.values)
    held = [np.repeat(column, one.count, axis=0) for column in columns]
    held[one.place] = np.tile(one.values, count)
    each = rows.scored(np.repeat(predictors, one.count, axis=0), *held)
    np.testing.assert_allclose(scores.reshape(-1, rows.count), each[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(logps.ravel(), each[1], rtol=1e-12, atol=1e-12)


def mixture():
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        x, b = pm.Data("x", rng.uniform(-1, 1, 20)), pm.Normal("b", shape=2)
        w = pm.Dirichlet("w", [1, 1])
        pm.NormalMixture("y", w=w, mu=b * x[:, None], sigma=0.5, observed=rng.normal(size=20))
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (-4, 4)})


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [models.normal, mixture])
def test_values_of_its_own_of_each_row_are_scored_as_rows_that_hold_them(build, rng):
    rows = RowScores.of(interface_of(*build()), mode="FAST_COMPILE")
    (one,), (density,), count = rows.interface.responses, rows.densities, 5
    columns = [read(column)[:8] for column in rows.interface.inspection.columns]
    predictors, _ = rows.predicted(rng.normal(0, 0.3, rows.interface.size), *columns)
    values = rng.normal(size=(8, count))
    found = rows.by_own_values(predictors, *columns, values)
    held = [np.repeat(column, count, axis=0) for column in columns]
    held[one.place] = values.ravel()
    scores, logps = rows.scored(np.repeat(predictors, count, axis=0), *held)
    np.testing.assert_allclose(found[0].reshape(-1, rows.count), scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[1].ravel(), logps, rtol=1e-12, atol=1e-12)
    for one, other in zip(rows.observed(predictors, columns), rows.scored(predictors, *columns), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert (density is None) == (build is models.normal)
    if density is not None:
        np.testing.assert_allclose(density(predictors, *columns, values)[0].ravel(), logps, rtol=1e-12, atol=1e-12)


def test_values_are_scored_together_of_a_single_response_alone():
    found = [RowScores.of(interface_of(*build()), mode="FAST_COMPILE") for build in (models.normal, models.two)]
    assert [rows.by_values for rows in found] == [None, None]
    assert [rows.by_own_values is None for rows in found] == [False, True]


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
