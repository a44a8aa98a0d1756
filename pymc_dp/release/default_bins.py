"""How many bins a histogram has where nobody stated any: known once its noise is."""

from __future__ import annotations

from dataclasses import replace

from pymc_dp.families.histogram import DEFAULT_BINS, Bins, Histogram, bins_for
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import TablePlan

MOST_COUNTS = 2000
"""Of one table of default bins: each is evaluated at every step of a sampler."""


def with_default_bins(table: TablePlan, statistics: Statistics) -> TablePlan:
    """Return a table whose values are counted in default bins with as many of these as its noise allows.

    Noise and sensitivity are those of any number of bins. Depends on what is public of the table, and on the budget.
    """
    asked = statistics.histogram(table.name) or Histogram()
    if not isinstance(table.statistic, Bins) or asked.edges is not None:
        return table
    (block,) = table.blocks
    count = bins_for(table.rows_per_cell, block.noise.deviation(block.scale) * block.steps[0])
    bins = asked.bins(
        table.observed, table.observed.title, min(count, max(MOST_COUNTS // table.cells.count, DEFAULT_BINS))
    )
    if not isinstance(bins, Bins) or bins.n_levels == table.statistic.n_levels:
        return table
    return with_bins(table, bins)


def with_bins(table: TablePlan, bins: Bins) -> TablePlan:
    """Return a table of counts in bins with other bins; noise and sensitivity do not depend on how many there are."""
    (block,) = table.blocks
    labels = tuple(f"{table.labels[0].partition(' of ')[0]} of {label}" for label in bins.labels)
    columns, steps = tuple(range(bins.n_levels)), block.steps[:1] * bins.n_levels
    return replace(table, statistic=bins, labels=labels, blocks=(replace(block, columns=columns, steps=steps),))


__all__ = ["with_bins", "with_default_bins"]
