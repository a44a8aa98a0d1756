"""Synthetic rows follow the likelihood at a posterior draw, fill cells as the release does, and hold no row."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.testing import without_noise
from pymc_dp.trace.scrub import annotate
from pymc_dp.transforms.privatize import record_of

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def naive_bayes(rng, n=4000):
    label = (rng.random(n) < 0.3).astype(int)
    age = np.where(label == 1, rng.normal(50, 5, n), rng.normal(30, 5, n))
    group = rng.integers(0, 3, n)
    with pm.Model(coords={"label": [0, 1], "g": range(3)}) as model:
        labels = pm.Bernoulli("sick", pm.Beta("share", 1, 1), observed=pm.Data("label_held", label))
        pm.Normal("age", pm.Normal("mu", 40, 20, dims="label")[labels], 5.0, observed=pm.Data("age_held", age))
        pm.Poisson(
            "visits", pm.Gamma("rate", 2, 1, dims="g")[pm.Data("group", group)], observed=rng.poisson(1 + group, n)
        )
    return model


DOMAIN = dp.Domain(bounds={"age": (0, 100), "visits": (0, 20)})


def traced(model, posterior, domain=DOMAIN):
    """A trace whose posterior is one known place."""
    with without_noise():
        private = dp.privatize(model, epsilon=1.0, domain=domain)
    record, tables = record_of(private)
    places = {name: (("chain", "draw", *dims), np.asarray(at)[None, None]) for name, (dims, at) in posterior.items()}
    return annotate({"posterior": xr.Dataset(places)}, record, tables)


@pytest.fixture(scope="module")
def example():
    rng = np.random.default_rng(3)
    model = naive_bayes(rng)
    posterior = {"share": ((), 0.3), "mu": (("label",), [30.0, 50.0]), "rate": (("g",), [1.0, 2.0, 3.0])}
    return model, traced(model, posterior)


def test_rows_follow_the_model(example):
    model, idata = example
    found = dp.synthesize(idata, model, random_seed=1)
    assert set(found.data_vars) == {"sick", "age", "visits", "group"} and found.sizes == {"row": 4000}
    sick = found["sick"].to_numpy()
    assert abs(sick.mean() - 0.3) < 0.03
    for label, mean in ((0, 30.0), (1, 50.0)):
        ages = found["age"].to_numpy()[sick == label]
        assert abs(ages.mean() - mean) < 0.7 and abs(ages.std() - 5) < 0.5
    for group in range(3):
        visits = found["visits"].to_numpy()[found["group"].to_numpy() == group]
        assert abs(visits.mean() - (1 + group)) < 0.15
        assert abs(len(visits) - 4000 / 3) < 150


def test_rows_of_the_model_are_not_read(example):
    model, idata = example
    with pm.Model(coords={"label": [0, 1], "g": range(3)}) as dummy:
        labels = pm.Bernoulli("sick", pm.Beta("share", 1, 1), observed=pm.Data("label_held", np.zeros(2, int)))
        pm.Normal("age", pm.Normal("mu", 40, 20, dims="label")[labels], 5.0, observed=pm.Data("age_held", np.zeros(2)))
        rate = pm.Gamma("rate", 2, 1, dims="g")
        pm.Poisson("visits", rate[pm.Data("group", np.zeros(2, int))], observed=np.zeros(2, int))
    assert dp.synthesize(idata, dummy, 30, random_seed=1).equals(dp.synthesize(idata, model, 30, random_seed=1))


def test_a_private_number_of_rows_is_the_released_one():
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=(rng.random(120) < 0.5).astype(int))
    idata = traced(model, {"p": ((), 0.5)}, dp.Domain(neighbours="add_remove", n_max=1000))
    assert dp.synthesize(idata, model).sizes["row"] == 120
