"""Tables of rows, simulated from a model: parameters from the prior or given, covariates as declared, then the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.shape import Shape, Shape_i

from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.clamped import unclamped
from pymc_dp.inspection.findings import Observed, RowInspection
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array, Column, array_leaves, known_rows, reached, shape_of
from pymc_dp.inspection.taint import label
from pymc_dp.transforms.prior_points import in_value_space

TRIED = 8
"""Draws from the prior for each one wanted: ordered numbers are seldom drawn in order."""
PROPER = "A plan simulates from the prior: give every free variable a proper distribution."


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedTable:
    """A table and the parameters that it was drawn with.

    Attributes
    ----------
    truth : (n_parameters,) array
        In terms of the value variables, one after the other.
    rows : tuple of (n_rows, ...) arrays
        One for each column of the inspection, clamped as real ones are.
    """

    truth: Array
    rows: tuple[Array, ...]


def draw_tables(
    inspection: RowInspection,
    prior_model: Model,
    covariates: Mapping[str, Any],
    *,
    n_rows: int,
    count: int,
    rng: np.random.Generator,
) -> list[SimulatedTable]:
    """Draw tables of `n_rows` rows. Reads no private value: public columns alone.

    Parameters
    ----------
    inspection : RowInspection
        Without problems.
    prior_model : pymc.Model
        The model without its rows.
    covariates : mapping of str to (m, ...) array or distribution
        Of private columns that no likelihood observes: made-up rows, drawn from with replacement, or a PyMC
        distribution of one row, as ``pm.Normal.dist(0, 1, shape=3)``.
    n_rows, count : int
    rng : numpy.random.Generator

    Raises
    ------
    UnsupportedModelError
        Where a private covariate has neither a distribution nor bounds, or the model cannot be drawn from.
    ArgumentError
        For covariates that the model does not have, or of another shape.
    """
    order, problems = _prepared(inspection, covariates, "dp.plan")
    if problems := [*not_drawn(prior_model), *problems]:
        raise UnsupportedModelError(problems)
    try:
        truths, values = draw_prior(prior_model, rng, count)
        return [
            SimulatedTable(
                truth=truths[place],
                rows=_rows(
                    inspection, order, {name: drawn[place] for name, drawn in values.items()}, covariates, n_rows, rng
                )[1],
            )
            for place in range(count)
        ]
    except NotImplementedError as error:
        what = "it cannot be drawn from"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=PROPER)]) from error


def draw_rows_at(
    inspection: RowInspection,
    truths: Sequence[Mapping[str, Array]],
    covariates: Mapping[str, Any],
    *,
    n_rows: int,
    rng: np.random.Generator,
    caller: str,
) -> tuple[list[Array], list[Array]]:
    """Draw `n_rows` rows at each of some values of the free variables. Reads no private value: public columns alone.

    Parameters
    ----------
    inspection, covariates, n_rows, rng
        As for `draw_tables`.
    truths : sequence of mapping of str to array
        By the names of free variables.
    caller : str
        The public function that asks, for texts.

    Returns
    -------
    (list of array, list of array)
        One (n_truths * n_rows, ...) array for each column, as drawn and as held: what is observed is clamped in the
        second only.

    Raises
    ------
    UnsupportedModelError, ArgumentError
        As `draw_tables`.
    """
    order, problems = _prepared(inspection, covariates, caller)
    if problems:
        raise UnsupportedModelError(problems)
    try:
        tables = [_rows(inspection, order, truth, covariates, n_rows, rng) for truth in truths]
    except NotImplementedError as error:
        what, remedy = "its rows cannot be drawn", "Use distributions that have random draws."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)]) from error
    drawn, held = zip(*tables, strict=True)
    return [np.concatenate(parts) for parts in zip(*drawn, strict=True)], [
        np.concatenate(parts) for parts in zip(*held, strict=True)
    ]


def not_drawn(prior_model: Model) -> list[Problem]:
    """Return what keeps free variables of a model from being drawn and fitted."""
    problems = [
        Problem(where=str(var.name), what="draws from the prior ignore a Potential", remedy=PROPER)
        for var in prior_model.potentials
    ]
    return problems + [
        Problem(
            where=str(rv.name),
            what="a plan fits continuous free variables only",
            remedy="Sum it out, for example by a pm.Mixture.",
        )
        for rv in prior_model.free_RVs
        if not np.issubdtype(np.dtype(rv.type.dtype), np.floating)
    ]


def _prepared(
    inspection: RowInspection, covariates: Mapping[str, Any], caller: str
) -> tuple[list[Observed], list[Problem]]:
    """Return observed variables in the order in which they are drawn, and what keeps rows from being drawn."""
    order, unordered = _in_order(inspection, caller)
    return order, [*undeclared(inspection, covariates, caller), *unordered]


def _in_order(inspection: RowInspection, caller: str) -> tuple[list[Observed], list[Problem]]:
    """Order observed variables so that each comes after those whose values it depends on, and say where none is.

    A column that is not drawn before would be read in its place.
    """
    waiting, order = list(inspection.observed), list[Observed]()
    needed = {item.name: _depends_on(inspection, item) for item in waiting}
    held = {column.leaf for column in inspection.columns}
    problems = [
        Problem(
            where=item.name,
            what=f"draws of it take {label(leaf)}, which is no column of its likelihood",
            remedy="Leave it out, or give the density and the draws the same arguments.",
        )
        for item in waiting
        for leaf in array_leaves(needed[item.name])
        if leaf not in held and _private(inspection, leaf)
    ]
    while waiting:
        later = {end for item in waiting for end in (item.leaf, item.variable)}
        ready = [item for item in waiting if not later & needed[item.name]]
        if not ready:
            what = "its observed values are drawn given themselves, directly or through other observed variables"
            instead = "; give clip_norm and step_size as numbers" if caller == "dp.plan" else ""
            remedy = f"{caller} cannot simulate such rows{instead}."
            return order, [*problems, *(Problem(where=item.name, what=what, remedy=remedy) for item in waiting)]
        order.append(ready[0])
        waiting.remove(ready[0])
    return order, problems


def _depends_on(inspection: RowInspection, item: Observed) -> set[Variable]:
    """Return what draws of an observed variable depend on, beside free variables: values, and not shapes alone."""
    drawn = unclamped(item.variable)
    shapes = [var for var in ancestors([drawn]) if var.owner is not None and isinstance(var.owner.op, Shape | Shape_i)]
    return set(reached([drawn], [*inspection.model.free_RVs, *shapes])) - {drawn, item.variable}


def _private(inspection: RowInspection, leaf: Variable) -> bool:
    if leaf in inspection.model.data_vars:
        return leaf.name not in inspection.domain.public
    return shape_of(leaf)[0] == inspection.n_rows


def draw_covariates(
    inspection: RowInspection, covariates: Mapping[str, Any], *, n_rows: int, rng: np.random.Generator
) -> tuple[Array, ...]:
    """Draw rows as `draw_tables` does, but for what is observed: there stands 0, or what that is clamped to.

    Raises
    ------
    UnsupportedModelError, ArgumentError
        As `draw_tables`.
    """
    if problems := undeclared(inspection, covariates, "dp.Gradients"):
        raise UnsupportedModelError(problems)
    observed = {item.leaf for item in inspection.observed}
    return tuple(
        column.clamped(
            np.zeros((n_rows, *shape_of(column.leaf)[1:]))
            if column.leaf in observed
            else _covariate(column, covariates, n_rows, rng)
        )
        for column in inspection.columns
    )


def undeclared(inspection: RowInspection, covariates: Mapping[str, Any], caller: str) -> list[Problem]:
    """Return the covariates that nothing says how to draw, and refuse names that no covariate has.

    Parameters
    ----------
    inspection, covariates
        As for `draw_tables`.
    caller : str
        The public function that asks, for texts.
    """
    observed = {item.leaf for item in inspection.observed}
    beside = [column for column in inspection.columns if column.leaf not in observed]
    _check_names(covariates, beside)
    return [_unknown(one, caller) for one in beside if not _known(one, covariates)]


def draw_prior(prior_model: Model, rng: np.random.Generator, count: int) -> tuple[Array, dict[str, Array]]:
    """Draw positions, (count, n_parameters), and the free variables themselves, where transforms are defined."""
    free = prior_model.free_RVs
    tried = count * TRIED
    try:
        found = plain_draw([*(in_value_space(prior_model, rv) for rv in free), *free], rng, tried)
    except NotImplementedError as error:
        what = "its prior cannot be drawn from"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=PROPER)]) from error
    found = [np.reshape(item, (tried, *np.shape(item)[int(tried > 1) :])) for item in found]
    positions = np.concatenate([item.reshape(tried, -1) for item in found[: len(free)]], axis=1).astype(np.float64)
    defined = np.flatnonzero(np.isfinite(positions).all(axis=1))[:count]
    if len(defined) < count:
        what = "draws of its prior hardly ever lie where its transform is defined"
        remedy = "Write ordered numbers as pt.cumsum of positive ones."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
    values = {str(rv.name): item[defined] for rv, item in zip(free, found[len(free) :], strict=True)}
    return positions[defined], values


def _rows(
    inspection: RowInspection,
    order: Sequence[Observed],
    truth: Mapping[str, Array],
    covariates: Mapping[str, Any],
    n_rows: int,
    rng: np.random.Generator,
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return rows as they are drawn, and as they are held: with what is observed clamped."""
    leaves = {item.leaf: item.variable for item in order}
    held: dict[Variable, Array] = {}
    free: dict[Variable, Array] = {}
    for column in inspection.columns:
        if column.leaf not in leaves:
            held[column.leaf] = free[column.leaf] = column.clamped(_covariate(column, covariates, n_rows, rng))
    known: dict[Variable, Any] = {rv: _constant(rv, truth[str(rv.name)]) for rv in inspection.model.free_RVs}
    known |= {leaf: _constant(leaf, values) for leaf, values in held.items()}
    for leaf, rv in leaves.items():
        drawn = _observed(unclamped(rv), known, n_rows, rng).astype(leaf.type.dtype)
        held[leaf] = next(column for column in inspection.columns if column.leaf is leaf).clamped(drawn)
        free[leaf] = drawn
        known[rv] = known[leaf] = _constant(rv, held[leaf])
    return tuple(free[column.leaf] for column in inspection.columns), tuple(
        held[column.leaf] for column in inspection.columns
    )


def _constant(like: Variable, values: Array) -> Any:
    return pt.constant(np.asarray(values), dtype=like.type.dtype)


def _observed(rv: Variable, known: Mapping[Variable, Any], n_rows: int, rng: np.random.Generator) -> Array:
    (graph,), _ = rebuild([rv], dict(known))
    batch = graph.type.ndim - graph.owner.op.ndim_supp
    sized = change_dist_size(graph, (n_rows, *(graph.shape[axis] for axis in range(1, batch))))
    return np.asarray(plain_draw(sized, rng))


def _covariate(column: Column, covariates: Mapping[str, Any], n_rows: int, rng: np.random.Generator) -> Array:
    """Draw a column: as stated, as it is where it is public, else uniformly over what its declaration allows."""
    shape = (n_rows, *shape_of(column.leaf)[1:])
    if column.name in covariates:
        return _stated(column, covariates[column.name], shape, rng)
    if column.public:
        values = known_rows(column)
        return values if len(values) == n_rows else values[rng.integers(len(values), size=n_rows)]
    if column.bounds is not None:
        low, high = column.bounds
        return rng.integers(int(low), int(high) + 1, size=shape) if column.integer else rng.uniform(low, high, shape)
    assert column.norm is not None
    rows = rng.normal(size=(n_rows, int(np.prod(shape[1:]))))
    lengths = column.norm * rng.random((n_rows, 1)) ** (1 / rows.shape[1])
    return np.reshape(rows / np.linalg.norm(rows, axis=1, keepdims=True) * lengths, shape)


def _stated(column: Column, stated: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if isinstance(stated, Variable):
        values = np.asarray(plain_draw(stated, rng, shape[0])).reshape(shape[0], *stated.type.shape)
    else:
        values = np.asarray(stated)
        values = values[rng.integers(len(values), size=shape[0])] if values.ndim and len(values) else values
    if values.shape != shape:
        raise ArgumentError(
            f"covariates[{column.name!r}] gives rows of shape {values.shape[1:]}; the model's have {shape[1:]}."
        )
    return values


def _known(column: Column, covariates: Mapping[str, Any]) -> bool:
    return column.name in covariates or column.public or column.bounds is not None or column.norm is not None


def _unknown(column: Column, caller: str) -> Problem:
    keyword = "columns" if caller == "dp.Gradients" else "covariates"
    return Problem(
        where=column.name,
        what=f"{caller} simulates rows, and nothing says how this private column is distributed",
        remedy=f"State it: {caller}(..., {keyword}={{{column.name!r}: pm.Normal.dist(0, 1)}}), or made-up rows in "
        f"its place; or bound it, dp.Domain(bounds={{{column.name!r}: (low, high)}}), for uniform values.",
    )


def _check_names(covariates: Mapping[str, Any], columns: list[Column]) -> None:
    names = [column.name for column in columns]
    for name in covariates:
        if name not in names:
            listed = ", ".join(map(repr, names)) or "none"
            raise ArgumentError(f"covariates names {name!r}; columns that no likelihood observes: {listed}.")


__all__ = [
    "PROPER",
    "SimulatedTable",
    "draw_covariates",
    "draw_prior",
    "draw_rows_at",
    "draw_tables",
    "not_drawn",
    "undeclared",
]
