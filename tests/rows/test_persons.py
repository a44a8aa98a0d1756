"""Which rows of a person are kept: a function of that person's rows alone."""

import numpy as np
import pytest

from pymc_dp.rows import persons
from pymc_dp.rows.persons import Grouped, grouped, hashes_of, identified, kept_rows

MOST = 3


def table(seed, n=400, values=3):
    """Few values, so that many rows are alike; a few persons have most of the rows."""
    rng = np.random.default_rng(seed)
    owners = rng.zipf(1.4, n) % 40 - 5
    return owners, [rng.integers(0, values, n).astype(float), rng.choice([0.0, -0.0, np.nan, 2.5], n)]


def shown(owners, columns, kept):
    """Kept rows of each person, as collections."""
    found = {}
    for owner, *row in zip(owners[kept], *(column[kept] for column in columns), strict=True):
        found.setdefault(owner, []).append(tuple("nan" if np.isnan(one) else one + 0.0 for one in row))
    return {owner: sorted(map(str, rows)) for owner, rows in found.items()}


def moved(way, seed, change):
    """Whether rows of others are kept differently once a table is changed; what is left of the one person, too."""
    owners, columns = table(seed)
    before = shown(owners, columns, way(owners, columns, MOST))
    rng = np.random.default_rng(seed + 1000)
    gone = rng.choice(np.unique(owners))
    if change == "order":
        rows = rng.permutation(len(owners))
    else:
        rows = np.flatnonzero(owners != gone)
        before.pop(gone)
    others, left = owners[rows], [column[rows] for column in columns]
    return shown(others, left, way(others, left, MOST)) != before


@pytest.mark.parametrize("change", ["person", "order"])
@pytest.mark.parametrize("seed", range(20))
def test_kept_rows_of_others_are_unmoved(seed, change):
    assert not moved(kept_rows, seed, change)


def ties_left_open(owners, columns, most):
    """The order of one column, ties as they come in an order that has looked at the whole table."""
    order = np.lexsort((np.arange(len(owners)) * 7919 % (len(owners) + 1), columns[0], owners))
    return first_of(owners, order, most)


def seeded_random(owners, columns, most):
    """Numbers from a seed belong to places in the table."""
    return first_of(owners, np.lexsort((np.random.default_rng(1).random(len(owners)), owners)), most)


def first_in_the_table(owners, columns, most):
    return first_of(owners, np.argsort(owners, kind="stable"), most)


def first_of(owners, order, most):
    kept, seen = np.zeros(len(owners), dtype=bool), dict[int, int]()
    for row in order:
        seen[owners[row]] = seen.get(owners[row], 0) + 1
        kept[row] = seen[owners[row]] <= most
    return kept


@pytest.mark.parametrize("mutant", [ties_left_open, seeded_random])
def test_mutants_that_move_the_rows_of_others_are_found(mutant):
    assert any(moved(mutant, seed, "person") for seed in range(20))


@pytest.mark.parametrize("mutant", [ties_left_open, seeded_random, first_in_the_table])
def test_mutants_that_depend_on_the_order_of_rows_are_found(mutant):
    assert any(moved(mutant, seed, "order") for seed in range(20))


def test_a_person_keeps_as_many_rows_as_may_count_and_all_where_there_are_fewer():
    owners, columns = table(3)
    kept = kept_rows(owners, columns, MOST)
    held, left = (np.unique(one, return_counts=True) for one in (owners, owners[kept]))
    np.testing.assert_array_equal(held[0], left[0])
    np.testing.assert_array_equal(left[1], np.minimum(held[1], MOST))


def test_equal_hashes_are_settled_by_values(monkeypatch):
    """With hashes of two values nearly all rows collide: what is kept is a function of a person's rows all the same."""
    monkeypatch.setattr(persons, "_mixed", lambda values: values & np.uint64(1))
    for seed in range(5):
        assert not moved(kept_rows, seed, "person") and not moved(kept_rows, seed, "order")


def test_kept_rows_are_as_a_random_sample():
    """Of many persons with the same rows, half of them 1, as many ones are kept as zeros: not always the same value."""
    count, each = 4000, 10
    owners = np.repeat(np.arange(count), each)
    values = np.tile(np.arange(each) % 2, count)
    kept = values[kept_rows(owners, [values], 5)].reshape(count, 5).sum(axis=1)
    assert abs(kept.mean() - 2.5) < 5 * np.sqrt(5 / 4 * 5 / 9 / count)  # a hypergeometric variance
    assert kept.var() == pytest.approx(5 / 4 * 5 / 9, rel=0.1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.uint64])
def test_the_type_of_numbers_makes_no_difference(dtype):
    owners, columns = table(4)
    owners, values = np.abs(owners), [columns[0].astype(dtype)]
    np.testing.assert_array_equal(
        kept_rows(owners.astype(dtype), values, MOST), kept_rows(owners, [columns[0].astype(np.int64)], MOST)
    )


def test_persons_are_whole_in_a_chunk_and_none_is_left_out():
    owners, columns = table(5)
    found = grouped(owners, [owners.astype(float), *columns], beside=np.arange(len(owners)))
    assert sorted(found.columns[-1]) == list(range(len(owners)))
    for size in (1, 7, 64, 10_000):
        seen = []
        for chunk in found.chunks(size):
            assert isinstance(chunk, Grouped) and chunk.edges[0] == 0 and chunk.edges[-1] == len(chunk.columns[0])
            for start, stop in zip(chunk.edges[:-1], chunk.edges[1:], strict=True):
                (who,) = set(chunk.columns[0][start:stop])
                seen.append(who)
            assert len(chunk.edges) == 2 or len(chunk.columns[0]) <= size
        assert seen == sorted(set(owners))


def test_every_text_is_somebody():
    """Lone surrogates, other encodings, nothing at all: none raises an error, and none is another's."""
    texts = np.array(["a", "a ", "", "\ud800", "Zoë", "zoë", "a"])
    found = identified(texts)
    assert len(set(found)) == 6 and found[0] == found[-1]
    held = np.array([b"a", "Zoë".encode(), b"\xff\xfe"], dtype=object)
    assert list(identified(held)[:2]) == [found[0], found[4]]
    assert len(hashes_of(found)) == 7 and hashes_of(found)[0] == hashes_of(found[-1:])[0]


def test_an_empty_table_has_no_persons():
    none = np.zeros(0, dtype=np.int64)
    assert not len(kept_rows(none, [np.zeros((0, 2))], 3))
    assert not list(grouped(none, [none]).chunks(10))
