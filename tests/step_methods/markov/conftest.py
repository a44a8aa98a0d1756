"""A tiny hidden Markov model: 2 regions, 3 months, 2 states, a field of two levels and one of three."""

import numpy as np
import pymc as pm

import pymc_dp as dp

REGIONS, MONTHS, STATES = 2, 3, 2
PUBLIC = dp.Domain(public=("region_index", "month_index"))
TWO, THREE = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 3.0]])
"""Concentrations of the profiles, different for each state so that states are told apart."""
START, MOVES = np.array([1.0, 2.0]), np.array([[2.0, 1.0], [1.0, 1.5]])


def hidden_model(rows=24, *, lower=None, fields=("two", "three"), shift=0):
    """Rows spread over the cells; categories follow from the row's number."""
    numbers = np.arange(rows)
    coords = {"region": range(REGIONS), "month": range(MONTHS), "state": range(STATES), "level": range(3)}
    with pm.Model(coords=coords) as model:
        region = pm.Data("region_index", numbers % REGIONS)
        month = pm.Data("month_index", numbers // REGIONS % MONTHS)
        start = pm.Dirichlet("start", START, dims="state")
        transition = pm.Dirichlet("transition", MOVES, shape=(STATES, STATES))
        states = dp.markov.MarkovStates("states", start, transition, dims=("region", "month"))
        cell = states[region, month]
        if "two" in fields:
            two = (
                pm.Dirichlet("two_profile", TWO) if lower is None else dp.TruncatedDirichlet("two_profile", TWO, lower)
            )
            pm.Categorical("two", two[cell], observed=(numbers + shift) % 7 % 2)
        if "three" in fields:
            three = (
                pm.Dirichlet("three_profile", THREE, dims=("state", "level"))
                if lower is None
                else dp.TruncatedDirichlet("three_profile", THREE, lower, dims=("state", "level"))
            )
            pm.Categorical("three", three[cell], observed=(numbers + shift) % 5 % 3)
    return model
