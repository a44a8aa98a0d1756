"""Simulated tables: what is drawn, from what is public alone."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.simulation.rows import draw_tables
from pymc_dp.transforms.prior_model import prior_model


def tables(model, domain=None, covariates=None, n_rows=None, count=2, seed=1):
    found = inspect(model, domain).rows
    found.require()
    rng = np.random.default_rng(seed)
    rows = n_rows or found.n_rows
    drawn = draw_tables(found, prior_model(found), covariates or {}, n_rows=rows, count=count, rng=rng)
    return drawn, {column.name: place for place, column in enumerate(found.columns)}


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_rows_of_any_number_look_like_the_model_and_like_no_row(relation, monkeypatch):
    """Lengths in every form; what one variable observes is an index of another; dimensions; a likelihood without x."""

    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda self: pytest.fail("rows were read"))

    def model(n):
        rng = np.random.default_rng(n)
        with pm.Model(coords={"row": np.arange(n), "part": range(2)}) as made:
            rate = pm.Uniform("rate", 0.5, 0.6)
            at = pt.stack([pm.Uniform("left", -3, -2.9), pm.Uniform("right", 3, 3.1)])
            group = pm.Data("group", rng.integers(0, 2, n), dims="row")
            pm.Bernoulli("group_seen", rate, observed=group, dims="row")
            pm.Normal("value", at[group], 0.01, observed=rng.normal(50, 1, n), dims="row")
            pm.Normal("alike", at[0], 0.01, observed=np.full(n, 9.0), dims="row")
            pm.Normal("pair", at, 0.01, observed=rng.normal(50, 1, (n, 2)), dims=("row", "part"))
            pm.Normal("full", pt.full((n,), at[1]), 0.01, observed=np.full(n, 9.0), dims="row")
        return made

    limits = {} if relation == "replace" else {"neighbours": relation, "n_max": 40}
    bounds = dict.fromkeys(("value", "alike", "pair", "full"), (-10.0, 10.0))
    public = dp.Domain(rows="row", bounds=bounds, **limits)
    tables = []
    for n in (5, 6):
        found = inspect(model(n), public).rows
        (table,) = draw_tables(found, prior_model(found), {}, n_rows=300, count=1, rng=np.random.default_rng(0))
        tables.append(dict(zip([column.name for column in found.columns], table.rows, strict=True)))
    assert all((tables[0][name] == tables[1][name]).all() for name in tables[0])
    group, value = tables[0]["group"], tables[0]["value"]
    assert 0.4 < group.mean() < 0.7
    assert (np.abs(value - np.where(group == 1, 3.05, -2.95)) < 0.15).all()
    assert tables[0]["pair"].shape == (300, 2) and (tables[0]["full"] > 2).all() and (tables[0]["alike"] < -2).all()


def test_columns_that_hang_on_each_other_are_refused():
    with pm.Model() as model:
        x, y = (pm.Data(name, np.ones(20)) for name in "xy")
        pm.Normal("a", pm.Normal("slope", 0, 1) * y, 1, observed=x)
        pm.Normal("b", x, 1, observed=y)
    with pytest.raises(dp.errors.UnsupportedModelError, match="drawn given themselves"):
        tables(model)
    with pm.Model() as model:
        y = pm.Data("y", np.ones(20))
        pm.Normal("a", pm.Normal("slope", 0, 1) * y, 1, observed=y)
    with pytest.raises(dp.errors.UnsupportedModelError, match="drawn given themselves"):
        tables(model)


def test_columns_that_draws_alone_take_are_refused():
    with pm.Model() as model:
        secret = pm.Data("secret", np.ones(20))
        pm.CustomDist(
            "a",
            pm.Normal("mu", 0, 1),
            secret,
            logp=lambda value, mu, _: -((value - mu) ** 2),
            random=lambda mu, held, rng=None, size=None: rng.normal(mu + held),
            observed=np.zeros(20),
        )
    with pytest.raises(dp.errors.UnsupportedModelError, match="draws of it take 'secret'"):
        tables(model)
