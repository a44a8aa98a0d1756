"""Counts of levels that add up to a total: how often each is taken, and that scores are centred."""

from itertools import product

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.gradients.counted_levels import taken_counts
from pymc_dp.gradients.in_turn import expected_responses
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_scores import RowScores

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


def model_of(family, totals, rows):
    with pm.Model() as model:
        n = pm.Data("n", totals)
        a = pm.LogNormal("a", 0, 0.5, shape=rows.shape[1])
        if family is pm.Multinomial:
            family("y", n=n, p=a / a.sum(), observed=rows)
        else:
            family("y", n=n, a=a, observed=rows)
    return model


@pytest.mark.parametrize("family", [pm.Multinomial, pm.DirichletMultinomial])
def test_scores_are_centred_and_products_are_expected_over_all_rows(family, rng):
    totals = rng.integers(1, 9, 40)
    rows = rng.multinomial(totals, SHARES / SHARES.sum())
    domain = dp.Domain(bounds={"n": (1, 8), "y": (0, 8)})
    scores = RowScores.of(interface_of(model_of(family, totals, rows), domain), mode="FAST_COMPILE")

    def columns(n, y):
        return [n if column.name == "n" else y for column in scores.interface.inspection.columns]

    predictors, _ = scores.predicted(SHARES, *columns(totals, rows))
    taken = expected_responses(scores, predictors, columns(totals, rows))
    np.testing.assert_allclose(np.einsum("nb,nbq->nq", taken.weights, taken.scores), 0, atol=1e-9)
    exact = np.zeros((predictors.shape[1],) * 2)
    for total, at in zip(totals, predictors, strict=True):
        every = np.array([row for row in product(range(total + 1), repeat=3) if sum(row) == total])
        own, logp = scores.scored(np.tile(at, (len(every), 1)), *columns(np.full(len(every), total), every))
        np.testing.assert_allclose(np.exp(logp).sum(), 1)
        own -= np.exp(logp) @ own
        exact += (np.exp(logp)[:, None] * own).T @ own
    np.testing.assert_allclose(taken.moments.sum(axis=0), exact, rtol=0.02, atol=0.02 * np.abs(exact).max())
