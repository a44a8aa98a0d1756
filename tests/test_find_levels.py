"""``dp.find_levels``: rare labels are shown nowhere, what is charged, and what is refused."""

import logging
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pymc_dp as dp
from pymc_dp.accounting import ApproximateEvent

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
SECRET = "ZYXWVUT-8675309"
PAID = {"epsilon": 1.0, "delta": 1e-6, "max_levels": 10}


def cities(n=3000, seed=1):
    held = np.random.default_rng(seed).choice(["Oslo", "Rome", "Bonn", "Lyon"], n, p=[0.5, 0.3, 0.17, 0.03])
    return np.append(held, SECRET).astype(object)


def ledger(delta=1e-5):
    return dp.Ledger(3.0, delta)


TABLES = {
    "array": lambda: {"city": cities()},
    "series": lambda: {"city": pd.Series(cities())},
    "pandas": lambda: pd.DataFrame({"city": cities(), "y": 1}),
    "polars": lambda: pl.DataFrame({"city": cities().tolist()}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_common_levels_are_found_and_the_rest_is_other(kind):
    account = ledger()
    levels = dp.find_levels("city", rows=TABLES[kind](), ledger=account, **PAID)
    assert levels.labels == ("Bonn", "Lyon", "Oslo", "Rome", "other") and levels.column == "city"
    exact = pd.Series(cities()).value_counts()
    assert all(abs(count - exact[label]) < 40 for label, count in levels.counts.items())
    (entry,) = account.history
    assert entry.label == "levels of city (found: 'Bonn', 'Lyon', 'Oslo', 'Rome')"
    assert account.spent == dp.Budget(1.0, 1e-5) and entry.event == ApproximateEvent(epsilon=1.0, delta=1e-6)


def test_what_is_no_text_or_called_as_the_rest_is_of_the_rest():
    held = np.array(["other"] * 900 + [None] * 900 + [1.5] * 900 + [float("nan")] * 900 + ["Oslo"] * 900, dtype=object)
    levels = dp.find_levels("city", rows={"city": held}, ledger=ledger(), **PAID)
    assert levels.labels == ("Oslo", "other") and np.bincount(levels.codes(held)).tolist() == [900, 3600]


def broken(*values):
    raise ValueError(f"{SECRET} is no city")


WHERE = ["pymc_dp.rows.levels._objects", "pymc_dp.kernel.labels.Counter"]
"""Where reading and counting may fail."""


@pytest.mark.parametrize("fails", [None, *WHERE])
def test_a_label_of_one_row_is_in_no_text_that_is_not_its_release(fails, monkeypatch, caplog):
    account, said = ledger(), []
    caplog.set_level(logging.DEBUG)
    if fails:
        monkeypatch.setattr(fails, broken)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            levels = dp.find_levels("city", rows={"city": cities(50)}, ledger=account, **{**PAID, "epsilon": 0.05})
            said += [repr(levels), str(levels.labels), str(levels.counts)]
    except dp.errors.ReleaseError as error:
        said += [str(error), repr(error.__cause__), repr(error.__context__)]
    said += [str(item.message) for item in caught] + [caplog.text] + [repr(account), account.to_frame().to_string()]
    assert SECRET not in "\n".join(said) and account.spent.epsilon == 0.05
    assert fails is not None or [item.category for item in caught] == [dp.errors.DomainWarning]


def test_where_nothing_is_found_it_says_so():
    with pytest.warns(dp.errors.DomainWarning, match=r"No levels of 'city' were found: no label has the \d+ rows"):
        levels = dp.find_levels("city", rows={"city": cities(10)}, ledger=ledger(), **PAID)
    assert levels.labels == ("other",) and levels.codes(cities(10)).tolist() == [0] * 11


def test_nothing_is_read_where_the_budget_is_not_enough(monkeypatch):
    monkeypatch.setattr("pymc_dp.rows.levels.Labels.batches", lambda self: pytest.fail("rows were read"))
    for account in (dp.Ledger(0.5, 1e-5), dp.Ledger(3.0, 1e-7), dp.Ledger(3.0)):
        with pytest.raises(dp.errors.BudgetExceeded, match="delta"):
            dp.find_levels("city", rows={"city": cities()}, ledger=account, **PAID)
        assert account.history == []


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"delta": 0.0}, dp.errors.ArgumentError, "delta must be > 0, got 0"),
        ({"max_levels": 0}, dp.errors.ArgumentError, "max_levels must be >= 1"),
        ({"other": ""}, dp.errors.ArgumentError, "other must be a name"),
        ({"rows": {"town": cities()}}, dp.errors.ArgumentError, "no column 'city'"),
        ({"rows": {"city": np.ones(3)}}, dp.errors.ArgumentError, "dtype float64"),
        ({"rows": pl.LazyFrame({"city": ["a"]})}, dp.errors.ArgumentError, "rows must map"),
        ({"domain": dp.Domain(public=["city"])}, dp.errors.DomainError, "is public"),
        (
            {"domain": dp.Domain(metric=dp.metrics.Hamming("city"))},
            dp.errors.UnsupportedModelError,
            "per unit of a metric",
        ),
    ],
)
def test_what_cannot_be_found_is_refused(given, kind, says):
    account = ledger()
    with pytest.raises(kind, match=says):
        dp.find_levels("city", **{"rows": {"city": cities()}, "ledger": account, **PAID, **given})
    assert account.history == []
