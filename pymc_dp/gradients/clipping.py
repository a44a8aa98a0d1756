"""Scores that are clipped and stay centred: a row's part of a gradient and a curvature, from its predictors alone."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from pymc_dp.inspection.rows import Array

ROUNDS = 12
"""Rounds of the search for the centre: a fixed number, so that none is steered by a row."""
TINY = np.finfo(float).tiny


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
    n_rows, count = observed.shape
    result = Clipped(
        scores=np.empty((n_rows, count)),
        factors=np.zeros((n_rows, count, count)),
        variances=np.empty((n_rows, count, count)),
    )
    held = (np.ascontiguousarray(one) for one in (responses.weights, responses.scores, observed, gram))
    _clip(*held, float(clip_norm), float(clip_curvature), ROUNDS, result.scores, result.factors, result.variances)
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _clip(weights, scores, observed, gram, clip_norm, clip_curvature, rounds, own, factors, variances):  # type: ignore[no-untyped-def]
    """Clip row by row: nothing of one row is in reach of another."""
    n_rows, n_nodes, count = scores.shape
    centre, total, shifted = np.zeros(count), np.zeros(count), np.zeros(count)
    curvature = np.zeros((count, count))
    for row in range(n_rows):
        matrix = gram[row]
        centre[:] = 0.0
        for _ in range(rounds):
            total[:] = 0.0
            mass = 0.0
            for node in range(n_nodes):
                kept = weights[row, node] * _kept(scores[row, node], centre, matrix, clip_norm)
                mass += kept
                for i in range(count):
                    total[i] += kept * scores[row, node, i]
            for i in range(count):
                centre[i] = total[i] / _at_least(mass, TINY)
        curvature[:] = 0.0
        variances[row] = 0.0
        for node in range(n_nodes):
            share = _kept(scores[row, node], centre, matrix, clip_norm)
            kept = weights[row, node] * share
            for i in range(count):
                shifted[i] = scores[row, node, i] - centre[i]
            for i in range(count):
                for j in range(count):
                    product = kept * shifted[i] * shifted[j]
                    curvature[i, j] += product
                    variances[row, i, j] += share * product
        weight = clip_curvature / _at_least(_frobenius(curvature, matrix), clip_curvature)
        variances[row] *= weight**2
        kept = weight * _kept(observed[row], centre, matrix, clip_norm)
        for i in range(count):
            own[row, i] = kept * (observed[row, i] - centre[i])
        _factor(curvature, factors[row])
        factors[row] *= np.sqrt(weight)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_least(value, least):  # type: ignore[no-untyped-def]
    """Larger of two numbers; NaN stays NaN."""
    return least if value < least else value


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _kept(score, centre, gram, clip_norm):  # type: ignore[no-untyped-def]
    """Return c = min(1, C / norm) of a score about a centre."""
    square = 0.0
    for i in range(len(score)):
        part = score[i] - centre[i]
        square += part * part * gram[i, i]
        for j in range(i):
            square += 2 * part * gram[i, j] * (score[j] - centre[j])
    return clip_norm / _at_least(np.sqrt(_at_least(square, 0.0)), clip_norm)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _frobenius(matrix, gram):  # type: ignore[no-untyped-def]
    """Return the Frobenius norm of Jᵀ M J, given G = J Jᵀ: the square is the trace of M G M G."""
    count = len(matrix)
    square = 0.0
    for i in range(count):
        for j in range(count):
            one = other = 0.0
            for k in range(count):
                one += matrix[i, k] * gram[k, j]
                other += matrix[j, k] * gram[k, i]
            square += one * other
    return np.sqrt(_at_least(square, 0.0))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _factor(matrix, found):  # type: ignore[no-untyped-def]
    """Write lower triangular L with L Lᵀ a positive semidefinite matrix, which may be singular."""
    count = len(matrix)
    for column in range(count):
        for row in range(column, count):
            rest = matrix[row, column]
            for k in range(column):
                rest -= found[row, k] * found[column, k]
            if row == column:
                root = np.sqrt(_at_least(rest, 0.0))
                found[row, column] = root
            elif not root <= 0.0:
                found[row, column] = rest / root


__all__ = ["ROUNDS", "Clipped", "Responses", "clipped"]
