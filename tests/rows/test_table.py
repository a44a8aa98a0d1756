"""dp.Table: from an engine to a posterior; what fails, what shows, and what is refused."""

import logging
import warnings

import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.engines.lazy import LazyFrame
from pymc_dp.rows.gate import opened_gate
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.spool import Scratch, spooled
from tests.release.test_beside import domain_of, model_of, table
from tests.rows.engines.engines import ENGINES, database, in_engine, part
from tests.rows.engines.test_identity import stored

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
SECRET = "4711secret"


def frame(**columns):
    return pl.LazyFrame(columns or {"y": [1.0, 2.0], "g": [0, 1], "name": ["ann", "bob"]})


def dummies(name="one_cell"):
    return model_of(name, table(4))


# --- failures ---------------------------------------------------------------------------------------------------------


def broken_polars():
    return dp.Table(frame(t=[SECRET]).select(y=pl.col("t").cast(pl.Float64)), {"y": "y"})


def broken_duckdb():
    connection = duckdb.connect()
    connection.execute("create table kept (t varchar)")
    connection.execute("insert into kept values (?)", [SECRET])
    return dp.Table(connection.sql("select cast(t as double) as y from kept"), {"y": "y"})


def broken_postgres():
    connection = database()
    connection.execute("drop view if exists broken; drop table if exists kept")
    connection.execute("create table kept (t text)")
    connection.execute("insert into kept values (%s)", [SECRET])
    connection.execute("create view broken as select cast(t as float8) as y from kept")
    return dp.Table.sql(connection, "broken", {"y": "y"})


BROKEN = [
    broken_polars,
    broken_duckdb,
    pytest.param(broken_postgres, marks=[pytest.mark.postgres, pytest.mark.slow]),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_an_engine_that_fails_leaves_a_spent_budget_and_nothing_else(broken, caplog, recwarn):
    caplog.set_level(logging.DEBUG)
    warnings.simplefilter("always")
    ledger, model = dp.Ledger(1.0), dummies()
    how = {"domain": domain_of("one_cell", "replace"), "rows": broken(), "ledger": ledger}
    with pytest.raises(dp.errors.BudgetExceeded):
        dp.privatize(model, epsilon=3.0, **how)
    assert ledger.history == []
    with pytest.raises(dp.errors.PrivacyError, match=r"The engine failed \(\w+\).*The budget is spent") as caught:
        dp.privatize(model, epsilon=0.5, **how)
    error = caught.value
    assert ledger.spent.epsilon == 0.5 and error.__cause__ is None and error.__context__ is None
    assert SECRET not in str(error) and SECRET not in caplog.text
    assert not any(SECRET in str(one.message) for one in recwarn)
    assert not any(hasattr(error, name) for name in ("private_model", "idata"))


def test_nothing_is_asked_of_private_rows_before_the_charge(monkeypatch):
    """Of a ledger that refuses, only constants and the number of rows were asked for."""
    beside, asked = dp.Table(frame(), {"y": "y"}), []
    collected = LazyFrame._collected

    def seen(self, lazy):
        asked.append(lazy.to_native().explain())
        return collected(self, lazy)

    monkeypatch.setattr(LazyFrame, "_collected", seen)
    how = {"domain": domain_of("one_cell", "replace"), "rows": beside, "ledger": dp.Ledger(1.0)}
    with pytest.raises(dp.errors.BudgetExceeded):
        dp.privatize(dummies(), epsilon=3.0, **how)
    of_rows = [plan for plan in asked if '"name"' in plan]
    assert asked and all("len()" in plan and "sum" not in plan for plan in of_rows)


class Panic(BaseException):
    """As Rust's reach Python: no Exception."""


@pytest.mark.parametrize("failure", [MemoryError(SECRET), KeyboardInterrupt(), Panic(SECRET)])
def test_an_engine_that_is_killed_in_the_middle(failure, monkeypatch):
    fetch, runs = LazyFrame.fetch, []

    def killed(self, names):
        runs.append(names)
        if len(runs) > 2:  # after the two of the canary
            raise failure
        return fetch(self, names)

    monkeypatch.setattr(LazyFrame, "fetch", killed)
    ledger = dp.Ledger(1.0)
    how = {"domain": domain_of("one_cell", "replace"), "rows": dp.Table(frame(), {"y": "y"}), "ledger": ledger}
    with pytest.raises((dp.errors.PrivacyError, KeyboardInterrupt)) as caught:
        dp.privatize(dummies(), epsilon=0.5, **how)
    assert ledger.spent.epsilon == 0.5 and SECRET not in str(caught.value)


def test_rows_that_come_between_plan_and_scan_are_noticed(monkeypatch):
    connection = duckdb.connect()
    connection.execute("create table stored as select range::double as y from range(10)")
    fetch, runs = LazyFrame.fetch, []

    def late(self, names):
        runs.append(names)
        if len(runs) == 3:
            connection.execute("insert into stored values (3.0)")
        return fetch(self, names)

    monkeypatch.setattr(LazyFrame, "fetch", late)
    ledger = dp.Ledger(1.0)
    how = {"domain": domain_of("one_cell", "replace"), "rows": dp.Table(connection.table("stored"), {"y": "y"})}
    with pytest.raises(dp.errors.PrivacyError, match="has changed"):
        dp.privatize(dummies(), epsilon=0.5, ledger=ledger, **how)
    assert ledger.spent.epsilon == 0.5


# --- blocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_are_the_rows(engine, monkeypatch, tmp_path):
    """What samplers and noised gradients read: spooled once, the same as columns in memory, in some order."""
    monkeypatch.setattr("pymc_dp.rows.spool.BLOCK_BYTES", 1000)
    parts, columns = stored("regression", table(300), np.random.default_rng(2))
    parts["g"] = part(np.arange(300), np.arange(300) % 31 == 0)  # tells rows apart
    beside, held = in_engine(engine, parts, columns)
    found = []
    for rows in (beside, held):
        inspected = with_stored(inspect(dummies("regression"), domain_of("regression", "replace")).rows, rows)
        inspected.require()
        with opened_gate():
            copied = spooled(Passes.of(inspected, rows), scratch=Scratch(folder=str(tmp_path)))
        flat = np.concatenate([column.reshape(len(column), -1).astype(float) for column in copied], axis=1)
        found.append(flat[np.lexsort(flat.T)])
        copied.spool.remove()
    assert np.array_equal(*found) and list(tmp_path.iterdir()) == []


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("native", "message"),
    [
        (pl.DataFrame({"y": [1.0]}), r"got one in memory \(DataFrame\)"),
        (pytest.importorskip("pandas").DataFrame({"y": [1.0]}), r"got one in memory \(DataFrame\)"),
        (duckdb.connect(), "must be a lazy frame of Polars, DuckDB, Dask, Spark, got DuckDBPyConnection"),
        ("survey", "must be a lazy frame"),
        (None, "must be a lazy frame"),
    ],
)
def test_what_is_no_lazy_frame(native, message):
    with pytest.raises(dp.errors.ArgumentError, match=message):
        dp.Table(native, {"y": "y"})


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("z", r"no column 'z'"),
        ("nam", r"no column 'nam'\. Did you mean 'name'"),
        ("name", "'name' of type text, which is neither a number nor a boolean"),
        ("day", "'day' of type Date"),
        ("price", "'price' of type Decimal"),
        ("big", "'big' of type UInt64"),
        ("list", "'list' of type List"),
    ],
)
def test_columns_that_are_no_numbers(column, message):
    held = frame(
        name=["secret"],
        day=pl.Series([0]).cast(pl.Date),
        price=pl.Series([1]).cast(pl.Decimal(5, 2)),
        big=pl.Series([1], dtype=pl.UInt64),
        list=[[1.0]],
    )
    with pytest.raises(dp.errors.ArgumentError, match=message) as caught:
        dp.explain(dummies(), domain_of("one_cell", "replace"), rows=dp.Table(held, {"y": column}))
    assert "secret" not in str(caught.value)


def test_norms_narrow_floats_and_long_statements():
    with pm.Model() as norms:
        pm.Normal("y", pm.Data("x", np.zeros((3, 2))) @ pm.Normal("b", shape=2), 1, observed=np.zeros(3))
    held = frame(y=[0.0], a=[0.0], b=[1.0])
    domain = dp.Domain(bounds={"y": (-1, 1)}, norms={"x": 1.0})
    (problem,) = dp.explain(norms, domain, rows=dp.Table(held, {"y": "y", "x": ["a", "b"]})).problems
    assert "cannot scale rows to a norm" in problem.what
    with pm.Model() as bins:
        pm.StudentT("y", nu=4, mu=pm.Normal("m"), sigma=1, observed=np.zeros(3))
    wide = dp.Statistics(mechanism=dp.Histogram(5000))
    how = {"domain": dp.Domain(bounds={"y": (-1, 1)}), "statistics": wide, "rows": dp.Table(held, {"y": "y"})}
    with pytest.raises(dp.errors.UnsupportedModelError, match="more than the 2000 that an engine is asked for"):
        dp.privatize(bins, epsilon=1.0, **how)
    with pytensor.config.change_flags(floatX="float32"), pm.Model() as narrow:
        pm.Normal("y", pm.Data("x", np.zeros(3)) * pm.Normal("b"), 1, observed=np.zeros(3))
    domain = dp.Domain(bounds={"y": (-1, 1), "x": (-1, 1)})
    problems = dp.explain(narrow, domain, rows=dp.Table(held, {"y": "y", "x": "a"})).problems
    assert "would be rounded to float32" in problems[0].what
