"""Clipped scores: centred under the model, within what was charged, with the slope and variance that are said."""

import numpy as np
import pytest
from scipy import stats

from pymc_dp.gradients.clipping import Responses, clipped

NODES = np.arange(60)


def poisson(n=200, q=2, seed=1):
    """Rows with two predictors that add up to the log of a rate; their Jacobians, responses and what was observed."""
    rng = np.random.default_rng(seed)
    jacobian = rng.normal(size=(n, q, 5)) * rng.choice([0.1, 1, 3], size=(n, 1, 1))
    predictors = rng.normal(0.3, 0.7, size=(n, q))
    rates = np.exp(predictors.sum(1))
    weights = stats.poisson.pmf(NODES, rates[:, None])
    scores = np.repeat((NODES - rates[:, None])[:, :, None], q, axis=2)
    observed = np.repeat((rng.poisson(rates) - rates)[:, None], q, axis=1)
    return jacobian, Responses(weights=weights, scores=scores), observed


def of_all(jacobian, responses, limits):
    """ψ of every value of the response, for every row: (n_rows, n_nodes, q)."""
    gram = np.einsum("nqd,npd->nqp", jacobian, jacobian)
    parts = [clipped(responses, responses.scores[:, node], gram, **limits) for node in range(len(NODES))]
    return np.stack([part.scores for part in parts], axis=1), parts[0]


LIMITS = {"clip_norm": 2.0, "clip_curvature": 1.5}


@pytest.mark.slow
def test_clipped_scores_are_centred_and_no_longer_than_allowed():
    jacobian, responses, _ = poisson()
    scores, _ = of_all(jacobian, responses, LIMITS)
    own = np.einsum("nbq,nqd->nbd", scores, jacobian)
    assert (np.linalg.norm(own, axis=2) <= 2.0 * (1 + 1e-12)).all()
    means = np.einsum("nb,nbd->nd", responses.weights, own)
    assert np.abs(means).max() < 0.02, "what ordinary clipping leaves is ten times that"
    ordinary = np.einsum("nbq,nqd->nbd", responses.scores, jacobian)
    ordinary *= np.minimum(1, 2.0 / np.linalg.norm(ordinary, axis=2))[:, :, None]
    assert np.abs(np.einsum("nb,nbd->nd", responses.weights, ordinary)).max() > 0.2


@pytest.mark.slow
def test_curvature_is_the_slope_of_the_mean_and_bounds_the_variance():
    jacobian, responses, _ = poisson()
    scores, part = of_all(jacobian, responses, LIMITS)
    curvature = part.factors @ part.factors.transpose(0, 2, 1)
    slope = np.einsum("nb,nbi,nbj->nij", responses.weights, scores, responses.scores)
    np.testing.assert_allclose(curvature, slope, atol=0.02 * np.abs(slope).max())
    variance = np.einsum("nb,nbi,nbj->nij", responses.weights, scores, scores)
    np.testing.assert_allclose(part.variances, variance, rtol=1e-9, atol=1e-12)
    assert (np.linalg.eigvalsh(curvature - part.variances) > -1e-9).all()
    own = np.einsum("nqd,nqk->nkd", jacobian, part.factors)
    norms = np.linalg.norm(np.einsum("nkd,nke->nde", own, own), axis=(1, 2))
    assert (norms <= 1.5 * (1 + 1e-9)).all() and (norms > 1.49).any()
