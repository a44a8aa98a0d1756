"""The mean of what released gradients say, where its quadratic has the mode: by how curvatures change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pymc_dp.gradients.bent import Bent
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.private_model import Quadratic
from pymc_dp.inspection.rows import Array

FARTHEST = 0.4
"""Standard deviations, root mean square over parameters, above which a mean is not moved at all.

An expansion says nothing of so much. Where it was right, it moved means by a quarter at most.
"""


def centred(quadratic: Quadratic, bent: Bent, prior: Prior) -> Quadratic:
    """Return a quadratic log-likelihood with the posterior mean of one whose curvature changes with the parameters.

    Parameters
    ----------
    quadratic : Quadratic
        About the mode.
    bent : Bent
    prior : Prior
        Of the path.

    Notes
    -----
    With H the curvature and K the covariance of the posterior, the mean is K c from the mode to third order, where
    ``c_i = -½ tr(K ∂H/∂η_i)``: parameters are pulled to where others are less certain. A residual standard deviation is
    the clearest case. With k means of n rows the mode of its logarithm is k / 2n too low, by the degrees of freedom
    that means take, which is k / √(2n) standard deviations. Third derivatives are those of the expected curvature of
    made-up rows, exact for canonical links.

    The noise of a release does the opposite: around a wrong mean residuals are larger. So in c_i K stands here for the
    covariance without noise, less what noise adds to it, where that is positive: little is left at small budgets, and
    nothing where noise is larger than sampling. It is scores that are off by c, whatever the noise on them: what c says
    is added to the released slope. Clipped scores bend less, as they are less steep: of c only the share counts that
    clipping leaves of slopes (`Bent.kept`). That of the logarithm of a standard deviation, whose scores are squares,
    was down to .4, and its mean would come out by up to 3 standard deviations too high. Everything is computed from
    released numbers and made-up rows.

    References
    ----------
    Tierney, Kadane (1986), doi 10.1080/01621459.1986.10478240 (means to this order).
    """
    mean, covariance, root, values, vectors = _noised(quadratic, prior)
    left = np.clip(2 - values, 0.0, 1.0)  # of the covariance without noise, in units of itself
    if not left.any():
        return quadratic
    pull = -bent.kept * _half_slopes(bent, mean, root, root @ (vectors * np.sqrt(left)))
    moved = covariance @ quadratic.curvature.T @ np.linalg.solve(quadratic.covariance, pull)
    length = float(np.sqrt(moved @ np.linalg.solve(covariance, moved)))
    farthest = FARTHEST * np.sqrt(len(pull))
    return replace(quadratic, slope=quadratic.slope + pull) if length <= farthest else quadratic


def bends(quadratic: Quadratic, bent: Bent, prior: Prior) -> Array:
    """Return by how much the slope may be off because noise led to other parameters, (d,).

    Parameters
    ----------
    quadratic : Quadratic
        With straight scores.
    bent : Bent
    prior : Prior
        Of the path.

    Notes
    -----
    Around a mean that noise has moved residuals are larger, and so is the standard deviation that fits them: by half of
    the squared distance, in what a row says. To second order the slope is off by ``c_i = ½ tr(K ∂H/∂η_i)``, with K what
    noise adds to the covariance. Of a linear regression with few rows the logarithm of σ came out up to eleven standard
    deviations too high.
    """
    mean, _, root, values, vectors = _noised(quadratic, prior)
    return _half_slopes(bent, mean, root, root @ (vectors * np.sqrt(np.maximum(values - 1, 0.0))))


def _noised(quadratic: Quadratic, prior: Prior) -> tuple[Array, Array, Array, Array, Array]:
    """Return mean and covariance of η / D, a root of that without noise, and eigenvalues and vectors in its units."""
    scale = quadratic.scale
    mean, covariance = quadratic.posterior(prior.mean * scale, prior.precision / np.outer(scale, scale))
    covariance = covariance / np.outer(scale, scale)
    root = np.linalg.cholesky(np.linalg.inv(prior.precision + quadratic.curvature))
    values, vectors = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, covariance).T))
    return mean / scale, covariance, root, values, vectors


def _half_slopes(bent: Bent, mean: Array, root: Array, spread: Array) -> Array:
    """Return ½ tr(K ∂H/∂η_i) at a mean, (d,), with K = spread spreadᵀ; differences are along `root`."""
    places = np.linalg.solve(bent.basis, np.column_stack([mean, root, spread]))
    middle, steps, spread = np.split(places, [1, 1 + len(mean)], axis=1)
    known = spread @ spread.T

    def size(at: Array) -> float:
        return float((bent.curvature(at) * known).sum())

    rises = [size(middle[:, 0] + step) - size(middle[:, 0] - step) for step in steps.T]
    return np.asarray(0.25 * np.linalg.solve(root.T, rises))


__all__ = ["bends", "centred"]
