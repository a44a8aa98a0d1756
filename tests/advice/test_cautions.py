"""Before a model is released: ids that PyMC may have changed, levels that may be persons, kinks in parameters."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.explain import Explanation

N_ROWS = 400
X = np.linspace(0, 10, N_ROWS)
BOTH = {"epsilon": 1.0, "delta": 1e-6}


def of_persons(dtype: str = "int64") -> pm.Model:
    with pm.Model() as model:
        pm.Data("pid", (np.arange(N_ROWS) + 3_000_000_000).astype(dtype))
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(N_ROWS, dtype=int))
    return model


PERSONS = dp.Domain(unit=dp.Unit("pid", max_rows=1), neighbours="add_remove", n_max=5000)


def test_ids_of_32_bits_have_a_line_in_the_explanation():
    found = dp.explain(of_persons(), PERSONS)
    (line,) = found.cautions
    assert line.startswith("pid: ids beyond ±2^31") and "pandas.factorize(ids)[0], or pass ids by rows=" in line
    assert "ids beyond ±2^31" in str(found) and line in " ".join(str(found.full()).replace("│", " ").split())


def by_patient(n_levels: int, *, labels: bool = True) -> pm.Model:
    coords = {"patient": [f"name {k}" for k in range(n_levels)]} if labels else {}
    with pm.Model(coords=coords) as model:
        index = pm.Data("patient_idx", np.arange(N_ROWS) % n_levels)
        z = pm.Normal("z", 0, 1, **({"dims": "patient"} if labels else {"shape": n_levels}))
        pm.Normal("y", 2 * z[index], 1.0, observed=np.zeros(N_ROWS))
    return model


@pytest.mark.few(1)
@pytest.mark.parametrize("budget", [{}, BOTH])
def test_levels_that_are_nearly_as_many_as_rows_may_be_persons(budget):
    found = dp.explain(by_patient(200), dp.Domain(bounds={"y": (-5, 5)}), **budget)
    (line,) = found.cautions
    assert line.startswith("200 levels of patient for 400 rows: their labels and number") and "dp.Unit" in line
    assert "200 levels of patient" in str(found) and "name 7" not in str(found.full())


def curve(mean, **domain) -> Explanation:
    with pm.Model() as model:
        x, a, b, tau = pm.Data("x", X), pm.Normal("a"), pm.Normal("b"), pm.Uniform("tau", 0, 10)
        pm.Normal("y", mean(x, a, b, tau), pm.HalfNormal("s", 1), observed=np.zeros(N_ROWS))
    return dp.explain(model, dp.Domain(bounds={"x": (0, 10), "y": (-5, 5)}, **domain), **BOTH)


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize(
    "mean",
    [
        lambda x, a, b, tau: pm.math.switch(x > tau, a + b * (x - tau), a),
        lambda x, a, b, tau: a + b * pt.maximum(x - tau, 0),
        lambda x, a, b, tau: a + pt.exp(b) * pt.clip(x - tau, 0, 1),
        lambda x, a, b, tau: a + pt.exp(b) * pt.sign(x - tau),
        lambda x, a, b, tau: a + pt.exp(b) * pt.floor(x - tau),
        lambda x, a, b, tau: a + pt.exp(b) * pt.cast(x <= tau, "float64"),
    ],
)
def test_a_change_point_is_to_be_rehearsed(mean):
    found = curve(mean)
    (line,) = found.cautions
    assert line.startswith("the likelihood of y is not smooth in tau: rehearse with dp.plan(...) first")
    assert "not smooth in tau: rehearse with dp.plan(...) first" in str(found)


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize(
    "mean",
    [
        lambda x, a, b, tau: a + pt.exp(b) * pt.maximum(x - 3, 0) + tau,
        lambda x, a, b, tau: pm.math.switch(x > 3, a, pt.exp(b)) + tau,
        lambda x, a, b, tau: a + pt.exp(b) * pt.clip(pt.abs(x), 1, 5) + tau,
        lambda x, a, b, tau: a * pt.clip(pt.sigmoid(b * (x - tau)), 1e-6, 1 - 1e-6),
        lambda x, a, b, tau: a + pt.log(pt.maximum(pt.exp(b * x), 1e-9)) + tau,
        lambda x, a, b, tau: a + pm.math.log1mexp(-pt.exp(b * x)) + tau,
        lambda x, a, b, tau: pt.log(pt.abs(a + b * x)) + tau,
    ],
)
def test_branches_of_columns_and_ends_for_floats_are_smooth_in_parameters(mean):
    assert curve(mean).cautions == ()


def densities():
    yield "censored", lambda m: pm.Censored("y", pm.Normal.dist(m, 1), -2, 2, observed=np.zeros(N_ROWS))
    yield "zero-inflated", lambda m: pm.ZeroInflatedPoisson("y", 0.5, pt.exp(m), observed=np.zeros(N_ROWS, dtype=int))
    yield "hurdle", lambda m: pm.HurdlePoisson("y", 0.5, pt.exp(m), observed=np.zeros(N_ROWS, dtype=int))
    yield "gamma", lambda m: pm.Gamma("y", mu=pt.exp(m), sigma=pt.exp(m / 2), observed=np.ones(N_ROWS))
    yield "laplace", lambda m: pm.Laplace("y", m, 1, observed=np.zeros(N_ROWS))
    yield (
        "own",
        lambda m: pm.CustomDist("y", m, logp=lambda y, m: pm.logp(pm.Normal.dist(m, 1), y), observed=np.zeros(N_ROWS)),
    )
    yield "ordered", lambda m: pm.OrderedLogistic("y", m, [-1.0, 1.0], observed=np.zeros(N_ROWS, dtype=int))


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize(("name", "likelihood"), [*densities()])
def test_guards_of_pymc_are_no_kinks(name, likelihood):
    with pm.Model() as model:
        x = pm.Data("x", X)
        likelihood(pm.Normal("a") + pt.exp(pm.Normal("b")) * x)
    found = dp.explain(model, dp.Domain(bounds={"x": (0, 10), "y": (0, 20)}), **BOTH)
    assert found.gradients.fits and found.cautions == ()
