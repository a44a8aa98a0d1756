import threading
import warnings

import numpy as np
import pymc as pm
import pytest

from pymc_dp import Domain
from pymc_dp.errors import RepeatedReleaseWarning
from pymc_dp.inspection.inspect import inspect
from pymc_dp.mechanisms.repeats import forget_releases, note_release


def inspection(n=5, name="y", domain=None):
    with pm.Model() as model:
        pm.Bernoulli(name, pm.Beta("p", 1, 1), observed=np.zeros(n, dtype=int))
    return inspect(model, domain)


def warning_of(found, epsilon=1.0):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        note_release(found, epsilon, warn=True)
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
    assert warning_of(inspection()) == ""
    assert warning_of(inspection(n=6)) == ""
    assert warning_of(inspection(name="z")) == ""


def test_the_number_of_rows_plays_no_part_where_it_is_private():
    domain = Domain(neighbours="add_remove", n_max=100)
    assert warning_of(inspection(n=5, domain=domain)) == ""
    assert "second release" in warning_of(inspection(n=6, domain=domain))


def test_a_ledger_silences_and_forgetting_starts_anew():
    for _ in range(3):
        note_release(inspection(), 1.0, warn=False)
    assert warning_of(inspection()) == ""
    forget_releases()
    assert warning_of(inspection()) == ""


def test_no_release_is_lost_between_threads():
    found = inspection()

    def release():
        for _ in range(50):
            note_release(found, 1.0, warn=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=release) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with pytest.warns(RepeatedReleaseWarning, match="release number 201 from these rows, ε=201 in total"):
        note_release(found, 1.0, warn=True)
