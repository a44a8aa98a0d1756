"""A regression whose gradients are written by hand: the loop of Fisher scoring is compiled once for all its tests."""

import pymc as pm

WIDTH, CLIP = 3, 4.0


def regression(x, y):
    with pm.Model() as model:
        coefficients = pm.Normal("coefficients", 0, 0.5, shape=WIDTH)
        pm.Normal("y", pm.Data("x", x) @ coefficients, 1.0, observed=y)
    return model
