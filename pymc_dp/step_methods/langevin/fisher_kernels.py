"""Compiled loop of Fisher scoring: clipped gradients, their products, and steps scaled by what both have released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import overload

from pymc_dp.step_methods.langevin.dynamics import LEAST_SPARE
from pymc_dp.step_methods.langevin.kernels import (
    FLAGS,
    _weigh,
    batch_part,
    squared,
)


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


def _all_written(blocks: Any, weights: Any, starts: Any, written: Any) -> None:
    raise NotImplementedError


@overload(_all_written, strict=False)
def _all_written_of(blocks: Any, weights: Any, starts: Any, written: Any) -> Callable[..., Any]:
    if len(blocks) == 0:
        return lambda blocks, weights, starts, written: None

    def write(blocks, weights, starts, written):  # type: ignore[no-untyped-def]
        _write_rows(blocks[0], blocks[1], weights, starts[0], written)
        _all_written(blocks[2:], weights, starts[1:], written)

    return write


@numba.njit(error_model="numpy")
def _write_rows(factors: Any, vectors: Any, weights: Any, start: int, written: Any) -> None:
    """Write weight times factor times vector of every row; nothing where a row adds nothing to a plain sum."""
    for i in range(weights.size):
        weight = weights[i]
        factor = weight * factors[i]
        if weight == 0.0 or (weight < 1.0 and abs(factor) < 1e-290):
            continue
        for j in range(vectors.shape[1]):
            written[i, start + j] = factor * vectors[i, j]


@numba.njit(error_model="numpy")
def add_products(
    gradient: Any,
    position: Any,
    rows: Any,
    places: Any,
    starts: Any,
    clip_norm: float,
    buffers: Any,
    squares: Any,
    total: Any,
    products: Any,
) -> None:
    """Add the clipped gradients g of the rows at `places` to `total`, and the lower triangles of g gᵀ to `products`."""
    chunk = squares.size
    written = np.empty((min(chunk, places.size), position.size))
    for begin in range(0, places.size, chunk):
        part = places[begin : begin + chunk]
        weights = squares[: part.size]
        blocks = squared(gradient, position, rows, part, buffers, weights)
        _weigh(weights, clip_norm)
        clipped = written[: part.size]
        clipped[:] = 0.0
        _all_written(blocks, weights, starts, clipped)
        _add_both(clipped, total, products)


@numba.njit(fastmath=FLAGS, error_model="numpy")
def _add_both(clipped: Any, total: Any, products: Any) -> None:
    """Add rows to `total`, and their products to the lower triangle of `products`."""
    for i in range(clipped.shape[0]):
        row = clipped[i]
        for j in range(row.size):
            value = row[j]
            total[j] += value
            for k in range(j + 1):
                products[j, k] += value * row[k]


@numba.njit(error_model="numpy")
def release(total: Any, products: Any, batch_size: float, scoring: Any, rng: Any, sum_of: Any) -> None:
    """Add the noised information per row of a batch to a sum; the products are the lower triangle of a matrix.

    The noise has the same deviation in every direction of the space of symmetric matrices. Its Euclidean norm is
    Frobenius', where an entry off the diagonal counts twice: such an entry gets 1 / √2 of the noise of one on it.
    """
    off = scoring.noise * np.sqrt(0.5)
    for i in range(total.size):
        for j in range(i + 1):
            if scoring.papers:
                seen = (products[i, j] - total[i] * total[j] / batch_size) / (batch_size - 1)
            else:
                seen = products[i, j] / batch_size
            seen += (scoring.noise if i == j else off) * rng.standard_normal()
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


@numba.njit(error_model="numpy")
def scoring_walk(
    position: Any,
    sum_of: Any,
    axes: Any,
    bends: Any,
    sizes: Any,
    rng: Any,
    plan: Any,
    gradient: Any,
    prior: Any,
    starts: Any,
    table: Any,
) -> None:
    """Make a step of every size and add up what they release of the information; ``plan.constants`` is a `Scoring`."""
    size = position.size
    total, slope, products = np.empty(size), np.empty(size), np.empty((size, size))
    for step in range(sizes.size):
        total[:] = 0.0
        products[:] = 0.0
        last, more = -1, True
        while more:
            count, more = batch_part(rng, plan, table, last)
            last = table.places[-1]
            add_products(
                gradient,
                position,
                table.rows,
                table.places[:count],
                starts,
                plan.clip_norm,
                table.buffers,
                table.squares,
                total,
                products,
            )
        release(total, products, plan.constants.population / plan.scale, plan.constants, rng, sum_of)
        (of_prior,) = prior(position)
        for j in range(size):
            slope[j] = of_prior[j] + plan.scale * total[j] + plan.sigma * rng.standard_normal()
        follow(position, axes, bends, sizes[step], plan.sigma, plan.constants, slope, rng)


__all__ = ["Scoring", "add_products", "follow", "release", "scoring_walk"]
