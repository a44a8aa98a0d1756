"""The prior of private sizes: expected sizes add up, and a cell that holds most rows is where it was shown."""

import numpy as np
import pytest

from pymc_dp.release.noise import NOISES
from pymc_dp.transforms.cell_sizes import Sizes


def expected(counts, bound, kind, scale, rate):
    """Sizes expected after one noised count each, by brute force."""
    n = np.arange(0.05, bound, 0.1)
    away = (counts - n) / scale
    levels = (-np.abs(away) if kind == "laplace" else -0.5 * away**2) - 2 * np.log1p(rate * n)
    weights = np.exp(levels - levels.max(axis=1, keepdims=True))
    return weights @ n / weights.sum(axis=1)


def shown(rng, kind, scale, true, *, at_most=False, bound=None):
    bound = true.sum() if bound is None else bound
    sizes = Sizes(public=False, bound=np.full(len(true), bound), n_private=len(true), kind=kind)
    counts = (true + NOISES[kind].simulated(rng, scale, true.shape))[:, None].astype(float)
    return counts, sizes.shown_by(counts, scale, at_most=at_most)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("share", [0.02, 0.9])
def test_expected_sizes_add_up_to_the_rows(kind, share, rng):
    true = rng.multinomial(2000, [share, *np.full(49, (1 - share) / 49)])
    counts, sizes = shown(rng, kind, 8.0, true)
    most = expected(counts, 2000, kind, 8.0, 0.0).sum()
    assert expected(counts, 2000, kind, 8.0, sizes.rate).sum() == pytest.approx(min(2000, most), abs=4)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_cell_of_most_rows_is_where_it_was_shown(kind, rng):
    """Parts of a random split have a prior that would take 98 / 100 off the logarithm of the density for every row."""
    away, scale = [], 8.0
    for _ in range(40):
        true = rng.multinomial(1000, [0.9, *np.full(99, 0.1 / 99)])
        counts, sizes = shown(rng, kind, scale, true)
        away.append(expected(counts, 1000, kind, scale, sizes.rate)[0] - true[0])
    assert abs(np.mean(away)) < 3 * np.std(away) / np.sqrt(40)
    assert np.std(away) < 2 * scale


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_equal_cells_are_not_made_smaller(kind, rng):
    away = []
    for _ in range(40):
        true = np.full(60, 40)
        counts, sizes = shown(rng, kind, 8.0, true, at_most=True, bound=10_000)
        away.append(expected(counts, 10_000, kind, 8.0, sizes.rate).mean() - 40)
    assert abs(np.mean(away)) < 3 * np.std(away) / np.sqrt(40)


def test_sums_of_noises_count_as_one(rng):
    """Counts of three levels show a size with the noise of their sum."""
    true = rng.multinomial(600, np.full(20, 0.05))
    counts = rng.multinomial(true, [0.2, 0.3, 0.5]) + NOISES["laplace"].simulated(rng, 4.0, (20, 3))
    sizes = Sizes(public=False, bound=np.full(20, 600), n_private=20).shown_by(counts.astype(float), 4.0, at_most=False)
    width = 4.0 * np.sqrt(2 * 3)
    totals = expected(counts.sum(axis=1)[:, None], 600, "gaussian", width, sizes.rate)
    assert totals.sum() == pytest.approx(600, abs=2)
