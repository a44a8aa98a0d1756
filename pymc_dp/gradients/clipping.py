"""Scores that are clipped and keep their mean: a row's part of a gradient and of a curvature, from its predictors."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from pymc_dp.gradients.covariate_cells import Places
from pymc_dp.inspection.rows import Array

UNLIMITED = 1e300
"""A limit within which all rows are."""
ROUNDS = 12
"""Rounds of the search for the centre: a fixed number, so that none is steered by a row."""
TINY = np.finfo(float).tiny
MOST_KEPT = 0.5
"""Norm of the mean that is kept, over C, at most: no clipped score has a mean above C."""
TILE = 32
"""Rows that are gone through side by side: by the same instructions, whatever they hold."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Responses:
    """What the model says about the responses of some rows, at their predictors.

    Attributes
    ----------
    weights : (n_rows, n_nodes) array
        Probabilities of the values a response may have, as the model sees it, or weights of a quadrature.
    scores : (n_rows, n_nodes, q) array
        Derivatives of the log-likelihood with respect to the predictors there.
    """

    weights: Array
    scores: Array

    @property
    def moments(self) -> Array:
        """Means of the scores' products, (n_rows, q, q): curvatures of rows, as the model has them."""
        return np.einsum("nb,nbi,nbj->nij", self.weights, self.scores, self.scores)


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


def clipped(
    responses: Responses,
    observed: Array,
    gram: Array,
    *,
    clip_norm: float,
    clip_curvature: float,
    weighing: bool = True,
    cells: Places | None = None,
) -> Clipped:
    """Clip the scores of rows such that their mean under the model stays.

    Parameters
    ----------
    responses : Responses
    observed : (n_rows, q) array
        Scores at the responses that were observed.
    gram : (n_rows, q, q) array
        J Jᵀ of each row, in the coordinates of the sums: the norm of Jᵀ r is √(rᵀ J Jᵀ r).
    clip_norm, clip_curvature : float
        C and C_F, > 0.
    weighing : bool
        Whether scores are multiplied by what C_F leaves of their curvatures.
    cells : (n_rows,) array of int, optional
        Which of `responses` and of `gram` is that of each row; by default each row has its own.

    Notes
    -----
    ψ(y) = c(y) (s(y) - a), c = min(1, C / ‖s - a‖), with a such that E ψ = E s given the row's covariates, which is 0
    unless the model expects responses beyond their bounds. Then the sum of ψ has mean 0 at the truth whatever is
    clipped, where ordinary clipping has a bias that no amount of rows mends; and where nothing is clipped it is the sum
    of the scores of the clamped rows. Its slope is about -E[c (s - a)(s - a)ᵀ], symmetric and positive semidefinite,
    and so is its variance, E[c² (s - a)(s - a)ᵀ], which is at most that. Where the curvature is larger than C_F, it is
    multiplied by a weight, which does not see the response; so are scores, if they are weighed. Then the curvature is
    still their slope if the model is right. If it is wrong, such weights lead to another estimate: they throw away the
    rows that know most.

    What is summed is within C and C_F whether or not the search for a has converged; the kernel enforces it. For two
    responses and one predictor, a logistic regression, the end of the search is known.

    References
    ----------
    Künsch, Stefanski, Carroll (1989), doi 10.1080/01621459.1989.10478796 (conditionally unbiased bounded influence).
    """
    (n_rows, count), n_cells = observed.shape, len(gram)
    own = np.empty((n_rows, count))
    factors, variances = np.zeros((n_cells, count, count)), np.empty((n_cells, count, count))
    places = np.arange(n_rows) if cells is None else cells
    given = responses.weights, responses.scores, observed, gram
    arrays = [np.ascontiguousarray(one) for one in given]
    found: list[Array] = [own, factors, variances]
    work = _clip
    if count == 1:
        work = _clip_single
        arrays = [arrays[0], arrays[1][:, :, 0], *(one.reshape(len(one)) for one in arrays[2:])]
        found = [one.reshape(len(one)) for one in found]
    work(*arrays, places, *_limits(clip_norm, clip_curvature), bool(weighing), *found)
    factors, variances = (one if cells is None else one[cells] for one in (factors, variances))
    return Clipped(scores=own, factors=factors, variances=variances)


def _limits(clip_norm: float, clip_curvature: float) -> tuple[float, float, int]:
    """Return both limits, and rounds of the search for the centre: where nothing is clipped it is the mean."""
    return float(clip_norm), float(clip_curvature), ROUNDS if clip_norm < UNLIMITED else 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _clip(  # type: ignore[no-untyped-def]
    weights, scores, observed, gram, cells, clip_norm, clip_curvature, rounds, weighing, own, factors, variances
):
    """Clip rows, `TILE` side by side: no row can reach the values of another.

    First what the model says of a row is gone through, once for all rows of a cell. Numbers are copied one by one: a
    slice would be compiled with texts of what could be wrong, which takes seconds.
    """
    n_cells, n_nodes, count = scores.shape
    n_rows = len(observed)
    shares, values = np.zeros((n_nodes, TILE)), np.zeros((n_nodes, count, TILE))
    matrix, curvature = np.zeros((count, count, TILE)), np.zeros((count, count, TILE))
    spread = np.zeros((count, count, TILE))
    centre, shifted, ones = np.zeros((count, TILE)), np.zeros((count, TILE)), np.zeros((count, TILE))
    kept, norms = np.zeros(TILE), np.zeros(TILE)
    one = np.zeros((count, count))
    middles, parts = np.zeros((n_cells, count)), np.zeros(n_cells)
    for start in range(0, n_cells, TILE):
        used = min(TILE, n_cells - start)
        _lay_out(weights, scores, gram, start, used, shares, values, matrix)
        _centre(shares, values, matrix, clip_norm, rounds, centre, curvature, spread)
        for row in range(used):
            at = start + row
            for i in range(count):
                middles[at, i] = centre[i, row]
                for j in range(count):
                    one[i, j] = curvature[i, j, row]
            weight = clip_curvature / at_least(_frobenius(one, gram[at]), clip_curvature)
            parts[at] = weight if weighing else 1.0
            factor(one, factors[at], 0.0)
            root = np.sqrt(weight)
            for i in range(count):
                for j in range(count):
                    variances[at, i, j] = weight**2 * spread[i, j, row]
                    factors[at, i, j] *= root
    for start in range(0, n_rows, TILE):
        used = min(TILE, n_rows - start)
        for row in range(used):
            at = cells[start + row]
            for i in range(count):
                ones[i, row], centre[i, row] = observed[start + row, i], middles[at, i]
                for j in range(count):
                    matrix[i, j, row] = gram[at, i, j]
        _keep(ones, centre, matrix, clip_norm, shifted, norms, kept)
        for row in range(used):
            for i in range(count):
                own[start + row, i] = parts[cells[start + row]] * kept[row] * shifted[i, row]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _centre(shares, values, matrix, clip_norm, rounds, centre, curvature, spread):  # type: ignore[no-untyped-def]
    """Write the centres of rows, their curvatures and the variances of their scores."""
    n_nodes, count, _ = values.shape
    shifted, total, mass = np.zeros((count, TILE)), np.zeros((count, TILE)), np.zeros(TILE)
    kept, norms, means = np.zeros(TILE), np.zeros(TILE), np.zeros((count, TILE))
    centre[:] = 0.0
    _mean(shares, values, matrix, clip_norm, means)
    for _ in range(rounds):
        total[:] = 0.0
        mass[:] = 0.0
        for node in range(n_nodes):
            _keep(values[node], centre, matrix, clip_norm, shifted, norms, kept)
            _add(shares[node], values[node], kept, mass, total)
        for i in range(count):
            for k in range(TILE):
                centre[i, k] = (total[i, k] - means[i, k]) / at_least(mass[k], TINY)
    curvature[:] = 0.0
    spread[:] = 0.0
    for node in range(n_nodes):
        _keep(values[node], centre, matrix, clip_norm, shifted, norms, kept)
        _add_products(shares[node], shifted, kept, curvature, spread)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _mean(shares, values, matrix, clip_norm, means):  # type: ignore[no-untyped-def]
    """Write the mean scores of rows, of a norm of at most a part of C."""
    count, ones = len(means), np.ones(TILE)
    none, kept, norms = np.zeros((count, TILE)), np.zeros(TILE), np.zeros(TILE)
    total, mass = np.zeros((count, TILE)), np.zeros(TILE)
    for node in range(len(values)):
        _add(shares[node], values[node], ones, mass, total)
    _keep(total, none, matrix, MOST_KEPT * clip_norm, means, norms, kept)
    for i in range(count):
        for k in range(TILE):
            means[i, k] *= kept[k]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _lay_out(weights, scores, gram, start, used, shares, values, matrix):  # type: ignore[no-untyped-def]
    """Copy some rows such that those of one entry lie side by side."""
    _, n_nodes, count = scores.shape
    for row in range(used):
        at = start + row
        for node in range(n_nodes):
            shares[node, row] = weights[at, node]
            for i in range(count):
                values[node, i, row] = scores[at, node, i]
        for i in range(count):
            for j in range(count):
                matrix[i, j, row] = gram[at, i, j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _clip_single(  # type: ignore[no-untyped-def]
    weights, scores, observed, gram, cells, clip_norm, clip_curvature, rounds, weighing, own, factors, variances
):
    """Do what `_clip` does of rows with a single predictor, all arrays without its axes."""
    (n_cells, n_nodes), n_rows = scores.shape, len(observed)
    shares, values = np.zeros((n_nodes, TILE)), np.zeros((n_nodes, TILE))
    root, centre = np.zeros(TILE), np.zeros(TILE)
    mass, total, means = np.zeros(TILE), np.zeros(TILE), np.zeros(TILE)
    middles, parts = np.zeros(n_cells), np.zeros(n_cells)
    for start in range(0, n_cells, TILE):
        used = min(TILE, n_cells - start)
        for row in range(used):
            for node in range(n_nodes):
                shares[node, row] = weights[start + row, node]
                values[node, row] = scores[start + row, node]
            root[row] = np.sqrt(at_least(gram[start + row], 0.0))
        if n_nodes == 2:
            _centre_of_two(shares, values, root, clip_norm, centre)
            rounds = 0
        else:
            centre[:] = 0.0
            means[:] = 0.0
            for node in range(n_nodes):
                for k in range(TILE):
                    means[k] += shares[node, k] * values[node, k]
            for k in range(TILE):
                most = MOST_KEPT * clip_norm
                means[k] *= most / at_least(abs(means[k]) * root[k], most)
        for _ in range(rounds):
            total[:] = 0.0
            mass[:] = 0.0
            for node in range(n_nodes):
                for k in range(TILE):
                    norm = abs(values[node, k] - centre[k]) * root[k]
                    share = shares[node, k] * (clip_norm / at_least(norm, clip_norm))
                    mass[k] += share
                    total[k] += share * values[node, k]
            for k in range(TILE):
                centre[k] = (total[k] - means[k]) / at_least(mass[k], TINY)
        mass[:] = 0.0  # of curvatures
        total[:] = 0.0  # of variances
        for node in range(n_nodes):
            for k in range(TILE):
                part = values[node, k] - centre[k]
                norm = abs(part) * root[k]
                kept = clip_norm / at_least(norm, clip_norm)
                product = shares[node, k] * kept * part * part
                mass[k] += product
                total[k] += kept * product
        for row in range(used):
            at, size = start + row, mass[row] * root[row] * root[row]
            weight = clip_curvature / at_least(size, clip_curvature)
            middles[at], parts[at] = centre[row], weight if weighing else 1.0
            variances[at] = total[row] * weight**2
            factors[at] = np.sqrt(weight * at_least(mass[row], 0.0))
    for row in range(n_rows):
        at = cells[row]
        part = observed[row] - middles[at]
        kept = clip_norm / at_least(abs(part) * np.sqrt(at_least(gram[at], 0.0)), clip_norm)
        own[row] = parts[at] * kept * part


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _centre_of_two(shares, values, root, clip_norm, centre):  # type: ignore[no-untyped-def]
    """Write where the rounds would end, of two scores: at most the rarer is clipped, and the other makes up for it."""
    for k in range(TILE):
        first = shares[0, k] > shares[1, k]
        common, rare = (shares[0, k], shares[1, k]) if first else (shares[1, k], shares[0, k])
        begin, end = (values[0, k], values[1, k]) if first else (values[1, k], values[0, k])
        step, limit = (end - begin) / at_least(common + rare, TINY), clip_norm / (root[k] * common)
        if step > limit:
            step = limit
        elif step < -limit:
            step = -limit
        centre[k] = begin + rare * step


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _keep(values, centre, matrix, clip_norm, shifted, norms, kept):  # type: ignore[no-untyped-def]
    """Write scores about their centres, their norms, and c = min(1, C / norm) of each."""
    count = len(values)
    for i in range(count):
        for k in range(TILE):
            shifted[i, k] = values[i, k] - centre[i, k]
    norms[:] = 0.0
    for i in range(count):
        for k in range(TILE):
            norms[k] += shifted[i, k] * shifted[i, k] * matrix[i, i, k]
        for j in range(i):
            for k in range(TILE):
                norms[k] += 2 * shifted[i, k] * matrix[i, j, k] * shifted[j, k]
    for k in range(TILE):
        norms[k] = np.sqrt(at_least(norms[k], 0.0))
        kept[k] = clip_norm / at_least(norms[k], clip_norm)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add(shares, values, kept, mass, total):  # type: ignore[no-untyped-def]
    """Add the scores of a node to means over all nodes."""
    for k in range(TILE):
        mass[k] += shares[k] * kept[k]
    for i in range(len(values)):
        for k in range(TILE):
            total[i, k] += shares[k] * kept[k] * values[i, k]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_products(shares, shifted, kept, curvature, spread):  # type: ignore[no-untyped-def]
    """Add the products of the scores of a node to curvatures and variances."""
    for i in range(len(shifted)):
        for j in range(len(shifted)):
            for k in range(TILE):
                product = shares[k] * kept[k] * shifted[i, k] * shifted[j, k]
                curvature[i, j, k] += product
                spread[i, j, k] += kept[k] * product


@numba.njit(cache=True, nogil=True, error_model="numpy")
def at_least(value, least):  # type: ignore[no-untyped-def]
    """Larger of two numbers; NaN stays NaN."""
    return least if value < least else value


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
    return np.sqrt(at_least(square, 0.0))


def factored(matrices: Array) -> Array:
    """Return lower triangular L with L Lᵀ each of some positive semidefinite matrices, (n, q, q)."""
    found = np.zeros(matrices.shape)
    _factor_all(np.ascontiguousarray(matrices, dtype=np.float64), found)
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _factor_all(matrices, found):  # type: ignore[no-untyped-def]
    for place in range(len(matrices)):
        factor(matrices[place], found[place], 0.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def factor(matrix, found, rounding):  # type: ignore[no-untyped-def]
    """Write lower triangular L with L Lᵀ a positive semidefinite matrix, which may be singular.

    A share `rounding` of an entry of its diagonal counts as 0.
    """
    count = len(matrix)
    for column in range(count):
        for row in range(column, count):
            rest = matrix[row, column]
            for k in range(column):
                rest -= found[row, k] * found[column, k]
            if row == column:
                root = 0.0 if rest <= rounding * matrix[row, row] else np.sqrt(rest)
                found[row, column] = root
            elif not root <= 0.0:
                found[row, column] = rest / root


__all__ = ["ROUNDS", "TINY", "UNLIMITED", "Clipped", "Responses", "at_least", "clipped", "factor", "factored"]
