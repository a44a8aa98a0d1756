"""Coordinates of private models: priors, names and posteriors are as without them, and the posterior is round."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp._display import scalar_names
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.gradients.choice import NAME
from pymc_dp.gradients.fit import path_prior
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.private_model import Quadratic, WhitenedRV, columns_of, observe_gradients, whitened
from pymc_dp.inspection.interpreted import plain_draw, plain_function
from pymc_dp.release.record import TableRecord
from pymc_dp.transforms.prior_model import prior_model_with
from tests.gradients.models import bernoulli, ordered, softmax


def logistic(b):
    rng = np.random.default_rng(3)
    pm.Bernoulli("y", logit_p=pm.Data("x", rng.uniform(-1, 1, (40, 3))) @ b, observed=rng.integers(0, 2, 40))


def spread():
    """A model with a hyperparameter."""
    with pm.Model(coords={"feature": list("uvw")}) as model:
        logistic(pm.Normal("b", 0.0, pm.HalfNormal("tau", 1.0), dims="feature"))
    return model, dp.Domain(bounds={"x": (-1, 1)})


def positive():
    """An array on the scale of its logarithm."""
    with pm.Model() as model:
        logistic(pm.LogNormal("b", 0.0, 0.5, shape=3))
    return model, dp.Domain(bounds={"x": (-1, 1)})


def several():
    """A multivariate prior."""
    with pm.Model() as model:
        logistic(pm.MvNormal("b", np.zeros(3), np.eye(3) + 0.5))
    return model, dp.Domain(bounds={"x": (-1, 1)})


def released(size, rng):
    root = rng.normal(size=(size, size))
    curvature = 40 * (root @ root.T + 0.01 * np.eye(size))
    covariance = curvature + 7 * np.eye(size)
    return Quadratic(slope=10 * rng.normal(size=size), curvature=curvature, covariance=covariance, scale=np.ones(size))


def plain(interface, quadratic):
    new, (parameters,) = prior_model_with(interface.inspection, [interface.flat])
    labels = scalar_names(interface.parts)
    record = TableRecord(
        name=NAME, likelihood="", cell_dim="parameter", column_dim="statistic", cells=tuple(labels),
        columns=columns_of(labels), scales=(), epsilon=1.0, sensitivities=(), sizes_public=False, plan={},
    )  # fmt: skip
    new.add_coords({record.cell_dim: record.cells, record.column_dim: record.columns})
    observe_gradients(new, record, parameters, quadratic)
    return new


def private(interface, quadratic, prior=None):
    return whitened(plain(interface, quadratic), interface, [quadratic], prior or path_prior(interface))


def values(model, rvs, own):
    """Return the point of value variables where free variables have these values."""
    graphs = [rv if (how := model.rvs_to_transforms[rv]) is None else how.forward(rv, *rv.owner.inputs) for rv in rvs]
    found = plain_function([model[name] for name in own], graphs)(*own.values())
    return {model.rvs_to_values[rv].name: value for rv, value in zip(rvs, found, strict=True)}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("make", [bernoulli, softmax, ordered, spread, positive, several])
def test_densities_are_as_without_coordinates(make, rng):
    """Those of the variables; those of value variables differ by one number, the volume."""
    interface = interface_of(*make())
    quadratic = released(interface.size, rng)
    old, new = plain(interface, quadratic), private(interface, quadratic)
    assert all(isinstance(rv.owner.op, WhitenedRV) == (rv.type.ndim > 0) for rv in new.free_RVs)
    drawn = plain_draw(old.free_RVs, rng, 4)
    densities = [model.compile_logp(jacobian=False) for model in (old, new)]
    whole = [model.compile_logp() for model in (old, new)]
    slopes = [model.compile_dlogp() for model in (old, new)]
    volumes, fits = [], []
    for place in range(4):
        own = {rv.name: np.sort(one[place]) if rv.name == "cuts" else one[place]
               for rv, one in zip(old.free_RVs, drawn, strict=True)}  # fmt: skip
        points = [values(model, model.free_RVs, own) for model in (old, new)]
        first, second = (density(point) for density, point in zip(densities, points, strict=True))
        assert first == pytest.approx(second, rel=1e-8)
        volumes.append(float(np.subtract(*(density(point) for density, point in zip(whole, points, strict=True)))))
        fits.append([slope(point) for slope, point in zip(slopes, points, strict=True)])
    np.testing.assert_allclose(volumes, volumes[0], atol=1e-6)
    assert np.isfinite(np.concatenate([np.concatenate(one) for one in fits])).all()


@pytest.mark.slow
def test_a_release_is_refitted_in_the_same_coordinates_and_with_priors_that_nothing_is_drawn_from(tmp_path):
    model, domain = spread()
    first = dp.privatize(model, epsilon=3.0, delta=1e-5, domain=domain, statistics=dp.Gradients(steps=10))
    release = dp.Release.of(first)
    same = dp.condition(spread()[0], release)
    point = first.initial_point(0)
    assert same.compile_logp()(point) == pytest.approx(first.compile_logp()(point))
    with pm.Model() as flat:
        b = pm.Flat("b", shape=3)
        pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((2, 3))) @ b, observed=np.zeros(2, dtype=int))
    with pm.Model() as wide:
        b = pm.Cauchy("b", 0.0, np.full(3, 1e200))
        pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((2, 3))) @ b, observed=np.zeros(2, dtype=int))
    for other in (flat, wide):
        found = dp.condition(other, release)
        assert [value.name for value in found.value_vars] == ["b"] and NAME in found.named_vars
    with pytest.raises(UnsupportedModelError, match="variances are no floats"):
        path_prior(interface_of(wide, domain))
