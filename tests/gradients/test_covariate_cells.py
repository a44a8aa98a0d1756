"""Rows with the same covariates are evaluated once, and give to the last digit what they give one by one."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_parts import RowParts, expected
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits

N, SHAPE = 90, (3, 2)
RNG = np.random.default_rng(sum(map(ord, "covariate cells")))
GROUP, SIDE, X = RNG.integers(4, 7, N), RNG.integers(0, 2, N), RNG.uniform(-1, 1, N)
COUNTS = RNG.poisson(3, (N, 2))
LIMITS = Limits(scale=np.ones(6), clip_norm=0.8, clip_curvature=0.3)


def counts(continuous=False):
    """Negative binomial counts by two columns of whole numbers, and Poisson ones by one of them."""
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=3), pm.Normal("b", shape=2)
        alpha = pm.LogNormal("alpha")
        group, side = pm.Data("group", GROUP), pm.Data("side", SIDE)
        eta = a[group - 4] + b[side] + (pm.Data("x", X) if continuous else 0.0)
        pm.NegativeBinomial("y", mu=pm.math.exp(eta), alpha=alpha, observed=COUNTS[:, 0])
        pm.Poisson("z", pm.math.exp(b[side]), observed=COUNTS[:, 1])
    bounds = {"group": (4, 6), "side": (0, 1), "y": (0, 30), "z": (0, 30), "x": (-1, 1)}
    kept = {name: pair for name, pair in bounds.items() if name != "x" or continuous}
    return interface_of(model, dp.Domain(bounds=kept))


@pytest.fixture(scope="module")
def rows():
    return RowScores.of(counts())


def columns(rows, order=slice(None)):
    held = {"group": GROUP, "side": SIDE, "y": COUNTS[:, 0], "z": COUNTS[:, 1], "x": X}
    return [held[one.name][order].astype(one.leaf.type.dtype) for one in rows.interface.inspection.columns]


@pytest.mark.slow
def test_what_is_not_within_bounds_is_in_some_cell(rows):
    held = columns(rows)
    for column in held:
        column[:3] = np.iinfo(column.dtype).max, np.iinfo(column.dtype).min, -1
    places = rows.cells.of_rows(held)
    assert places.min() >= 0 and places.max() < rows.cells.count


@pytest.mark.slow
def test_rows_give_the_same_to_the_last_digit_evaluated_once_or_each(rows, rng, monkeypatch):
    at, order = rng.normal(0, 0.5, 6), rng.permutation(N)
    parts = RowParts(rows=rows)

    def found():
        made = expected(rows, columns(rows), at, LIMITS.scale)
        responses = made.of_rows(made.responses.weights), made.of_rows(made.responses.scores)
        own = parts.scores(columns(rows), at, LIMITS), parts.factors(columns(rows), at, LIMITS)
        return *own, parts.scores(columns(rows, order), at, LIMITS), *responses, made.of_rows(made.jacobian)

    once = found()
    monkeypatch.setattr(RowScores, "cells", property(lambda self: None))
    for one, other in zip(once, found(), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(once[2], once[0][order])
