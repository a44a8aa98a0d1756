"""Latents with one entry per row: drawn from their own row each, and released with the chain.

Given the released latents, rows sit in public cells; given the parameters, each latent sees one row. So all latents of
a scan are one update (parallel composition), and the updates of parameters cost what they cost under public columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final, override

import numpy as np
import pymc as pm
import pytensor
from pymc import Model
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.domain import Domain
from pymc_dp.draws.finite_choice import choose
from pymc_dp.errors import DomainError
from pymc_dp.families.cells import Cells
from pymc_dp.inspection.findings import Inspected, Inspection
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import shapes_of
from pymc_dp.inspection.rows import Array, reached, rebuild
from pymc_dp.proofs.closed_form_ranges import RowRange, total_range
from pymc_dp.proofs.parameter_boxes import Box
from pymc_dp.rows.sums import row_cells
from pymc_dp.step_methods.gibbs.compiled import Functions
from pymc_dp.step_methods.gibbs.grid import Conditional, Sums, Values
from pymc_dp.step_methods.table_rounding import rounding, with_rounding
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

LATENTS = "dp_row_latents"


@dataclass(frozen=True, kw_only=True, eq=False)
class RowLatent:
    """A discrete free variable with one entry per row, independent of each other and with one common prior.

    Attributes
    ----------
    name : str
    levels, rows : int
    prior : Variable
        Probabilities of the levels, or of level 1, over the free variables of the model it comes from.
    model : pymc.Model
        That model.
    """

    name: str
    levels: int
    rows: int
    prior: Variable
    model: Model

    def join(self, prior_model: Model) -> None:
        """Add the latent to the prior model of the model that holds it as a column; its rows have places, no labels."""
        to_prior_model = {self.model[str(rv.name)]: prior_model[str(rv.name)] for rv in prior_model.free_RVs}
        (prior,), _ = rebuild([self.prior], to_prior_model)
        with prior_model:
            if prior.type.ndim:
                pm.Categorical(self.name, p=prior, shape=self.rows)
            else:
                pm.Bernoulli(self.name, p=prior, shape=self.rows)
        order = {str(rv.name): place for place, rv in enumerate(self.model.free_RVs)}
        prior_model.free_RVs.sort(key=lambda rv: order[str(rv.name)])


def inspect_with_latents(found: Inspected) -> Inspection | None:
    """Inspect a model with its latents per row as columns of the table; None where it has none, or that fails too.

    Reads schema only. The latents are noted on the model of the result.
    """
    model, held, n_rows = found.model, found.domain, found.sums.n_rows
    if held.neighbours != "replace" or held.metric is not None:
        return None
    known = [latent for rv in model.free_RVs if (latent := _latent(model, rv, n_rows)) is not None]
    latents = {model[latent.name] for latent in known}
    others = set(model.free_RVs) - latents
    if not latents or latents & set(reached([latent.prior for latent in known], others)):
        return None  # what feeds the prior of other latents does not see its own row alone
    bounds = {**held.bounds, **{latent.name: (0, latent.levels - 1) for latent in known}}
    try:
        columns = pm.do(model, {latent.name: _column(model[latent.name], n_rows) for latent in known})
        inspection = inspect(columns, Domain(rows=held.rows, bounds=bounds, norms=held.norms, public=held.public)).sums
    except (DomainError, NotImplementedError):  # PyMC does not clone models with initial values of their own
        return None
    if inspection.problems:
        return None
    setattr(columns, LATENTS, tuple(known))
    return replace(inspection, inspected=found)


def _column(rv: Variable, n_rows: int) -> Variable:
    """Return a column of a latent's own static type: else PyMC would add a check of the number of rows to the graph."""
    return pytensor.shared(np.zeros(n_rows, dtype=rv.type.dtype), name=rv.name, shape=rv.type.shape)


def latents_of(inspection: Inspection) -> tuple[RowLatent, ...]:
    """Latents per row that stand as columns in an inspected model."""
    found: tuple[RowLatent, ...] = getattr(inspection.model, LATENTS, ())
    return found


def _latent(model: Model, rv: Variable, n_rows: int) -> RowLatent | None:
    op: Any = rv.owner.op
    if not isinstance(op, RandomVariable) or op.name not in ("bernoulli", "categorical") or rv.type.ndim != 1:
        return None
    shapes = shapes_of(model)
    (prior,) = op.dist_params(rv.owner)
    event = 1 if op.name == "categorical" else 0
    if prior.type.ndim == event + 1 and prior.type.broadcastable[0]:
        prior = prior[0]
    if shapes[rv.name] != (n_rows,) or prior.type.ndim != event:
        return None
    levels = prior.type.shape[-1] if event else 2
    if levels is None and prior in set(model.free_RVs):
        levels = int(shapes[prior.name][-1])
    for var in reached([prior], model.free_RVs):  # the probabilities of all rows alike, of nothing but parameters
        if var.owner is None and (not isinstance(var, Constant) or np.size(var.data) not in (0, 1, levels)):
            return None
    if levels is None or not 2 <= levels < n_rows:
        return None
    return RowLatent(name=str(rv.name), levels=int(levels), rows=n_rows, prior=prior, model=model)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LatentUpdate(Conditional):
    """All latents of the rows at once, each by the exponential mechanism on its own row.

    Attributes
    ----------
    prior : callable
        Probabilities of the levels given the other variables.
    tables : sequence of TableLikelihood
        Those of which the latent is a column.
    likelihoods : sequence of callable
        From the values of the other variables and exact sums to their log-likelihood in each cell.
    """

    kind: ClassVar[str] = "one latent per row, released"
    prior: Callable[[Values], Sequence[Array]]
    tables: Sequence[TableLikelihood]
    likelihoods: Sequence[Callable[[Values, ExactSums], Array]]

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        (given,) = self.prior(values)
        with np.errstate(divide="ignore"):
            scores = np.log(given if given.ndim else np.array([1 - given, given]))
        return choose(rng, scores + beta * self.log_likelihood(values))

    def log_likelihood(self, values: Values) -> Array:
        """Log-likelihood of every row at each level, up to a term free of the level: (n_rows, n_levels). **Private**.

        It is linear in the statistics of a row, so that its value at the unit vectors says all about a cell.
        """
        total: Any = 0.0
        for table, likelihood in zip(self.tables, self.likelihoods, strict=True):
            slopes, level = _natural(table, lambda held: likelihood(values, held))  # noqa: B023
            total = total + _at_levels(table.read_rows(), slopes, level, table.cells, self.name)
        return np.asarray(total)


def _natural(table: TableLikelihood, logp: Callable[[ExactSums], Array]) -> tuple[Array, Array]:
    """Slopes (n_statistics, n_cells) and level (n_cells,) of the log-likelihood of one row in each cell."""
    count, width = table.cells.count, len(table.statistic.labels)
    none, one = np.zeros(count), np.ones(count)
    units = [np.tile(unit, (count, 1)) for unit in np.eye(width)]
    slopes = np.array([logp(ExactSums(sums=unit, sizes=none)) for unit in units])
    return slopes, logp(ExactSums(sums=np.zeros((count, width)), sizes=one))


def _at_levels(rows: Array, slopes: Array, level: Array, cells: Cells, name: str) -> Array:
    if len(cells.columns) == 1:
        return np.asarray(rows @ slopes[:, cells.lookup] + level[cells.lookup])
    places = row_cells(cells, name)
    found = level[places]
    for statistic, slope in zip(rows.T, slopes, strict=True):
        found += statistic[:, None] * slope[places]
    return found


def latent_range(
    tables: Sequence[tuple[TableLikelihood, Sequence[Box]]], name: str, released: Collection[str]
) -> RowRange:
    """Range over a row's level, the parameters of all levels anywhere within the hull of their boxes.

    Parameters
    ----------
    tables : sequence of (TableLikelihood, boxes)
        Those of which the latent is a column.
    name : str
        The latent.
    released : collection of str
        All latents: like a public column, the others keep a row in its cells. A private column does not.
    """
    ranges = []
    for table, boxes in tables:
        columns = list(zip(table.cells.columns, table.cells.levels, strict=True))
        others = [level for column, level in columns if column.name != name]
        moves = any(not column.public and column.name not in released for column, _ in columns)
        group = np.unique(np.stack(others), axis=1, return_inverse=True)[1].ravel() if others else None
        ends = [_hulls(box, group) for box in boxes]
        found = table.row_range(ends, "replace", moves=moves)
        ranges.append(with_rounding(found, rounding(table, [(box.low, box.high) for box in boxes], rows=1)))
    return total_range(ranges)


def _hulls(box: Box, group: Array | None) -> tuple[Array, Array]:
    """Hull of a parameter's bounds over the cells of each group."""
    if group is None:
        return box.low.min(axis=0, keepdims=True), box.high.max(axis=0, keepdims=True)
    held = [group == item for item in range(group.max() + 1)]
    return np.stack([box.low[own].min(axis=0) for own in held]), np.stack([box.high[own].max(axis=0) for own in held])


def latent_update(
    latent: RowLatent,
    variable: Variable,
    functions: Functions,
    tables: Sequence[tuple[TableLikelihood, Sequence[Box]]],
    found: RowRange,
) -> LatentUpdate:
    """Compile the update of a latent that has joined a prior model as `variable`."""
    (prior,) = variable.owner.op.dist_params(variable.owner)
    return LatentUpdate(
        name=latent.name,
        shape=(latent.rows,),
        ranges=(found.value,),
        reason=found.reason,
        prior=functions.function([prior.squeeze()]),
        tables=[table for table, _ in tables],
        likelihoods=[functions.likelihood(table) for table, _ in tables],
    )


def depends_on(table: TableLikelihood, latent: RowLatent) -> bool:
    """Whether a latent is a column of a table."""
    return any(column.name == latent.name for column in table.cells.columns)


def read_given(
    tables: Sequence[TableLikelihood], latents: Sequence[RowLatent], values: Mapping[str, Array]
) -> dict[str, ExactSums]:
    """Exact sums of the tables whose cells the latents are, at their present values. **Private**."""
    held = [table for table in tables if any(depends_on(table, latent) for latent in latents)]
    for table in held:
        for column in table.cells.columns:
            if column.name in {latent.name for latent in latents}:
                column.leaf.set_value(np.asarray(values[column.name], dtype=column.leaf.type.dtype))
    return {table.name: table.read() for table in held}


__all__ = [
    "LatentUpdate",
    "RowLatent",
    "depends_on",
    "inspect_with_latents",
    "latent_range",
    "latent_update",
    "latents_of",
    "read_given",
]
