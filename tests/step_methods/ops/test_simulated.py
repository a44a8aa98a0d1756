"""Public tables: like the model, like no row, and as long as is asked for."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.step_methods.ops.simulated import simulated
from pymc_dp.transforms.prior_model import prior_model


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_simulated_tables_look_like_the_model_and_like_no_row(relation, blind):
    """Lengths in every form; what one variable observes is an index of another; dimensions; a likelihood without x."""

    def model(n):
        rng = np.random.default_rng(n)
        with pm.Model(coords={"row": np.arange(n), "part": range(2)}) as made:
            rate = pm.Uniform("rate", 0.5, 0.6)
            at = pt.stack([pm.Uniform("left", -3, -2.9), pm.Uniform("right", 3, 3.1)])
            group = pm.Data("group", rng.integers(0, 2, n), dims="row")
            pm.Bernoulli("group_seen", rate, observed=group)
            pm.Normal("value", at[group], 0.01, observed=rng.normal(50, 1, n))
            pm.Normal("alike", at[0], 0.01, observed=np.full(n, 9.0), shape=n)
            pm.Normal("pair", at, 0.01, observed=rng.normal(50, 1, (n, 2)), dims=("row", "part"))
            pm.Normal("full", pt.full((n,), at[1]), 0.01, observed=np.full(n, 9.0))
        return made

    limits = {} if relation == "replace" else {"neighbours": relation, "n_max": 40}
    bounds = dict.fromkeys(("value", "alike", "pair", "full"), (-10.0, 10.0))
    public = Domain(rows="row", bounds=bounds, **limits)
    tables = []
    for n in (5, 6):
        found = inspect(model(n), public).rows
        held = simulated(found, prior_model(found), 300, np.random.default_rng(0))
        tables.append(dict(zip([column.name for column in found.columns], held, strict=True)))
    assert all((tables[0][name] == tables[1][name]).all() for name in tables[0])
    group, value = tables[0]["group"], tables[0]["value"]
    assert 0.4 < group.mean() < 0.7
    assert (np.abs(value - np.where(group == 1, 3.05, -2.95)) < 0.15).all()
    assert tables[0]["pair"].shape == (300, 2) and (tables[0]["full"] > 2).all() and (tables[0]["alike"] < -2).all()


def test_public_columns_are_simulated_as_they_are(rng):
    x, y = rng.normal(size=(20, 2)), rng.integers(0, 2, 20)
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ pm.Normal("b", shape=2), observed=y)
    found = inspect(model, Domain(public=["x"])).rows
    rows = dict(
        zip([column.name for column in found.columns], simulated(found, prior_model(found), 20, rng), strict=True)
    )
    assert (rows["x"] == x).all() and (rows["y"] != y).any()


def test_what_is_private_fills_its_public_set(blind, rng):
    with pm.Model() as model:
        eta = pm.Data("x", rng.normal(size=(9, 3))) @ pm.Normal("b", shape=3) + pm.Data("z", rng.normal(size=9))
        effects = pm.Normal("a", shape=5)[pm.Data("g", np.zeros(9, dtype=int))]
        pm.Bernoulli("y", logit_p=eta + effects, observed=np.zeros(9, dtype=int))
    found = inspect(model, Domain(norms={"x": 2.0}, bounds={"z": (-5, 7)})).rows
    rows = dict(
        zip([column.name for column in found.columns], simulated(found, prior_model(found), 500, rng), strict=True)
    )
    lengths = np.linalg.norm(rows["x"], axis=1)
    assert 1.9 < lengths.max() <= 2 and lengths.min() > 0.5
    assert -5 <= rows["z"].min() < -4.9 and 6.9 < rows["z"].max() <= 7
    assert set(rows["g"]) == set(range(5)) and set(rows["y"]) == {0, 1}
