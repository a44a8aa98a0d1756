"""Values of columns from what is public about them alone: their types, bounds, norms, levels, what a caller states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp._column_bounds import each_of
from pymc_dp.errors import ArgumentError, Problem, needs_bounds
from pymc_dp.inspection.findings import RowInspection, nameless_problem
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array, Column, known_rows, shape_of

ROWS = 48
"""Rows that are tried: the lowest, the highest, then any mixture of ends, the middle and what is between."""
ASSUMED = (-1.0, 1.0)
"""Bounds of a column of which nothing is known, where a caller does not ask for a statement about it."""


def dummy_rows(columns: Sequence[Column], n_rows: int, rng: np.random.Generator) -> list[Array]:
    """Return random rows that only the schema knows: integers 0 and 1, positive numbers below 1, within the bounds."""
    tables = []
    for column in columns:
        shape = (n_rows, *shape_of(column.leaf)[1:])
        drawn = rng.integers(0, 2, size=shape) if column.integer else rng.uniform(0.1, 0.9, size=shape)
        tables.append(column.clamped(drawn.astype(column.leaf.type.dtype)))
    return tables


def public_rows(columns: Sequence[Column], rng: np.random.Generator, count: int = ROWS) -> list[Array]:
    """Return `count` rows that reach the ends of what is public, one array per column, clamped.

    The lowest and the highest come first; public columns have rows that they really have.
    """
    return [np.concatenate(column) for column in zip(*_tried(columns, rng, count), strict=True)]


def _tried(columns: Sequence[Column], rng: np.random.Generator, count: int) -> list[list[Array]]:
    public = next((shape_of(column.leaf)[0] for column in columns if column.public), 0)
    found = []
    for turn in range(count):
        place = int(rng.integers(public)) if public else 0
        found.append(
            [
                column.clamped(known_rows(column)[place : place + 1]) if column.public else _row(column, turn, rng)
                for column in columns
            ]
        )
    return found


def _row(column: Column, turn: int, rng: np.random.Generator) -> Array:
    shape, dtype = (1, *shape_of(column.leaf)[1:]), np.dtype(column.leaf.type.dtype)
    if dtype.kind == "b":
        values = np.full(shape, turn == 1) if turn < 2 else rng.integers(0, 2, shape)
        return column.clamped(values.astype(dtype))
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    least, most = (float(limits.min), float(limits.max)) if dtype.kind == "f" else _whole(limits)
    low, high = (least, most) if column.bounds is None else column.ends
    if column.norm is not None:
        low, high = np.maximum(low, -column.norm), np.minimum(high, column.norm)
    values = mixed(np.full(shape, low), np.full(shape, high), low / 2 + high / 2, turn, rng)
    return column.clamped(np.clip(values, least, most).astype(dtype))


def _whole(limits: Any) -> tuple[float, float]:
    """Return ends of whole numbers that floats hold, so that none leaves its type."""
    return max(float(limits.min), -(2.0**53)), min(float(limits.max), 2.0**53)


def mixed(low: Array, high: Array, middle: Array | float, turn: int, rng: np.random.Generator) -> Array:
    """Return the low end at turn 0, the high end at turn 1, then any mixture of ends, middle and what is between."""
    if turn < 2:
        return (low, high)[turn]
    inner = np.broadcast_to(middle, low.shape) + (high / 2 - low / 2) * rng.uniform(-1, 1, low.shape)
    return np.choose(rng.integers(0, 4, low.shape), [low, high, np.broadcast_to(middle, low.shape), inner])


def draw_columns(
    inspection: RowInspection,
    covariates: Mapping[str, Any],
    *,
    n_rows: int,
    rng: np.random.Generator,
    width: float = 1.0,
) -> dict[Variable, Array]:
    """Draw the columns that no likelihood observes, clamped, by their leaves. Reads no private value.

    Parameters
    ----------
    inspection : RowInspection
        Without problems.
    covariates : mapping of str to (m, ...) array or distribution
        Of private columns: made-up rows, drawn from with replacement, or a PyMC distribution of one row, as
        ``pm.Normal.dist(0, 1, shape=3)``. Others are drawn evenly between their bounds or within their norm, and
        within `ASSUMED` where they have neither; see `undeclared`. Public columns are as they are, or, for another
        number of rows, have rows drawn from theirs, the same of all of them.
    n_rows : int
    rng : numpy.random.Generator
    width : float
        Of columns of which only bounds or a norm are known, over that of these; see `loose_columns`.

    Raises
    ------
    ArgumentError
        For covariates of another shape.
    """
    observed = {item.leaf for item in inspection.observed}
    loose = loose_columns(inspection, covariates) if width != 1 else {}
    found: dict[Variable, Array] = {}
    places: Array | None = None
    for position, column in enumerate(inspection.columns):
        if column.leaf in observed:
            continue
        shape = (n_rows, *shape_of(column.leaf)[1:])
        if column.name in covariates:
            values = _stated(column, covariates[column.name], shape, rng)
        elif column.public:
            values = known_rows(column)
            if len(values) != n_rows:
                places = rng.integers(len(values), size=n_rows) if places is None else places
                values = values[places]
        else:
            values = draw_evenly(column, n_rows, rng)
        found[column.leaf] = column.clamped(narrowed(values, loose[position], width) if position in loose else values)
    return found


def draw_evenly(column: Column, n_rows: int, rng: np.random.Generator) -> Array:
    """Draw rows of a column evenly over what is public about it."""
    shape = (n_rows, *shape_of(column.leaf)[1:])
    if column.bounds is not None or column.norm is None:
        low, high = column.ends if column.ranges else column.bounds or ASSUMED
        if not column.integer:
            return rng.uniform(low, high, shape)
        whole = (np.int64(low), np.int64(high)) if column.ranges else (int(low), int(high))
        return rng.integers(whole[0], whole[1] + 1, size=shape)
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


def loose_columns(inspection: RowInspection, covariates: Mapping[str, Any]) -> dict[int, float | Array]:
    """Return the columns of which nothing but bounds or a norm is known, by place, and what they are centred at.

    In fact they may fill a small part of these.
    """
    observed = {item.leaf for item in inspection.observed}
    found = {}
    for place, column in enumerate(inspection.columns):
        if column.public or column.integer or column.name in covariates or column.leaf in observed:
            continue
        if column.bounds is not None or column.norm is not None:
            found[place] = 0.0 if column.bounds is None else sum(column.ends if column.ranges else column.bounds) / 2
    return found


def narrowed(values: Array, middle: float | Array, width: float) -> Array:
    """Return values drawn towards their middle."""
    return np.asarray((middle + width * (values - middle)).astype(values.dtype))


def undeclared(inspection: RowInspection, covariates: Mapping[str, Any], caller: str) -> list[Problem]:
    """Return the covariates that nothing says how to draw, and refuse names that no covariate has.

    Parameters
    ----------
    inspection, covariates
        As for `draw_columns`.
    caller : str
        The public function that asks, for texts.
    """
    observed = {item.leaf for item in inspection.observed}
    beside = {column.name: column for column in inspection.columns if column.leaf not in observed}
    for name in covariates:
        if name not in beside:
            listed = ", ".join(map(repr, beside)) or "none"
            raise ArgumentError(f"covariates names {name!r}; columns that no likelihood observes: {listed}.")
    keyword = "columns" if caller == "dp.Gradients" else "covariates"
    loose = {
        name: column
        for name, column in beside.items()
        if name not in covariates and not column.public and column.bounds is None and column.norm is None
    }
    nameless = [column for column in loose.values() if not column.leaf.name]
    problems = []
    if nameless:
        where = ", ".join(item.name for item in inspection.observed)
        problems.append(
            nameless_problem(where, [column.leaf for column in nameless], inspection.domain.neighbours == "replace")
        )
    return problems + [
        Problem(
            where=name,
            what=f"{caller} simulates rows, and nothing says how this private column is distributed",
            remedy=f"{needs_bounds(name)}{each_of(column.leaf.type.ndim)}; "
            f"or state how it is distributed, {caller}(..., {keyword}={{{name!r}: pm.Normal.dist(0, 1)}}), or give "
            "made-up rows in its place.",
            kind="declaration",
        )
        for name, column in loose.items()
        if column not in nameless
    ]


__all__ = [
    "ROWS",
    "draw_columns",
    "draw_evenly",
    "dummy_rows",
    "loose_columns",
    "mixed",
    "narrowed",
    "public_rows",
    "undeclared",
]
