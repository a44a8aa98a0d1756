import gc
import threading
import warnings
import weakref

import numpy as np
import pymc as pm
import pytest

from pymc_dp import Domain, Ledger
from pymc_dp.errors import RepeatedReleaseWarning
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.paid import forget_releases, noted_release


def inspection(n=5, name="y", domain=None):
    with pm.Model() as model:
        pm.Bernoulli(name, pm.Beta("p", 1, 1), observed=np.zeros(n, dtype=int))
    return inspect(model, domain).sums


def warning_of(found, epsilon=1.0, ledger=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with noted_release(found, epsilon, ledger):
            pass
    assert all(item.category is RepeatedReleaseWarning for item in caught)
    return " ".join(str(item.message) for item in caught)


def test_a_first_release_is_silent_and_later_ones_are_counted_and_added_up():
    assert warning_of(inspection()) == ""
    assert "second release from these rows, ε=1.5 in total" in warning_of(inspection(), 0.5)
    third = warning_of(inspection(), 1.5)
    assert "third release from these rows, ε=3 in total" in third
    assert "y" in third
    assert "dp.Ledger" in third


def test_counting_goes_on_after_ten():
    found = inspection()
    texts = [warning_of(found, 0.1) for _ in range(12)]
    assert texts[9].startswith("tenth release")
    assert texts[11].startswith("release number 12 from these rows")


def test_other_tables_are_not_counted():
    ledger = Ledger(1.0)
    assert warning_of(inspection(name="x"), ledger=ledger) == ""
    assert warning_of(inspection()) == ""
    assert warning_of(inspection(n=6)) == ""
    assert warning_of(inspection(name="z")) == ""


def test_the_number_of_rows_plays_no_part_where_it_is_private():
    domain = Domain(neighbours="add_remove", n_max=100)
    assert warning_of(inspection(n=5, domain=domain)) == ""
    assert "second release" in warning_of(inspection(n=6, domain=domain))


def test_one_ledger_silences_and_forgetting_starts_anew():
    ledger = Ledger(3.0)
    assert [warning_of(inspection(), ledger=ledger) for _ in range(3)] == [""] * 3
    forget_releases()
    assert warning_of(inspection()) == ""
    forget_releases()
    assert warning_of(inspection()) == ""


def test_rows_with_an_open_ledger_are_released_without_it_only_with_a_warning():
    ledger = Ledger(3.0)
    assert warning_of(inspection(), ledger=ledger) == ""
    text = warning_of(inspection(), 0.5)
    assert "have an open ledger, where ε=0 of 3 is spent, but this release of ε=0.5 has no ledger" in text
    assert warning_of(inspection(), ledger=ledger) == ""


def test_a_fresh_ledger_beside_an_open_one_is_seen_once():
    first, second = Ledger(1.0), Ledger(1.0)
    assert warning_of(inspection(), ledger=first) == ""
    assert "is charged to another one" in warning_of(inspection(), ledger=second)
    assert warning_of(inspection(), ledger=second) == warning_of(inspection(), ledger=first) == ""


def test_a_ledger_is_open_as_long_as_somebody_holds_it_and_the_registry_does_not():
    ledger = Ledger(1.0)
    assert warning_of(inspection(), ledger=ledger) == ""
    alive = weakref.ref(ledger)
    del ledger
    gc.collect()
    assert alive() is None
    assert warning_of(inspection(), ledger=Ledger(1.0)) == ""


def test_what_was_refused_is_not_remembered():
    ledger, other = Ledger(1.0), Ledger(1.0)
    for pays in (None, other):
        with pytest.raises(ZeroDivisionError), noted_release(inspection(), 1.0, pays):
            raise ZeroDivisionError
    assert warning_of(inspection(), ledger=ledger) == ""
    with pytest.raises(RepeatedReleaseWarning), noted_release(inspection(), 1.0, other):
        pytest.fail("charged in spite of a warning that is an error")
    with pytest.raises(RepeatedReleaseWarning, match="open ledger"), noted_release(inspection(), 1.0, other):
        pass


def test_no_release_is_lost_between_threads():
    found = inspection()

    def release():
        for _ in range(50):
            with noted_release(found, 1.0, None):
                pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=release) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert "release number 201 from these rows, ε=201 in total" in warning_of(found)


def test_of_many_fresh_ledgers_at_once_all_but_one_are_seen():
    found, ledgers, barrier, seen = inspection(), [Ledger(1.0) for _ in range(8)], threading.Barrier(8), []

    def release(ledger):
        barrier.wait()
        try:
            with noted_release(found, 1.0, ledger):
                pass
        except RepeatedReleaseWarning as warning:
            seen.append(warning)

    threads = [threading.Thread(target=release, args=(ledger,)) for ledger in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 7
