"""Which rows of a person are kept: others are unmoved by one person, whatever codes they have."""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import pymc_dp as dp
from pymc_dp.kernel import persons
from pymc_dp.kernel.randomness import secure_keys
from pymc_dp.rows.persons import grouped, kept_rows, somebody

MOST = 3


def table(seed, n=400, values=3):
    """Few values, so that many rows are alike; a few persons have most of the rows."""
    rng = np.random.default_rng(seed)
    owners = rng.zipf(1.4, n) % 40
    return owners, [rng.integers(0, values, n).astype(float), rng.choice([0.0, -0.0, np.nan, 2.5], n)]


@contextmanager
def keys_of(rows, seed=0):
    """Each row has the same key in whatever table it is: those of the proof."""
    keys = np.random.default_rng(seed).permutation(10_000).astype(np.uint64)
    with patch.object(persons, "secure_keys", lambda count: keys[rows]):
        yield


def kept_of(way, owners, rows):
    """Which rows of a larger table are kept of a part of it."""
    with keys_of(rows):
        return set(rows[way(owners, MOST)])


def moved(way, seed, change):
    """Whether others keep other rows once a table is changed."""
    owners, _ = table(seed)
    rng = np.random.default_rng(seed + 1000)
    rows = every = np.arange(len(owners))
    others = owners
    if change == "order":
        rows = rng.permutation(len(owners))
        others = owners[rows]
    elif change == "person":
        rows = np.flatnonzero(owners != rng.choice(np.unique(owners)))
        others = owners[rows]
    else:  # the first person of the table is gone, and all the others have the codes of a table without
        rows = np.flatnonzero(owners != owners[0])
        owners = pd.factorize(owners)[0] if change == "factorized" else np.unique(owners, return_inverse=True)[1]
        code = pd.factorize if change == "factorized" else lambda one: np.unique(one, return_inverse=True)[::-1]
        others = code(owners[rows])[0]
    left = set(rows)
    return kept_of(way, owners, every) & left != kept_of(way, others, rows)


CHANGES = ["person", "order", "factorized", "sorted"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(20))
def test_kept_rows_of_others_are_unmoved(seed, change):
    assert not moved(kept_rows, seed, change)


def test_keys_are_fresh_for_every_release_and_can_be_repeated_in_tests_alone():
    owners, _ = table(1)
    with patch.object(persons, "secure_keys", wraps=secure_keys) as asked:
        plain = [kept_rows(owners, MOST) for _ in range(2)]
    assert [call.args for call in asked.call_args_list] == [(len(owners),)] * 2
    assert (plain[0] != plain[1]).any()
    np.random.seed(1)  # noqa: NPY002
    first = secure_keys(1000)
    np.random.seed(1)  # noqa: NPY002
    assert not set(first) & set(secure_keys(1000)) and len(set(first)) == 1000
    found = []
    for _ in range(2):
        with dp.testing.insecure_randomness(5):
            found.append((kept_rows(owners, MOST), kept_rows(owners, MOST)))
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0][0] != found[0][1]).any()
    with dp.testing.without_noise():
        np.testing.assert_array_equal(kept_rows(owners, MOST), kept_rows(owners, MOST))


def test_a_number_below_0_is_nobodys():
    """As `pandas.factorize` marks ids that are missing: one more such row moves nothing."""
    owners = pd.factorize(np.array(["a", None, "a", "b", None, "a", "b"], dtype=object))[0]
    for dtype in (np.int32, np.int64):
        held = owners.astype(dtype)
        assert not kept_rows(held, 1)[held < 0].any() and kept_rows(held, 1).sum() == 2
        found = grouped(held, [np.arange(7.0)], 9, beside=np.arange(7))
        assert sorted(found.columns[-1]) == [0, 2, 3, 5, 6] and list(found.edges) == [0, 3, 5]
    assert somebody(np.array([2**63 + 1], dtype=np.uint64)).all() and somebody(np.array(["-1"])).all()


def test_a_person_keeps_as_many_rows_as_may_count_and_all_where_there_are_fewer():
    owners, _ = table(3)
    kept = kept_rows(owners, MOST)
    held, left = (np.unique(one, return_counts=True) for one in (owners, owners[kept]))
    np.testing.assert_array_equal(held[0], left[0])
    np.testing.assert_array_equal(left[1], np.minimum(held[1], MOST))
