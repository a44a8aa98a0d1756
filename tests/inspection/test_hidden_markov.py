"""A hidden Markov model is recognised by its graph, and whatever is more or less is not."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.inspection.hidden_markov import chains_of, emission_of, hidden_markov
from pymc_dp.inspection.priors import priors_of

PLACES = np.array([[0, 1, 1, 0], [2, 0, 1, 1]])


def model_of(parameter, start=None, moves=None):
    """Free variables, and the parameter of four cells as a function of states and profile."""
    with pm.Model() as model:
        first = pm.Dirichlet("start", np.ones(2)) if start is None else start
        following = pm.Dirichlet("moves", np.ones((2, 2))) if moves is None else moves(model)
        states = dp.markov.MarkovStates("states", first, following, shape=(2, 3))
        profile = pm.Dirichlet("profile", np.ones((2, 3)))
    return model, parameter(states, profile)


def plain(states, profile):
    return profile[states[PLACES[1] % 2, PLACES[0]]]


def test_places_of_cells_are_read_off():
    model, parameter = model_of(plain)
    found = hidden_markov(model, {"kind": [parameter]})
    assert found is not None and found.chain.n_states == 2
    assert (found.chain.n_chains, found.chain.n_steps) == (2, 3)
    assert {item.name for item in found.chain.free} == {"start", "moves"}
    assert found.emissions["kind"].profile.name == "profile"
    assert found.emissions["kind"].places.tolist() == (PLACES[1] % 2 * 3 + PLACES[0]).tolist()


@pytest.mark.parametrize(
    "parameter",
    [
        lambda states, profile: plain(states, profile)[:, [1, 0, 2]],
        lambda states, profile: profile[1 - states[0]],
        lambda states, profile: profile[states[0], :2],
        lambda states, profile: profile[states[0]] * 1.0,
        lambda states, profile: profile[states[0]][states[1]],
        lambda states, profile: pt.stack([profile[states[0, 0]], profile[states[0, 1]]]),
    ],
    ids=["other columns", "other state", "fewer columns", "computed", "twice", "stacked"],
)
def test_other_parameters_are_not_recognised(parameter):
    model, found = model_of(parameter)
    assert emission_of(found, priors_of(model)[2], priors_of(model)) is None
    assert hidden_markov(model, {"kind": [found]}) is None


def test_models_with_more_in_them_are_not_recognised():
    model, parameter = model_of(plain)
    with model:
        pm.Normal("beside", 0, 1)
    assert hidden_markov(model, {"kind": [parameter]}) is None
    model, parameter = model_of(plain, moves=lambda model: pm.Dirichlet("moves", np.ones((2, 2)))[::-1])
    assert not chains_of(model, priors_of(model))
    model, parameter = model_of(plain)
    with model:
        pm.Potential("more", model["start"][0])
    assert hidden_markov(model, {"kind": [parameter]}) is None
