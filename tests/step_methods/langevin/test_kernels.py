"""Clipping, batches, and how far one row can move a sum."""

import numpy as np
import pytest
from scipy import stats

from pymc_dp.step_methods.langevin import walk
from pymc_dp.step_methods.langevin.kernels import fixed_batch, poisson_rows

from .conftest import CLIP, N_ROWS, flat, funded, logistic, start, table

WORST = [0.0, 1e-310, 1e-170, 1.0, -1e9, 1e154, 1e200, -1e300, np.inf, -np.inf, np.nan, np.finfo(float).max]


def positions(step, rng, count):
    size = flat(step, start(step)).size
    return [scale * rng.normal(size=size) for scale in np.resize([0.0, 0.3, 5.0, 1e3, 1e160], count)]


def hostile_row(rng):
    x = rng.choice(WORST, size=3) if rng.random() < 0.7 else rng.normal(size=3) * 10.0 ** rng.integers(-9, 9)
    return x, rng.choice([0, 1, -1, 7, -(2**31), 2**31 - 1]), rng.choice([0, 1, 2, -5])


def put(step, place, row):
    """Overwrite a row in the order of the columns that the step holds."""
    by_ndim = {2: row[0]}
    others = iter(row[1:])
    for column in step._rows:
        column[place] = by_ndim[2] if column.ndim == 2 else np.clip(next(others), *limits(column))


def limits(column):
    return np.iinfo(column.dtype).min, np.iinfo(column.dtype).max


def test_one_row_adds_at_most_the_clip_norm(begin, rng):
    step = begin()
    for position in positions(step, rng, 60):
        for _ in range(10):
            put(step, 0, hostile_row(rng))
            total = step.clipped_sum(position, [0])
            assert np.isfinite(total).all()
            assert np.linalg.norm(total) <= CLIP


@pytest.mark.slow
def test_neighbours_move_the_sum_by_one_or_two_norms(begin, rng):
    step = begin()
    for position in positions(step, rng, 40):
        places = np.sort(rng.choice(N_ROWS, size=60, replace=False))
        put(step, places[5], hostile_row(rng))
        before = step.clipped_sum(position, places)
        without = step.clipped_sum(position, np.delete(places, 5))
        put(step, places[5], hostile_row(rng))
        after = step.clipped_sum(position, places)
        assert np.linalg.norm(before - without) <= CLIP
        assert np.linalg.norm(before - after) <= 2 * CLIP
    sums = []
    for answer in (0, 1):
        put(step, 0, (np.full(3, 1e3), 0, answer))
        sums.append(step.clipped_sum(np.zeros(flat(step, start(step)).size), [0]))
    assert np.linalg.norm(sums[0] - sums[1]) > 1.99 * CLIP, "two norms are reached, and must be paid for"


@pytest.mark.few(2)
@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_poisson_batches_hold_each_row_independently(rate, rng):
    n_rows, draws = 50, 20_000
    places, seen = np.empty(n_rows, dtype=np.int64), np.zeros((draws, n_rows), dtype=bool)
    waiting = -np.log1p(-rate) if rate < 1 else np.inf
    for i in range(draws):
        count = poisson_rows(rng, n_rows, waiting, -1, places)
        seen[i, places[:count]] = True
        assert (np.diff(places[:count]) > 0).all()
    if rate == 1:
        assert seen.all()
        return
    sizes = seen.sum(axis=1)
    expected = stats.binom(n_rows, rate)
    assert stats.ks_1samp(sizes + rng.random(draws), _smoothed(expected, n_rows)).pvalue > 1e-4
    included = seen.mean(axis=0)
    assert np.abs(included - rate).max() < 5 * np.sqrt(rate * (1 - rate) / draws)
    pairs = np.corrcoef(seen.T) - np.eye(n_rows)
    assert np.abs(pairs).max() < 6 / np.sqrt(draws)


def _smoothed(expected, n_rows):
    """Distribution of a count plus a uniform number: continuous, as the Kolmogorov test wants it."""
    grid = np.arange(n_rows + 2)
    return lambda x: np.interp(x, grid, expected.cdf(grid - 1))


def test_fixed_batches_are_uniform_sets(rng):
    n_rows, batch, draws = 8, 3, 30_000
    keys = np.empty(8, dtype=np.int64)
    places, counts = np.empty(n_rows, dtype=np.int64), {}
    for _ in range(draws):
        assert fixed_batch(rng, n_rows, batch, keys, places) == batch
        found = frozenset(places[:batch].tolist())
        assert len(found) == batch
        counts[found] = counts.get(found, 0) + 1
    assert len(counts) == 56
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


@pytest.mark.few(1)
@pytest.mark.parametrize("sampling", ["poisson", "without_replacement"])
def test_chains_are_the_same_for_every_number_of_threads(sampling, shared, monkeypatch):
    """To the last bit: chunks of 32 rows, which each thread takes as it comes to them."""
    monkeypatch.setattr(walk, "MOST_ROWS", 32)
    step = funded(logistic(*table(400)), batch_size=300, sampling=sampling, steps=400)
    found = []
    for helpers in (0, 1, 2, 3):
        monkeypatch.setattr(walk.GradientWalk, "_helpers", lambda *_, helpers=helpers: helpers)
        position, memory = np.zeros(5), step.memory.copy()
        rng, loop = np.random.default_rng(4), step._loop
        step._walk(position, memory, step.course.sizes, False, rng, loop, step._table)
        found.append(position)
    assert loop.chunk == 32 and np.isfinite(found[0]).all() and found[0].all()
    assert all((one == found[0]).all() for one in found)
