"""A model of private predictors: their sizes, means and covariance within cells, as unknown numbers of the model.

The unknown numbers are those of the rows at hand (their number, mean and covariance), not of a population: given them,
exact sums of predictors and of their products are known, and a release of these differs by noise alone. Their prior is
weakly informative in units of the public bounds: means are normal with standard deviation .5; standard deviations are
log-normal, within .1 and 1.6 with 95%; correlation matrices have the LKJ prior of concentration 2.

References
----------
Lewandowski, Kurowicka, Joe (2009), Generating random correlation matrices based on vines and extended onion method,
J. Multivariate Anal. 100(9), section 2.4; Bernstein, Sheldon (2019), doi 10.48550/arXiv.1910.13879, section 3.

Coordinates in which unknown numbers of known prior, measured with noise, are about independent and of unit size.

A sampler moves in them as far in all directions. They are computed from a release, and spend nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.regression_logp import CovariatePrior
from pymc_dp.transforms.released_logp import held

STEPS = 200
DIFFERENCE = 1e-5
TOLERANCE = 1e-6
TOGETHER = 2**17
"""Expected numbers that are computed at a time."""


class Coordinates(NamedTuple):
    """Numbers are ``centre + root @ z``.

    Attributes
    ----------
    centre : (p,) array
    root : (p, p) array
    """

    centre: Array
    root: Array


def coordinates_of(
    start: Array,
    expected: Callable[[Array], Array],
    value: Array,
    sd: Array,
    prior: Callable[[Array], tuple[Array, Array, Array]],
) -> Coordinates:
    """Return the most probable numbers, and a root of their covariance there, by damped Gauss-Newton steps.

    Parameters
    ----------
    start : (p,) array
    expected : callable
        Numbers (..., p) to the means (..., k) of what is measured.
    value, sd : (k,) arrays
        Of the measurement.
    prior : callable
        Numbers to minus the log density, one entry per number, with its first and second derivative; convex.
    """
    found, damping = start, 1.0

    def loss(numbers: Array) -> float:
        return float(0.5 * (((expected(numbers) - value) / sd) ** 2).sum() + prior(numbers)[0].sum())

    best = loss(found)
    for _ in range(STEPS):
        gradient, curvature = _derivatives(found, expected, value, sd, prior)
        step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), -gradient)
        moved = found + np.clip(step, -1.0, 1.0)
        now = loss(moved)
        if now < best:
            found, best, damping = moved, now, damping / 5
        else:
            damping *= 4
        if float(-gradient @ step) < TOLERANCE:
            break
    _, curvature = _derivatives(found, expected, value, sd, prior)
    return Coordinates(found, np.linalg.inv(np.linalg.cholesky(curvature)).T)


def _derivatives(
    numbers: Array,
    expected: Callable[[Array], Array],
    value: Array,
    sd: Array,
    prior: Callable[[Array], tuple[Array, Array, Array]],
) -> tuple[Array, Array]:
    shifts, step = DIFFERENCE * np.eye(len(numbers)), max(1, TOGETHER // len(sd))
    parts = (shifts[place : place + step] for place in range(0, len(shifts), step))
    jacobian = np.concatenate([expected(numbers + part) - expected(numbers - part) for part in parts])
    jacobian /= 2 * DIFFERENCE * sd
    _, first, second = prior(numbers)
    gradient = jacobian @ ((expected(numbers) - value) / sd) + first
    return gradient, jacobian @ jacobian.T + np.diag(second + 1e-9)


MEAN, MEDIAN, SPREAD = 0.5, 0.4, 0.7
"""Standard deviation of means, median of standard deviations, and standard deviation of their logarithms, in units of
what the bounds allow."""
CONCENTRATION = 2.0
"""Of the prior of correlation matrices; 1 would be uniform, and put much weight on predictors that are nearly one."""
TINY = 1e-14


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Of the predictors of the rows of every cell, in scaled units; tensors or arrays.

    Attributes
    ----------
    sizes : (n_cells,)
    means : (n_cells, d)
        Zeros where a statistic has no `constant`.
    within : (n_cells or 1, d, d)
        Covariance within a cell, divided by the size; second moments where there is no `constant`.
    """

    sizes: Any
    means: Any
    within: Any

    @classmethod
    def of_gram(cls, gram: Array) -> Moments:
        """Take known sums of products of (1, t), a (n_cells, 1 + d, 1 + d) array."""
        sizes = gram[:, 0, 0]
        share = 1 / np.maximum(sizes, 1)
        means = gram[:, 0, 1:] * share[:, None]
        within = gram[:, 1:, 1:] * share[:, None, None] - means[:, :, None] * means[:, None, :]
        return cls(sizes=sizes, means=means, within=within)


@dataclass(frozen=True, kw_only=True, eq=False)
class CovariateModel:
    """Prior of the moments of private predictors.

    Attributes
    ----------
    statistic : GramSums
    sizes : (n_cells,) array, or (1,) array
        Public sizes; else the number of rows of all cells together, or a bound on it.
    at_most : bool
        Whether `sizes` is a bound. A split of the rows into cells (and into rows beyond those at hand) is uniform.
    """

    statistic: GramSums
    sizes: Array
    at_most: bool = False

    @property
    def blocks(self) -> int:
        """Number of covariance matrices."""
        return len(self.statistic.cells) if self.statistic.apart else 1

    @property
    def parts(self) -> int:
        """Number of parts that rows are split into; 0 where sizes are public."""
        return 0 if self.statistic.sizes_known else len(self.statistic.cells) + self.at_most

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the unknown numbers, in the order in which they are passed on."""
        found: dict[str, tuple[int, ...]] = {"shares": (self.parts,)} if self.parts > 1 else {}
        return {**found, "covariates": (len(self.priors[0]),)}

    @cached_property
    def priors(self) -> tuple[Array, Array, Array]:
        """Kind of every number (0 a mean, 1 log of a standard deviation, 2 logit of a correlation), scale, Beta shape.

        The scale of a standard deviation is its median.
        In a ball squares of all predictors add up to 1 at most: scales are smaller.
        """
        d, n_cells = self.statistic.width, len(self.statistic.cells)
        allowed = [1 / np.sqrt(item.width) if item.ball else 1.0 for item in self.statistic.sources for _ in item.names]
        scale, shape = np.array(allowed), _vine(d)
        means = n_cells if self.statistic.constant else 0
        kinds = np.repeat([0, 1, 2], [means * d, self.blocks * d, self.blocks * len(shape)])
        ones = np.ones(self.blocks * len(shape))
        scales = np.concatenate([np.tile(MEAN * scale, means), np.tile(MEDIAN * scale, self.blocks), ones])
        shapes = np.concatenate([np.ones((means + self.blocks) * d), np.tile(shape, self.blocks)])
        return kinds, scales, shapes

    def latents(self, name: str, coordinates: Coordinates) -> dict[str, TensorVariable]:
        """Add the unknown numbers to the model of the context, as free variables called ``<name>_...``.

        Means, standard deviations and correlations are free in the given `coordinates`, and returned in these.
        """
        found = {}
        if "shares" in self.shapes:
            found["shares"] = pm.Dirichlet(f"{name}_shares", np.ones(self.parts))
        centre, root = (held(item) for item in coordinates)
        free = pm.CustomDist(
            f"{name}_covariates",
            centre,
            root,
            logp=self.log_prior,
            random=self._draw,
            signature="(p),(p,p)->(p)",
            support_point=lambda rv, size, *_: pt.zeros(self.shapes["covariates"]),
            shape=self.shapes["covariates"],
        )
        return {**found, "covariates": free}

    def log_prior(self, z: TensorVariable, centre: TensorVariable, root: TensorVariable) -> TensorVariable:
        """Log density of the numbers in given coordinates, up to a constant.

        Means are normal, deviations log-normal, and correlations of a Beta distribution.
        """
        return CovariatePrior().log_density(z, centre, root, *map(held, self.priors))

    def moments(self, latents: Mapping[str, Any], ops: Any = pt) -> Moments:
        """Return the moments that the unknown numbers stand for: tensors, or with ``ops=numpy`` arrays.

        Arrays of numbers may have leading axes; what is returned has them too.
        """
        d, n_cells = self.statistic.width, len(self.statistic.cells)
        sizes = np.asarray(self.sizes, dtype=float) if ops is np else held(self.sizes)
        if "shares" in latents:
            sizes = sizes[0] * latents["shares"][:n_cells]
        numbers, (kinds, _, _) = latents["covariates"], self.priors
        starts = [int(np.searchsorted(kinds, kind)) for kind in range(4)]
        mean, deviation, partial = (numbers[..., a:b] for a, b in pairwise(starts))
        lead = numbers.shape[:-1] if ops is np else ()
        means = mean.reshape((*lead, n_cells, d)) if self.statistic.constant else ops.zeros((*lead, n_cells, d))
        tangents = ops.tanh(0.5 * partial).reshape((*lead, self.blocks, d * (d - 1) // 2))
        root = ops.exp(deviation).reshape((*lead, self.blocks, d, 1)) * correlation_root(tangents, d, ops)
        return Moments(sizes=sizes, means=means, within=product(root, root.mT))

    def expected(self, moments: Moments, ops: Any = pt) -> Any:
        """Return sums of sizes, of t by cells, and of t_i t_j by blocks: those of them that are released."""
        n, means = moments.sizes, moments.means
        lead = means.shape[:-2] if ops is np else ()
        products = n[:, None, None] * (moments.within + means[..., :, None] * means[..., None, :])
        if not self.statistic.apart:
            products = products.sum(axis=-3, keepdims=True)
        rows, columns = np.triu_indices(self.statistic.width)
        parts = [] if self.statistic.sizes_known else [np.broadcast_to(n, (*lead, len(n))) if ops is np else n]
        if self.statistic.constant:
            parts.append((n[:, None] * means).reshape((*lead, -1)))
        return ops.concatenate([*parts, products[..., rows, columns].reshape((*lead, -1))], axis=-1)

    def coordinates(self, value: Array, sd: float) -> Coordinates:
        """Return coordinates for `latents`, from released sums as in `expected` and the standard deviation of noise."""
        kinds, scales, _ = self.priors
        shares = {}
        if "shares" in self.shapes:
            seen = np.maximum(value[: len(self.statistic.cells)], 1.0) / float(self.sizes[0])
            shares["shares"] = seen

        def expected(numbers: Array) -> Array:
            return np.asarray(self.expected(self.moments({**shares, "covariates": numbers}, np), np))

        start = np.where(kinds == 1, np.log(scales), 0.0)
        return coordinates_of(start, expected, value, np.full(len(value), max(sd, 1e-3)), self._prior)

    def _prior(self, numbers: Array) -> tuple[Array, Array, Array]:
        """Minus the log density of every number, with two derivatives."""
        kinds, scales, shapes = self.priors
        mean, deviation, partial = (kinds == kind for kind in range(3))
        away = (numbers - np.log(scales)) / SPREAD
        share = 0.5 * (1 + np.tanh(0.5 * numbers))
        loss = [
            0.5 * (numbers / scales) ** 2,
            0.5 * away**2,
            shapes * 2 * np.logaddexp(numbers / 2, -numbers / 2),
        ]
        first = [numbers / scales**2, away / SPREAD, shapes * (2 * share - 1)]
        second = [1 / scales**2, np.full(len(kinds), SPREAD**-2), 2 * shapes * share * (1 - share)]
        pick = [mean, deviation, partial]
        return np.select(pick, loss), np.select(pick, first), np.select(pick, second)

    def _draw(self, centre: Array, root: Array, *, rng: np.random.Generator, size: Any = None) -> Array:
        """Draw from the prior, in given coordinates."""
        kinds, scales, shapes = self.priors
        batch = np.shape(centre)[:-1] if size is None else tuple(np.atleast_1d(size))
        normal = rng.normal(size=(*batch, len(kinds)))
        share = rng.beta(shapes, shapes, size=normal.shape)
        deviation = np.log(scales) + SPREAD * normal
        drawn = np.select([kinds == 0, kinds == 1], [normal * scales, deviation], np.log(share / (1 - share)))
        return np.linalg.solve(root, (drawn - centre)[..., None])[..., 0]


def product(left: Any, right: Any) -> Any:
    """Matrix product of small matrices; of tensors written out: each call of BLAS takes a second or two to compile."""
    if isinstance(left, np.ndarray):
        return left @ right
    return (left[..., :, :, None] * right[..., None, :, :]).sum(axis=-2)


def correlation_root(partial: Any, d: int, ops: Any = pt) -> Any:
    """Cholesky factors of correlation matrices, (..., blocks, d, d), from partial correlations by rows.

    Entry j of row i is ``r_ij prod_{k<j} sqrt(1 - r_ik^2)``; the diagonal is what is left of the row's length.
    """
    row, column = np.tril_indices(d, -1)
    place = np.zeros((len(row), d * d))
    place[np.arange(len(row)), row * d + column] = 1.0
    r = product(partial, place).reshape((*partial.shape[:-1], d, d))
    before = np.triu(np.ones((d, d)), 1)
    return ops.exp(product(0.5 * ops.log(1 + TINY - r**2), before)) * (r + np.eye(d))


def _vine(d: int) -> Array:
    """Beta shapes of partial correlations, by rows of the lower triangle (Lewandowski et al. 2009, section 2.4)."""
    _, column = np.tril_indices(d, -1)
    return CONCENTRATION + (d - column - 2) / 2


__all__ = ["Coordinates", "CovariateModel", "Moments", "coordinates_of", "correlation_root"]
