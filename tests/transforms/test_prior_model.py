import numpy as np
import pymc as pm
import pytest

from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.transforms.prior_model import prior_model, prior_model_with

GROUP = np.resize([0, 1, 2], 17)


def model_of(observed=True):
    with pm.Model(coords={"group": list("abc"), "person": [f"canary-{i}" for i in range(17)]}) as model:
        sigma = pm.HalfNormal("sigma", initval=0.5)
        p = pm.Beta("p", 1 + sigma, 1, dims="group")
        pm.Deterministic("odds", p / (1 - p), dims="group")
        index = pm.Data("index", GROUP, dims="person")
        pm.Bernoulli("y", p[index], observed=GROUP % 2 if observed else GROUP * 0.5 + 0.25, dims="person")
    return model


def test_a_prior_model_samples_the_prior_of_its_model():
    model = model_of()
    bare = prior_model(inspect(model).sums)
    point = model.initial_point(random_seed=1)
    prior = model.compile_fn(model.varlogp, inputs=model.value_vars, mode="FAST_COMPILE")(point)
    assert bare.compile_logp(mode="FAST_COMPILE")(point) == pytest.approx(float(prior))
    with bare:
        drawn = pm.sample_prior_predictive(draws=4, random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"}).prior
    assert set(drawn.data_vars) == {"sigma", "p", "odds"}
    assert "person" not in bare.coords
    assert bare.data_vars == []


def test_parameters_free_of_rows_are_carried_over():
    model = model_of()
    bare, (moved,) = prior_model_with(inspect(model).sums, [model["p"] * model["sigma"]])
    drawn = pm.draw([moved, bare["p"], bare["sigma"]], random_seed=1, mode="FAST_COMPILE")
    np.testing.assert_allclose(drawn[0], drawn[1] * drawn[2])


def test_a_model_with_problems_has_no_prior_model():
    with pm.Model() as model:
        pm.StudentT("y", 3, mu=pm.Normal("mu", shape=17), sigma=1, observed=GROUP * 1.0)
    with pytest.raises(UnsupportedModelError):
        prior_model(inspect(model).sums)
