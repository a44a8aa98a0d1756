"""Stored rows are those of the model: names, lengths, dtypes, values that are clamped, and what no text shows."""

import pickle

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.passes import held
from pymc_dp.rows.stored import Part
from tests.step_methods.langevin.conftest import BUDGET, logistic, table

WORST = np.array([np.nan, np.inf, -np.inf, 1e300, -7.0, 0.2, 0.9])


def placeholder(n_rows=4):
    return logistic(*(column[:n_rows] for column in table()))


def mixed(values=WORST, levels=7):
    """A column of each kind: bounded, unbounded, with a norm, an index, a category, a count."""
    n_rows = len(values)
    with pm.Model() as model:
        group = pm.Data("group", np.zeros(n_rows, dtype=int))
        wide = pm.Data("wide", np.zeros((n_rows, 3)))
        free = pm.Data("free", np.asarray(values))
        mean = pm.Normal("mean", shape=levels)[group] + wide @ pm.Normal("slope", shape=3) + free
        pm.Normal("bounded", mean, 1, observed=np.asarray(values))
        pm.Bernoulli("flag", 0.5 + 0 * mean, observed=np.zeros(n_rows, dtype=int))
        pm.Binomial("count", 5, 0.5 + 0 * mean, observed=np.zeros(n_rows, dtype=int))
    return model


DOMAIN = dp.Domain(bounds={"bounded": (0, 1)}, norms={"wide": 2.0})


def columns_of(model, domain=DOMAIN):
    return {column.name: column for column in inspect(model, domain).rows.columns}


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("name", "stored", "expected"),
    [
        ("group", np.array([2**40, -(2**40), 6], dtype=np.int64), [0, 0, 6]),
        ("group", np.array([2**63, 2**64 - 1, 6], dtype=np.uint64), [0, 0, 6]),
        ("group", np.array([True, False]), [1, 0]),
        ("count", np.array([200, 3], dtype=np.uint8), [5, 3]),
        ("bounded", np.array([2, 0, -1], dtype=">i8"), [1, 0, 0]),
        ("bounded", np.array([np.inf, np.nan, 0.25], dtype=">f4"), [1, 0.5, 0.25]),
        ("free", np.array([np.longdouble("1e4000"), np.longdouble("nan")]), [np.finfo(float).max, 0]),
    ],
)
def test_other_dtypes_become_the_nearest_value_that_the_model_can_hold(name, stored, expected):
    column = columns_of(mixed(np.zeros(4)))[name]
    found = held(column, [Part(stored, None)])
    assert found.tolist() == expected and found.dtype == column.leaf.type.dtype


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({"y": None}, ["y: the column is not in rows="]),
        ({"gg": np.zeros(200, int)}, ["gg: rows= has it, but it is no row-level column", "Did you mean 'g'?"]),
        ({"g": np.zeros(199, int)}, ["of lengths {'x': 200, 'g': 199, 'y': 200}"]),
        ({"x": np.zeros((200, 2))}, ["a stored row has shape (2,), and one of the model (3,)"]),
        ({"x": np.zeros(200), "g": np.zeros((200, 1), int)}, ["shape ()", "shape (1,)"]),
        ({"g": np.zeros(200)}, ["g: stored values (float64) cannot become int"]),
        ({"g": np.full(200, "secret")}, ["g: it holds texts", "by a public list of levels: dp.Levels('g', [...])"]),
        ({name: np.zeros((0, 3) if name == "x" else 0, int) for name in "xgy"}, ["the table has 0 rows"]),
    ],
)
def test_what_does_not_fit_is_told_at_once_and_costs_nothing(change, messages):
    rows = {**dict(zip("xgy", table(), strict=True)), **change}
    step = dp.SGLD(rows={name: column for name, column in rows.items() if column is not None}, batch_size=5)
    ledger = dp.Ledger(**BUDGET)
    with pytest.raises(dp.errors.UnsupportedModelError) as refused:
        dp.sample(3, **BUDGET, step=step, model=placeholder(), ledger=ledger, progressbar=False)
    for message in messages:
        assert message in str(refused.value) and "secret" not in str(refused.value)
    assert ledger.spent.epsilon == 0


def test_lengths_are_not_told_under_add_remove():
    rows = dict(zip("xgy", table(37), strict=True))
    hidden = dp.Domain(neighbours="add_remove", n_max=300)
    found = dp.SGLD(rows=rows).inspect(placeholder(), hidden)
    assert not found.problems and not any("37" in line for line in found.assumptions)
    found = dp.SGLD(rows={**rows, "y": np.zeros(38, int)}).inspect(placeholder(), hidden)
    assert "of different lengths" in str(found.problems[0])
    assert not any(number in str(found.problems) for number in ("37", "38"))


@pytest.mark.parametrize("method", [dp.SGFS, dp.SGLD, dp.SGHMC, dp.SGNHT])
def test_no_row_is_shown_or_kept_among_the_settings(method):
    step = method(rows={"x": np.full((10_000, 3), 123.456)})
    assert "rows={'x': <float64, (3,) a row>}" in repr(step) and "123" not in repr(step)
    assert len(pickle.dumps(step.sampling_state)) < 10_000
