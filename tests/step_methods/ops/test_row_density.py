"""Densities of rows held one by one: the model's own, finite at the ends, with right derivatives."""

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.priors import priors_of
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.ops import row_density
from pymc_dp.step_methods.ops.row_density import RowDensity
from pymc_dp.transforms.prior_model import prior_model

pytestmark = pytest.mark.usefixtures("paid")


def density_of(model, public=None):
    found = inspect(model, public).rows
    bare = prior_model(found)
    return RowDensity(found, bare, priors_of(bare))


def regression(x, y):
    with pm.Model() as model:
        b, a = pm.Normal("b", 0, 50, shape=x.shape[1]), pm.Normal("a", 1, 20)
        pm.Bernoulli("y", logit_p=a + pm.Data("x", x) @ b, observed=y)
    return model


@pytest.fixture(scope="module")
def logistic():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 3)), rng.integers(0, 2, 12)
    density = density_of(regression(x, y), Domain(bounds={"x": (-9, 9)}))
    with opened_gate():
        return density, x, y, density.read()


def terms(x, y, points):
    eta = points[:, 3:] + points[:, :3] @ x.T
    return np.where(y == 1, -np.logaddexp(0, -eta), -np.logaddexp(0, eta))


def test_values_are_those_of_the_model(logistic, rng, monkeypatch):
    density, x, y, held = logistic
    points = rng.normal(size=(11, 4))
    monkeypatch.setattr(row_density, "CHUNK", 30)  # two points at a time
    prior, likelihood = density.at(points, held)
    np.testing.assert_allclose(likelihood, terms(x, y, points).sum(axis=1), rtol=1e-12)
    wanted = stats.norm.logpdf(points[:, :3], 0, 50).sum(axis=1) + stats.norm.logpdf(points[:, 3], 1, 20)
    np.testing.assert_allclose(np.diff(prior), np.diff(wanted), rtol=1e-10)  # constants of PyMC's are float32


def test_no_row_makes_a_density_vanish_where_it_does_not(logistic):
    """log(1 - sigmoid(40)) is -inf in floats, and would tell for sure that a row is not there."""
    density, x, y, held = logistic
    points = np.array([[0, 0, 0, 45.0], [0, 0, 0, -45.0], [300.0, 0, 0, 0], [0, -700.0, 0, 0]])
    np.testing.assert_allclose(density.at(points, held)[1], terms(x, y, points).sum(axis=1), rtol=1e-12)
    for point in points:
        assert np.isfinite(density.slopes(point, held)[1]).all() and np.isfinite(density.bend(point, held)).all()


def test_derivatives_are_those_of_closed_forms(logistic, rng, monkeypatch):
    density, x, y, held = logistic
    monkeypatch.setattr(row_density, "CHUNK", 20)  # five rows at a time
    table = np.column_stack([x, np.ones(12)])
    for point in (np.zeros(4), rng.normal(size=4)):
        p = special.expit(table @ point)
        prior, slope = density.slopes(point, held)
        np.testing.assert_allclose(slope, table.T @ (y - p), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(prior, -(point - [0, 0, 0, 1]) / [2500, 2500, 2500, 400], rtol=1e-10)
        np.testing.assert_allclose(density.bend(point, held), -(table.T * (p * (1 - p))) @ table, rtol=1e-10)


def test_a_likelihood_that_is_linear_does_not_bend():
    with pm.Model() as model:
        pm.Exponential("y", scale=np.e, observed=np.ones(3))
        pm.CustomDist("z", pm.Normal("b", shape=2), logp=lambda value, b: (value * b).sum(-1), observed=np.ones((3, 2)))
    density = density_of(model, Domain(bounds={"y": (0, 1), "z": (0, 1)}))
    assert (density.bend(np.ones(2), density.read()) == np.zeros((2, 2))).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [0, 1])
def test_tables_without_rows_and_with_one_are_tables(n):
    x, y = np.full((n, 2), 0.5), np.ones(n, dtype=int)
    density = density_of(regression(x, y), Domain(bounds={"x": (-1, 1)}, neighbours="add_remove", n_max=9))
    held = density.read()
    point = np.array([0.1, 0.2, 0.3])
    assert density.at(point[None], held)[1] == pytest.approx(-n * np.logaddexp(0, -0.45))
    assert density.slopes(point, held)[1].shape == (3,) and density.bend(point, held).shape == (3, 3)
    assert (density.bend(point, held) == 0).all() == (n == 0)


def test_equal_rows_of_whole_numbers_are_counted():
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=3)
        pm.Poisson("y", pm.math.exp(mu[pm.Data("g", np.tile([0, 1, 2], 50))]), observed=np.tile([4, 5], 75))
    density = density_of(model, Domain(bounds={"y": (0, 9)}))
    rows, counts = density.read()
    assert len(counts) == 6 and counts.sum() == 150
    value = density.at(np.zeros((1, 3)), (rows, counts))[1]
    assert value == pytest.approx(stats.poisson.logpmf(np.tile([4, 5], 75), 1).sum())


def test_discrete_parameters_are_refused_by_name():
    with pm.Model() as model:
        pm.Normal("y", pm.Poisson("k", 3) * pm.Normal("b"), 1.0, observed=np.zeros(4))
    with pytest.raises(UnsupportedModelError, match="k: it is discrete"):
        density_of(model, Domain(bounds={"y": (-1, 1)}))


def test_a_table_without_rows_is_one_of_a_row_that_counts_for_nothing():
    """An element chosen by a row is no operation on no rows: an error would tell an empty table from one of a row."""
    with pm.Model(coords={"of": range(3)}) as model:
        a = pm.Normal("a", 0, 1, dims="of")
        pm.Bernoulli("y", logit_p=a[pm.Data("g", np.zeros(0, dtype=int))], observed=np.zeros(0, dtype=int))
    density = density_of(model, Domain(neighbours="add_remove", n_max=9))
    held, place = density.read(), np.array([0.5, -1.0, 2.0])
    assert density.at(place[None], held)[1] == 0
    assert not density.slopes(place, held)[1].any() and not density.bend(place, held).any()
    assert not density.predictor.at(place, 1.0, *held).curvature.any()
