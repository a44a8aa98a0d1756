"""Sums of whole numbers: no row adds more than was charged, whatever stands in it."""

import numpy as np
import pytest

from pymc_dp.gradients.integers import (
    CURVATURE_UNITS,
    MOST_ROWS,
    SCORE_UNITS,
    add_counts,
    add_curvatures,
    add_scores,
    joined,
    symmetric,
)

HOSTILE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 1.0, -1.0, 1 + 1e-15, 2.0, 0.7071067811865476, -0.0)


def summed(scores):
    total = np.zeros(scores.shape[1], dtype=np.int64)
    add_scores(scores, total)
    return total


def curved(factors):
    total = np.zeros((factors.shape[2],) * 2, dtype=np.int64)
    add_curvatures(factors, total)
    return symmetric(total)


def counted(places, shares, bins=5):
    total = np.zeros(bins, dtype=np.int64)
    add_counts(np.asarray(places), np.asarray(shares), total)
    return total


def squared(whole):
    """Exactly, in Python's integers."""
    return sum(int(entry) ** 2 for entry in np.ravel(whole))


def test_no_row_adds_more_than_its_norm_whatever_it_holds():
    rng = np.random.default_rng(1)
    for _ in range(10_000):
        row = np.where(rng.random(4) < 0.5, rng.choice(HOSTILE, 4), rng.normal(size=4) * 10.0 ** rng.integers(-3, 2))
        assert squared(summed(row[None])) <= SCORE_UNITS**2


def test_no_curvature_is_larger_than_charged_or_has_a_negative_eigenvalue():
    rng = np.random.default_rng(2)
    for _ in range(10_000):
        shape = rng.integers(1, 4), rng.integers(1, 5)
        row = np.where(
            rng.random(shape) < 0.3, rng.choice(HOSTILE, shape), rng.normal(size=shape) * rng.choice([0.1, 0.5, 1])
        )
        whole = curved(row[None])
        assert squared(whole) <= CURVATURE_UNITS**2
        assert np.linalg.eigvalsh(whole.astype(float)).min() >= -1e-3 * CURVATURE_UNITS * 1e-9
        assert (whole == whole.T).all()


def test_two_rows_move_a_sum_of_curvatures_by_root_two_at_most():
    rng = np.random.default_rng(3)
    for _ in range(10_000):
        one, other = (rng.normal(size=(1, 2, 3)) * rng.choice([0.2, 0.4, 0.7]) for _ in range(2))
        moved = squared(curved(one) - curved(other))
        assert moved <= 2 * CURVATURE_UNITS**2
    opposite = np.zeros((2, 1, 2))
    opposite[0, 0, 0] = opposite[1, 0, 1] = 1 - 1e-4
    assert squared(curved(opposite[:1]) - curved(opposite[1:])) > 1.999 * CURVATURE_UNITS**2, "and no less"


def test_sums_are_exact_and_their_order_does_not_matter():
    rng = np.random.default_rng(4)
    scores, factors = rng.normal(size=(5000, 3)) * 0.3, rng.normal(size=(3000, 2, 3)) * 0.3
    shuffled = rng.permutation(5000), rng.permutation(3000)
    assert (summed(scores) == summed(scores[shuffled[0]])).all()
    assert (curved(factors) == curved(factors[shuffled[1]])).all()
    inside = np.linalg.norm(scores, axis=1) <= 1
    np.testing.assert_allclose(summed(scores) / SCORE_UNITS, scores[inside].sum(0), atol=5000 / SCORE_UNITS)


def test_a_row_that_is_too_large_adds_nothing_and_changes_no_other():
    scores = np.array([[0.5, 0.5], [np.nan, 0.1], [0.9, 0.9], [1e308, 0.0]])
    assert (summed(scores) == summed(scores[:1])).all()
    factors = np.array([[[0.5, 0.5]], [[np.nan, 0.1]], [[0.9, 0.9]], [[0.0, np.inf]]])
    assert (curved(factors) == curved(factors[:1])).all()


FAR = (-1, 5, 6, 2**31, 2**32, 2**32 + 3, -(2**32), 2**63 - 1, -(2**63))


def test_no_row_counts_for_more_than_one_or_in_two_bins_whatever_it_holds(rng):
    for _ in range(10_000):
        place = int(rng.choice(FAR)) if rng.random() < 0.3 else int(rng.integers(5))
        share = float(rng.choice(HOSTILE)) if rng.random() < 0.5 else float(rng.uniform(-0.5, 1.5))
        found = counted([place], [share])
        assert np.count_nonzero(found) <= 1 and 0 <= found.min() <= found.max() <= SCORE_UNITS
        if 0 <= place < 5 and 0 <= share <= 1:
            assert found[place] == int(share * SCORE_UNITS)
        else:
            assert not found.any()
    assert squared(counted([2], [1.0]) - counted([4], [1.0])) == 2 * SCORE_UNITS**2, "what is charged is reached"


def test_counts_are_exact_and_what_is_no_bin_changes_no_other(rng):
    places, shares = rng.integers(0, 5, 4000), rng.integers(0, 9, 4000) / 8
    hostile = np.array([share for share in HOSTILE if not 0 <= share <= 1])
    found = counted(
        np.concatenate([places, FAR, np.full(len(hostile), 3)]), np.concatenate([shares, np.ones(len(FAR)), hostile])
    )
    np.testing.assert_array_equal(found, np.bincount(places, shares, 5) * SCORE_UNITS)


def test_the_most_rows_fit_into_64_bits():
    assert MOST_ROWS * SCORE_UNITS < 2**63 and MOST_ROWS * CURVATURE_UNITS < 2**63


def test_many_small_factors_of_one_person_are_held_exactly():
    """A sum of very many squares in floats loses the small ones: there is room for that."""
    small = np.zeros((1, 512, 4))
    small[0, 0, 0], small[0, 1:, 1] = 1 - 6e-9, 2e-4
    assert squared(curved(small)) <= CURVATURE_UNITS**2


@pytest.mark.parametrize("count", [1, 2, 7])
def test_sums_of_sums_are_exact_and_end_where_64_bits_would(count, rng):
    parts = [rng.integers(-(2**62), 2**62, size=(20, 3)) for _ in range(count)]
    parts[0][:2] = [[2**62, -(2**62), 2**62 - 1], [0, -1, 1]]
    if count > 1:
        parts[1][:2] = [[2**62, -(2**62), 2], [-1, 0, -1]]
    exact = sum(part.astype(object) for part in parts)
    held = np.minimum(np.maximum(exact, -(2**62)), 2**62)
    assert (joined(parts).astype(object) == held).all()
