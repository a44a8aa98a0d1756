"""Scores that are clipped and stay centred: a row's part of a gradient and a curvature, from its predictors alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pymc_dp.inspection.rows import Array

ROUNDS = 12
"""Rounds of the search for the centre: a fixed number, so that none is steered by a row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Responses:
    """What the model says of the responses of some rows, at their predictors.

    Attributes
    ----------
    weights : (n_rows, n_nodes) array
        Probabilities of the values a response may have, as the model sees it, or weights of a quadrature.
    scores : (n_rows, n_nodes, q) array
        Derivatives of the log-likelihood with respect to the predictors there.
    """

    weights: Array
    scores: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Clipped:
    """Parts of the sums, in terms of the predictors; times the Jacobian J of the predictors they are rows' own.

    Attributes
    ----------
    scores : (n_rows, q) array
        Jᵀ scores has a norm of at most C.
    factors : (n_rows, q, q) array
        Lower triangular L: the curvature is Jᵀ L Lᵀ J, of a Frobenius norm of at most C_F.
    variances : (n_rows, q, q) array
        Covariance of `scores` under the model: at most L Lᵀ.
    """

    scores: Array
    factors: Array
    variances: Array


def clipped(responses: Responses, observed: Array, gram: Array, *, clip_norm: float, clip_curvature: float) -> Clipped:
    """Clip the scores of rows such that they stay centred under the model.

    Parameters
    ----------
    responses : Responses
    observed : (n_rows, q) array
        Scores at the responses that were observed.
    gram : (n_rows, q, q) array
        J Jᵀ of each row, in the coordinates of the sums: the norm of Jᵀ r is √(rᵀ J Jᵀ r).
    clip_norm, clip_curvature : float
        C and C_F, > 0.

    Notes
    -----
    ψ(y) = c(y) (s(y) - a), c = min(1, C / ‖s - a‖), with a such that E ψ = 0 given the row's covariates. Then the sum
    of ψ has mean 0 at the truth whatever is clipped, where ordinary clipping has a bias that no amount of rows mends.
    Its slope is -E[c (s - a)(s - a)ᵀ], symmetric and positive semidefinite, and so is its variance, E[c² (s - a)(s -
    a)ᵀ], which is at most that. Where the curvature is larger than C_F, both are multiplied by the same weight, which
    does not see the response.

    What is summed is within C and C_F whether or not the search for a has converged; `integers` enforces it.

    References
    ----------
    Künsch, Stefanski, Carroll (1989), doi 10.1080/01621459.1989.10478796 (conditionally unbiased bounded influence).
    """
    centre = _centre(responses, gram, clip_norm)
    shifted = responses.scores - centre[:, None, :]
    kept = _weights(shifted, gram[:, None], clip_norm)
    curvature = _moment(responses.weights * kept, shifted)
    variance = _moment(responses.weights * kept**2, shifted)
    norm = np.sqrt(np.maximum(np.einsum("nij,njk,nkl,nli->n", curvature, gram, curvature, gram), 0.0))
    weight = _at_most_one(clip_curvature, norm)
    own = observed - centre
    return Clipped(
        scores=(weight * _weights(own[:, None], gram[:, None], clip_norm)[:, 0])[:, None] * own,
        factors=_factors(curvature) * np.sqrt(weight)[:, None, None],
        variances=variance * (weight**2)[:, None, None],
    )


def _centre(responses: Responses, gram: Array, clip_norm: float) -> Array:
    """Return a with E[c (s - a)] = 0, as far as so many rounds come."""
    centre = np.zeros((responses.scores.shape[0], responses.scores.shape[2]))
    for _ in range(ROUNDS):
        kept = responses.weights * _weights(responses.scores - centre[:, None], gram[:, None], clip_norm)
        centre = (
            np.einsum("nb,nbq->nq", kept, responses.scores) / np.maximum(kept.sum(1), np.finfo(float).tiny)[:, None]
        )
    return centre


def _weights(scores: Array, gram: Array, clip_norm: float) -> Array:
    """Return c = min(1, C / norm) of every score."""
    squares = np.einsum("nbi,nbij,nbj->nb", scores, np.broadcast_to(gram, (*scores.shape, scores.shape[-1])), scores)
    return _at_most_one(clip_norm, np.sqrt(np.maximum(squares, 0.0)))


def _at_most_one(most: float, norm: Array) -> Array:
    return most / np.maximum(norm, most)


def _moment(weights: Array, scores: Array) -> Array:
    return np.einsum("nb,nbi,nbj->nij", weights, scores, scores)


def _factors(matrices: Array) -> Array:
    """Return lower triangular L with L Lᵀ the positive semidefinite matrices, which may be singular."""
    count = matrices.shape[1]
    found = np.zeros_like(matrices)
    for column in range(count):
        rest = matrices[:, column:, column] - np.einsum(
            "nik,nk->ni", found[:, column:, :column], found[:, column, :column]
        )
        root = np.sqrt(np.maximum(rest[:, 0], 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.where(root[:, None] > 0, rest / root[:, None], 0.0)
        found[:, column:, column] = below
    return found


__all__ = ["ROUNDS", "Clipped", "Responses", "clipped"]
