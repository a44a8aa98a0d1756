"""Counts of levels that add up to a total: how often each is taken."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from pymc_dp.gradients.counted_levels import taken_counts

SHARES = np.array([0.7, 2.0, 1.3])
DRAWN = 20_000


@pytest.mark.parametrize("varied", [False, True])
@pytest.mark.parametrize("total", [0, 1, 6])
def test_counts_are_taken_as_often_as_they_are_probable(varied, total, rng):
    exact = stats.dirichlet_multinomial(SHARES, total) if varied else stats.multinomial(total, SHARES / SHARES.sum())
    shares = np.tile([*SHARES, total], (DRAWN, 1))
    found = taken_counts(shares, rng.uniform(size=(DRAWN, 2)), 60, varied)
    assert (found.sum(axis=1) == total).all()
    for row in product(range(total + 1), repeat=3):
        if sum(row) == total:
            probability = float(exact.pmf(row))
            often = (found == row).all(axis=1).mean()
            assert abs(often - probability) < 5 * np.sqrt(probability / DRAWN)


def test_no_row_gives_what_a_column_cannot_hold():
    wild = np.array([[np.nan, np.inf, -1.0, np.nan], [0.0, 0.0, 0.0, 1e300], [1e300, 1e-300, 1.0, -5.0]])
    for varied in (False, True):
        found = taken_counts(wild, np.full((3, 2), 0.5), 60, varied)
        assert (found >= 0).all() and (found[:, :2] <= 60).all()
