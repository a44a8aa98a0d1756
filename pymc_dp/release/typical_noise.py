"""Noise of a table beside that of sampling, for typical rows: by formulas, without a look at a row."""

from __future__ import annotations

from math import sqrt

from pymc_dp.families.characters import NetworkSums
from pymc_dp.families.gram import GramSums
from pymc_dp.families.statistic import BoundedMoments, ExposedCounts, LevelCounts
from pymc_dp.release.tables import ReleaseLayout, TablePlan


def sampling_sd(table: TablePlan) -> float:
    """Standard deviation of the exact statistic if the data were spread evenly over levels, or over the bounds."""
    rows = table.rows_per_cell
    if isinstance(table.statistic, GramSums):
        return sqrt(rows) / 3  # a product of two even numbers in [-1, 1]
    _, statistic = table.by_cells
    if isinstance(statistic, ExposedCounts):
        return sqrt(rows * _mean_count(statistic))
    if isinstance(statistic, LevelCounts):
        share = 1 / statistic.n_levels
        return sqrt(rows * statistic.per_row * share * (1 - share))
    squares = isinstance(statistic, BoundedMoments) and statistic.powers[0] == 2
    return sqrt(rows) * statistic.scales[0] / sqrt(45 / 4 if squares else 3)


def even_epsilon(layout: ReleaseLayout, table: TablePlan) -> float:
    """Return the ε at which both are equal."""
    return noise_sd(layout, table, 1.0) / sampling_sd(table)


def noise_sd(layout: ReleaseLayout, table: TablePlan, epsilon: float) -> float:
    """Standard deviation of the noise on a statistic; of counts with that of exposures, at mean counts over them."""
    return _with_exposures(table, layout.laplace_sd(table, epsilon))


def noise_over_sampling(table: TablePlan) -> float:
    """Return the noise of a table that is planned over that of sampling; 0 where noise is left out.

    It is also 0 for a network, whose coefficients have many scales, and where all rows add the same.
    """
    if isinstance(table.statistic, NetworkSums) or not table.scales.any():
        return 0.0
    block = table.blocks[-1]
    noise = _with_exposures(table, block.noise.deviation(block.scale) * block.steps[0])
    sampling = sampling_sd(table)
    return noise / sampling if sampling else 0.0


def _with_exposures(table: TablePlan, own: float) -> float:
    """Add the noise of sums of exposures to that of counts over them."""
    statistic = table.statistic
    if not isinstance(statistic, ExposedCounts) or table.sizes_known:
        return own
    first, last = (block.sensitivity.l1 * block.steps[0] / block.weight for block in table.blocks)
    return own * sqrt(1 + (first / last * _mean_count(statistic) / statistic.middle) ** 2)


def _mean_count(statistic: ExposedCounts) -> float:
    """Return a count in the middle of its bounds."""
    return (statistic.counts.low + statistic.counts.high) / 2


__all__ = ["even_epsilon", "noise_over_sampling", "noise_sd", "sampling_sd"]
