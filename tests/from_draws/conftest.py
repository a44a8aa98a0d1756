"""Traces of OPS as they are written, around draws that are chosen: nothing has to be sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.trace.scrub import annotate

LOW, HIGH = 0.05, 0.95


def coin(n_rows: int, observed: int = 0) -> pm.Model:
    with pm.Model() as model:
        p = pm.Uniform("p", LOW, HIGH)
        pm.Bernoulli("y", p, observed=np.full(n_rows, observed))
    return model


def logistic(n_rows: int, x: float = 0.0) -> pm.Model:
    with pm.Model() as model:
        column = pm.Data("x", np.full(n_rows, x))
        a, b = pm.Uniform("a", -3, 3), pm.Uniform("b", -3, 3)
        pm.Bernoulli("y", logit_p=a + b * column, observed=np.zeros(n_rows, dtype=int))
    return model


BOUNDED = dp.Domain(bounds={"x": (-1, 1)})


def trace_of(
    model: pm.Model,
    draws: dict[str, np.ndarray],
    epsilon: float = 1.0,
    domain: dp.Domain | None = None,
    **changed: object,
) -> xr.DataTree:
    """Return what dp.sample would, had it drawn these: one chain. `changed` replaces parts of the sampler's record."""
    count = len(next(iter(draws.values())))
    spec = dp.OPS(grid=16)
    step, _ = spec.bound(spec.inspect(model, domain), dp.Budget(epsilon), chains=1, steps=count)
    record = replace(step.record(), guarantee="exact")
    record = replace(record, sampler=replace(record.sampler, **changed))
    posterior = {name: (("chain", "draw"), np.asarray(values, float)[None]) for name, values in draws.items()}
    coords = {"chain": [0], "draw": np.arange(count)}
    return annotate({"posterior": xr.Dataset(posterior, coords=coords)}, record, {})


@pytest.fixture(scope="session")
def made():
    """A trace of two draws of a logistic regression and the mechanism that its record describes."""
    from pymc_dp.from_draws.private_model import mechanism_of

    model = logistic(300)
    tree = trace_of(model, {"a": np.array([0.4, 0.6]), "b": np.array([-1.0, -0.7])}, domain=BOUNDED)
    mechanism, _ = mechanism_of(model, tree, None, None, name="idata", caller="dp.from_draws.draw_intervals")
    return model, tree, mechanism
