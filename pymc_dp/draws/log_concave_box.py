"""Exact draws from log-concave densities in a box, where its faces may cut off nearly all of an unbounded envelope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy  # its parts are imported when first used

from pymc_dp.draws.log_concave import LogConcave, draw_about, draw_log_concave_vector, envelope_at, inward, mode
from pymc_dp.kernel.truncated import truncated_normal

Array = npt.NDArray[np.float64]

ROUNDING = 1e-2
"""Taken from the logarithm, for a mode that is found nearly."""
CLOSE, ROUNDS, STEPS = 1e-6, 30, 20
"""Squared decrement at which a mode is found; turns between two ways to climb, and steps of one of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FaceEnvelope:
    """``exp(<gradient, v> - v'Dv / 2)`` on a box of v that holds 0: independent truncated normals.

    Attributes
    ----------
    gradient : (d,) array
        All of it, what points out of the box too.
    strong : (d,) array
        Diagonal of D.
    low, high : (d,) arrays
        Ends of the box, 0 between them.
    """

    gradient: Array
    strong: Array
    low: Array
    high: Array

    @property
    def log_mass(self) -> float:
        """Logarithm of the integral over ``(2 pi)^(d / 2)``."""
        spread, mean = np.sqrt(self.strong), self.gradient / self.strong
        ends = np.stack([(self.low - mean) * spread, (self.high - mean) * spread])
        turned = np.where(ends[0] > -ends[1], -ends[::-1], ends)  # into the lower tail, where digits are kept
        least, most = scipy.special.log_ndtr(turned)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = most + np.log1p(-np.exp(least - most))
        return float((self.gradient * mean / 2 - np.log(spread) + inside).sum())

    def propose(self, rng: np.random.Generator, size: int) -> Array:
        """Draw (size, d) vectors."""
        shape = (size, len(self.strong))
        mean, spread = self.gradient / self.strong, 1 / np.sqrt(self.strong)
        return truncated_normal(rng, mean, spread, self.low, self.high, size=shape)

    def height(self, vectors: Array) -> Array:
        """Return the envelope's logarithm."""
        return vectors @ self.gradient - (vectors**2) @ self.strong / 2


def draw_in_box(rng: np.random.Generator, target: LogConcave, start: Array) -> Array:
    """Draw once from a log-concave density restricted to a box.

    Parameters
    ----------
    rng : numpy.random.Generator
        ``randomness.secure_generator()`` where the draw is a release.
    target : LogConcave
        What it says about its density must be proved.
    start : (d,) array
        A point of the box where the density is positive.

    Returns
    -------
    (d,) array

    Notes
    -----
    About a point t of the box ``h(t + v) <= h(t) + <gamma, v> - v'Dv / 2``, gamma being the gradient and D the
    curvature of the prior: exp of the right-hand side is a product of truncated normals, drawn exactly, of which
    the box cuts off nothing. Where that has less mass than the envelopes of `draw_log_concave_vector` it is proposed
    from; else they are.

    Where the curvature of the likelihood is at most C D, ``h(t + v) >= h(t) + <gamma, v> - (1 + C) v'Dv / 2``. At a
    mode of the box every component of gamma is 0 or points out at a face where t lies, so that ``gamma_j v_j <= 0`` in
    the box. With ``u = sqrt(1 + C) v`` the mass is at least ``(1 + C)^(-d / 2)`` times that of the envelope, for the
    box of u holds that of v: `worst_acceptance_in_box`.

    **Guarantee.** That of `draw_log_concave_vector`.

    References
    ----------
    Bertsekas (1982), Projected Newton methods, doi 10.1137/0320018.

    Examples
    --------
    >>> corner = LogConcave(
    ...     dimension=2,
    ...     value=lambda points: -1e4 * points.sum(axis=1) - (points**2).sum(axis=1) / 2,
    ...     gradient=lambda point: -1e4 - point,
    ...     hessian=lambda point: np.zeros((2, 2)),
    ...     strong=np.ones(2),
    ...     self_concordance=0.0,
    ...     low=np.zeros(2),
    ...     high=np.ones(2),
    ... )
    >>> bool((draw_in_box(np.random.default_rng(1), corner, np.full(2, 0.5)) < 0.01).all())
    True
    """
    if target.dimension == 1:
        return draw_log_concave_vector(rng, target, start)
    point = mode_in_box(target, start)
    low, high = target.box
    gradient = np.asarray(target.gradient(point), dtype=np.float64)
    faces = FaceEnvelope(gradient=gradient, strong=np.asarray(target.strong), low=low - point, high=high - point)
    whole = envelope_at(target, point)
    if not faces.log_mass < whole.log_mass:
        return draw_about(rng, target, point, whole)[0]
    top = target.at(point[None])[0]
    while True:
        vectors = faces.propose(rng, target.batch)
        found = target.at(np.clip(point + vectors, low, high)) - top - faces.height(vectors)
        accepted = found >= -rng.standard_exponential(len(vectors))
        if accepted.any():
            return np.clip(point + vectors[accepted.argmax()], low, high)


def mode_in_box(target: LogConcave, start: Array) -> Array:
    """Climb to the mode within the box: by Newton steps, and along the scaled gradient where these stall at a face.

    Along the arc of points ``clip(t + share * gradient / diagonal)`` a concave function rises at first wherever t is no
    mode of the box (Bertsekas 1982, proposition 1), which a full Newton step need not do.
    """
    point = mode(target, start)
    for _ in range(ROUNDS):
        if _decrement(target, point) < CLOSE:
            break
        for _ in range(STEPS):
            point = _uphill(target, point)
        point = mode(target, point)
    return point


def _decrement(target: LogConcave, point: Array) -> float:
    """How far below the mode a quadratic with the curvature here is, over all coordinates that may move."""
    slope = inward(target, point)
    free = slope != 0
    precision = (target.curvature(point) + np.diag(target.strong))[np.ix_(free, free)]
    return float(slope[free] @ np.linalg.solve(precision, slope[free])) if free.any() else 0.0


def _uphill(target: LogConcave, point: Array) -> Array:
    low, high = target.box
    step = inward(target, point) / (np.diag(target.curvature(point)) + target.strong)
    ahead = np.clip(point + 0.5 ** np.arange(40.0)[:, None] * step, low, high)
    heights = target.at(ahead)
    return ahead[heights.argmax()] if heights.max() > target.at(point[None])[0] else point


def worst_acceptance_in_box(
    *, n_rows: int, inverse_temperature: float, curvature: float, strong: npt.ArrayLike
) -> float:
    """Return the logarithm of a share of proposals that `draw_in_box` accepts at least, whatever the data and the box.

    Parameters
    ----------
    n_rows : int
    inverse_temperature : float
        By which the log-likelihood is multiplied.
    curvature : float
        Supremum of minus the second derivative of a row's log-likelihood along unit directions. May be infinite.
    strong : (dimension,) array
        Precisions of the prior, which must be normal but for the box.

    Examples
    --------
    >>> round(worst_acceptance_in_box(n_rows=1000, inverse_temperature=0.1, curvature=0.25, strong=[1.0, 1.0, 1.0]), 1)
    -4.9
    """
    precisions = np.asarray(strong, dtype=np.float64)
    if n_rows == 0 or inverse_temperature == 0 or curvature == 0:
        return -ROUNDING
    ratio = n_rows * inverse_temperature * curvature / float(precisions.min())
    return -precisions.size / 2 * float(np.log1p(ratio)) - ROUNDING


__all__ = ["FaceEnvelope", "draw_in_box", "worst_acceptance_in_box"]
