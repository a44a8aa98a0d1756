"""A second release from the same rows is seen, counted and added up, unless one ledger holds both."""

import gc
import warnings
import weakref

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases

HIDDEN = dp.Domain(neighbours="add_remove", n_max=100)


def model_of(n=5, name="y"):
    with pm.Model() as model:
        pm.Bernoulli(name, pm.Beta("p", 1, 1), observed=np.zeros(n, dtype=int))
    return model


def warning_of(model, epsilon=1.0, ledger=None, domain=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dp.privatize(model, epsilon=epsilon, domain=domain, ledger=ledger)
    assert all(item.category is dp.errors.RepeatedReleaseWarning for item in caught)
    return " ".join(str(item.message) for item in caught)


def test_later_releases_are_counted_and_added_up_until_they_are_forgotten():
    assert warning_of(model_of()) == ""
    assert "second release from these rows, ε=1.5 in total" in warning_of(model_of(), 0.5)
    third = warning_of(model_of(), 1.5)
    assert "third release from these rows, ε=3 in total" in third and "y" in third and "dp.Ledger" in third
    for other in ({"n": 6}, {"name": "z"}):
        assert warning_of(model_of(**other)) == ""
    forget_releases()
    assert warning_of(model_of()) == ""


def test_the_number_of_rows_plays_no_part_where_it_is_private():
    assert warning_of(model_of(5), domain=HIDDEN) == ""
    assert "second release" in warning_of(model_of(6), domain=HIDDEN)


def test_one_ledger_silences_and_a_release_beside_it_is_seen():
    first, second = dp.Ledger(3.0), dp.Ledger(3.0)
    assert [warning_of(model_of(), 0.5, first) for _ in range(3)] == [""] * 3
    text = warning_of(model_of(), 0.5)
    assert "have an open ledger, where ε=1.5 of 3 is spent, but this release of ε=0.5 has no ledger" in text
    assert "is charged to another one" in warning_of(model_of(), 0.5, second)
    assert warning_of(model_of(), 0.5, second) == warning_of(model_of(), 0.5, first) == ""


def test_a_ledger_is_open_as_long_as_somebody_holds_it():
    ledger = dp.Ledger(1.0)
    assert warning_of(model_of(), ledger=ledger) == ""
    alive = weakref.ref(ledger)
    del ledger
    gc.collect()
    assert alive() is None and warning_of(model_of(), ledger=dp.Ledger(1.0)) == ""


def test_what_was_refused_is_not_remembered():
    with pytest.raises(dp.errors.BudgetExceeded):
        dp.privatize(model_of(), epsilon=2.0, ledger=dp.Ledger(1.0))
    ledger, other = dp.Ledger(1.0), dp.Ledger(1.0)
    assert warning_of(model_of(), ledger=ledger) == ""
    for _ in range(2):
        with pytest.raises(dp.errors.RepeatedReleaseWarning, match="open ledger"):
            dp.privatize(model_of(), epsilon=1.0, ledger=other)
    assert other.history == []
