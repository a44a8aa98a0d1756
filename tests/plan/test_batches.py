"""Densities at many points are those of the model, and parts that do not hang together are told apart."""

import numpy as np
import pymc as pm
import pytest

from pymc_dp.inspection.interpreted import NUMPY
from pymc_dp.plan import batches
from pymc_dp.plan.batches import at_points, components, density_terms
from pymc_dp.simulation.prior import joined, split

SHAPES = [(), (3,), (2,)]
NUMPY_MODE = {"mode": NUMPY["mode"]}


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        pm.Gamma("rate", 2, 1, shape=3)
        p = pm.Dirichlet("p", np.ones(3))
        pm.Normal("y", mu, 1.0, observed=np.array([0.3, 1.0]))
        pm.Multinomial("k", 5, p, observed=np.array([1, 3, 1]))
    return model


def test_terms_add_up_to_the_density_of_the_model(model, rng):
    points = rng.normal(size=(4, 6))
    found = density_terms(model, SHAPES)(points).sum(axis=1)
    logp = model.compile_logp(**NUMPY_MODE)
    values = [str(value.name) for value in model.value_vars]
    expected = [
        logp(dict(zip(values, (item[0] for item in split(point[None], SHAPES)), strict=True))) for point in points
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_points_are_looked_at_in_turns_where_they_are_many(model, rng, monkeypatch):
    points = rng.normal(size=(7, 6))
    expected = density_terms(model, SHAPES)(points)
    monkeypatch.setattr(batches, "MOST_NUMBERS", 6)
    np.testing.assert_allclose(density_terms(model, SHAPES)(points), expected, rtol=1e-12)


def test_parts_hang_together_by_terms(model, rng):
    terms = density_terms(model, SHAPES)
    found = {part.elements: part.terms for part in components(terms, rng.normal(size=(2, 6)))}
    assert set(found) == {(0,), (1,), (2,), (3,), (4, 5)}
    assert len({term for own in found.values() for term in own}) == sum(map(len, found.values()))


def test_a_common_scale_ties_everything(rng):
    with pm.Model() as model:
        pm.Normal("z", 0, pm.HalfNormal("s", 1), shape=3)
    (part,) = components(density_terms(model, [(), (3,)]), rng.normal(size=(2, 4)))
    assert part.elements == (0, 1, 2, 3)


def test_what_hangs_on_nothing_has_a_value_at_every_point(model):
    moving, still = at_points(model, [model.rvs_to_values[model["mu"]] * 2, pm.math.constant(1.5)], SHAPES)(
        np.ones((4, 6))
    )
    assert moving.tolist() == [2.0] * 4 and still.tolist() == [1.5] * 4


def test_points_are_split_and_joined(rng):
    points = rng.normal(size=(5, 6))
    parts = split(points, SHAPES)
    assert [part.shape for part in parts] == [(5,), (5, 3), (5, 2)]
    np.testing.assert_array_equal(joined(parts), points)
