"""The density of a regression as one operation, against the same by small ones."""

import pickle

import cloudpickle
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dp.families.gram import Response
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.transforms.regression import RegressionDensity
from pymc_dp.transforms.regression_logp import CovariatePrior, link_number
from pymc_dp.transforms.trial import INTERPRETED
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


@pytest.mark.slow
def test_second_derivatives_are_those_of_the_graph(rng):
    made = density("normal", known=True, gram=GRAM.sum(axis=0)[None])
    inputs, wrt = variables(made)
    value, a, w, sd, *_ = inputs
    scales = pt.as_tensor(np.full(made.statistic.count, made.scale))
    found = []
    for way in (made.logp, made.graph):
        slope = pytensor.grad(way(value, a, w, sd, scales).sum(), w)
        found += pytensor.grad(slope[1], wrt)
    results = pytensor.function(inputs, found, mode=INTERPRETED)(*point(made, 1.0, rng))
    for one, two in zip(results[:3], results[3:], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8)


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


@pytest.mark.parametrize(
    ("link", "number"),
    [
        (pt.sigmoid, 0.0),
        (lambda eta: 1 / (1 + pt.exp(-eta)), 0.0),
        (pt.exp, 1.0),
        (lambda eta: 0.5 * (1 + pt.erf(eta / np.sqrt(2))), 2.0),
        (lambda eta: 1 - pt.exp(-pt.exp(eta)), 3.0),
        (lambda eta: pt.clip(pt.sigmoid(eta), 1e-9, 1 - 1e-9), None),
        (pt.softplus, None),
    ],
)
def test_links_are_known_by_their_values(link, number):
    assert link_number(Response(likelihood="bernoulli", mean=link)) == number


def test_another_link_keeps_the_graph():
    made = density("poisson")
    other = RegressionDensity(
        statistic=made.statistic,
        response=Response(likelihood="poisson", mean=pt.softplus),
        sizes=made.sizes,
        scale=3.0,
        noise="gaussian",
    )
    assert other.operation is None
    assert made.operation is not None


def test_the_operation_is_pickled_with_its_density():
    made = density("normal", sizes_known=False, **CELLS)
    again = pickle.loads(cloudpickle.dumps(made.operation))
    assert again == made.operation
    assert density("normal", sizes_known=False, **CELLS, apart=True).operation != again
