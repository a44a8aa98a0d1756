"""Clipping, batches, and how far one row can move a sum."""

import numpy as np
import pytest
from scipy import stats

from pymc_dp.step_methods.langevin import walk
from pymc_dp.step_methods.langevin.kernels import fixed_batch, poisson_rows

from .conftest import funded, logistic, table


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
def test_chains_are_the_same_for_every_size_of_chunks(sampling, shared, monkeypatch):
    """To the last bit."""
    found = []
    for chunk in (32, 64, 1024):
        monkeypatch.setattr(walk, "MOST_ROWS", chunk)
        step = funded(logistic(*table(400)), batch_size=300, sampling=sampling, steps=400)
        position, memory = np.zeros(5), step.memory.copy()
        step._walk(position, memory, step.course.sizes, False, np.random.default_rng(4), step._loop, step._table)
        found.append(position)
    assert np.isfinite(found[0]).all() and found[0].all()
    assert all((one == found[0]).all() for one in found)
