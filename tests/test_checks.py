"""Checks of a model by its release, as the docstring of dp.sample and the page of questions have them."""

import arviz as az
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

CELLS = 8


@pytest.fixture(scope="module")
def fitted():
    group = np.arange(800) % CELLS
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=CELLS)
        pm.Bernoulli("y", p[pm.Data("group", group)], observed=(np.arange(800) % 3 == 0).astype(int))
    drawn = {"tune": 300, "draws": 300, "chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}
    idata = dp.sample(epsilon=5.0, model=model, ledger=dp.Ledger(5.0), **drawn)
    return idata, dp.condition(model, dp.Release.of(idata))


@pytest.mark.slow
def test_the_trace_has_no_log_likelihood(fitted):
    idata, _ = fitted
    assert "log_likelihood" not in idata
    with pytest.raises(TypeError, match="log likelihood not found"):
        az.loo(idata)


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_the_release_is_predicted_and_no_row(fitted):
    idata, private = fitted
    checks = pm.sample_posterior_predictive(idata, model=private, progressbar=False, random_seed=1)
    released = checks["observed_data"]["y"]
    np.testing.assert_array_equal(released, dp.Release.of(idata).tables["y"])
    expected = checks["posterior_predictive"]["y"].mean(["chain", "draw"])
    assert np.abs(expected - released).max() < 30
    assert not any(800 in node.sizes.values() for node in checks.children.values())
