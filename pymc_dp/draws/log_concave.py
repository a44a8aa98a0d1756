"""Exact draws from log-concave posteriors in several dimensions: rejection from proved envelopes about the mode.

What is known of a sum over rows at one point, and what it tells of how fast the sum's curvature decays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pymc_dp.draws.log_concave_1d import tangents
from pymc_dp.draws.log_concave_shells import (
    MARGIN,
    Envelope,
    normal_envelope,
    shells_by_fourth_moment,
    shells_by_length,
)
from pymc_dp.errors import ArgumentError

Array = npt.NDArray[np.float64]

MOST_DIMENSIONS = 64
"""Fourth moments of d coordinates are (d (d + 1) / 2)^2 numbers: 4e6 for 64."""
BLOCK = 4096
"""Rows whose products are held at a time."""
ROUNDING = 1 + 1e-9
"""Upwards, for what eigenvalues and sums of float64 may be off by."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowCurvatures:
    """Curvatures at a point t of a log-likelihood ``sum_i f_i(<z_i, theta>)``.

    Row i must satisfy, for all numbers x, with ``g(s) = (e^-s + s - 1) / s^2``:

        f_i(<z_i, t> + x) <= f_i(<z_i, t>) + f_i'(<z_i, t>) x - c_i x^2 g(k_i |x|).

    Parameters
    ----------
    vectors : (n_rows, d) array
        z_i.
    curvatures : (n_rows,) array
        c_i >= 0, the temperature included: ``-beta f''``, or less.
    bends : (n_rows,) array
        k_i >= 0, finite, see `bends`. A smaller c_i may have a much smaller k_i; c_i = 0 has k_i = 0.
    """

    vectors: Array
    curvatures: Array
    bends: Array

    @property
    def curvature(self) -> Array:
        """Return H = sum_i c_i z_i z_i'."""
        return (self.vectors.T * self.curvatures) @ self.vectors

    def longest(self, metric: Array) -> float:
        """Return the largest ``k_i^2 z_i'A^-1 z_i`` where c_i > 0: times v'Av, no ``(k_i <z_i, v>)^2`` exceeds it."""
        lengths = (_whitened(self.vectors, metric) ** 2).sum(axis=1)
        return ROUNDING * float(np.max(np.where(self.curvatures > 0, self.bends**2 * lengths, 0.0), initial=0.0))

    def fourth_moment(self, metric: Array) -> float:
        """Return a number m with ``sum_i c_i k_i^2 <z_i, v>^4 <= m (v'Av)^2`` for all v."""
        return ROUNDING * _fourth_moment(_whitened(self.vectors, metric), self.curvatures * self.bends**2)


def bends(curvature: Array, relative_slope: Array, fall: Array, rise: Array) -> Array:
    """Return k_i for rows whose curvature is log-concave: the least that is proved.

    Parameters
    ----------
    curvature : (n_rows,) array
        ``c = -f''`` at the point, or any number between 0 and that. As everywhere here of f, not of beta f.
    relative_slope : (n_rows,) array
        ``|f''' / f''|`` at the point, or an upper bound.
    fall, rise : (n_rows,) arrays
        ``f'(-inf) - f'`` and ``f' - f'(inf)`` at the point, or lower bounds; both > 0 where c > 0, may be infinite.

    Returns
    -------
    (n_rows,) array

    Notes
    -----
    Let ``F(x) = f(eta) + f'(eta) x - f(eta + x) - c x^2 g(k x)`` for x >= 0; the other side is its mirror image. Then
    F(0) = F'(0) = 0 and ``F'' = -f''(eta + x) - c e^(-k x)``. The logarithm of -f'' is concave, that of ``c e^(-k x)``
    is linear, not above it at 0, and falls there at least as fast: so F'' changes its sign at most once, from + to -,
    and F' rises first and then falls, to ``rise - c / k`` at infinity. Where that is >= 0, so are F' and F. Hence ``k =
    max(relative slope, c / rise, c / fall)``. Logistic rows have ``max(p, 1 - p)``, between 1/2 and 1; the general
    ``|f'''| <= K |f''|`` gives K = 1.

    Examples
    --------
    >>> p = np.array([0.5, 0.9])
    >>> bends(p * (1 - p), np.abs(1 - 2 * p), p, 1 - p)
    array([0.5, 0.9])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.maximum(relative_slope, np.maximum(curvature / fall, curvature / rise))
    return np.where(curvature > 0, needed, 0.0)


def _whitened(vectors: Array, metric: Array) -> Array:
    """Return rows x_i with <x_i, u> = <z_i, v> where |u|^2 = v'Av."""
    return np.linalg.solve(np.linalg.cholesky(metric), vectors.T).T


def _fourth_moment(vectors: Array, weights: Array) -> float:
    """Bound ``sum_i w_i <x_i, u>^4`` over unit vectors u.

    It is the quadratic form of the matrix T of fourth moments at the unit vector of u's products. That vector has the
    component ``1 / sqrt(d)`` along e, the products of the identity over sqrt(d): with t = T e, T' what T is on all that
    is orthogonal to e, and r the part of t there, the form is at most ``e't / d + 2 sqrt((1 - 1/d) / d) |r| + (1 - 1/d)
    |T'|``. For rows that point in all directions alike it is about 3 / n where the longest row gives d / n.
    """
    d = vectors.shape[1]
    first, second = np.triu_indices(d)
    scale = np.where(first == second, 1.0, np.sqrt(2.0))
    moments = np.zeros((first.size, first.size))
    for start in range(0, len(vectors), BLOCK):
        part = slice(start, start + BLOCK)
        products = vectors[part][:, first] * vectors[part][:, second] * scale * np.sqrt(weights[part])[:, None]
        moments += products.T @ products
    identity = np.where(first == second, 1 / np.sqrt(d), 0.0)
    image = moments @ identity
    common = float(identity @ image)
    rest = image - common * identity
    others = moments - np.outer(identity, rest) - np.outer(rest, identity) - common * np.outer(identity, identity)
    widest = max(float(np.linalg.eigvalsh(others)[-1]), 0.0)
    return common / d + 2 * np.sqrt((1 - 1 / d) / d) * float(np.linalg.norm(rest)) + (1 - 1 / d) * widest


STEPS = 200
CLOSE = 1e-8
"""Newton's steps end at a decrement of this; the gradient that is left enters the envelope."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LogConcave:
    """A density ``exp(h)``, h = prior + likelihood, with what is proved of it.

    Parameters
    ----------
    dimension : int
    value : callable
        (k, d) array of points to (k,) array of h up to a constant, concave on R^d; NaN counts as -inf.
    gradient : callable
        (d,) array to (d,) array; at a kink any supergradient.
    hessian : callable
        (d,) array to (d, d) array, of the likelihood alone, negative semi-definite. It must be right to 1e-10 of its
        largest eigenvalue, as analytic and automatic derivatives are; divided differences are not.
    strong : (d,) array
        m > 0: minus the Hessian of the prior is at least diag(m) everywhere.
    self_concordance : float or None
        K >= 0: along every line ``theta + t v`` the likelihood has ``|psi'''(t)| <= K |v| |psi''(t)|``. With linear
        predictors ``<z_i, theta>`` and ``|f'''| <= k |f''|`` for each row it is k times the largest ``|z_i|``: k = 1
        for Bernoulli with a logit link and Poisson with a log link, k = 0 for a normal likelihood. None where no such
        number is proved: only `strong` (and `rows`) bound the density then.
    rows : callable, optional
        (d,) array to `RowCurvatures` there: tightens the envelope, by orders of magnitude in ten dimensions or more.
    low, high : (d,) array, optional
        Box to which the density is restricted, by rejection. All the above must hold within it only.
    batch : int
        Most points in one call of `value`.
    """

    dimension: int
    value: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    hessian: Callable[[Array], Array]
    strong: Array
    self_concordance: float | None
    rows: Callable[[Array], RowCurvatures] | None = None
    low: Array | None = None
    high: Array | None = None
    batch: int = 64

    def __post_init__(self) -> None:
        strong = np.asarray(self.strong, dtype=np.float64)
        if strong.shape != (self.dimension,) or not ((strong > 0) & np.isfinite(strong)).all():
            raise ArgumentError(f"strong must hold {self.dimension} finite numbers > 0. Give every parameter a prior.")
        if self.self_concordance is not None and not 0 <= self.self_concordance < np.inf:
            raise ArgumentError(
                f"self_concordance must be >= 0, got {self.self_concordance}. Use None where nothing is proved."
            )
        low, high = self.box
        if low.shape != strong.shape or high.shape != strong.shape or not (low < high).all():
            raise ArgumentError(f"low < high must hold in all {self.dimension} coordinates, got {low}, {high}.")

    @property
    def box(self) -> tuple[Array, Array]:
        """Bounds, infinite where none were given."""
        free = np.full(self.dimension, np.inf)
        low = -free if self.low is None else np.asarray(self.low, dtype=np.float64)
        return low, free if self.high is None else np.asarray(self.high, dtype=np.float64)

    def at(self, points: Array) -> Array:
        """Return h at (k, d) points, -inf outside of the box and where it is NaN."""
        low, high = self.box
        with np.errstate(all="ignore"):
            values = np.asarray(self.value(points), dtype=np.float64)
        return np.where(((low <= points) & (points <= high)).all(axis=1) & (values > -np.inf), values, -np.inf)

    def curvature(self, point: Array) -> Array:
        """Return a lower bound of minus the Hessian of the likelihood, by `MARGIN`."""
        hessian = np.asarray(self.hessian(point), dtype=np.float64)
        values, vectors = np.linalg.eigh(-(hessian + hessian.T) / 2)
        return (vectors * np.maximum(values - MARGIN * np.abs(values).max(), 0.0)) @ vectors.T


def draw_log_concave_vector(
    rng: np.random.Generator, target: LogConcave, start: Array, *, draws: int | None = None
) -> Array:
    """Draw from a log-concave density.

    Parameters
    ----------
    rng : numpy.random.Generator
        ``randomness.secure_generator()`` where the draw is a release.
    target : LogConcave
        What it says about its density must be proved: nothing of it is checked here.
    start : (d,) array
        A point of the box where the density is positive. The nearer to the mode, the fewer Newton steps.
    draws : int, optional
        Number of independent draws.

    Returns
    -------
    (d,) array, or (draws, d) array

    Raises
    ------
    ArgumentError
        For a start outside of the support. No text shows a value.

    Notes
    -----
    Let t be any point, gamma the gradient of h there, H minus the Hessian of the likelihood, D = diag(strong). With
    ``g(s) = (e^-s + s - 1) / s^2`` and ``s = K |v|``, self-concordance gives ``-psi''(x) >= v'Hv e^(-s x)`` along v,
    and two integrations give

        h(t + v) <= h(t) + <gamma, v> - v'Hv g(s) - v'Dv / 2        for all v.

    With `rows` the third term is ``-sum_i c_i d_i^2 g(k_i |d_i|)``, ``d_i = <z_i, v>``. As g decreases, g(s) can be put
    in for all of them, s^2 = v'Bv with any B for which no ``(k_i d_i)^2`` exceeds v'Bv. As g is also convex, s may be
    the mean of ``k_i |d_i|`` with the weights ``c_i d_i^2 / q``, q = v'Hv, which is at most ``sqrt(sum_i c_i k_i^2
    d_i^4 / q)``: far less than the longest row gives in many dimensions. Envelopes made of normal densities on shells
    about t are derived from each of these bounds (`shells_by_length`, `shells_by_fourth_moment`), and the one with the
    least mass is taken. A proposal is accepted with the density over its envelope: exact for every t, every choice and
    every remaining gradient. In a box, a component of gamma that points out of it at a bound where t lies is left out,
    for it only lowers the density within.

    In one dimension the draw is that of `draw_log_concave`, which needs nothing to be proved but concavity.

    **Guarantee.** The draw has exactly the stated distribution in real arithmetic with ideal randomness; the arithmetic
    is float64. It is private to the extent that the stated distribution is: one draw from a posterior with an
    m-strongly log-concave prior is beta G / sqrt(m)-GDP, G the Lipschitz constant of the difference of two rows. It
    ends with probability 1, and there is no limit of proposals, for giving up would be an output that depends on the
    data. The number of proposals, and with it the run time, depends on the data and is covered by no guarantee;
    `worst_acceptance` bounds it for all data sets from public numbers, so that what could take too long is refused
    before any data are read.

    References
    ----------
    Gopi, Lee, Liu (2022), theorem 4, doi 10.48550/arXiv.2203.00263; self-concordance: Bach (2010), proposition 1, doi
    10.1214/09-EJS521.

    Examples
    --------
    >>> normal = LogConcave(
    ...     dimension=2,
    ...     value=lambda points: -(points**2).sum(axis=1),
    ...     gradient=lambda point: -2 * point,
    ...     hessian=lambda point: -np.eye(2),
    ...     strong=np.ones(2),
    ...     self_concordance=0.0,
    ... )
    >>> draw_log_concave_vector(np.random.default_rng(1), normal, np.zeros(2), draws=3).shape
    (3, 2)
    """
    point = np.asarray(start, dtype=np.float64)
    size = 1 if draws is None else draws
    if point.shape != (target.dimension,) or not np.isfinite(point).all() or not np.isfinite(target.at(point[None])[0]):
        raise ArgumentError(f"start must be {target.dimension} numbers within the box where the density is positive.")
    found = _draw_line(rng, target, point, size) if target.dimension == 1 else _draw(rng, target, point, size)
    return found[0] if draws is None else found


def mode(target: LogConcave, start: Array) -> Array:
    """Climb from `start` by Newton steps within the box, about to the mode: draws are exact wherever they end."""
    point, height = start, float(target.at(start[None])[0])
    low, high = target.box
    for _ in range(STEPS):
        gradient = inward(target, point)
        free = gradient != 0
        step = np.zeros(target.dimension)
        precision = target.curvature(point) + np.diag(target.strong)
        step[free] = np.linalg.solve(precision[np.ix_(free, free)], gradient[free])
        if gradient @ step < CLOSE**2:
            break
        ahead = (np.clip(point + share * step, low, high) for share in 0.5 ** np.arange(40.0))
        better = next((x for x in ahead if target.at(x[None])[0] > height), None)
        if better is None:
            break
        point, height = better, float(target.at(better[None])[0])
    return point


def envelope_at(target: LogConcave, point: Array) -> Envelope:
    """Return the envelope of ``exp(h(point + v) - h(point))`` with the least mass among those that are proved."""
    return min(envelopes_at(target, point), key=lambda envelope: envelope.log_mass)


def envelopes_at(target: LogConcave, point: Array) -> list[Envelope]:
    """Return every envelope of ``exp(h(point + v) - h(point))`` that is proved."""
    gradient, strong = inward(target, point), np.asarray(target.strong, dtype=np.float64)
    curvature = target.curvature(point)
    found = [normal_envelope(gradient, np.diag(strong))]
    bend = target.self_concordance
    if bend == 0:
        found.append(normal_envelope(gradient, curvature + np.diag(strong)))
    elif bend is not None and curvature.any():
        lengths = [np.ones(target.dimension)] + [strong / strong.min()] * bool(np.ptp(strong))
        found += [shells_by_length(gradient, curvature, strong, bend**2 * np.diag(metric)) for metric in lengths]
    return found + (_by_rows(target.rows(point), gradient, strong) if target.rows is not None else [])


def _by_rows(rows: RowCurvatures, gradient: Array, strong: Array) -> list[Envelope]:
    curvature = (1 - MARGIN) * rows.curvature
    precision = curvature + np.diag(strong)
    metrics = [np.eye(strong.size), np.diag(strong), precision]
    lengths = [rows.longest(metric) for metric in metrics]
    if not curvature.any():
        return []
    if max(lengths) == 0:
        return [normal_envelope(gradient, precision)]
    scaled = [length * metric for length, metric in zip(lengths, metrics, strict=True)]
    found = [shells_by_length(gradient, curvature, strong, metric) for metric in scaled]
    if strong.size <= MOST_DIMENSIONS:
        metric = np.sqrt(rows.fourth_moment(precision)) * precision
        found.append(shells_by_fourth_moment(gradient, curvature, strong, metric))
    return found


def inward(target: LogConcave, point: Array) -> Array:
    """Return the gradient without what points out of the box where `point` is on its face."""
    low, high = target.box
    gradient = np.asarray(target.gradient(point), dtype=np.float64)
    outward = ((point <= low) & (gradient < 0)) | ((point >= high) & (gradient > 0))
    return np.where(outward, 0.0, gradient)


def log_acceptance(
    target: LogConcave, point: Array, envelope: Envelope, piece: npt.NDArray[np.int64], v: Array
) -> Array:
    """Return the logarithms of the probabilities to accept these proposals: never above 0 but by rounding."""
    return target.at(point + v) - target.at(point[None])[0] - envelope.height(piece, v)


def _draw(rng: np.random.Generator, target: LogConcave, start: Array, size: int) -> Array:
    point = mode(target, start)
    return draw_about(rng, target, point, envelope_at(target, point), size)


def draw_about(rng: np.random.Generator, target: LogConcave, point: Array, envelope: Envelope, size: int = 1) -> Array:
    """Draw (size, d) points by rejection from an envelope of ``exp(h(point + v) - h(point))``."""
    found = np.empty((0, target.dimension))
    tries = min(8, target.batch)
    while len(found) < size:
        piece, v = envelope.propose(rng, tries)
        if len(v):  # an envelope may have thrown all of them away itself
            accepted = log_acceptance(target, point, envelope, piece, v) >= -rng.standard_exponential(len(v))
            found = np.concatenate([found, point + v[accepted]])
        tries = min(2 * tries, target.batch)
    return found[:size]


def _draw_line(rng: np.random.Generator, target: LogConcave, start: Array, size: int) -> Array:
    def height(x: Array) -> Array:
        return target.at(x[:, None])

    def slope(x: Array) -> Array:
        return np.array([target.gradient(point[None])[0] for point in x])

    low, high = target.box
    envelope = tangents(height, slope, low[0], high[0], start[0])
    return envelope.draw(rng, height, size)[:, None]
