"""Exact draws from log-concave densities in a ball about 0, to whose surface the rows may press them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy  # its parts are imported when first used

from pymc_dp.draws.log_concave import LogConcave, draw_about, envelope_at
from pymc_dp.draws.log_concave_1d import Tangents, tangents

Array = npt.NDArray[np.float64]

WITHIN = 1 - 1e-11
"""Of the radius: where the density ends, whatever is proposed from, so that no rounding takes draws out of the ball."""
CLOSE, STEPS, HALVINGS = 1e-6, 100, 60


@dataclass(frozen=True, kw_only=True, eq=False)
class BallEnvelope:
    """``exp(<gradient, w - point> - m |w - point|² / 2)`` on a ball about 0: a normal distribution cut by it.

    About the line through its centre it is the same all around: a point on that line is drawn, then a distance from it,
    then a direction.

    Attributes
    ----------
    point, gradient : (d,) array
        At least two numbers.
    strong : float
        m > 0.
    radius : float
    """

    point: Array
    gradient: Array
    strong: float
    radius: float

    @cached_property
    def _pull(self) -> Array:
        return self.gradient + self.strong * self.point

    @cached_property
    def _line(self) -> Tangents:
        start = float(np.clip(np.linalg.norm(self._pull) / self.strong, 0.0, self.radius / 2))
        return tangents(self._log_density, self._slope, -self.radius, self.radius, start)

    def _room(self, along: Array) -> Array:
        """Return half of m times the squared distance from the line that the ball leaves."""
        return self.strong * np.maximum(self.radius - along, 0.0) * np.maximum(self.radius + along, 0.0) / 2

    def _log_density(self, along: Array) -> Array:
        """Return the logarithm of the density of the point on the line, up to a constant."""
        pull = float(np.linalg.norm(self._pull))
        return pull * along - self.strong * along**2 / 2 + log_gamma_share((len(self.point) - 1) / 2, self._room(along))

    def _slope(self, along: Array) -> Array:
        half, room = (len(self.point) - 1) / 2, self._room(along)
        steep = np.exp((half - 1) * np.log(room) - room - scipy.special.gammaln(half) - log_gamma_share(half, room))
        return np.linalg.norm(self._pull) - self.strong * along * (1 + steep)

    @property
    def log_mass(self) -> float:
        """Logarithm of a bound of the integral over ``(2 pi)^(d / 2)``; at most about 1.4 above."""
        moved = -self.gradient @ self.point - self.strong * self.point @ self.point / 2
        line = float(np.logaddexp.reduce(self._line.log_masses))
        return float(moved + line - (len(self.point) - 1) / 2 * math.log(self.strong) - math.log(2 * math.pi) / 2)

    def propose(self, rng: np.random.Generator, size: int) -> Array:
        """Draw (size, d) points."""
        from pymc_dp.draws.kernels import squared_length

        along = self._line.draw(rng, self._log_density, size)
        degrees, ends = len(self.point) - 1, 2 * self._room(along)
        aside = [squared_length(rng, float(degrees), float(end)) if end > 0 else 0.0 for end in ends]
        length = float(np.linalg.norm(self._pull))
        axis = self._pull / length if length > 0 else np.eye(degrees + 1)[0]
        around = rng.standard_normal((size, degrees + 1))
        around -= np.outer(around @ axis, axis)
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        return along[:, None] * axis + np.sqrt(np.array(aside) / self.strong)[:, None] * around

    def height(self, points: Array) -> Array:
        """Return the envelope's logarithm."""
        vectors = points - self.point
        return vectors @ self.gradient - self.strong * (vectors**2).sum(axis=1) / 2


def log_gamma_share(half: float, room: Array) -> Array:
    """Return the logarithm of the regularised lower incomplete gamma function, of which none underflows."""
    with np.errstate(divide="ignore"):
        small = half * np.log(room) - room - scipy.special.gammaln(half + 1)
        near = small + np.log(scipy.special.hyp1f1(1.0, half + 1, np.minimum(room, half + 1)))
        return np.where(room < half + 1, near, np.log(scipy.special.gammainc(half, room)))


def draw_in_ball(rng: np.random.Generator, target: LogConcave, radius: float, *, draws: int | None = None) -> Array:
    """Draw from a log-concave density restricted to a ball about 0, of 1e-11 less than the radius.

    Parameters
    ----------
    rng : numpy.random.Generator
        ``randomness.secure_generator()`` where the draw is a release.
    target : LogConcave
        Of two dimensions or more and one `strong`, without a box. What it says about its density must be proved, within
        the ball.
    radius : float
        > 0.
    draws : int, optional
        Number of independent draws.

    Returns
    -------
    (d,) array of a norm of at most `radius`, or (draws, d) array

    Notes
    -----
    About a point t of the ball ``h(w) <= h(t) + <gamma, w - t> - m |w - t|² / 2``: exp of the right-hand side is a
    normal density, cut by the ball, and drawn exactly (`BallEnvelope`). Where that has less mass than the envelopes of
    `draw_log_concave_vector` it is proposed from; else they are, and what falls outside of the ball is rejected. Which
    of them it is depends on the data, so that both end at the very same surface.

    Where minus the second derivative of the likelihood is at most C m, ``h(w) >= h(t) + <gamma, w - t> - (1 + C) m |w -
    t|² / 2``. At a mode of the ball ``<gamma, w - t> <= 0`` in all of it. With ``u = t + sqrt(1 + C) (w - t)`` the mass
    is at least ``(1 + C)^(-d / 2)`` times that of the envelope, for every point t of a convex set: points u of the ball
    come of points w of it. So `worst_acceptance_in_box` holds for a ball, too.

    **Guarantee.** That of `draw_log_concave_vector`.

    Examples
    --------
    >>> pressed = LogConcave(
    ...     dimension=2,
    ...     value=lambda points: 1e4 * points[:, 0] - (points**2).sum(axis=1) / 2,
    ...     gradient=lambda point: np.array([1e4, 0.0]) - point,
    ...     hessian=lambda point: np.zeros((2, 2)),
    ...     strong=np.ones(2),
    ...     self_concordance=0.0,
    ... )
    >>> found = draw_in_ball(np.random.default_rng(1), pressed, 1.0)
    >>> bool(found[0] > 0.99), bool(found @ found < 1)
    (True, True)
    """
    inner = WITHIN * radius
    inside = replace(target, value=_cut(target.value, inner))
    point = mode_in_ball(target, inner)
    gradient = np.asarray(target.gradient(point), dtype=np.float64)
    strong = float(np.min(target.strong))
    ball = BallEnvelope(point=point, gradient=gradient, strong=strong, radius=inner)
    whole = envelope_at(target, point)
    if not ball.log_mass < whole.log_mass:
        found = draw_about(rng, inside, point, whole, draws or 1)
    else:
        found = _draw(rng, inside, ball, draws or 1)
    return found[0] if draws is None else found


def _draw(rng: np.random.Generator, target: LogConcave, envelope: BallEnvelope, size: int) -> Array:
    """Draw (size, d) points by rejection."""
    top, found = target.at(envelope.point[None])[0], np.empty((0, target.dimension))
    while len(found) < size:
        points = envelope.propose(rng, target.batch)
        logs = target.at(points) - top - envelope.height(points)
        found = np.concatenate([found, points[logs >= -rng.standard_exponential(len(points))]])
    return found[:size]


def _cut(value: Callable[[Array], Array], radius: float) -> Callable[[Array], Array]:
    def cut(points: Array) -> Array:
        return np.where((points**2).sum(axis=1) <= radius**2, value(points), -np.inf)

    return cut


def mode_in_ball(target: LogConcave, radius: float) -> Array:
    """Climb from 0 to about the mode within the ball: draws are exact wherever that ends.

    Each step goes towards the highest point that a quadratic with the curvature here has in the ball.
    """
    point = np.zeros(target.dimension)
    height = float(target.at(point[None])[0])
    for _ in range(STEPS):
        gradient = np.asarray(target.gradient(point), dtype=np.float64)
        precision = target.curvature(point) + np.diag(target.strong)
        step = _highest(precision, gradient + precision @ point, WITHIN * radius) - point
        if not gradient @ step > CLOSE:
            break
        ahead = point + 0.5 ** np.arange(40.0)[:, None] * step
        heights = target.at(ahead)
        if not heights.max() > height:
            break
        point, height = ahead[heights.argmax()], float(heights.max())
    return point


def _highest(precision: Array, pull: Array, radius: float) -> Array:
    """Return where ``<pull, w> - w'Pw / 2`` is highest in a ball: ``(P + c I) w = pull``, c by bisection."""
    values, vectors = np.linalg.eigh(precision)
    turned = vectors.T @ pull
    low, high = 0.0, float(np.linalg.norm(pull)) / radius
    if np.linalg.norm(turned / values) <= radius:
        high = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.linalg.norm(turned / (values + middle)) > radius else (low, middle)
    found = vectors @ (turned / (values + high))
    return np.asarray(found * min(1.0, radius / max(float(np.linalg.norm(found)), 1e-300)))


__all__ = ["BallEnvelope", "draw_in_ball", "log_gamma_share", "mode_in_ball"]
