"""Compiled gradients are shared by models that differ in rows alone, and by no others."""

import numpy as np
import pymc as pm
import pytest

from pymc_dp.inspection.inspect import inspect
from pymc_dp.step_methods.langevin import gradients as module
from pymc_dp.step_methods.langevin.gradients import compiled, row_gradients
from pymc_dp.transforms.prior_model import prior_model


@pytest.fixture
def count(monkeypatch):
    """Functions made, which are looked at and not run."""
    made = []
    monkeypatch.setattr(module, "_made", lambda inputs, outputs, borrow: made.append(outputs) or len(made))
    monkeypatch.setattr(module, "_kept", module.deque(maxlen=module.KEPT))
    return made


def gradients(seed=0, n_rows=7, n_columns=2, sd=1.0, scale=2.0, whole=False, name="b"):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_columns))
    with pm.Model() as model:
        b = pm.Normal(name, 0, sd, shape=n_columns)
        eta = pm.math.dot(scale * pm.Data("x", x), b)
        if whole:
            pm.Poisson("y", pm.math.exp(eta), observed=rng.integers(0, 4, n_rows))
        else:
            pm.Normal("y", eta, 1.0, observed=rng.normal(size=n_rows))
    found = inspect(model).rows
    return row_gradients(found, prior_model(found))


def test_other_rows_of_the_same_model_are_not_compiled_again(count):
    first = compiled(gradients())
    assert compiled(gradients(seed=1)) is first
    assert compiled(gradients(seed=2, n_rows=20, name="other")) is first
    assert len(count) == 2, "one function for rows, one for the prior"


@pytest.mark.parametrize("change", [{"sd": 2.0}, {"scale": 3.0}, {"whole": True}, {"n_columns": 1}])
def test_a_model_that_differs_is_compiled(count, change):
    first = compiled(gradients())
    assert compiled(gradients(**change)) is not first and len(count) == 4


def test_a_process_keeps_a_few(count):
    first = compiled(gradients())
    for place in range(module.KEPT):
        compiled(gradients(sd=3.0 + place))
    assert len(module._kept) == module.KEPT
    assert compiled(gradients()) is not first
