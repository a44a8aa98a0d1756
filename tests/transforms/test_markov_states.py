"""States like any variable of PyMC: probability, draws, dims, start, and what they may index."""

from itertools import product

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.transforms.markov_states import MarkovStates

FAST = "FAST_COMPILE"
START, MOVES = np.array([0.2, 0.5, 0.3]), np.array([[0.6, 0.3, 0.1], [0.0, 0.5, 0.5], [0.4, 0.2, 0.4]])


def test_probabilities_are_those_of_the_chain_and_add_up_to_one():
    paths = np.array(list(product(range(3), repeat=3)))
    found = pm.logp(MarkovStates.dist(START, MOVES, shape=(27, 3)), paths).eval(mode=FAST)
    truth = [START[a] * MOVES[a, b] * MOVES[b, c] for a, b, c in paths]
    np.testing.assert_allclose(np.exp(found), truth)
    assert np.exp(found).sum() == pytest.approx(1)
    outside = pm.logp(MarkovStates.dist(START, MOVES, shape=(2, 3)), [[0, 3, 0], [0, -1, 0]]).eval(mode=FAST)
    assert np.isneginf(outside).all()


def test_draws_move_as_the_chain_does(seed):
    draws = pm.draw(MarkovStates.dist(START, MOVES, shape=(50, 4)), 40, random_seed=seed, mode=FAST)
    assert draws.shape == (40, 50, 4) and draws.dtype.kind == "i"
    firsts = np.bincount(draws[..., 0].ravel(), minlength=3)
    assert stats.chisquare(firsts, START * 2000).pvalue > 0.001
    moves = np.zeros((3, 3))
    np.add.at(moves, (draws[..., :-1].ravel(), draws[..., 1:].ravel()), 1)
    assert moves[1, 0] == 0
    for row in (0, 2):
        assert stats.chisquare(moves[row], MOVES[row] * moves[row].sum()).pvalue > 0.001


def test_dims_say_how_long_a_chain_is(seed):
    with pm.Model(coords={"region": "abc", "month": range(5)}) as model:
        moves = pm.Dirichlet("moves", np.ones((3, 3)))
        states = MarkovStates("states", START, moves, dims=("region", "month"))
        prior = pm.sample_prior_predictive(7, random_seed=seed, compile_kwargs={"mode": FAST}).prior
    assert prior["states"].dims == ("chain", "draw", "region", "month") and prior["states"].shape == (1, 7, 3, 5)
    assert states.type.dtype == "int64"
    point = model.initial_point()
    assert (point["states"] == 1).all()  # the most probable at the start
    assert np.isfinite(model.compile_logp(mode=FAST)(point))


def indexed(n_profiles, n_states=3):
    numbers = np.arange(30)
    with pm.Model(coords={"region": "ab", "month": range(3)}) as model:
        states = MarkovStates("states", np.ones(n_states) / n_states, np.eye(n_states), dims=("region", "month"))
        profile = pm.Dirichlet("profile", np.ones((n_profiles, 2)))
        cell = states[pm.Data("region_index", numbers % 2), pm.Data("month_index", numbers % 3)]
        pm.Categorical("kind", profile[cell], observed=numbers % 5 % 2)
    return model


@pytest.mark.parametrize("domain", [None, Domain(public=("region_index", "month_index"))])
def test_the_state_of_a_cell_may_index_a_parameter_that_is_long_enough(domain):
    found = inspect(indexed(3), domain).sums
    assert not found.problems
    assert {column.name for column in found.observed[0].columns} == {"region_index", "month_index"}
    assert not inspect(indexed(4), domain).sums.problems
    (problem,) = inspect(indexed(2), domain).sums.problems
    assert "the range of a computed index cannot be checked" in problem.what
