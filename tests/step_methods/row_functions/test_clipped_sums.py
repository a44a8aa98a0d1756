"""Rows that would break a norm, through the loops that run; and sums of a million rows, one of them replaced."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numba
import numpy as np
import pytest

from pymc_dp.step_methods.row_functions.limits import clip_to
from pymc_dp.step_methods.row_functions.summing_kernels import SOME, add_whole, squared_norms, weigh, write_held

TINY, LARGEST = np.finfo(float).tiny, np.finfo(float).max
CORNERS = [0.0, 5e-324, 1e-310, TINY, 1e-170, 1e-154, 1.0, 1e9, 1e154, 1e170, 1e300, LARGEST, np.inf, np.nan]


def wild(rng, shape):
    """Corners of floats, and numbers of any size, of either sign."""
    corner = rng.choice(CORNERS, size=shape)
    other = rng.normal(size=shape) * 10.0 ** rng.uniform(-320, 300, size=shape)
    return rng.choice([-1.0, 1.0], size=shape) * np.where(rng.random(shape) < 0.4, corner, other)


def tame(rng, shape):
    """Rows of comparable entries near and far above the norm, in subnormal units too."""
    size = 10.0 ** rng.integers(-310, 300, size=(shape[0], 1)) if rng.random() < 0.3 else 10.0 ** rng.uniform(-3, 3)
    return rng.normal(size=shape) * size


def held(blocks, starts, clip, size):
    """What the loops write for each row."""
    with np.errstate(all="ignore"):
        squares = np.empty(len(blocks[0]))
        squared_norms(blocks, squares)
        weigh(squares, clip)
        written, found = np.zeros((SOME, size)), []
        for begin in range(0, len(squares), SOME):
            count = write_held(blocks, squares, begin, starts, clip, written)
            found.append(written[:count].copy())
    return np.concatenate(found)


@numba.njit(nogil=True, error_model="numpy")
def add_clipped_rows(rows, clip, total, some=SOME):
    """Add the rows of a matrix, clipped and rounded, to a sum in units."""
    blocks, squares, written = (np.ones(rows.shape[0]), rows), np.empty(rows.shape[0]), np.zeros((some, total.size))
    squared_norms(blocks, squares)
    weigh(squares, clip)
    for begin in range(0, squares.size, some):
        count = write_held(blocks, squares, begin, np.zeros(1, dtype=np.int64), clip, written)
        add_whole(written, count, total)


def exact(rows):
    """Squared norms of rows of whole numbers, without rounding."""
    assert np.isfinite(rows).all() and (rows == np.rint(rows)).all()
    return [sum(int(value) ** 2 for value in row) for row in rows]


@pytest.mark.few(7)
@pytest.mark.parametrize("norm", [1e-200, 1e-3, 1.0, 1e100])
@pytest.mark.parametrize("make", [wild, tame])
def test_no_row_adds_more_than_the_norm(make, norm, rng):
    """Exactly: whole numbers, added up as integers."""
    starts, clip = np.array([0, 3]), clip_to(norm, size=6, n_rows=1000)
    most = (Fraction(norm) / Fraction(clip.unit)) ** 2
    kept = 0
    for _ in range(20):
        blocks = (
            make(rng, (300, 1))[:, 0],
            make(rng, (300, 3)),
            wild(rng, 300),
            make(rng, (300, 2)),
        )
        found = exact(held(blocks, starts, clip, 6))
        assert max(found) <= most
        kept += sum(square > 0 for square in found)
    assert kept > 100, "rows that are not extreme are counted"


def test_extreme_entries_beside_extreme_factors_are_not_lost():
    """Squares that vanish or overflow, beside a factor that brings the vector back."""
    clip = clip_to(1e-3, size=4, n_rows=100)
    for factor, entry in ((1e170, 1e-170), (1e150, 1e-180), (1e-170, 1e170), (1e-200, 1e200)):
        (row,) = held((np.array([factor]), np.full((1, 4), entry)), np.array([0]), clip, 4)
        whole = min(1e-3, 2 * factor * entry)
        assert np.linalg.norm(row * clip.unit) == pytest.approx(whole, rel=1e-6, abs=clip.unit)


@pytest.mark.parametrize("row", [[np.nan, 0.0], [np.inf, 1.0], [1.0, -np.inf], [LARGEST, LARGEST]])
def test_rows_without_a_norm_add_nothing(row):
    total = np.zeros(2)
    add_clipped_rows(np.array([row]), clip_to(1.0, size=2, n_rows=1), total)
    assert not total.any()


N_ROWS = 1_000_000
HALF = 2**19


@pytest.fixture(scope="module")
def hovering():
    """Numbers whose float sum stays just below a power of 2, or just above it, where each is rounded, and upwards."""
    last = 2.0**-33  # digit of numbers from 2^19 on
    small = np.resize(last * np.array([1.5, -0.5, 1.5, -0.5, -2.0]), N_ROWS - HALF)
    return np.concatenate([np.ones(HALF - 1), [0.0], small])[:, None]


def replaced(rows, value):
    other = rows.copy()
    other[HALF - 1] = value
    return other


def total_of(rows, clip, parts=1):
    """Sum over parts of a table, each by a thread of its own."""

    def part(some):
        total = np.zeros(rows.shape[1])
        add_clipped_rows(np.ascontiguousarray(some), clip, total)
        return total

    with ThreadPoolExecutor(parts) as pool:
        return np.sum(list(pool.map(part, np.array_split(rows, parts))), axis=0)


def test_one_replaced_row_of_a_million_moves_the_sum_by_two_norms_in_any_order(hovering, rng):
    norm, sums = 1.9, []
    clip = clip_to(norm, size=1, n_rows=N_ROWS)
    for value in (1e9, -1e9):
        rows = replaced(hovering, value)
        shuffled = rng.permutation(rows)
        found = {
            total_of(table, clip, parts).item() for table in (rows, rows[::-1], shuffled) for parts in (1, 2, 3, 7)
        }
        assert len(found) == 1, "neither order nor threads matter"
        sums.append(int(found.pop()))
    without = int(total_of(np.delete(hovering, HALF - 1, axis=0), clip).item())
    unit = Fraction(clip.unit)
    assert 2 * norm * (1 - 1e-8) < (sums[0] - sums[1]) * unit <= 2 * Fraction(norm)
    assert max(abs(found - without) for found in sums) * unit <= Fraction(norm)


@pytest.mark.slow
def test_hostile_rows_among_a_million_move_nothing_else(rng):
    """In two dimensions, with rows of all sizes; neighbours differ by whole numbers within the norm."""
    norm, n_rows = 0.7, N_ROWS
    clip = clip_to(norm, size=2, n_rows=n_rows)
    rows = rng.normal(size=(n_rows, 2)) * 10.0 ** rng.uniform(-12, 3, size=(n_rows, 1))
    rows[rng.integers(n_rows, size=1000)] = wild(rng, (1000, 2))
    rows[n_rows // 2] = 0.0
    base, most = total_of(rows, clip), (Fraction(norm) / Fraction(clip.unit)) ** 2
    for row in wild(rng, (20, 2)):
        rows[n_rows // 2] = row
        for parts in (1, 3):
            (moved,) = exact((total_of(rows, clip, parts) - base)[None])
            assert moved <= most
