"""Tables of rows, simulated from a model: parameters from the prior or given, covariates as declared, then the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.shape import Shape, Shape_i

from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Observed, RowInspection
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.row_density import per_row, unclamped
from pymc_dp.inspection.rows import Array, array_leaves, reached, rebuild, shape_of
from pymc_dp.inspection.taint import label
from pymc_dp.simulation.columns import draw_columns, draw_evenly, undeclared
from pymc_dp.simulation.prior import ParameterDraws, draw_prior, not_drawn

Rows = tuple[Array, ...]
DrawRows = Callable[..., tuple[Rows, Rows]]


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedTable:
    """A table and the parameters that it was drawn with.

    Attributes
    ----------
    truth : (n_parameters,) array
        In terms of the value variables, one after the other.
    shapes : list of tuple of int
        Of the value variables.
    rows : tuple of (n_rows, ...) arrays
        One for each column of the inspection, clamped as real ones are.
    seed : int
        Of what is random in a fit of it.
    """

    truth: Array
    shapes: list[tuple[int, ...]]
    rows: Rows
    seed: int


def draw_tables(
    inspection: RowInspection,
    prior_model: Model,
    covariates: Mapping[str, Any],
    *,
    n_rows: int,
    count: int,
    rng: np.random.Generator,
    width: float = 1.0,
    drawn_as: DrawRows | None = None,
) -> list[SimulatedTable]:
    """Draw tables of `n_rows` rows. Reads no private value: public columns alone.

    Parameters
    ----------
    inspection, covariates, n_rows, rng, width
        As for `draw_columns`.
    prior_model : pymc.Model
        The model without its rows.
    count : int
    drawn_as : callable, optional
        What draws the rows of a table, with the arguments of `draw_rows`, which it is by default.

    Raises
    ------
    UnsupportedModelError
        Where a private covariate has neither a distribution nor bounds, or the model cannot be drawn from.
    ArgumentError
        For covariates that the model does not have, or of another shape.
    """
    if problems := [*not_drawn(prior_model), *_problems(inspection, covariates, "dp.plan")]:
        raise UnsupportedModelError(problems)
    drawn = draw_prior(prior_model, rng, count)
    return _tables_at(inspection, drawn, covariates, drawn_as, n_rows=n_rows, rng=rng, width=width)


def draw_tables_at(
    inspection: RowInspection,
    drawn: ParameterDraws,
    covariates: Mapping[str, Any],
    *,
    n_rows: int,
    rng: np.random.Generator,
    caller: str,
) -> list[SimulatedTable]:
    """Draw a table of `n_rows` rows for each of some draws of the parameters. Reads no private value.

    Parameters
    ----------
    inspection, covariates, n_rows, rng
        As for `draw_columns`.
    drawn : ParameterDraws
    caller : str
        The public function that asks, for texts.

    Raises
    ------
    UnsupportedModelError, ArgumentError
        As `draw_tables`.
    """
    if problems := _problems(inspection, covariates, caller):
        raise UnsupportedModelError(problems)
    return _tables_at(inspection, drawn, covariates, n_rows=n_rows, rng=rng)


def _tables_at(
    inspection: RowInspection,
    drawn: ParameterDraws,
    covariates: Mapping[str, Any],
    drawn_as: DrawRows | None = None,
    *,
    rng: np.random.Generator,
    **given: Any,
) -> list[SimulatedTable]:
    count = len(drawn.positions)
    truths = [{name: one[place] for name, one in drawn.values.items()} for place in range(count)]
    tables = _tables(inspection, truths, covariates, drawn_as, rng=rng, **given)
    return [
        SimulatedTable(truth=truth, shapes=drawn.shapes, rows=held, seed=int(seed))
        for truth, (_, held), seed in zip(drawn.positions, tables, rng.integers(2**31, size=count), strict=True)
    ]


def _tables(
    inspection: RowInspection,
    truths: Sequence[Mapping[str, Array]],
    covariates: Mapping[str, Any],
    draw: DrawRows | None = None,
    **given: Any,
) -> list[tuple[Rows, Rows]]:
    try:
        return [(draw or draw_rows)(inspection, truth, covariates, **given) for truth in truths]
    except NotImplementedError as error:
        what, remedy = "its rows cannot be drawn", "Use distributions that have random draws."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)]) from error


def draw_rows(
    inspection: RowInspection,
    truth: Mapping[str, Array],
    covariates: Mapping[str, Any],
    *,
    n_rows: int,
    rng: np.random.Generator,
    width: float = 1.0,
    beside: Mapping[Variable, Array] | None = None,
) -> tuple[Rows, Rows]:
    """Draw rows at some values of the free variables, whatever is known about the columns.

    Parameters
    ----------
    inspection, covariates, n_rows, rng, width
        As for `draw_columns`.
    truth : mapping of str to array
        By the names of free variables.
    beside : mapping of Variable to array, optional
        The columns that no likelihood observes, where these are drawn already.

    Returns
    -------
    (tuple of array, tuple of array)
        One (n_rows, ...) array for each column, as drawn and as held: what is observed is clamped in the
        second only. Observed variables are drawn given those that they depend on; of variables that depend on each
        other one is drawn given values of the others from anywhere between their bounds.

    Raises
    ------
    NotImplementedError
        Where a distribution cannot be drawn from.
    """
    columns = {column.leaf: column for column in inspection.columns}
    if beside is None:
        beside = draw_columns(inspection, covariates, n_rows=n_rows, rng=rng, width=width)
    free = dict(beside)
    order, circular = _in_order(inspection)
    free |= {item.leaf: columns[item.leaf].clamped(draw_evenly(columns[item.leaf], n_rows, rng)) for item in circular}
    held = dict(free)
    known: dict[Variable, Any] = {rv: _constant(rv, truth[str(rv.name)]) for rv in inspection.model.free_RVs}
    known |= {leaf: _constant(leaf, values) for leaf, values in held.items()}
    for item in order:
        drawn = _observed(inspection, item, known, n_rows, rng).astype(item.leaf.type.dtype)
        free[item.leaf], held[item.leaf] = drawn, columns[item.leaf].clamped(drawn)
        known[item.variable] = known[item.leaf] = _constant(item.variable, held[item.leaf])
    return tuple(free[leaf] for leaf in columns), tuple(held[leaf] for leaf in columns)


def sized(rv: Variable, known: Mapping[Variable, Any], batch: tuple[int, ...]) -> Variable:
    """Return a random variable of a batch shape, given values of what it depends on."""
    (graph,), _ = rebuild([rv], dict(known))
    resized: Variable = change_dist_size(graph, batch)
    return resized


def _observed(
    inspection: RowInspection, item: Observed, known: Mapping[Variable, Any], n_rows: int, rng: np.random.Generator
) -> Array:
    """Draw an observed variable for a number of rows that need not be that of the rows held."""
    variable = unclamped(item.variable)
    batch = shape_of(item.leaf)[1 : variable.type.ndim - variable.owner.op.ndim_supp]
    graph = sized(per_row(variable, inspection.axis.beside(variable)), known, (n_rows, *batch))
    counted = inspection.domain.neighbours == "replace"  # then the number of rows is public
    if inspection.hidden & set(reached([graph], _shapes(graph) if counted else ())):
        raise PrivacyError("Private data would enter a simulation; this is an error of pymc_dp.")
    return np.asarray(plain_draw(graph, rng))


def _shapes(graph: Variable) -> list[Variable]:
    """Return the shapes that a graph is computed from."""
    return [var for var in ancestors([graph]) if var.owner is not None and isinstance(var.owner.op, Shape | Shape_i)]


def _constant(like: Variable, values: Array) -> Any:
    return pt.constant(np.asarray(values), dtype=like.type.dtype)


def in_order[Item](
    items: Sequence[Item], needs: Callable[[Item, Sequence[Item]], bool]
) -> tuple[list[Item], list[Item]]:
    """Order items such that each comes after those that it needs.

    Parameters
    ----------
    items : sequence
    needs : callable
        Whether an item needs any of some others, among which it may be itself.

    Returns
    -------
    (list, list)
        All items, and those that need each other, directly or through others, or wait for such: the first of these
        comes before what it needs.
    """
    waiting, order, circular = list(items), list[Item](), list[Item]()
    while waiting:
        ready = next((item for item in waiting if not needs(item, waiting)), None)
        if ready is None:
            ready, circular = waiting[0], circular or list(waiting)
        order.append(ready)
        waiting.remove(ready)
    return order, circular


def _in_order(inspection: RowInspection) -> tuple[list[Observed], list[Observed]]:
    """Order observed variables so that each comes after those whose values it depends on."""
    needed = {item.name: _depends_on(inspection, item) for item in inspection.observed}
    return in_order(
        inspection.observed,
        lambda item, others: bool({end for one in others for end in (one.leaf, one.variable)} & needed[item.name]),
    )


def _problems(inspection: RowInspection, covariates: Mapping[str, Any], caller: str) -> list[Problem]:
    """Return what keeps rows from being drawn as the model and its domain say.

    A column that is not drawn before would be read in its place.
    """
    held = {column.leaf for column in inspection.columns}
    problems = [
        Problem(
            where=item.name,
            what=f"draws of it take {label(leaf)}, which is no column of its likelihood",
            remedy="Leave it out, or give the density and the draws the same arguments.",
        )
        for item in inspection.observed
        for leaf in array_leaves(_depends_on(inspection, item))
        if leaf not in held and _private(inspection, leaf)
    ]
    what = "its observed values are drawn given themselves, directly or through other observed variables"
    instead = "; give clip_norm and step_size as numbers" if caller == "dp.plan" else ""
    remedy = f"{caller} cannot simulate such rows{instead}."
    problems += [Problem(where=item.name, what=what, remedy=remedy) for item in _in_order(inspection)[1]]
    return [*undeclared(inspection, covariates, caller), *problems]


def _depends_on(inspection: RowInspection, item: Observed) -> set[Variable]:
    """Return what draws of an observed variable depend on, beside free variables: values, and not shapes alone."""
    drawn = unclamped(item.variable)
    return set(reached([drawn], [*inspection.model.free_RVs, *_shapes(drawn)])) - {drawn, item.variable}


def _private(inspection: RowInspection, leaf: Variable) -> bool:
    if leaf in inspection.model.data_vars:
        return leaf.name not in inspection.domain.public
    return shape_of(leaf)[0] == inspection.n_rows


__all__ = [
    "DrawRows",
    "Rows",
    "SimulatedTable",
    "draw_rows",
    "draw_tables",
    "draw_tables_at",
    "in_order",
    "sized",
]
