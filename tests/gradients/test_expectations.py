"""Expectations over responses: clipped scores are centred under the model, found in another way."""

import numpy as np
import pytest

from pymc_dp.gradients.clipping import Responses, clipped
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_parts import RowParts, expected
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits
from pymc_dp.rows.gate import read
from tests.gradients import likelihoods

pytestmark = pytest.mark.usefixtures("paid")

FINE = 20_000
"""Values of a response that the mean of a row is held against."""


def a_row(build, rng):
    """Functions, one row many times over, its expectations, and a limit that about half of its scores exceed."""
    interface = interface_of(*build())
    rows = RowScores.of(interface, mode="FAST_COMPILE")
    columns = [read(column)[:1] for column in interface.inspection.columns]
    at = rng.normal(0, 0.3, interface.size)
    found = expected(rows, columns, at, np.ones(interface.size))
    weights, scores = found.responses.weights[:1], found.responses.scores[:1]
    lengths = np.einsum("nbi,nij,nbj->nb", scores, found.gram[:1], scores)
    return rows, columns, at, found, 0.8 * np.sqrt((weights * lengths).sum())


def size_of_mean(found, scores, weights, limit):
    """Norm of the mean that clipped scores lack of that of all scores, over the limit, and of the longest."""
    model = Responses(weights=found.responses.weights[:1], scores=found.responses.scores[:1])
    nothing = np.zeros((1, scores.shape[1]))
    centre = -clipped(model, nothing, found.gram[:1], clip_norm=limit, clip_curvature=1e12).scores[0]
    assert np.linalg.norm(centre @ found.jacobian[0]) < 0.999 * limit, "it is not clipped itself"
    own = (scores - centre) @ found.jacobian[0]
    own *= np.minimum(1, limit / np.linalg.norm(own, axis=1))[:, None]
    lacking = weights @ (own - scores @ found.jacobian[0])
    return np.linalg.norm(lacking) / limit, np.linalg.norm(own, axis=1).max() / limit


def evenly(column):
    """Values from far below the bounds to far above them, the middle of cells, and the width of each."""
    low, high = column.bounds
    beyond = (high - low) * np.geomspace(1e-3, 20, FINE // 10)
    edges = np.concatenate([low - beyond[::-1], np.linspace(low, high, FINE), high + beyond])
    return (edges[1:] + edges[:-1]) / 2, np.diff(edges)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", likelihoods.CONTINUOUS)
def test_clipped_scores_have_mean_zero_over_a_density_on_a_fine_grid(name, rng):
    rows, columns, at, found, limit = a_row(likelihoods.CONTINUOUS[name], rng)
    (one,) = rows.interface.responses
    values, widths = evenly(one.column)
    atoms = {"censored": [1.0], "hurdle": [0.0]}.get(name, [])
    values, sizes = np.concatenate([values, atoms]), np.concatenate([widths, np.ones(len(atoms))])
    chunk = [np.repeat(column, len(values), axis=0) for column in columns]
    predictors = rows.predicted(at, *chunk)[0]
    chunk[one.place] = values
    weights = sizes * np.exp(rows.scored(predictors, *chunk)[1])
    assert weights.sum() == pytest.approx(1, abs=0.01)
    if rows.quantiles[0] is None:
        chunk[one.place] = one.column.clamped(values)
    mean, longest = size_of_mean(found, rows.scored(predictors, *chunk)[0], weights / weights.sum(), limit)
    assert mean < 0.01 and longest == pytest.approx(1), "some are clipped"


@pytest.mark.parametrize("build", [likelihoods.CONTINUOUS["normal, a third clamped"], likelihoods.CUT])
def test_of_rows_that_are_not_clipped_the_scores_of_clamped_rows_are_added(build, rng):
    """So that the estimate is that of the same clamped rows without privacy, and not of what they were before."""
    interface = interface_of(*build())
    rows = RowScores.of(interface, mode="FAST_COMPILE")
    chunk, at = [read(column) for column in interface.inspection.columns], rng.normal(0, 0.3, interface.size)
    limits = Limits(scale=np.ones(interface.size), clip_norm=1e9, clip_curvature=1e9)
    predictors, jacobian = rows.predicted(at, *chunk)
    plain = np.einsum("nq,nqd->nd", rows.scored(predictors, *chunk)[0], jacobian)
    np.testing.assert_allclose(RowParts(rows=rows).scores(chunk, at, limits) * 1e9, plain, rtol=1e-6, atol=1e-9)
