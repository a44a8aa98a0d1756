"""Ranges over one free variable: never below what points attain, close to it, and at most those over all variables."""

import math

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.proofs import conditional_ranges
from pymc_dp.proofs.conditional_ranges import prove_conditional_range, prove_conditional_ranges
from pymc_dp.proofs.one_variable import parameters_of
from pymc_dp.proofs.row_likelihood import row_likelihoods
from pymc_dp.proofs.row_ranges import prove_range
from pymc_dp.transforms.prior_model import prior_model
from tests.step_methods.gibbs.row_models import ROW_MODELS

POINTS = 20_000
BOXES = 6_000


def row_of(model, public):
    inspection = inspect(model, public).rows
    assert inspection.problems == ()
    (row,) = row_likelihoods(inspection, prior_model(inspection))[0]
    return row


def best_point(case, name, entry, relation, rng):
    """Largest change of a difference of rows (of a row) between places that differ in one scalar (or one variable)."""
    rows, others = (case.draw_rows(rng, POINTS) for _ in range(2))
    others |= {column: rows[column] for column in case.public}
    here, far = (case.draw_parameters(rng, POINTS) for _ in range(2))
    there = {**here, name: np.array(here[name])}
    flat, moved = (item[name].reshape(POINTS, -1) for item in (there, far))
    places = slice(None) if entry is None else entry
    flat[:, places] = moved[:, places]
    change = case.density(rows, here) - case.density(rows, there)
    if relation == "replace":
        change = change - case.density(others, here) + case.density(others, there)
    return change.max()


# Model, variable, its element, and how much of the bound points must attain (norms and several others are not sharp).
CASES = [
    ("location", "mu", None, 0.98),
    ("logistic", "b", 0, 0.8),
    ("public logistic", "a", None, 0.9),
    ("public logistic", "tau", None, 0.5),
    ("public logistic", "z", 1, 0.9),
    ("zero-inflated", "psi", None, 0.98),
    ("zero-inflated", "rate", None, 0.98),
    ("mixture", "w", None, 0.5),
    ("mixture", "mu", 1, 0.98),
    ("clamped", "mu", None, 0.98),
    ("groups", "mu", None, 0.95),
    ("groups", "mu", 2, 0.95),
    ("regression", "b", 1, 0.9),
    ("regression", "sd", None, 0.6),
    ("heteroscedastic", "b", 0, 0.5),
    ("heteroscedastic", "b", 1, 0.8),
    ("categories", "b", 4, 0.75),
]


@pytest.fixture(autouse=True)
def _short_searches(monkeypatch):
    """Bounds of short searches are bounds as well."""
    monkeypatch.setattr(conditional_ranges, "MOST_BOXES", BOXES)


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize(("model", "name", "entry", "share"), CASES)
def test_a_conditional_range_is_above_every_point_and_close_to_the_best(model, name, entry, share, relation, rng):
    case = ROW_MODELS[model]
    if case.public and relation == "add_remove":
        return  # the row that is added brings its own values
    row = row_of(case.model(rng), case.domain(relation))
    proof = prove_conditional_range(row, relation, parameters_of(row)[name], entry)
    best = best_point(case, name, entry, relation, rng)
    assert share * proof.value <= best <= proof.value
    assert proof.attained <= proof.value <= prove_range(row, relation).value * 1.01


def test_elements_that_are_alike_share_a_proof(rng):
    case = ROW_MODELS["logistic"]
    row = row_of(case.model(rng), case.domain())
    first, second = prove_conditional_ranges(row, "replace", parameters_of(row)["b"])
    assert first is second
    with pm.Model() as model:
        b = pm.Uniform("b", [-1, -2], 2, shape=2)
        pm.Bernoulli("y", logit_p=pm.Data("X", np.zeros((5, 2))) @ b, observed=np.zeros(5, dtype=int))
    row = row_of(model, Domain(norms={"X": 1.0}))
    narrow, wide = prove_conditional_ranges(row, "replace", parameters_of(row)["b"])
    assert narrow.value < wide.value


def test_rows_that_have_no_density_are_paid_for_as_if_they_came_and_went():
    """A row below 0 has density 0 at every rate, and counts for nothing: another row in its place is one more."""
    with pm.Model() as model:
        pm.Exponential("y", pm.Uniform("rate", 0.5, 1.0), observed=np.ones(5))
    ranges = {}
    for low in (-1.0, 0.9):
        row = row_of(model, Domain(bounds={"y": (low, 1.0)}))
        ranges[low] = prove_conditional_range(row, "replace", parameters_of(row)["rate"]).value
    assert ranges[0.9] == pytest.approx(0.1 * 0.5, rel=0.01)
    values = [math.log(rate) - x * rate for x in (0.0, 1.0) for rate in (0.5, 1.0)]
    assert ranges[-1.0] >= max(abs(values[0] - values[1]), abs(values[2] - values[3]))


@pytest.mark.slow
def test_what_is_in_the_way_is_named():
    with pm.Model() as model:
        p = pm.Uniform("p", 0.0, 0.9)
        pm.Bernoulli("y", p, observed=np.zeros(5, dtype=int))
    row = row_of(model, None)
    proof = prove_conditional_range(row, "replace", parameters_of(row)["p"])
    assert proof.value == math.inf and "'p' has no bound within" in proof.obstacle
    with pm.Model() as model:
        a = pm.Uniform("a", 0.1, 0.2, shape=2)
        pm.Bernoulli("y", pt.cumsum(a)[1], observed=np.zeros(5, dtype=int))
    row = row_of(model, None)
    assert row.whole is None and prove_conditional_range(row, "replace", None).obstacle == "CumOp"
