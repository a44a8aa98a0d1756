"""Ways around the inspection that once worked, of models that are released: what stays behind."""

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from pytensor import wrap_py
from pytensor.compile.builders import OpFromGraph

import pymc_dp as dp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
N, RNG = 60, np.random.default_rng(12)
VALUES, GROUPS, ANSWERS = RNG.normal(1.2345, 1, N), RNG.integers(0, 3, N), RNG.integers(0, 2, N)
CANARIES = RNG.normal(size=(N, 2))
BOUNDS = dp.Domain(bounds={"y": (-5, 5)})


def normal(mean):
    pm.Normal("y", mean, 1, observed=VALUES)


@wrap_py(itypes=[pt.dscalar], otypes=[pt.dscalar])
def add_secret(mu):
    return np.asarray(mu + VALUES.mean())


def test_arrays_that_reach_only_deterministics_stay_behind():
    with pm.Model() as model:
        mu, s = pm.Normal("mu", 0, pm.Data("s", np.ones(3)), shape=3), pt.dscalar()
        first = mu[0]
        pm.Deterministic("residual", first - pt.constant(VALUES))
        pm.Deterministic("composite", OpFromGraph([s], [s + pt.constant(VALUES).mean()])(first))
        pm.Deterministic("function", add_secret(first))
        pm.Deterministic("borrowed name", mu.sum() - pt.constant(VALUES, name="s"))
        pm.Deterministic("double", 2 * mu)
        normal(mu[GROUPS])
    found = dp.explain(model, dp.Domain(bounds=BOUNDS.bounds, public=["s"]))
    assert found.left_out == ("residual", "composite", "function", "borrowed name")


def test_levels_stay_within_the_dtype_of_their_column():
    with pm.Model() as model:
        b = pm.Normal("b", shape=300)
        pm.Bernoulli("y", pm.math.sigmoid(b[GROUPS.astype("int8")]), observed=ANSWERS)
    assert dp.privatize(model, epsilon=1.0).dim_lengths["y_cell"].get_value() == 128


def test_one_column_cannot_have_two_bounds():
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=pm.Data("d", GROUPS))
    with pytest.raises(dp.errors.PrivacyError, match="one column twice"):
        dp.explain(model, dp.Domain(bounds={"y": (0, 10), "d": (0, 3)}))


@pytest.mark.parametrize(
    ("build", "bounds", "inside", "outside"),
    [
        (lambda a: pm.Bernoulli("y", a, observed=ANSWERS), {}, 0.4, (1.2, -0.2)),
        (lambda a: pm.Normal("y", 0, a, observed=VALUES), {"y": (-5, 5)}, 1.0, (-1.0, 0.0)),
        (lambda a: pm.Poisson("y", a, observed=GROUPS), {"y": (0, 10)}, 1.0, (-3.0,)),
        (lambda a: pm.Categorical("y", pt.stack([a, a, 0.5]), observed=GROUPS), {}, 0.25, (0.5, -0.25)),
    ],
)
def test_parameters_outside_of_their_support_stay_impossible(build, bounds, inside, outside):
    with pm.Model() as model:
        build(pm.Normal("a"))
    private = dp.privatize(model, epsilon=1.0, domain=dp.Domain(bounds=bounds))
    logp, slope = (make(mode="FAST_COMPILE") for make in (private.compile_logp, private.compile_dlogp))
    assert np.isfinite(logp({"a": np.asarray(inside)}))
    for value in outside:
        assert logp({"a": np.asarray(value)}) == -np.inf
        assert not np.isnan(slope({"a": np.asarray(value)})).any()


def test_a_private_model_that_was_extended_cannot_be_scrubbed():
    with pm.Model() as model:
        normal(pm.Normal("mu"))
    private = dp.privatize(model, epsilon=1.0, domain=BOUNDS)
    with private:
        pm.Deterministic("residual", private["mu"] - VALUES)
    with pytest.raises(dp.errors.TraceError, match=r"added: \['residual'\]"):
        dp.scrub(xr.DataTree(), private)


@pytest.mark.parametrize(("name", "public"), [("normal", ()), ("logistic", ()), ("counts", ("x", "w"))])
def test_pickled_private_regression_holds_no_row_and_no_line_of_the_program(name, public):
    with pm.Model() as model:
        x, w = pm.Data("x", CANARIES), pm.Data("w", CANARIES[:, 0] + 1)
        eta = x @ pm.Normal("b", 0, 1, shape=2) + pm.Normal("c", 0, 1, shape=3)[GROUPS] * w  # a telltale comment
        scale = pm.Data("scale", np.array(2.5))
        if name == "normal":
            pm.Normal("y", eta, scale, observed=VALUES)
        elif name == "logistic":
            pm.Bernoulli("y", pm.math.sigmoid(eta * scale), observed=ANSWERS)  # a telltale comment
        else:
            pm.Poisson("y", scale * pm.math.exp(eta), observed=ANSWERS)  # a telltale comment
    assert CANARIES.tobytes() in cloudpickle.dumps(model)
    domain = dp.Domain(bounds={"x": (-3, 3), "w": (-3, 3), "y": (0, 3)}, public=[*public, "scale"])
    dumped = cloudpickle.dumps(dp.privatize(model, epsilon=1.0, domain=domain))
    for rows in (CANARIES, CANARIES[:, 0] + 1, VALUES, ANSWERS, GROUPS):
        assert rows.tobytes() not in dumped
    assert b"telltale" not in dumped
