"""How fast linear predictors and chosen elements move with one scalar, and which element a row depends on."""

import numpy as np
import pymc as pm
import pytest

from pymc_dp.domain import Domain
from pymc_dp.proofs.meeting_points import Meeting
from pymc_dp.proofs.one_variable import Moving, chosen_elements, parameters_of
from tests.proofs.test_conditional_ranges import row_of

N = 5
Y = np.zeros(N)


def derivative(row, name, entry=None):
    moving = Moving(symbol=parameters_of(row)[name], entry=entry)
    (meeting,) = (one for one in row.symbols if isinstance(one, Meeting))
    assert moving.touches([meeting])
    low, high = moving.derivative(meeting)
    return low.ravel(), high.ravel()


def regression(mean, public=None, **parameters):
    """A model of `y` whose mean is made from X (N, 2) and parameters, each a prior's maker."""
    with pm.Model() as model:
        X = pm.Data("X", np.ones((N, 2)))
        made = {name: make(name) for name, make in parameters.items()}
        pm.Normal("y", mean(X, **made), 1.0, observed=Y if "B" not in made else np.zeros((N, 3)))
    return row_of(model, public)


def vector(low, high, shape=2):
    return lambda name: pm.Uniform(name, low, high, shape=shape)


def test_a_coefficient_moves_its_predictor_by_its_own_covariate():
    row = regression(lambda X, b: X @ b, Domain(bounds={"X": (-0.5, 2.0)}), b=vector(-1, 1))
    assert derivative(row, "b", 1) == (pytest.approx([-0.5]), pytest.approx([2.0]))
    row = regression(lambda X, b: X @ b, Domain(norms={"X": 3.0}), b=vector(-1, 1))
    assert derivative(row, "b", 0) == (pytest.approx([-3.0]), pytest.approx([3.0]))


def test_a_factor_of_all_coefficients_moves_by_their_norm_at_most():
    row = regression(lambda X, tau, z: X @ (tau * z), Domain(norms={"X": 3.0}), tau=vector(1, 2, ()), z=vector(-1, 1))
    low, high = derivative(row, "tau")
    assert high == pytest.approx([3 * np.sqrt(2)]) and low == -high
    assert derivative(row, "z", 0) == (pytest.approx([-6.0]), pytest.approx([6.0]))


def test_a_coefficient_of_one_predictor_moves_no_other():
    row = regression(lambda X, B: X @ B, Domain(bounds={"X": (0.0, 2.0)}), B=vector(-1, 1, (2, 3)))
    low, high = derivative(row, "B", 4)  # of the second covariate, in the second predictor
    assert low == pytest.approx([0, 0, 0], abs=1e-12) and high == pytest.approx([0, 2, 0], abs=1e-12)


def test_predictors_that_are_added_or_subtracted_move_either_way():
    row = regression(lambda X, a, b: a - X @ b, Domain(public=["X"]), a=vector(-1, 1, ()), b=vector(-1, 1))
    for name, entry in (("a", None), ("b", 0)):
        assert derivative(row, name, entry) == (pytest.approx([-1.0]), pytest.approx([1.0]))


def grouped(mean, **parameters):
    with pm.Model() as model:
        g = pm.Data("g", np.array([0, 1, 2, 0, 1]))
        made = {name: make(name) for name, make in parameters.items()}
        pm.Normal("y", mean(g, **made), 1.0, observed=Y)
    return row_of(model, None)


def test_a_row_hangs_on_the_element_that_its_index_chooses():
    row = grouped(lambda g, p: p[::-1][g], p=vector(-1, 1, 3))
    assert chosen_elements(row, "p").tolist() == [2, 1, 0]
    row = grouped(lambda g, tau, z: (tau * z)[g], tau=vector(1, 2, ()), z=vector(-1, 1, 3))
    assert chosen_elements(row, "z").tolist() == [0, 1, 2]
    low, high = derivative(row, "z", 1)
    assert low == pytest.approx([0.0], abs=1e-12) and high == pytest.approx([2.0])


def test_rows_may_hang_on_several_elements():
    row = grouped(lambda g, p: p[g] + p[0], p=vector(-1, 1, 3))
    assert chosen_elements(row, "p") is None
    row = grouped(lambda g, p: p[g] - p[(g + 1) % 3], p=vector(-1, 1, 3))
    assert chosen_elements(row, "p") is None
    row = grouped(lambda g, p: (p - p.mean())[g], p=vector(-1, 1, 3))
    assert chosen_elements(row, "p") is None


def test_a_coefficient_beside_a_chosen_element_moves_by_its_covariate_and_the_element_by_itself():
    with pm.Model() as model:
        X, g = pm.Data("X", np.full((N, 2), 5.0)), pm.Data("g", np.array([0, 1, 2, 0, 1]))
        a, b = pm.Uniform("a", -1, 1, shape=3), pm.Uniform("b", -1, 1, shape=2)
        pm.Normal("y", X @ b + a[g], 1.0, observed=Y)
    row = row_of(model, Domain(public=["X", "g"]))
    low, high = derivative(row, "b", 0)
    assert low <= -5.0 and high >= 5.0
    assert derivative(row, "a", 0) == (pytest.approx([-1.0]), pytest.approx([1.0]))
