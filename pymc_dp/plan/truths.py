"""What is simulated once for all budgets: parameters from the prior, and exact sums of rows given them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.families.histogram import Bins, labels_of
from pymc_dp.families.statistic import ExposedCounts, LevelCounts
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.release.default_bins import with_bins
from pymc_dp.release.tables import TablePlan
from pymc_dp.simulation.prior import draw_prior, draws_at, not_drawn
from pymc_dp.transforms.bins import table_parameters
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.prior_model import prior_model_with
from pymc_dp.transforms.simulated_release import tables_in_order, with_noise

PRIOR_DRAWS = 1000
NO_NOISE = 1e-9
"""Scale of the noise of sizes that are known: draws of such noise are 0."""
Key = tuple[str, bool]
"""Name of a table, and whether it is a histogram: some methods may release counts in bins, and others sums."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Truths:
    """Draws from the prior of a model, of which the first `repeats` are the truths of a simulation.

    Attributes
    ----------
    points : (n_draws, n_elements) array
        In terms of the value variables, raveled.
    shapes : list of tuple of int
        Of the value variables.
    values : mapping of str to (repeats, *shape) array
        Of the variables asked for.
    tables : mapping of Key to TablePlan
        As which exact sums are drawn. How many bins a histogram has may depend on the budget: its counts are drawn in
        bins between the edges of all budgets, so that the rows are the same ones for each.
    parameters : mapping of Key to list of (repeats, n_cells or 1, ...) arrays
        Parameters of each likelihood in each cell, or probabilities of bins.
    """

    points: Array
    shapes: list[tuple[int, ...]]
    values: Mapping[str, Array]
    tables: Mapping[Key, TablePlan]
    parameters: Mapping[Key, list[Array]]
    repeats: int


def row_count(inspection: Inspection, n_rows: int | None) -> tuple[int, str]:
    """Return how many rows to simulate, and words for it: as many as asked for, else as there are or may be."""
    bound = inspection.domain.most_rows
    count = inspection.most_rows if n_rows is None else _validate.many("n_rows", n_rows)
    if bound is not None and count > bound:
        each = f" with max_rows={inspection.domain.rows_of_one}" if inspection.domain.unit is not None else ""
        most = f"n_max={inspection.domain.n_max}{each}"
        raise ArgumentError(f"n_rows={count} is above {most}, the public bound. Give a larger n_max.")
    return count, f"{count} rows" if bound is None else f"{count} rows of at most {bound}"


def key_of(table: TablePlan) -> Key:
    """Return what the sums of a table are drawn by."""
    return table.name, isinstance(table.statistic, Bins)


def _finest(tables: Iterable[TablePlan]) -> dict[Key, TablePlan]:
    """Return one table of each key, with the edges of all."""
    found: dict[Key, TablePlan] = {}
    for table in tables:
        known = found.setdefault(key_of(table), table)
        if isinstance(table.statistic, Bins) and isinstance(known.statistic, Bins):
            edges = tuple(sorted({*known.statistic.edges, *table.statistic.edges}))
            found[key_of(table)] = with_bins(known, Bins(labels=labels_of(edges, whole=False), edges=edges))
    return found


def draw_truths(
    inspection: Inspection,
    tables: Iterable[TablePlan],
    names: Sequence[str],
    repeats: int,
    rng: np.random.Generator,
    given: Mapping[str, Array] | None = None,
) -> Truths:
    """Draw from the prior of a model without its rows, and take the first draws as truths, or the `given` values.

    Parameters
    ----------
    inspection : Inspection
    tables : iterable of TablePlan
        Those of every budget and method that is simulated.
    names : sequence of str
        Variables to look at.
    repeats : int
    rng : numpy.random.Generator
    given : mapping of str to (repeats, ...) array, optional
        Values of the free variables.

    Raises
    ------
    UnsupportedModelError
        Where the prior cannot be drawn from.
    """
    finest = _finest(tables)
    per_cell = {key: table_parameters(table) for key, table in finest.items()}
    prior_model, of_cells = prior_model_with(
        inspection, [parameter for parameters in per_cell.values() for parameter in parameters]
    )
    if problems := not_drawn(prior_model):
        raise UnsupportedModelError(problems)
    graphs = [*(prior_model[name] for name in names), *of_cells]
    drawn = draw_prior(prior_model, rng, max(repeats, PRIOR_DRAWS), graphs)
    at = drawn if given is None else draws_at(prior_model, given, graphs)
    repeats = min(repeats, len(at.positions))
    found = iter(one[:repeats] for one in at.beside)
    return Truths(
        points=drawn.positions,
        shapes=drawn.shapes,
        values={name: next(found) for name in names},
        tables=finest,
        parameters={key: [next(found) for _ in part] for key, part in per_cell.items()},
        repeats=repeats,
    )


def exact_sums(
    tables: Sequence[TablePlan],
    truths: Truths,
    total: int | None,
    seed: int,
    known: Mapping[str, Array] | None = None,
) -> dict[str, tuple[Array, Array]]:
    """Draw the exact statistics of every table given each truth, and the sizes of its cells.

    Parameters
    ----------
    tables : sequence of TablePlan
    truths : Truths
    total : int or None
        Number of rows where that is private (add_remove), else None.
    seed : int
        The same for tables at every budget, so that these are drawn alike.
    known : mapping of str to (n_cells,) array, optional
        Sizes of the cells of each table. Default: those that are public, and a uniform split into others.

    Returns
    -------
    mapping of str to ((repeats, n_cells, n_columns), (repeats, n_cells)) arrays
        In units of the data, laid out as the release.
    """
    result: dict[str, tuple[Array, Array]] = {}
    split: dict[tuple[Any, ...], Array] = {}
    for table in tables_in_order(tables):
        rng = np.random.default_rng([seed, tables.index(table)])
        sizes = _sizes_of_levels(table, tables, result)
        if sizes is None and known is not None:
            sizes = np.broadcast_to(known[table.name], (truths.repeats, table.cells.count))
        if sizes is None:
            key = table.observed.totals, *((id(column.leaf), len(column.levels)) for column in table.cells.columns)
            sizes = split.setdefault(key, _split(table, truths.repeats, total, rng))
        result[table.name] = _sums(table, truths, sizes, rng), sizes
    return result


def noised(tables: Sequence[TablePlan], sums: Mapping[str, tuple[Array, Array]], seed: int) -> dict[str, Array]:
    """Add the noise of a budget to exact statistics; the same seed makes noise that differs in its scale alone."""

    def generators(place: int) -> Callable[[int], np.random.Generator]:
        return lambda column: np.random.default_rng([seed, place, column])

    return {table.name: with_noise(table, sums[table.name][0], generators(place)) for place, table in enumerate(tables)}


def _sizes_of_levels(
    table: TablePlan, tables: Sequence[TablePlan], known: Mapping[str, tuple[Array, Array]]
) -> Array | None:
    """Sizes of groups of a column that is observed too, as drawn: the counts of its levels (naive Bayes)."""
    if table.sizes_known or len(table.cells.columns) != 1:
        return None
    (column,) = table.cells.columns
    for other in tables:
        if other.observed.leaf is not column.leaf or other.name not in known:
            continue
        counts = all_counts(other, *known[other.name])
        if counts is not None and counts.shape[-1] == len(column.levels):
            return counts.sum(axis=1)
    return None


def all_counts(table: TablePlan, sums: Array, sizes: Array) -> Array | None:
    """Return the counts of every level, also of the one that a release leaves out: (repeats, n_cells, n_levels)."""
    if not isinstance(table.statistic, LevelCounts):
        return None
    if sums.shape[-1] == table.statistic.n_levels:
        return sums
    return np.concatenate([sizes[..., None] - sums.sum(axis=-1, keepdims=True), sums], axis=-1)


def _split(table: TablePlan, repeats: int, total: int | None, rng: np.random.Generator) -> Array:
    """Draw sizes of cells as a uniform split of the rows into cells.

    Sizes that are sums of exposures are those of rows with exposures in the middle of their bounds, on the average.
    """
    cells, statistic = table.cells, table.statistic
    exposed = isinstance(statistic, ExposedCounts)
    if cells.sizes is not None:
        sizes = np.broadcast_to(cells.sizes, (repeats, cells.count))
        return sizes if exposed else sizes.astype(np.int64)
    result = np.zeros((repeats, cells.count), dtype=np.float64 if exposed else np.int64)
    for members, count in _shared(table, total):
        parts = rng.dirichlet(np.ones(len(members)), size=repeats)
        if isinstance(statistic, ExposedCounts):
            most = count if total is None else total * statistic.exposure.high
            result[:, members] = parts * (most * statistic.middle / statistic.exposure.high)
        else:
            result[:, members] = rng.multinomial(int(count), parts)
    return result


def _shared(table: TablePlan, total: int | None) -> list[tuple[Array, float]]:
    """Cells that share a public number of rows, or bound on exposures, and that number."""
    cells = table.cells
    if total is not None:
        return [(np.arange(cells.count), total)]
    public = [level for column, level in zip(cells.columns, cells.levels, strict=True) if column.public]
    keys = np.zeros(cells.count) if not public else np.unique(np.stack(public), axis=1, return_inverse=True)[1].ravel()
    return [(np.flatnonzero(keys == key), float(cells.groups[keys == key][0])) for key in np.unique(keys)]


def _sums(table: TablePlan, truths: Truths, sizes: Array, rng: np.random.Generator) -> Array:
    drawn = truths.tables[key_of(table)]
    density = ReleaseDensity.of(drawn, noise_aware=True)
    known = replace(density.sizes, seen=sizes, noise=NO_NOISE, bound=np.maximum(density.sizes.bound, sizes.max(axis=0)))
    exact = replace(density, scales=np.zeros(len(drawn.labels)), sizes=known)
    sums = exact.random(*truths.parameters[key_of(table)], rng=rng)
    if isinstance(table.statistic, Bins) and isinstance(drawn.statistic, Bins):
        return coarser(sums, drawn.statistic, table.statistic)
    return sums


def coarser(counts: Array, finer: Bins, bins: Bins) -> Array:
    """Return counts in bins of counts in finer ones, which have all of their edges; the last axis counts bins."""
    first = np.searchsorted(finer.edges, bins.edges, side="left") + 1  # of the bins above each edge
    return np.add.reduceat(counts, np.concatenate([[0], first]), axis=-1)


__all__ = ["Truths", "all_counts", "coarser", "draw_truths", "exact_sums", "noised", "row_count"]
