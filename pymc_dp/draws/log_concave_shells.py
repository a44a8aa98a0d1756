"""Envelopes of log-concave densities in many dimensions: one normal density per shell about the mode."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
import numpy.typing as npt
import scipy  # its parts are imported when first used

from pymc_dp.draws.finite_choice import choose

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
