"""Noised gradients rehearsed on tables from the prior: closed forms against NUTS, and what is said of coverage."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp._random import Insecure, use_insecure
from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.private_model import OWN
from pymc_dp.plan.rehearsal import Rehearsal, privately, without_privacy

DELTA = 1e-5
ROWS = 600


def logistic(x=None, y=None, n=ROWS):
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=2)
        held = pm.Data("x", np.zeros((n, 2)) if x is None else x)
        pm.Bernoulli("y", logit_p=a + held @ b, observed=np.zeros(n, dtype=int) if y is None else y)
    return model


def domain(high=1.0, **more):
    return dp.Domain(bounds={"x": (-high, high)}, **more)


def plan(**given):
    settings = {"delta": DELTA, "statistics": dp.Gradients(steps=20), "repeats": 4, "random_seed": 2, "misfit": False}
    return dp.plan(given.pop("model", None) or logistic(), **{
        "epsilon": [1.0, 8.0], "domain": domain(), "progressbar": False, **settings, **given
    })  # fmt: skip


@pytest.fixture(scope="module")
def planned():
    return plan()


@pytest.fixture(scope="module")
def rehearsal():
    found = Rehearsal(logistic(), domain(), {"gradients": dp.Gradients(steps=20)}, None)
    budgets = found.budgets([8.0], DELTA)
    return found, budgets["gradients", 8.0], found._tables(2, np.random.default_rng(3))


@pytest.mark.slow
def test_no_row_is_read_and_values_do_not_matter(planned, monkeypatch):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    other = logistic(np.full((ROWS, 2), 0.7), np.ones(ROWS, dtype=int))
    assert plan(model=other).to_frame().equals(planned.to_frame())


@pytest.mark.slow
def test_the_private_posterior_is_that_of_the_private_model(rehearsal):
    """The model's own density, with its exact prior, has its mode and its curvature where the closed form says."""
    found, planned, tables = rehearsal
    exact = Prior(mean=np.zeros(3), precision=np.eye(3))
    mean, covariance = privately(planned, exact, tables[0])
    with use_insecure(Insecure(np.random.default_rng(tables[0].seed))):
        model = planned.private(planned.walk(tables[0].rows), "none")
    names = [part.name for part in found.interface.parts]
    assert names == [rv.name for rv in model.free_RVs]
    centre, axes, inverse, _ = (one.get_value() for one in model["b"].owner.inputs[-OWN:])
    point = {"a": np.asarray(mean[0]), "b_whitened__": inverse @ (mean[1:] - centre)}
    slope, bent = model.compile_dlogp()(point), model.compile_d2logp(negate_output=False)(point)
    np.testing.assert_allclose(slope, 0, atol=1e-6)
    turn = np.eye(3)
    turn[1:, 1:] = axes
    np.testing.assert_allclose(turn @ np.linalg.inv(-bent) @ turn.T, covariance, rtol=1e-6, atol=1e-12)


@pytest.mark.slow
def test_the_posterior_without_privacy_is_that_of_nuts(rehearsal):
    _, planned, tables = rehearsal
    exact = Prior(mean=np.zeros(3), precision=np.eye(3))
    mean, covariance = without_privacy(planned, exact, tables[0])
    held = {column.name: rows for column, rows in zip(
        planned.interface.inspection.columns, tables[0].rows, strict=True)}  # fmt: skip
    with logistic(held["x"], held["y"]):
        drawn = pm.sample(1500, chains=2, cores=1, random_seed=1, progressbar=False, quiet=True)["posterior"]
    draws = np.concatenate([drawn["a"].values[..., None], drawn["b"].values], axis=-1).reshape(-1, 3)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.15 * sd.max())
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1)


def test_wrong_calls_say_the_way_out():
    model, both = logistic(), [dp.Statistics(), dp.Gradients()]
    for given, text in (
        ({"delta": 0.0}, "Give delta > 0"),
        ({"statistics": both}, "once for each"),
        ({"noise": "laplace"}, "noise= is for exact sums"),
        ({"step": dp.OPS()}, "step= is for exact sums"),
        ({"var_names": ["c"]}, "var_names"),
        ({"covariates": {}}, r"dp.Gradients\(columns="),
    ):
        with pytest.raises(ArgumentError, match=text):
            plan(model=model, **given)
    with pytest.raises(ArgumentError, match="n_max=100"):
        plan(model=model, domain=domain(neighbours="add_remove", n_max=100), n_rows=200)
