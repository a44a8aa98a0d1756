"""The likelihood of released gradients where scores are no straight lines: made-up rows say how they bend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy.linalg import eigh

from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.private_model import Quadratic
from pymc_dp.gradients.schedule import Limits
from pymc_dp.gradients.simulated import Simulated
from pymc_dp.gradients.walk import Found
from pymc_dp.inspection.rows import Array

FINE = (0.15505102572168220, 0.64494897427831780, 1.0), (0.37640306270046725, 0.51248582618842165, 1 / 9)
COARSE = (1 / 3, 1.0), (3 / 4, 1 / 4)
"""Nodes and weights of Radau's rules between 0 and 1, exact for polynomials of degree 4 and 2."""
BETWEEN = (0.21132486540518713, 0.7886751345948129), (1 / 2, 1 / 2)
"""Those of Gauss and Legendre, of degree 3, without the curvature at the end."""
FEWEST, MOST = 4, 16
"""Pairs of positions that averages are over: as many as parameters, within these."""
ROUNDS, FARTHEST, SETTLED = 6, 3.0, 0.1
"""Rounds of the search for a normal distribution, its largest step, and the step of mean and precision that ends it."""
MOVED = 0.6
"""How far the precision moves in a round, to where it would be."""
SEED = 20_251_125
"""Of these positions; public."""
NARROWEST, WIDTHS, CHOOSING = 1 / 64, 13, 8
"""The least width of columns over that of their bounds, how many are tried, and by how many times the rows."""
ALIKE = 0.9
"""Share of a trace from which on it says nothing of widths, where rows that are nearly alike have it."""
FOLLOWED = 0.3
"""From this squared shift of the mean on, in standard deviations, mean over parameters, scores are followed.

A shift of .55 standard deviations leaves .85 of 90%. Where intervals cover without this, few releases are above it.
"""
NOISY, FOLLOWED_IN_NOISE = 0.1, 0.03
"""Share of noise in the variance of released scores that is much, and what stands for `FOLLOWED` there.

Noise reaches far, to where scores bend, and the shift is a mean: a few saturated levels of forty were moved by up to
1.8 standard deviations, and all by .12, squared. With .3, intervals of levels and of skewed or heavy-tailed columns
covered .84 to .89 at ε = 1, and do .88 to .92 with this.
"""
EARLY = 0.5
"""Share of `FOLLOWED` below which the first round decides: of later ones it was off by a quarter at most."""
STRAINED = 12.0
"""Ratio of the largest to the smallest eigenvalue of `Bent.turn` above which made-up rows are unlike the table's."""
LEAST_CURVATURE = 0.01
"""Of made-up rows, over the mean of all directions: below that they do not say how a direction bends."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bent:
    """How expected scores change with the parameters, in the coordinates of the last limits.

    Attributes
    ----------
    simulated : Simulated
    basis : (d, d) array
        B, of these coordinates.
    roots : (n_rows, 1, 1) array
        Square roots of the weights of made-up rows: what clipping leaves of them, or of a person's.
    turn : (d, d) array
        That makes their curvature at the end the released one.
    rest : (d, d) array
        What is left of that, in directions about which they say too little.
    end : (d,) array
    kept : (d,) array
        What clipping leaves of the slopes of made-up scores there, parameter by parameter.
    """

    simulated: Simulated
    basis: Array
    roots: Array
    turn: Array
    rest: Array
    end: Array
    kept: Array

    @classmethod
    def of(cls, found: Found, simulated: Simulated, n_rows: float) -> Bent:
        """Make rows up such that they have the curvature that was released where the walk ended. All of it is public.

        Notes
        -----
        Columns of which only bounds are known are drawn just wide enough for the trace of the curvature, of `n_rows`
        rows that are clipped as those of the table. A larger width may fit as well, with far more bent scores, and
        whether it is the right one is lost in the noise. But where rows that are nearly alike have that trace already,
        as those with an intercept and a slope of each group, it says nothing of widths: such rows relate both, and have
        no curvature across. So the least width from there on is taken at which rows are not `strained`, if there is
        one.

        What is left is a matter of coordinates: with S the curvature of made-up rows and H that released, T = S^-1/2
        (S^1/2 H S^1/2)^1/2 S^-1/2 is symmetric, and T S T = H.
        """
        limits, basis = found.limits, found.limits.basis
        assert basis is not None
        at = found.end * limits.scale
        wanted = basis @ found.curvature @ basis
        tried = _narrowed(simulated, at, limits, float(np.trace(wanted)) / n_rows)
        first = cls._turned(found, next(tried), at, wanted)
        if not first.strained:
            return first
        return next((one for rows in tried if not (one := cls._turned(found, rows, at, wanted)).strained), first)

    @classmethod
    def _turned(cls, found: Found, simulated: Simulated, at: Array, wanted: Array) -> Bent:
        """Return made-up rows, turned to have the released curvature."""
        limits, basis = found.limits, found.limits.basis
        assert basis is not None
        clipped, plain = simulated.clipped(at, limits), simulated.spread(at) @ basis
        squares = [(factors**2).sum(axis=(1, 2)) for factors in (clipped, plain)]
        edges = simulated.units(len(plain))
        whole = np.add.reduceat(squares[1], edges[:-1])
        roots = np.repeat(np.sqrt(squares[0] / np.maximum(whole, 1e-300)), np.diff(edges))[:, None, None]
        own = _gram(plain * roots)
        values, vectors = np.linalg.eigh(own)
        values = np.maximum(values, LEAST_CURVATURE * values.mean() if values.any() else 1.0)
        half, inverse = ((vectors * values**power) @ vectors.T for power in (0.5, -0.5))
        turn = inverse @ _root(half @ wanted @ half) @ inverse
        rest = wanted - turn @ own @ turn
        back = np.linalg.inv(basis)
        left, whole = (((factors @ back) ** 2).sum(axis=(0, 1)) for factors in (clipped, plain))
        kept = np.clip(np.divide(left, whole, out=np.ones_like(values), where=whole > 0), 0.0, 1.0)
        end = back @ found.end
        return cls(simulated=simulated, basis=basis, roots=roots, turn=turn, rest=rest, end=end, kept=kept)

    @property
    def strained(self) -> bool:
        """Whether made-up rows had to be turned too far, to have the released curvature, to say how it changes.

        So it is where columns lie near one of their bounds: made-up ones lie around the middle. Noise looks the same
        (`noisy`): of saturated levels made-up rows have next to no curvature, and what noise leaves of it is far more.
        """
        values = np.abs(np.linalg.eigvalsh(self.turn))
        return bool(values.max() > STRAINED * values.min())

    def curvature(self, at: Array) -> Array:
        """Return the curvature at a position, (d, d)."""
        factors = self.simulated.spread(self.basis @ at * self.simulated.scale) @ self.basis
        return np.asarray(self.turn @ _gram(factors * self.roots) @ self.turn + self.rest)

    def change(self, at: Array, rule: tuple[tuple[float, ...], tuple[float, ...]] = FINE) -> tuple[Array, Array]:
        """Return how much the expected score changes from the end to a position, and the curvature there."""
        away, (nodes, weights) = at - self.end, rule
        found = [self.curvature(self.end + node * away) for node in nodes]
        mean = np.tensordot(weights, found, 1)
        return mean @ away, found[-1]


def _narrowed(simulated: Simulated, at: Array, limits: Limits, wanted: float) -> Iterator[Simulated]:
    """Yield rows just wide enough for a mean trace of their clipped curvatures, or as wide as it is largest.

    Where the narrowest ones have about that trace already, wider ones come after them.
    """
    if not simulated.loose:
        yield simulated
        return
    widths = np.geomspace(NARROWEST, 1.0, WIDTHS)

    def tried(start: int, times: int) -> list[float]:
        sizes = list[float]()
        for width in widths[start:]:
            factors = simulated.narrowed(width).clipped(at, limits, times)
            sizes.append(float((factors**2).sum(axis=(1, 2)).mean()))
            if sizes[-1] >= wanted:
                break
        return [float(size) for size in np.nan_to_num(sizes, nan=-np.inf)]

    few = tried(0, 1)  # of few rows: where to begin with many
    start = max(int(np.argmax(few)) - 1, 0)
    place = start + int(np.argmax(tried(start, CHOOSING)))
    yield from map(simulated.narrowed, widths[place:] if few[0] >= ALIKE * wanted else widths[place : place + 1])


APART = 3.0
"""Standard deviations that means with bent and with straight scores may be apart."""


def followed(found: Found, quadratic: Quadratic, bent: Bent, prior: Prior) -> Quadratic:
    """Return the quadratic log-likelihood that is nearest to one with bent scores.

    Parameters
    ----------
    found : Found
    quadratic : Quadratic
        With straight scores.
    bent : Bent
    prior : Prior
        Of the path.

    Notes
    -----
    Gradients G_t were released at η_t, all with the same limits. With m(η) the change of the expected score from the
    end to η, their mean g = Σ w_t (G_t + m(η_t)) is that of the scores at the end, whatever the path: taking m for
    straight there moved the mean of saturated coefficients by more than their standard deviation. So log L = -½ (g -
    m(η))ᵀ C⁻¹ (g - m(η)), with C the covariance of `quadratic`.

    Where curvatures fall with the size of coefficients, they are known the better in directions across them the
    smaller they are, so that L has a volume which a quadratic around the end lacks: with it the prior drew twelve
    saturated coefficients by a sixth to their mean. What is returned has, with this prior, the normal posterior N(u, K)
    at which the mean of the slope of the log posterior is 0 and K⁻¹ is the mean of its curvature (Gauss and Newton's):
    the nearest normal distribution, by Kullback and Leibler.

    It is taken where it matters: with the straight posterior N(u₀, K₀), if (u - u₀)ᵀ K₀⁻¹ (u - u₀) / d is above
    `FOLLOWED`, or above `FOLLOWED_IN_NOISE` with much noise (`noisy`). C is taken for constant, as noise is; the
    variance of the scores themselves changes with η. Otherwise `quadratic` comes back as it is. All of that is decided
    by released numbers and made-up rows; no private value has a part in it.

    References
    ----------
    Opper, Archambeau (2009), doi 10.1162/neco.2008.08-07-592 (the normal distribution that is nearest).
    """
    basis, scale = bent.basis, quadratic.scale
    back, least = np.linalg.inv(basis), FOLLOWED_IN_NOISE if noisy(found, quadratic) else FOLLOWED
    own = Prior(mean=back @ prior.mean, precision=basis @ prior.precision @ basis)
    score = np.zeros(len(scale))
    for weight, at, gradient in found.path:
        score += weight * (basis @ gradient + bent.change(back @ at, BETWEEN)[0])
    straight = basis @ quadratic.curvature @ basis
    covariance = basis @ quadratic.covariance @ basis
    straight_known = quadratic.curvature.T @ np.linalg.solve(quadratic.covariance, quadratic.curvature)
    rounds = _averaged(score, straight, covariance, bent, own)
    for place, (known, shift) in enumerate(islice(rounds, ROUNDS)):
        known, shift = back @ known @ back, back @ shift
        mean = np.linalg.solve(prior.precision + known, prior.weighted + shift)
        known = capped(known, straight_known)
        shift = (prior.precision + known) @ mean - prior.weighted  # the same mean
        nearest = Quadratic(slope=shift, curvature=known, covariance=known, scale=scale)
        if not place and _moved(quadratic, nearest, prior) <= EARLY * least:
            break
    return nearest if _moved(quadratic, nearest, prior) > least else quadratic


def capped(known: Array, most: Array) -> Array:
    """Return a precision that is in no direction larger than another, (d, d) both."""
    values, vectors = eigh((known + known.T) / 2, most)
    turned = most @ vectors
    return np.asarray((turned * np.minimum(values, 1.0)) @ turned.T)


def noisy(found: Found, quadratic: Quadratic) -> bool:
    """Whether noise is a part of the variance of released scores that matters: mean over directions.

    By public scales of noise and the released curvature.
    """
    share = float(np.trace(np.linalg.solve(quadratic.covariance, found.noise))) / len(found.end)
    return share > NOISY


def _moved(straight: Quadratic, nearest: Quadratic, prior: Prior) -> float:
    """Return how far posterior means differ: squared, in standard deviations of the first, mean over parameters."""
    (mean, covariance), (other, _) = _posteriors(straight, nearest, prior)
    return float((other - mean) @ np.linalg.solve(covariance, other - mean)) / len(mean)


def apart(straight: Quadratic, nearest: Quadratic, prior: Prior) -> float:
    """Return how far posterior means differ at most: in any direction, in standard deviations of the wider there."""
    (mean, wide), (other, narrow) = _posteriors(straight, nearest, prior)
    values, vectors = eigh(wide, narrow)  # vectorsᵀ narrow vectors = 1, vectorsᵀ wide vectors = values
    return float(np.abs((vectors.T @ (mean - other)) / np.sqrt(np.maximum(values, 1.0))).max())


def _posteriors(straight: Quadratic, nearest: Quadratic, prior: Prior) -> list[tuple[Array, Array]]:
    """Return means and covariances under the prior of the path."""
    scale = straight.scale
    return [one.posterior(prior.mean * scale, prior.precision / np.outer(scale, scale)) for one in (straight, nearest)]


def _averaged(
    score: Array, straight: Array, covariance: Array, bent: Bent, prior: Prior
) -> Iterator[tuple[Array, Array]]:
    """Yield, round after round, the precision and the precision times the mean of what scores say."""
    draws = _draws(len(score))
    weight = np.linalg.solve(covariance, straight)
    known = straight @ weight
    shift = weight.T @ (score + straight @ bent.end)
    mean = np.linalg.solve(prior.precision + known, prior.weighted + shift)
    inverse = np.linalg.inv(covariance)
    far = turned = np.inf
    while max(far / np.sqrt(len(score)), turned) > SETTLED:
        spread = _spread(prior.precision + known)
        found = [bent.change(at, COARSE) for at in mean + draws @ spread]
        missing = np.mean([bend @ inverse @ bend for _, bend in found], axis=0) - known
        turned = float(np.linalg.norm(spread @ missing @ spread.T, 2))
        known = known + MOVED * missing
        slope = np.mean([bend @ (inverse @ (score - change)) for change, bend in found], axis=0)
        precision, shift = prior.precision + known, known @ mean + slope
        step = np.linalg.solve(precision, prior.weighted + shift) - mean
        far = float(np.sqrt(step @ precision @ step))
        mean = mean + step * min(1.0, FARTHEST / max(far, 1e-300))
        yield known, shift


def _draws(size: int) -> Array:
    """Return positions in pairs, (n, d), with mean 0 and, where there are enough, the identity as covariance."""
    pairs = min(max(size, FEWEST), MOST)
    found = np.random.default_rng(SEED).normal(size=(pairs, size))
    if pairs >= size:
        found = found @ np.linalg.inv(np.linalg.cholesky(found.T @ found / pairs)).T
    return np.concatenate([found, -found])


def _spread(precision: Array) -> Array:
    """Return a matrix whose transpose times itself is the covariance."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky((precision + precision.T) / 2)))


def _gram(factors: Array) -> Array:
    flat = factors.reshape(-1, factors.shape[-1])
    return np.asarray(flat.T @ flat)


def _root(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


__all__ = ["APART", "Bent", "apart", "capped", "followed", "noisy"]
