"""What share of the proposals is accepted at least, whatever the data: computed from public numbers alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy  # its parts are imported when first used

from pymc_dp.draws.log_concave_1d import WORST_ACCEPTANCE
from pymc_dp.draws.log_concave_shells import MARGIN, cheapest_path, decay, length_edges
from pymc_dp.errors import ArgumentError

Array = npt.NDArray[np.float64]

CELLS = 240
"""Cells into which the possible eigenvalues of the Hessian are divided."""
MULTIPLIERS = np.array([0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])
ROUNDING = 1e-3
"""Taken from the logarithm, for a mode that is found to 1e-8 standard deviations."""


def worst_acceptance(
    *,
    n_rows: int,
    inverse_temperature: float,
    curvature: float,
    radius: float,
    strong: npt.ArrayLike,
    self_concordance: float | None,
    dimension: int,
) -> float:
    """Return the logarithm of a share of proposals that `draw_log_concave_vector` accepts at least.

    Parameters
    ----------
    n_rows : int
    inverse_temperature : float
        beta, by which the log-likelihood is multiplied.
    curvature : float
        Supremum of ``|f''|`` over a row's linear predictor: 1/4 for logistic rows. May be infinite.
    radius : float
        Bound of ``|z_i|``.
    strong : (dimension,) array
        Precisions of the prior, which must be normal for this bound.
    self_concordance : float or None
        As in `LogConcave`: k times `radius`, or None.
    dimension : int

    Returns
    -------
    float
        Between -inf and 0. Its negative is the logarithm of the expected number of proposals, at most.

    Raises
    ------
    ArgumentError
        For numbers outside their range; all are public.

    Notes
    -----
    For likelihoods ``sum_i beta f(<z_i, theta>)``, each f concave with ``|f''| <= curvature`` and ``|f'''| <= k
    |f''|``, and without a box: multiply by the probability of the box where there is one. In coordinates where the
    prior's precision is 1 and rows are at most ``r = radius / sqrt(min strong)`` long, let H have the eigenvalues mu_j
    and ``x_j = mu_j / (1 + mu_j)``. Their sum is at most ``C = n beta curvature r^2``. With a = k r:

    - The target's mass is at least e^(entropy - mean of what is lost) of any normal density about the mode (Jensen).
      With variances ``(1 - x_j) / tau_j`` along H's eigenvectors, row i's predictor has a variance w_i and loses at
      most ``c_i F(w_i)``, ``F(w) = E (e^(k |X|) - k |X| - 1) / k^2`` for X of N(0, w), for ``|f''|`` grows by e^(k |X|)
      at most. F is convex with F(0) = 0 and w_i is at most a mean of the ``r^2 (1 - x_j) / tau_j``, so that all rows
      together lose at most the sum over j of ``x_j phi(u_j) / tau_j``, ``u_j = a sqrt((1 - x_j) / tau_j)``, ``phi(u) =
      (2 e^(u^2 / 2) Phi(u) - u sqrt(2 / pi) - 1) / u^2``.
    - The envelope's mass is at most that of any shells and any t in `shells_by_length`: a sum over shells of products
      over j.

    So the reciprocal of the acceptance is a sum over shells of products over j of functions of x_j. Each product is
    bounded by its largest factors subject to the sum of mu_j (a Lagrange multiplier), over cells of mu on which every
    term is bounded by its value at one end. Shells and t are then chosen to make the bound the best. Without
    self-concordance, or where it is better: the prior alone as the envelope accepts ``(1 + C / d)^(-d / 2)`` or more.

    Examples
    --------
    >>> public = dict(n_rows=1000, inverse_temperature=0.1, curvature=0.25, radius=1.5, strong=np.ones(5))
    >>> round(worst_acceptance(**public, self_concordance=1.5, dimension=5), 1)
    -2.9
    >>> round(worst_acceptance(**public, self_concordance=None, dimension=5), 1)
    -6.3
    """
    precisions = np.asarray(strong, dtype=np.float64)
    numbers = np.array([n_rows, inverse_temperature, curvature, radius, self_concordance or 0.0])
    if precisions.shape != (dimension,) or not (precisions > 0).all() or not (numbers >= 0).all():
        raise ArgumentError(
            f"strong must hold {dimension} numbers > 0 and all others be >= 0, got {precisions}, {numbers}."
        )
    if dimension == 1:
        return float(np.log(WORST_ACCEPTANCE))
    least = float(precisions.min())
    zero = 0 in (n_rows, inverse_temperature, curvature, radius)
    total = 0.0 if zero else float(np.prod(numbers[:3]) * radius**2) / least
    by_prior = -dimension / 2 * float(np.log1p(total / dimension))
    if self_concordance is None or not np.isfinite(total) or total == 0:
        return by_prior - ROUNDING
    if self_concordance == 0:
        return -dimension * MARGIN * total / 2 - ROUNDING
    return max(by_prior, -_log_tries(dimension, self_concordance / np.sqrt(least), total)) - ROUNDING


def _log_tries(dimension: int, bend: float, total: float) -> float:
    """Bound the logarithm of the number of proposals, over all spectra of H whose sum is at most `total`."""
    edges = length_edges(np.ones(dimension), bend**2 * np.eye(dimension), np.zeros(dimension))[::2]
    outer = np.append(edges[1:], np.inf)
    eigenvalues = np.append(0.0, np.geomspace(min(1e-3, total / 2), total, CELLS))
    x = eigenvalues / (1 + eigenvalues)
    lost = _lost(bend, x[:-1], x[1:], MARGIN * total)
    price = MULTIPLIERS[:, None] * dimension * eigenvalues[:-1] / total
    tilts = np.geomspace(1e-3, 1, 32) - 1
    masses = np.full((edges.size, edges.size), np.inf)
    for last, end in enumerate(outer):
        weight = float(decay(np.sqrt(end))) if np.isfinite(end) else 0.0
        precision = (1 + tilts[:, None]) * (1 - x) + 2 * weight * x  # over that of the posterior
        factors = lost - np.log(np.minimum(precision[:, :-1], precision[:, 1:])) / 2
        product = dimension * (MULTIPLIERS + (factors[:, None, :] - price).max(axis=2)).min(axis=1)
        inner = edges[: last + 1, None]
        masses[: last + 1, last] = (product + tilts * inner / bend**2 / 2).min(axis=1)
    path = cheapest_path(masses)
    return float(scipy.special.logsumexp(masses[path[:-1], path[1:] - 1]))


def _lost(bend: float, low: Array, high: Array, margin: float) -> Array:
    """Bound, for x in each cell, what a direction takes from the target's mass, with the best tau of some.

    The eigenvalues are those of the Hessian that the envelope uses; the density's may be larger by the margin.
    """
    tau = np.geomspace(0.5, 2 + 4 * bend**2, 48)[:, None]
    u = bend * np.sqrt((1 - low) / tau)
    with np.errstate(over="ignore"):
        growth = 2 * np.exp(u**2 / 2) * scipy.special.ndtr(u) - u * np.sqrt(2 / np.pi) - 1
    phi = np.where(u < 1e-3, 0.5 + u, growth / np.maximum(u, 1e-3) ** 2)
    return np.asarray(
        (-0.5 + np.log(tau) / 2 + (0.5 + (phi - 0.5) * high + margin * (1 - low) * phi) / tau).min(axis=0)
    )
