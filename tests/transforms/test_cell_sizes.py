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
