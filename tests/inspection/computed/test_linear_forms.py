"""A graph is the sum of its terms: coefficients times functions of the row."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from tests.families.vectors import plug_in_gaps

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
N = 30
RNG = np.random.default_rng(20)
X, Z, W = RNG.uniform(-2, 2, N), RNG.uniform(0.5, 3, N), RNG.uniform(-1, 1, (N, 2))
G, H = RNG.integers(0, 3, N), RNG.integers(0, 2, N)
BOUNDS = {"x": (-2, 2), "z": (0.5, 3), "W": (-1, 1), "H": (0, 1), "y": (-5, 5)}


def normal(name, **shape):
    return pm.Normal(name, 0, 1, **shape)


MEANS = {
    "parabola": lambda x, z, w, g, h: normal("a") + normal("b") * x + normal("c") * x**2,
    "product": lambda x, z, w, g, h: normal("a") + normal("b") * x * z + x,
    "product_of_sums": lambda x, z, w, g, h: normal("a") * (x - 1) * (z - 2),
    "sum_by_column": lambda x, z, w, g, h: (normal("a") + h + normal("c") * z) * x,
    "index": lambda x, z, w, g, h: normal("a", shape=2)[1 * (z > 1.5)] + normal("b") * x,
    "two": lambda x, z, w, g, h: normal("a", shape=8)[pt.floor(z).astype(int) * 2 + h] + normal("b") * x,
    "cells": lambda x, z, w, g, h: normal("a", shape=3)[g] * x**2 + normal("b") * h * z,
    "flag_as_index_too": lambda x, z, w, g, h: normal("a", shape=2)[h] + normal("b") * h * x + normal("c") * h,
    "logarithm": lambda x, z, w, g, h: normal("a") + normal("b") * pt.log(z) / 2 + pt.log(z),
    "comparison": lambda x, z, w, g, h: normal("a") + normal("b") * (z > 1.5),
    "hinge": lambda x, z, w, g, h: normal("a") + normal("b") * pt.maximum(x - 0.5, 0),
    "choice": lambda x, z, w, g, h: pt.switch(z > 1, normal("a"), normal("b") * x),
    "stack": lambda x, z, w, g, h: pt.stack([x, x**2], axis=1) @ normal("b", shape=2),
    "powers": lambda x, z, w, g, h: x[:, None] ** pt.stack([1, 3]) @ normal("b", shape=2),
    "matrix": lambda x, z, w, g, h: pt.exp(w) @ normal("b", shape=2) + w[:, 0],
    "rows_of_matrix": lambda x, z, w, g, h: (w**2 * normal("b", shape=2)).sum(axis=1),
    "square_of_sum": lambda x, z, w, g, h: (normal("a") + normal("b") * x) ** 2,
    "quotient": lambda x, z, w, g, h: (normal("a") + normal("b") * x) / z,
}  # fmt: skip


def built(mean):
    with pm.Model() as model:
        x, z, w = pm.Data("x", X), pm.Data("z", Z), pm.Data("W", W)
        pm.Normal("y", mean(x, z, w, pm.Data("g", G), pm.Data("H", H)), pm.HalfNormal("s"), observed=np.zeros(N))
    return model


def domain_of(model):
    return dp.Domain(bounds={name: ends for name, ends in BOUNDS.items() if name in model.named_vars})


@pytest.mark.few(6)
@pytest.mark.parametrize("name", MEANS)
def test_the_density_of_sums_is_that_of_the_rows(name, rng):
    """So the mean of every row is that of the columns that are computed for it."""
    model = built(MEANS[name])
    start = model.initial_point()
    points = [{key: value + 0.5 * rng.normal(size=value.shape) for key, value in start.items()} for _ in range(3)]
    assert np.abs(plug_in_gaps(model, domain_of(model), points)).max() < 1e-4


@pytest.mark.parametrize(
    "mean",
    [
        lambda x, z, w, g, h: pt.exp(normal("a") * x),
        lambda x, z, w, g, h: pt.maximum(x - normal("a"), 0) + normal("b"),
        lambda x, z, w, g, h: normal("a") * x ** normal("b"),
        lambda x, z, w, g, h: abs(normal("a") * x),
        lambda x, z, w, g, h: normal("a") * pt.gammaln(z),
        lambda x, z, w, g, h: normal("a") * ((x > 0) + (z > 1)),  # True + True is True
    ],
)
def test_a_parameter_in_a_curved_function_of_a_column_is_refused(mean):
    model = built(mean)
    problems = dp.explain(model, domain_of(model)).problems
    assert any("linear predictor" in problem.what or "not affine" in problem.what for problem in problems)
