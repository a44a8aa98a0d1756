"""Envelopes of log-concave densities in many dimensions: one normal density per shell about the mode.

What share of the proposals is accepted at least, whatever the data: computed from public numbers alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
import numpy.typing as npt
import scipy  # its parts are imported when first used

from pymc_dp.draws.finite_choice import choose
from pymc_dp.draws.log_concave_1d import WORST_ACCEPTANCE
from pymc_dp.errors import ArgumentError

Array = npt.NDArray[np.float64]

MARGIN = 1e-10
"""Relative to its largest eigenvalue, by how much each eigenvalue of a numeric Hessian is lowered before it is used."""
EDGES = 64
"""Shells are unions of the gaps between so many edges, which are spaced evenly in their logarithms."""
INNER = 0.01
"""First edge in units of s: within it a curvature decays by 1% at most."""
SERIES = np.array([(-1.0) ** k / factorial(k + 2) for k in range(20)])


def decay(s: npt.ArrayLike) -> Array:
    """Return ``g(s) = (e^-s + s - 1) / s^2`` for s >= 0: convex, decreasing, with g(0) = 1/2 and g ~ 1/s."""
    s = np.asarray(s, dtype=np.float64)
    large = np.maximum(s, 1.0)
    return np.where(s < 1, np.polynomial.polynomial.polyval(np.minimum(s, 1.0), SERIES), _decay(large))


def decay_slope(s: npt.ArrayLike) -> Array:
    """Return the derivative of g."""
    s = np.asarray(s, dtype=np.float64)
    small = np.polynomial.polynomial.polyval(np.minimum(s, 1.0), np.polynomial.polynomial.polyder(SERIES))
    large = np.maximum(s, 1.0)
    return np.where(s < 1, small, -np.expm1(-large) / large**2 - 2 * _decay(large) / large)


def _decay(s: Array) -> Array:
    return (np.expm1(-s) + s) / s**2


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """Piece i is ``exp(offsets[i] + <gradient, v> - v'P_i v / 2)`` where ``edges[i] <= v'Bv < edges[i + 1]``."""

    gradient: Array
    precisions: Array
    offsets: Array
    metric: Array
    edges: Array

    @cached_property
    def _roots(self) -> Array:
        """Roots of the inverses: P_i^-1 = root root'."""
        identity = np.broadcast_to(np.eye(self.gradient.size), self.precisions.shape)
        return np.linalg.solve(np.linalg.cholesky(self.precisions), identity).transpose(0, 2, 1)

    @cached_property
    def _shifts(self) -> Array:
        """Where the normals' means lie, in units of their standard deviations."""
        return self.gradient @ self._roots

    @cached_property
    def log_masses(self) -> Array:
        """Logarithm of each whole normal density's integral, over ``(2 pi)^(d / 2)``."""
        log_scales = np.log(np.diagonal(self._roots, axis1=1, axis2=2)).sum(axis=1)
        return self.offsets + log_scales + (self._shifts**2).sum(axis=1) / 2

    @property
    def log_mass(self) -> float:
        """Logarithm of the sum of `log_masses`; the acceptance probability is the target's mass over this one's."""
        return float(scipy.special.logsumexp(self.log_masses))

    def propose(self, rng: np.random.Generator, size: int) -> tuple[npt.NDArray[np.int64], Array]:
        """Propose `size` times; return the pieces and the (k, d) vectors that lie in their own piece's shell."""
        piece = choose(rng, np.broadcast_to(self.log_masses, (size, self.offsets.size)))
        noise = self._shifts[piece] + rng.standard_normal((size, self.gradient.size))
        vectors = (self._roots[piece] @ noise[..., None])[..., 0]
        place = _quadratic(vectors, self.metric)
        inside = (self.edges[piece] <= place) & (place < self.edges[piece + 1])
        return piece[inside], vectors[inside]

    def height(self, piece: npt.NDArray[np.int64], vectors: Array) -> Array:
        """Return the envelope's logarithm at vectors that lie in these pieces' shells."""
        return self.offsets[piece] + vectors @ self.gradient - _quadratic(vectors, self.precisions[piece]) / 2


def normal_envelope(gradient: Array, precision: Array) -> Envelope:
    """Return the envelope of one piece, for densities with at least this curvature everywhere."""
    none = np.zeros_like(precision)
    return Envelope(
        gradient=gradient,
        precisions=precision[None],
        offsets=np.zeros(1),
        metric=none,
        edges=np.array([0.0, np.inf]),
    )


def shells_by_length(gradient: Array, curvature: Array, strong: Array, metric: Array) -> Envelope:
    """Return an envelope of ``exp(<gradient, v> - q g(s) - v'Dv / 2)``, ``q = v'Hv``, ``s^2 <= v'Bv``.

    Parameters
    ----------
    gradient : (d,) array
    curvature : (d, d) array
        H, positive semi-definite.
    strong : (d,) array
        Diagonal of D, > 0.
    metric : (d, d) array
        B, positive definite.

    Returns
    -------
    Envelope

    Notes
    -----
    g decreases: on a shell that ends at v'Bv = u the exponent is at most that of a normal density with precision
    ``Q = 2 g(sqrt(u)) H + D``. With w the shell's inner edge and any t <= 0, the precision Q + tB with the offset
    tw/2 bounds it as well; the t that makes the mean of v'Bv equal w gives the least mass, where the mean is below w
    without (Chernoff). Dynamic programming finds those with the least total mass of all unions of adjacent gaps between
    `EDGES` edges. Whatever the edges and t, the envelope is valid.
    """
    edges = length_edges(strong, metric, gradient)
    weights = np.append(decay(np.sqrt(edges[1:])), 0.0)
    return _shells(gradient, (weights, np.zeros(EDGES + 1)), curvature, np.diag(strong), metric, edges)


def length_edges(strong: Array, metric: Array, gradient: Array) -> Array:
    """Return the inner edges of all shells in units of v'Bv, 0 first; about a mode they depend on D and B alone."""
    outer = np.sqrt(far(strong, metric, gradient))
    return np.append(0.0, np.geomspace(min(INNER, outer / 10), outer, EDGES) ** 2)


def far(strong: Array, metric: Array, gradient: Array) -> float:
    """Return a v'Bv beyond which even ``exp(<gradient, v> - v'Dv / 2)`` has a mass that matters nowhere."""
    widest = float(scipy.linalg.eigh(metric, np.diag(strong), eigvals_only=True)[-1])
    peak = gradient / strong
    return max(100.0 * (strong.size + 2) * widest, 16.0 * float(peak @ metric @ peak))


def shells_by_fourth_moment(gradient: Array, curvature: Array, strong: Array, metric: Array) -> Envelope:
    """Return an envelope of ``exp(<gradient, v> - q g(s) - v'Dv / 2)``, ``q = v'Hv``, ``s <= v'Bv / sqrt(q)``.

    Parameters and return value are those of `shells_by_length`.

    Notes
    -----
    With b = v'Bv, ``q g(b / sqrt(q))`` decreases in b and is convex in q, as ``q e^(-c / sqrt(q))`` is for all c >= 0.
    So on a shell that ends at b it is at least its tangent in q at any r > 0: ``(g - s g'/2) q + r s g'/2`` with
    ``s = b / sqrt(r)``. The rest is as in `shells_by_length`. The r taken is about the mean of q where v'Bv is b.
    """
    dense, outer = np.diag(strong), far(strong, metric, gradient)
    inner = min(0.02 * float(np.trace(np.linalg.solve(curvature + dense, metric))), outer / 10)
    edges = np.append(0.0, np.geomspace(inner, outer, EDGES))
    weights, constants = np.zeros(EDGES + 1), np.zeros(EDGES + 1)
    weight = 0.5
    for turn, edge in enumerate(edges[1:]):
        for _ in range(2):
            spread = np.linalg.inv(2 * weight * curvature + dense)
            r = edge * float((spread * curvature).sum() / (spread * metric).sum())
            s = edge / np.sqrt(r)
            lost = float(s * decay_slope(s)) / 2
            weight = float(decay(s)) - lost
        weights[turn], constants[turn] = weight, -r * lost
    return _shells(gradient, (weights, constants), curvature, dense, metric, edges)


def _shells(
    gradient: Array, bounds: tuple[Array, Array], curvature: Array, strong: Array, metric: Array, edges: Array
) -> Envelope:
    """Choose shells between edges; up to edge i + 1 the exponent is at least ``weights[i] q - constants[i]``."""
    weights, constants = bounds
    precisions = 2 * weights[:, None, None] * curvature + strong
    solved = [scipy.linalg.eigh(precision, metric) for precision in precisions]
    values, shifts = np.array([s[0] for s in solved]), np.array([(gradient @ s[1]) ** 2 for s in solved])
    tilts = np.minimum(_tilts(values, shifts, edges), 0.0)
    offsets = constants[:, None] + tilts * edges / 2
    tilted = values[:, None, :] + tilts[..., None]
    masses = offsets + (shifts[:, None, :] / tilted - np.log(tilted)).sum(axis=-1) / 2
    path = cheapest_path(masses.T)
    first, last = path[:-1], path[1:] - 1
    return Envelope(
        gradient=gradient,
        precisions=precisions[last] + tilts[last, first][:, None, None] * metric,
        offsets=offsets[last, first],
        metric=metric,
        edges=np.append(edges, np.inf)[path],
    )


def cheapest_path(masses: Array) -> npt.NDArray[np.int64]:
    """Choose ``0 = p_0 < p_1 < ... = n`` with the least sum of ``exp(masses[p_i, p_(i + 1) - 1])``."""
    size = len(masses)
    best, origin = np.full(size + 1, np.inf), np.zeros(size + 1, dtype=np.int64)
    best[0] = -np.inf
    for end in range(1, size + 1):
        totals = np.logaddexp(best[:end], masses[:end, end - 1])
        origin[end] = totals.argmin()
        best[end] = totals[origin[end]]
    path = [size]
    while path[-1]:
        path.append(int(origin[path[-1]]))
    return np.array(path[::-1])


def _tilts(values: Array, shifts: Array, target: Array) -> Array:
    """Solve ``sum_i 1 / (values[k, i] + t) + shifts[k, i] / (values[k, i] + t)^2 = target[j]`` by bisection.

    It is the mean of v'Bv under a tilted normal density; t is above minus the least of the values.
    """
    least, total, size = values.min(axis=1)[:, None], shifts.sum(axis=1)[:, None], values.shape[1]
    target = np.where(target > 0, target, 1 / values.max())
    low, high = 1 / target, size / target + np.sqrt(total / target)
    for _ in range(48):
        middle = (low + high) / 2
        spread = (values - least)[:, None, :] + middle[..., None]
        below = (1 / spread + shifts[:, None, :] / spread**2).sum(axis=-1) > target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high - least


def _quadratic(vectors: Array, form: Array) -> Array:
    """Return v'Av for each row v; `form` is one matrix or one per row."""
    return np.einsum("ki,ki->k", vectors, (form @ vectors[..., None])[..., 0])


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
