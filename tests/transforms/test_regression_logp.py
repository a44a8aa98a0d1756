"""The density of a regression as one operation, against the same by small ones."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.transforms.regression_logp import CovariatePrior
from tests.transforms.test_regression import density

CELLS = {"cells": ("a", "b")}
ROWS = np.concatenate([np.ones((100, 1)), np.random.default_rng(5).uniform(-1, 1, (100, 3))], axis=1)
GRAM = np.array([part.T @ part for part in (ROWS[:40], ROWS[40:])])
PUBLIC = {"known": True, "gram": GRAM, **CELLS}
CASES = {
    "normal, private sizes": ("normal", {"noise": "laplace", "sizes_known": False, **CELLS}),
    "clamped, fewer rows": ("clamped", {"sizes_known": False, "at_most": True}),
    "clamped, apart": ("clamped", {"sizes": np.array([100, 200]), "noise": "laplace", "apart": True, **CELLS}),
    "clamped, public": ("clamped", {**PUBLIC, "noise": "laplace"}),
    "bernoulli, private sizes": ("bernoulli", {"noise": "laplace", "sizes_known": False, **CELLS}),
    "bernoulli, public, apart": ("bernoulli", {**PUBLIC, "apart": True}),
    "poisson": ("poisson", {}),
}
COORDINATES = ("centre", "root")


def variables(made):
    value = pt.matrix("value", shape=(1, made.statistic.count))
    a, w, sd = pt.vector("a"), pt.matrix("w") if made.statistic.apart else pt.vector("w"), pt.scalar("sd")
    beside = {key: pt.tensor(key, shape=shape, dtype="float64") for key, shape in made.beside_shapes.items()}
    wrt = [a, w, sd, *(item for key, item in beside.items() if key not in COORDINATES)]
    return [value, a, w, sd, *beside.values()], wrt


def point(made, size, rng):
    n_cells, d = len(made.statistic.cells), made.statistic.width
    draws = {
        "shares": lambda shape: rng.dirichlet(np.ones(shape)),
        "covariates": lambda shape: 0.7 * rng.normal(size=shape),
        "noise_variance": lambda shape: rng.exponential(size=shape),
        "centre": lambda shape: 0.3 * rng.normal(size=shape) - 0.3,
        "root": lambda shape: 0.8 * np.eye(shape[0]) + 0.05 * rng.normal(size=shape),
    }
    value = 40 * rng.normal(size=(1, made.statistic.count))
    a, w = (size * rng.normal(size=shape) for shape in (n_cells, (n_cells, d) if made.statistic.apart else d))
    beside = [draws[key](shape) for key, shape in made.beside_shapes.items()]
    return [value, a, w, np.array(size * rng.exponential() + 0.1), *beside]


@pytest.mark.slow(cases="all")
@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient_are_those_of_the_graph(name, rng):
    kind, options = CASES[name]
    made = density(kind, **options)
    inputs, wrt = variables(made)
    value, a, w, sd, *beside = inputs
    scales = pt.as_tensor(np.full(made.statistic.count, made.scale))
    functions = []
    for way in (made.logp, made.graph):
        logp = way(value, a, w, sd, scales, *beside)
        slopes = pytensor.grad(logp.sum(), wrt, disconnected_inputs="ignore")
        functions.append(plain_function(inputs, [logp, *slopes]))
    for size in (0.3, 1.0, 1.0, 3.0, 30.0):
        given = point(made, size, rng)
        (logp, *slopes), (expected, *others) = (function(*given) for function in functions)
        np.testing.assert_allclose(logp, expected, rtol=1e-9)
        for slope, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(slope, other, rtol=1e-6, atol=1e-6 * np.abs(other).max(initial=1e-6))


def test_the_prior_of_unknown_moments_is_that_of_its_graph(rng):
    made = density("normal").covariates
    z, centre, root = pt.vector("z"), rng.normal(size=9), np.eye(9) + 0.1 * rng.normal(size=(9, 9))
    inputs = [z, *map(pt.as_tensor, (centre, root, *made.priors))]
    outputs = []
    for way in (CovariatePrior().log_density, CovariatePrior().graph):
        logp = way(*inputs)
        outputs += [logp, pytensor.grad(logp, z)]
    for scale in (0.0, 1.0, 300.0):
        logp, slope, expected, other = plain_function([z], outputs)(scale * rng.normal(size=9))
        assert logp == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-9)
