"""Candidates are laid out as they were given, once each, and those that do not fit the model are refused."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.priors import priors_of
from pymc_dp.step_methods.mode import Draws, Grid, Points
from pymc_dp.step_methods.mode.candidates import lay_out


@pytest.fixture(scope="module")
def priors():
    with pm.Model() as model:
        pm.Uniform("u", -1, 3)
        pm.Beta("p", 1, 1, shape=2)
    return priors_of(model)


@pytest.fixture(scope="module")
def loose():
    with pm.Model() as model:
        pm.Normal("b")
        pm.Dirichlet("w", [1.0, 1.0])
    return priors_of(model)


@pytest.fixture(scope="module")
def ball():
    with pm.Model() as model:
        pm.Normal("w", 0, 1, shape=2)
    return priors_of(dp.truncate(model, norms={"w": 2.0}))


def test_a_grid_takes_the_middles_of_cells(priors):
    places, numbers = lay_out(Grid(cells=4, axes={}), priors)
    assert places.shape == (64, 3) and numbers.tolist() == list(range(64))
    assert places[0].tolist() == [-0.5, 0.125, 0.125] and places[-1].tolist() == [2.5, 0.875, 0.875]
    assert lay_out(Grid(axes={}), priors[:1])[0].shape == (1024, 1)


def test_values_of_a_grid_replace_middles(priors):
    places, _ = lay_out(Grid(axes={"p": [0.2, 0.7]}, cells=2), priors)
    assert places.tolist() == [[u, one, two] for u in (0.0, 2.0) for one in (0.2, 0.7) for two in (0.2, 0.7)]


def test_equal_candidates_count_once_and_keep_their_numbers(priors):
    u = np.array([0.0, 1.0, 0.0, 2.0])
    values = {"p": np.full((4, 2), 0.5), "u": u}
    places, numbers = lay_out(Points(values=values), priors)
    assert numbers.tolist() == [0, 1, 3] and places[:, 0].tolist() == [0.0, 1.0, 2.0]
    paid = {"epsilon": 1.0, "delta": 0.0, "guarantee": "exact", "neighbours": "replace"}
    draws = Draws(values={**values, "odds": u}, **paid)
    assert lay_out(draws, priors)[0].tolist() == places.tolist()


def test_specifications_are_compared_by_numbers():
    assert Grid(axes={"p": np.arange(3)}) == Grid(axes={"p": np.arange(3)})
    assert Grid(axes={"p": np.arange(3)}) != Grid(axes={"p": np.arange(4)})
    assert Grid(axes={}) != Points(values={})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Points(values={"u": [0.0, 1.0]}), r"values of \['u'\], but the free variables are \['p', 'u'\]"),
        (Points(values={"u": [0.0, 1.0], "p": [0.5, 0.5]}), r"must have shape \(n_candidates, 2\)"),
        (Points(values={"u": [0.0, 1.0], "p": [[0.5, 0.5]]}), "as many for each variable"),
        (Points(values={"u": [0.0, np.nan], "p": [[0.5, 0.5]] * 2}), "finite"),
        (Points(values={"u": ["a", "b"], "p": [[0.5, 0.5]] * 2}), "array of numbers"),
        (Points(values={"u": [0.0, 0.0], "p": [[0.5, 0.5]] * 2}), "There are 1 distinct candidates"),
        (Points(values={"u": [0.0, 3.1], "p": [[0.5, 0.5]] * 2}), "candidates of 'u' are outside of the support"),
        (Grid(axes={"q": [1.0]}), r"grid names \['q'\]"),
        (Grid(axes={"p": [[0.5]]}, cells=2), "list of numbers"),
        (Grid(axes={"p": []}, cells=2), "list of numbers"),
        (Grid(cells=2000, axes={}), "The grid has 8000000000 points"),
    ],
)
def test_candidates_that_do_not_fit_are_refused(priors, given, text):
    with pytest.raises(ArgumentError, match=text):
        lay_out(given, priors)


def test_a_grid_needs_ends_few_scalars_and_no_simplex(priors, loose):
    with pytest.raises(ArgumentError, match="'b' has no ends"):
        lay_out(Grid(axes={}), loose[:1])
    with pytest.raises(ArgumentError, match="add up to 1"):
        lay_out(Grid(axes={}), loose)
    with pytest.raises(ArgumentError, match="over 5 scalars is too fine"):
        lay_out(Grid(axes={}), [*priors, priors[1]])


@pytest.mark.parametrize("given", [Grid(axes={}), Grid(cells=20, axes={}), Grid(axes={"w": np.linspace(-2, 2, 9)})])
def test_a_grid_with_corners_outside_of_a_ball_is_refused_as_one(ball, given):
    """The remedies that it names are none to leave out candidates, which nobody gave, and they work."""
    with pytest.raises(ArgumentError, match=r"lie outside of the ball that 'w' is restricted to, of radius 2") as found:
        lay_out(given, ball)
    assert "Leave them out" not in str(found.value) and "grid={'w': values} below 2/√2 in size" in str(found.value)
    assert len(lay_out(Grid(axes={"w": np.linspace(-1, 1, 9) * 2 / np.sqrt(2) * (1 - 1e-12)}), ball)[0]) == 81
    assert len(lay_out(Grid(cells=2, axes={}), ball)[0]) == 4
