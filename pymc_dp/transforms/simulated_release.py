"""Releases made up from the plan alone: a private model is tried on them before anything is charged."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pymc_dp.families.cells import Cells
from pymc_dp.families.characters import NetworkSums
from pymc_dp.families.gram import GramSums, Source
from pymc_dp.families.statistic import ExposedCounts, LevelCounts
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.noise import NOISES
from pymc_dp.release.tables import ReleasePlan, TablePlan
from pymc_dp.rows.sums import sum_products
from pymc_dp.simulation.rows import in_order
from pymc_dp.transforms.network import NetworkDensity

ROWS = 64
"""Made-up rows of a cell, whose mean statistic stands for that of all its rows."""


def simulated_release(plan: ReleasePlan, rng: np.random.Generator) -> dict[str, Array]:
    """Return a table for every planned one, from made-up rows within the public bounds, with noise of its scale.

    Parameters
    ----------
    plan : ReleasePlan
    rng : numpy.random.Generator

    Returns
    -------
    mapping of str to arrays
        In units of the data, as `draw_release` returns them. No private value is read.
    """
    return {
        table.name: _network(table, rng)
        if isinstance(table.statistic, NetworkSums)
        else with_noise(table, _sums(table, rng), lambda _: rng)
        for table in plan.tables
    }


def with_noise(table: TablePlan, sums: Array, rng: Callable[[int], np.random.Generator]) -> Array:
    """Add noise of the planned scales to statistics, (..., n_columns); none where these are 0, in tests.

    Parameters
    ----------
    table : TablePlan
    sums : array
        In units of the data.
    rng : callable
        From a column to what draws its noise.
    """
    released, scales = sums.astype(np.float64), table.scales
    for block in table.blocks:
        for column, step in zip(block.columns, block.steps, strict=True):
            if scales[column] > 0:
                noise = NOISES[table.kind].simulated(rng(column), block.scale, released.shape[:-1])
                released[..., column] += noise * step
    return released


def tables_in_order(tables: Sequence[TablePlan]) -> list[TablePlan]:
    """Order tables as their rows are drawn: those that are indexed by what another one observes come after it."""

    def needs(table: TablePlan, others: Sequence[TablePlan]) -> bool:
        observed = {other.observed.leaf for other in others if other is not table}
        return any(column.leaf in observed for column in table.cells.columns)

    return in_order(tables, needs)[0]


def _sums(table: TablePlan, rng: np.random.Generator) -> Array:
    cells = table.cells
    if isinstance(table.statistic, GramSums):
        return _products(table.statistic, cells, rng)
    _, statistic = table.by_cells
    sizes = _sizes(cells, rng)
    if isinstance(statistic, LevelCounts):
        shares = rng.dirichlet(np.ones(statistic.n_levels), size=cells.count)
        counts = np.rint(shares * sizes[:, None] * statistic.per_row)
        return counts[:, -len(table.labels) :]
    means = np.array([statistic.simulated_mean(rng, ROWS) for _ in range(cells.count)])
    if isinstance(statistic, ExposedCounts):
        means = np.rint(sizes[:, None] * means)
        return means if table.sizes_known else np.concatenate([sizes[:, None], means], axis=1)
    sums = sizes[:, None] * (means - np.array(statistic.shifts))
    return sums if table.sizes_known else np.concatenate([sizes[:, None], sums], axis=1)


def _sizes(cells: Cells, rng: np.random.Generator) -> Array:
    """Sizes of cells: the public ones, or parts of a random split."""
    if cells.sizes is not None:
        return cells.sizes.astype(float)
    return np.rint(rng.beta(1, max(cells.n_private, 2) - 1, size=cells.count) * cells.groups)


def _products(statistic: GramSums, cells: Cells, rng: np.random.Generator) -> Array:
    """Sums of products of made-up rows, as many per row as there are rows; one row of the released table."""
    count = max(ROWS, 4 * (statistic.width + 1)) * len(statistic.cells)
    places = np.arange(count) % len(statistic.cells)
    predictors = [_column(source, count, rng) for source in statistic.sources]
    response = _column(statistic.response, count, rng)[:, 0]
    sums = sum_products(statistic, predictors, response, places if len(statistic.cells) > 1 else None)
    total = cells.sizes.sum() if cells.sizes is not None else cells.groups[0]
    return (sums * (statistic.step * float(total) / count))[None]


def _column(source: Source, count: int, rng: np.random.Generator) -> Array:
    scaled = rng.uniform(-1, 1, size=(count, source.width)) / (np.sqrt(source.width) if source.ball else 1.0)
    return np.ascontiguousarray(np.array(source.centres) + np.array(source.halves) * scaled)


def _network(table: TablePlan, rng: np.random.Generator) -> Array:
    density = NetworkDensity.of(table, noise_aware=False)
    network = density.network
    parts = [
        rng.dirichlet(np.ones(node.n_levels), size=network.n_cells(place)).ravel()
        for place, node in enumerate(network.nodes)
    ]
    return density.random(np.concatenate(parts), rng=rng)


__all__ = ["simulated_release", "tables_in_order", "with_noise"]
