"""Compiled loop of Fisher scoring: clipped gradients, their products, and steps scaled by what both have released."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from pymc_dp.step_methods.langevin.dynamics import LEAST_SPARE
from pymc_dp.step_methods.langevin.kernels import batch_part, squared
from pymc_dp.step_methods.row_functions.clipped_sums import SOME, weigh, write_held

AT_ONCE = 4
"""Rows whose products are added at once."""


class Scoring(NamedTuple):
    """Public numbers of a chain that learns the Fisher information.

    Attributes
    ----------
    noise : float
        Standard deviation of the noise on a diagonal entry of what a step releases of the information of a row.
    population : float
        Public number of rows N.
    weight : float
        Of N Î in G: 1, and what batches add to the noise of gradients.
    asked : float
        Over η the least variance of the noise on gradients.
    papers : bool
        Algorithm 4: covariances of batches, and a ridge of 4 asked / η.
    """

    noise: float
    population: float
    weight: float
    asked: float
    papers: bool


@numba.njit(error_model="numpy", inline="always")
def add_products(
    gradient: Any,
    position: Any,
    rows: Any,
    places: Any,
    starts: Any,
    clip: Any,
    buffers: Any,
    squares: Any,
    total: Any,
    products: Any,
) -> None:
    """Add the clipped gradients g of the rows at `places` to `total`, and the lower triangles of g gᵀ to `products`.

    Both are whole numbers: of units, and of units of products.
    """
    written = np.zeros((SOME, total.size))
    for begin in range(0, places.size, squares.size):
        chunk = min(squares.size, places.size - begin)
        weights = squares[:chunk]
        blocks = squared(gradient, position, rows, places, begin, chunk, begin + chunk, buffers, weights)
        weigh(weights, clip)
        for first in range(0, weights.size, SOME):
            count = write_held(blocks, weights, first, starts, clip, written)
            whole = -(-count // AT_ONCE) * AT_ONCE
            written[count:whole] = 0.0
            _add_both(written[:whole], clip.products, total, products)


@numba.njit(error_model="numpy")
def _add_both(part: Any, ratio: float, total: Any, products: Any) -> None:
    """Add rows to `total`, and their products, times a ratio and rounded, to the lower triangle of `products`.

    Of several rows at once, as sums of whole numbers are the same in any order; there is no rest.
    """
    for i in range(0, part.shape[0], AT_ONCE):
        a, b, c, d = part[i], part[i + 1], part[i + 2], part[i + 3]
        for j in range(total.size):
            total[j] += (a[j] + b[j]) + (c[j] + d[j])
            by_a, by_b, by_c, by_d = ratio * a[j], ratio * b[j], ratio * c[j], ratio * d[j]
            of_j = products[j]
            for k in range(j + 1):
                first, second = np.rint(by_a * a[k]) + np.rint(by_b * b[k]), np.rint(by_c * c[k]) + np.rint(by_d * d[k])
                of_j[k] += first + second


@numba.njit(error_model="numpy")
def release(total: Any, products: Any, batch_size: float, clip: Any, scoring: Any, rng: Any, sum_of: Any) -> None:
    """Add the noised information per row of a batch to a sum; the products are the lower triangle of a matrix.

    The noise has the same deviation in every direction of the space of symmetric matrices. Its Euclidean norm is
    Frobenius', where an entry off the diagonal counts twice: such an entry gets 1 / √2 of the noise of one on it.
    """
    unit = clip.unit * clip.unit / clip.products / batch_size
    on, off = scoring.noise / unit, scoring.noise * np.sqrt(0.5) / unit
    for i in range(total.size):
        for j in range(i + 1):
            seen = products[i, j]
            if scoring.papers:
                seen -= total[i] * total[j] * clip.products / batch_size
                seen *= batch_size / (batch_size - 1)
            seen = unit * (seen + (on if i == j else off) * rng.standard_normal())
            sum_of[i, j] += seen
            if i != j:
                sum_of[j, i] += seen


@numba.njit(error_model="numpy")
def follow(position: Any, axes: Any, bends: Any, eta: float, sigma: float, scoring: Any, slope: Any, rng: Any) -> None:
    """θ + 2 G⁻¹ (slope + injected noise), where G is `bends` along `axes` (columns), and a ridge along all."""
    size = position.size
    least = sigma * sigma
    wanted = max(least, scoring.asked / eta)
    if wanted > least * (1 + LEAST_SPARE):
        for j in range(size):
            slope[j] += np.sqrt(wanted - least) * rng.standard_normal()
    ridge = 4 * scoring.asked / eta if scoring.papers else wanted
    for k in range(size):
        along = 0.0
        for j in range(size):
            along += axes[j, k] * slope[j]
        along *= 2 / (bends[k] + ridge)
        for j in range(size):
            position[j] += axes[j, k] * along


@numba.njit(error_model="numpy", inline="always")
def scoring_walk(
    gradient: Any,
    prior: Any,
    position: Any,
    sum_of: Any,
    axes: Any,
    bends: Any,
    sizes: Any,
    rng: Any,
    plan: Any,
    starts: Any,
    table: Any,
) -> None:
    """Make a step of every size and add up what they release of the information; ``plan.constants`` is a `Scoring`."""
    size, unit = position.size, plan.scale * plan.clip.unit
    total, slope, products = np.empty(size), np.empty(size), np.empty((size, size))
    for step in range(sizes.size):
        total[:] = 0.0
        products[:] = 0.0
        table.places[-1], more = -1, True
        while more:
            count = batch_part(rng, plan, table)
            more = plan.poisson and count == table.places.size
            add_products(
                gradient,
                position,
                table.rows,
                table.places[:count],
                starts,
                plan.clip,
                table.buffers,
                table.squares,
                total,
                products,
            )
        release(total, products, plan.constants.population / plan.scale, plan.clip, plan.constants, rng, sum_of)
        (of_prior,) = prior(position)
        for j in range(size):
            slope[j] = of_prior[j] + unit * (total[j] + plan.sigma / unit * rng.standard_normal())
        follow(position, axes, bends, sizes[step], plan.sigma, plan.constants, slope, rng)


__all__ = ["Scoring", "add_products", "follow", "release", "scoring_walk"]
