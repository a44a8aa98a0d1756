"""Synthetic rows: drawn from the likelihood at a posterior draw, in cells as full as the release says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
import xarray as xr
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp._random import public_generator
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.interpreted import plain_draw, plain_function
from pymc_dp.inspection.of_context import context_model
from pymc_dp.inspection.rows import Array, reached, rebuild
from pymc_dp.release.tables import TablePlan
from pymc_dp.released import Release, planned
from pymc_dp.simulation.networks import draw_levels
from pymc_dp.simulation.rows import sized
from pymc_dp.transforms.likelihood import per_cell_parameters
from pymc_dp.transforms.network import network_parameters
from pymc_dp.transforms.prior_model import prior_model_with
from pymc_dp.transforms.simulated_release import tables_in_order

ROW = "row"


def synthesize(
    idata: xr.DataTree, model: Model | None = None, n: int | None = None, *, random_seed: Any = None
) -> xr.Dataset:
    """Draw a table of synthetic rows from the posterior predictive distribution of one row.

    Parameters
    ----------
    idata : xarray.DataTree
        A private trace with released statistics and a posterior, of ``dp.sample`` or ``dp.scrub``.
    model : pymc.Model, optional
        The model of its rows, which may be dummies: none is read. Defaults to the model of the context.
    n : int, optional
        Number of rows. Default: the public number of rows, or the released one where that is private.
    random_seed : int, Generator or None
        Seeds the draw, which is post-processing.

    Returns
    -------
    xarray.Dataset
        One variable per observed variable and per column that likelihoods are indexed by, along the dim ``row``; rows
        that are vectors have a second one. All
        rows come from one posterior draw, chosen at random: several tables (several seeds) show how uncertain the
        parameters are. ``.to_dataframe()`` makes a pandas table of it.

    Raises
    ------
    TraceError
        If the trace holds no released statistics.
    UnsupportedModelError
        Where the model is not the one of the release.
    ArgumentError
        For arguments of another kind.

    Notes
    -----
    **Guarantee.** That of the trace: computed from the release and the posterior alone (post-processing). Relations
    between columns that the model leaves out are not in the rows.

    Examples
    --------
    >>> import pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.Bernoulli("y", p, observed=np.array([0, 1, 1, 0, 1]))
    >>> private = dp.privatize(model, epsilon=1.0, ledger=dp.Ledger(1.0))
    >>> with private:
    ...     raw = pm.sample_prior_predictive(1, var_names=["p"], random_seed=1)
    >>> raw["posterior"] = raw["prior"].copy()  # in earnest, a trace of pm.sample
    >>> rows = synthesize(dp.scrub(raw, private), model, 8, random_seed=1)
    >>> rows["y"].sizes["row"], rows.attrs["epsilon"]
    (8, 1.0)
    """
    _validate.instance("idata", idata, xr.DataTree, "Pass a trace of dp.sample or dp.scrub.")
    release = Release.of(idata)
    if release.of_published or release.record.sources:
        raise ArgumentError(
            "idata was made of tables that others published, or of several releases: there is no one table of rows to "
            "make up. Synthesize from a trace of one release of rows; pm.sample_posterior_predictive draws new tables."
        )
    rng = public_generator(random_seed)
    if release.of_network:
        rows = _network_rows(idata, context_model(model), release, n, rng)
        return _as_table({name: (name, values) for name, values in rows.items()}, release)
    inspection, tables = planned(context_model(model), release)
    _require_drawn(inspection, idata)
    if own := [table.name for table in tables if table.observed.totals is not None]:
        raise ArgumentError(
            f"{', '.join(own)} has a number of trials of its own, or an exposure, in every row, of whose distribution "
            "the model says nothing, so that no rows can be made up. pm.sample_posterior_predictive draws counts of "
            "given rows."
        )
    sizes = {table.name: released_sizes(table, release.tables[table.name]) for table in tables}
    count = _count(n, tables, sizes)
    parameters = _parameters(inspection, tables, _one_draw(idata, rng))
    held: dict[Variable, Array] = {}
    names: dict[Variable, str] = {}
    for table in tables_in_order(tables):
        cell = _cells(table, sizes[table.name], held, count, rng)
        for column, level in zip(table.cells.columns, table.cells.levels, strict=True):
            held.setdefault(column.leaf, level[cell])
            names.setdefault(column.leaf, column.name)
        held[table.observed.leaf] = _values(table, parameters[table.name], cell, rng, inspection.hidden)
        names[table.observed.leaf] = table.name
    return _as_table({leaf: (names[leaf], values) for leaf, values in held.items()}, release)


def _as_table(columns: Mapping[Any, tuple[str, Array]], release: Release) -> xr.Dataset:
    count = len(next(iter(columns.values()))[1])
    return xr.Dataset(
        {name: (_dims(name, values), values) for name, values in columns.values()},
        coords={ROW: np.arange(count)},
        attrs={"epsilon": release.epsilon, "delta": release.delta, "synthetic": "one posterior draw"},
    )


def _require_drawn(inspection: Inspection, idata: xr.DataTree) -> None:
    missing = [str(rv.name) for rv in inspection.model.free_RVs if rv.name not in idata["posterior"]]
    if missing:
        raise ArgumentError(f"the posterior has no {', '.join(missing)}: give the model that was sampled.")


def _network_rows(
    idata: xr.DataTree, model: Model, release: Release, n: int | None, rng: np.random.Generator
) -> dict[str, Array]:
    """Draw rows of a network at one posterior draw, node after node."""
    inspection, (table,) = planned(model, release)
    _require_drawn(inspection, idata)
    seen = int(table.cells.groups[0]) if table.sizes_known else max(round(float(release.tables[table.name][0, 0])), 1)
    count = seen if n is None else _validate.integer("n", n, 1, 2**32)
    (parameters,) = _at_draw(inspection, [network_parameters(table)], _one_draw(idata, rng))
    return draw_levels(rng, table.sums.network, parameters, count)


def _dims(name: str, values: Array) -> tuple[str, ...]:
    """Dims of a column: where a row is a vector, its entries have one of their own."""
    return (ROW,) if values.ndim == 1 else (ROW, f"{name}_entry")


def released_sizes(table: TablePlan, values: Array) -> Array:
    """Return the rows per cell, (n_cells,): public, or as released and not negative."""
    if table.cells.sizes is not None:
        return np.asarray(table.cells.sizes, dtype=float)
    statistic = table.statistic
    seen = values.sum(axis=1) / statistic.per_row if isinstance(statistic, LevelCounts) else values[:, 0]
    return np.maximum(seen, 0.0)


def _count(n: int | None, tables: tuple[TablePlan, ...], sizes: Mapping[str, Array]) -> int:
    if n is not None:
        return _validate.integer("n", n, 1, 2**32)
    known = [table for table in tables if table.cells.sizes is not None]
    return max(round(float(sizes[(known or list(tables))[0].name].sum())), 1)


def _one_draw(idata: xr.DataTree, rng: np.random.Generator) -> xr.Dataset:
    posterior = idata["posterior"].to_dataset()
    chosen = {dim: int(rng.integers(posterior.sizes[dim])) for dim in ("chain", "draw")}
    return posterior.isel(chosen)


def _parameters(inspection: Inspection, tables: tuple[TablePlan, ...], draw: xr.Dataset) -> dict[str, list[Array]]:
    """Parameters of each cell at a posterior draw."""
    if unknown := [table for table in tables if table.observed.cumulative is not None or table.family is None]:
        raise UnsupportedModelError([_unsupported(table) for table in unknown])
    per_cell = [per_cell_parameters(table.observed, table.cells) for table in tables]
    values = iter(_at_draw(inspection, [parameter for parameters in per_cell for parameter in parameters], draw))
    return {table.name: [next(values) for _ in parameters] for table, parameters in zip(tables, per_cell, strict=True)}


def _at_draw(inspection: Inspection, parameters: Sequence[Variable], draw: xr.Dataset) -> list[Array]:
    """Values of graphs over the free variables at a posterior draw."""
    prior_model, moved = prior_model_with(inspection, parameters)
    at = {rv: pt.constant(draw[rv.name].to_numpy().astype(rv.type.dtype)) for rv in prior_model.free_RVs}
    graphs: list[Variable] = rebuild(moved, at)[0]
    return list(plain_function([], graphs)())


def _unsupported(table: TablePlan) -> Problem:
    what = f"rows cannot be drawn from a {table.observed.title} likelihood, which has no parameters of its own"
    if table.family is None:
        what = "rows of a regression cannot be drawn: only means and covariances of its predictors are known"
    return Problem(
        where=table.name,
        what=what,
        remedy="Draw new values by pm.sample_posterior_predictive on a model of new rows, from the same trace.",
    )


def _cells(
    table: TablePlan, sizes: Array, held: Mapping[Variable, Array], count: int, rng: np.random.Generator
) -> Array:
    """Choose the cell of every row, among those with the levels that its columns have already."""
    cells = table.cells
    known = [
        (level, held[column.leaf])
        for column, level in zip(cells.columns, cells.levels, strict=True)
        if column.leaf in held
    ]
    fits = np.ones((count, cells.count), dtype=bool)
    for level, values in known:
        fits &= values[:, None] == level[None, :]
    weights = np.where(fits, np.maximum(sizes, 1e-12), 0.0)
    totals = weights.sum(axis=1, keepdims=True)
    weights = np.where(totals > 0, weights, 1.0)
    ends = weights.cumsum(axis=1)
    return (rng.random((count, 1)) * ends[:, -1:] < ends).argmax(axis=1)


def _values(
    table: TablePlan, parameters: list[Array], cell: Array, rng: np.random.Generator, hidden: frozenset[Variable]
) -> Array:
    """Draw every row from its likelihood."""
    rows = [np.broadcast_to(item, (table.cells.count, *item.shape[1:]))[cell] for item in parameters]
    known = dict(zip(table.observed.parameters, map(pt.as_tensor, rows), strict=True))
    graph = sized(table.observed.variable, known, (len(cell),))
    if hidden & set(reached([graph])):
        raise PrivacyError("Private data would enter synthetic rows; this is an error of pymc_dp.")
    return np.asarray(plain_draw(graph, rng))


__all__ = ["released_sizes", "synthesize"]
