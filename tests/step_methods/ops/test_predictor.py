"""The one linear predictor of a likelihood: found, its rows right, and refused where anything else matters too."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.domain import Domain
from tests.step_methods.ops.test_row_density import density_of

pytestmark = pytest.mark.usefixtures("paid")

N = 20
RNG = np.random.default_rng(0)
ROWS, GROUPS, BITS = RNG.normal(size=(N, 3)), RNG.integers(0, 4, N), RNG.integers(0, 2, N)


def rows():
    return pm.Data("x", ROWS)


def slopes():
    return pm.TruncatedNormal("b", 0, 1, lower=-1, upper=1, shape=3)


def bits(eta):
    return pm.Bernoulli("y", logit_p=eta, observed=BITS)


LINEAR = {
    "an intercept": (lambda: bits(pm.Normal("a") + rows() @ slopes()), 1.0, 4),
    "groups": (lambda: bits(pm.Normal("a", shape=4)[pm.Data("g", GROUPS)] + (rows() * slopes()).sum(-1)), 1.0, 7),
    "an offset": (lambda: bits(2.0 + rows() @ slopes() / 3), 1 / 3, 3),
    "counts": (lambda: pm.Poisson("y", pt.exp(rows() @ slopes()), observed=BITS), 1.0, 3),
    "squares": (lambda: pm.Normal("y", rows() @ slopes(), 2.0, observed=BITS * 1.0), 0.0, 3),
}


def made(build):
    with pm.Model() as model:
        build()
    columns = {"x": (-3.0, 3.0), "y": (0, 1)}
    return density_of(model, Domain(bounds={name: ends for name, ends in columns.items() if name in model}))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", LINEAR)
def test_curvatures_of_rows_add_up_to_the_hessian(name, rng):
    build, bend, dimension = LINEAR[name]
    density = made(build)
    held, point = density.read(), rng.uniform(-0.9, 0.9, density.dimension)
    predictor = density.predictor
    assert predictor is not None and predictor.bend == pytest.approx(bend)
    found = predictor.at(point, 0.7, *held)
    assert found.vectors.shape == (len(held[1]), dimension)
    np.testing.assert_allclose(-found.curvature, 0.7 * density.bend(point, held), atol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["an intercept", "counts", "squares"])
def test_no_row_rises_above_what_is_said_of_it(name, rng):
    """f(η + x) <= f(η) + f'(η) x - c x² g(k |x|), for each row by itself, wherever parameters may be."""
    density = made(LINEAR[name][0])
    columns, _ = density.read()
    for row in range(3):
        held = [column[row : row + 1] for column in columns], np.ones(1)
        point, ahead = rng.uniform(-0.9, 0.9, (2, 50, density.dimension))
        found = density.predictor.at(point[0], 1.0, *held)
        moves = ahead - point[0]
        x = moves @ found.vectors[0]
        s = np.maximum(found.bends[0] * np.abs(x), 1e-9)
        decay = np.where(s < 1e-4, 0.5, (np.expm1(-s) + s) / s**2)
        here, slope = density.at(point[:1], held)[1][0], density.slopes(point[0], held)[1]
        upper = here + moves @ slope - found.curvatures[0] * x**2 * decay
        assert (density.at(ahead, held)[1] <= upper + 1e-9).all()


OTHERS = {
    "a product": lambda: bits(pm.Normal("c") * (rows() @ slopes())),
    "steps": lambda: bits(pt.floor(rows() @ slopes())),
    "a corner": lambda: bits(pt.abs(rows() @ slopes())),
    "two predictors": lambda: [bits(rows() @ slopes()), pm.Bernoulli("w", logit_p=pm.Normal("c"), observed=1 - BITS)],
    "a free scale": lambda: pm.Normal("y", rows() @ slopes(), pm.Uniform("s", 1, 2), observed=BITS * 1.0),
    "heavy tails": lambda: pm.StudentT("y", nu=3, mu=rows() @ slopes(), sigma=1.0, observed=BITS * 1.0),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", OTHERS)
def test_whatever_is_not_one_concave_function_of_one_linear_predictor_is_left_alone(name):
    assert made(OTHERS[name]).predictor is None
