"""OPS is simulated where sums of rows are all it needs."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from tests.plan.conftest import coin

ONES = np.ones(2000)


@pytest.mark.slow
def test_errors_of_one_draw_are_those_of_the_posterior_at_its_temperature():
    bounded = dp.truncate(coin(1000), {"p": (0.01, 0.99)})
    found = dp.plan(bounded, [0.1, 100.0], step=dp.OPS(), repeats=40, random_seed=2, progressbar=False)
    frame = found.to_frame().set_index(["method", "epsilon"])
    assert found.methods == ("laplace", "OPS")
    plain = frame.loc[("not private", np.inf), "rmse"]
    assert frame.loc[("OPS", 0.1), "rmse"] > 4 * plain
    # At temperature 1 it is a posterior draw: twice the variance of the posterior mean's error.
    assert 1.1 * plain < frame.loc[("OPS", 100.0), "rmse"] < 1.8 * plain
    assert frame.loc["OPS"][["width", "coverage"]].isna().all(axis=None)
    assert "one draw" in found._repr_html_()
    assert found.suggest(0.9).method == "laplace"


@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood",
    [lambda mu: pm.Normal("y", mu, 1.0, observed=ONES), lambda mu: pm.Weibull("y", 8.0, mu, observed=ONES)],
    ids=["normal", "weibull"],
)
def test_sums_of_numbers_reach_the_step(likelihood):
    with pm.Model() as model:
        mu = pm.Uniform("mu", 2, 4)
        likelihood(mu)
    domain = dp.Domain(bounds={"y": (0.1, 6)})
    found = dp.plan(model, 1000.0, domain=domain, step=dp.OPS(), repeats=15, random_seed=2, progressbar=False)
    errors = found.outcomes[-1].errors["mu"]
    assert found.outcomes[-1].method == "OPS" and np.sqrt(np.mean(errors**2)) < 0.1


def test_other_steps_and_models_are_refused():
    with pytest.raises(ArgumentError, match=r"only dp\.OPS\(\) can"):
        dp.plan(coin(), step=dp.TemperedGibbs(), progressbar=False)
    with pytest.raises(UnsupportedModelError, match="truncate"):
        dp.plan(coin(), step=dp.OPS(), progressbar=False)
