"""Exact sums of a release as one statement for an engine, and its answer as arrays.

Rows are added up by cell; several tables of a release are rows of one answer, so that all are of one state of the
source, and the number of rows is counted in the same statement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.errors import PrivacyError, Problem
from pymc_dp.families.gram import GramSums
from pymc_dp.families.histogram import Bins
from pymc_dp.families.statistic import BoundedMoments, LevelCounts, OwnTotals
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.inspection.weights import BY_GRADIENTS
from pymc_dp.kernel.gram_sums import laid_out
from pymc_dp.rows.asked import Asked
from pymc_dp.rows.engines.expressions import (
    HALF_EVEN,
    Field,
    as_held,
    counted,
    level,
    with_moments,
    with_products,
    with_trials,
)
from pymc_dp.rows.engines.frames import ROWS, Expr, Frame
from pymc_dp.rows.passes import absent

MOST_TERMS = 2000
"""Edges of bins, products and entries in one statement: engines get slow, or refuse, somewhere above."""
WAY_OUT = "Export the table and give it by rows=dp.Parquet(...), which adds up anything"


Fields = Mapping[Variable, Sequence[Field]]
"""By the leaf of a column of the model: one column in the engine, or one for each entry of a row."""


def obstacles(asked: Sequence[Asked], fields: Fields) -> list[Problem]:
    """Say what engines cannot add up as it is added up in memory."""
    found = [problem for item in asked for problem in _obstacles(item, fields)]
    labels = (len(field.levels.named) for several in fields.values() for field in several if field.levels is not None)
    terms = sum(_terms(item) for item in asked) + sum(labels)
    if not found and terms > MOST_TERMS:
        what = f"its sums need {terms} terms, more than the {MOST_TERMS} that an engine is asked for at once"
        found.append(Problem(where="rows", what=what, remedy=f"{WAY_OUT}; or use fewer bins or predictors."))
    return found


def _obstacles(asked: Asked, fields: Fields) -> list[Problem]:
    statistic, name = asked.statistic, asked.response.name
    if asked.weight is not None:
        return [Problem(where=name, what="an engine adds up rows as they are, without weights", remedy=BY_GRADIENTS)]
    remedy = f"{WAY_OUT}; or release noised gradients, statistics=dp.Gradients(), which read blocks of rows."
    if not isinstance(statistic, LevelCounts | BoundedMoments | GramSums) or isinstance(statistic, OwnTotals):
        return [
            Problem(
                where=name,
                what="an engine adds up counts, powers and products alone, which it can do exactly",
                remedy=remedy,
            )
        ]
    found, levels = [], isinstance(statistic, LevelCounts) and not isinstance(statistic, Bins)
    if levels and np.dtype(asked.response.leaf.type.dtype).kind == "f":
        remedy = "Give the model's dummy rows, and the table, a column of integers."
        found.append(Problem(where=name, what="its levels are stored as floats", remedy=remedy))
    if isinstance(statistic, GramSums) and any(source.ball for source in (*statistic.sources, statistic.response)):
        found.append(Problem(where=name, what="an engine cannot scale rows to a norm exactly", remedy=remedy))
    if not _in_range(statistic):
        what = "its bounds are too wide or too narrow for the arithmetic of an engine"
        found.append(Problem(where=name, what=what, remedy="Measure the value in another unit."))
    for column in asked.columns:
        wanted = np.dtype(column.leaf.type.dtype)
        narrow = wanted.kind == "f" and not all(_exact(field, wanted) for field in fields[column.leaf])
        if narrow:
            what = f"its values would be rounded to {wanted}, which engines do not do alike"
            found.append(Problem(where=column.name, what=what, remedy="Give the model's dummy rows dtype float64."))
    return found


def _exact(field: Field, wanted: np.dtype[Any]) -> bool:
    """Whether a cast is one to float64, or leaves values as they are."""
    return wanted == np.float64 or (field.levels is None and np.can_cast(field.dtype, wanted, "safe"))


def _terms(asked: Asked) -> int:
    match asked.statistic:
        case Bins() as bins:
            return len(bins.edges)
        case LevelCounts():
            return 1 if asked.statistic.trials is None else 8 * asked.statistic.n_levels
        case GramSums() as sums:
            return (sums.width + 1) * (sums.width + 2) // 2
    return 4


def _in_range(statistic: LevelCounts | BoundedMoments | GramSums) -> bool:
    """Whether every constant of the expressions is finite and not 0, and whole numbers are below 2**51."""
    match statistic:
        case BoundedMoments():
            ranges = [(statistic.low, statistic.high, statistic.centre, statistic.unit)]
        case GramSums():
            ranges = [
                (centre - 1.5 * half, centre + 1.5 * half, centre, half / 2.0**statistic.bits)
                for source in (*statistic.sources, statistic.response)
                for centre, half in zip(source.centres, source.halves, strict=True)
            ]
        case _:
            ranges = []
    for low, high, centre, unit in ranges:
        per_unit = 1.0 / unit if unit else math.inf
        ends = [(low - centre) * per_unit, (high - centre) * per_unit]
        small = min(abs(per_unit), 0.25 / per_unit if per_unit else 0.0)
        if not (all(map(math.isfinite, (*ends, low, high))) and max(map(abs, ends)) < HALF_EVEN / 4):
            return False
        if small < np.finfo(float).tiny:
            return False
    return True


# --- the statement ----------------------------------------------------------------------------------------------------


def answered(frame: Frame, asked: Sequence[Asked], fields: Fields, keys: Sequence[str] = ()) -> list[dict[str, Array]]:
    """Run one statement and return totals: for each table the ``code`` of groups, their ``rows`` and sums.

    Parameters
    ----------
    frame : Frame
        The source.
    asked : sequence of Asked
        Without obstacles.
    fields : mapping of Variable to sequence of Field
    keys : sequence of str
        Integer columns of the source by which totals are apart, in front.

    Returns
    -------
    list of dict of str to int64 array
        Of "keys" (n_groups, n_keys), "code" and "rows" (n_groups,), and "sums" (n_groups, n_sums).
    """
    held: dict[str, Expr] = {key: frame.to_whole(frame.column(key)) for key in keys}
    for column in read_columns(asked):
        for field, name in zip(fields[column.leaf], _names(fields, column), strict=True):
            wanted = np.dtype(column.leaf.type.dtype)
            none = 0 if wanted.kind == "f" else int(absent(column))
            held[name] = as_held(frame, field, wanted, none)
    base, totals, widths = frame.only(held), list[Frame](), list[int]()
    for item in asked:
        found, sums = _prepared(base, item, fields)
        totals.append(found.totals([*keys, "code"], sums))
        widths.append(len(sums))
        totals[-1] = _aligned(totals[-1], len(totals) - 1, keys, sums)
    every = [f"s{place}" for place in range(max(widths))]
    padded = [
        total.only(
            {name: total.column(name) for name in ("which", *keys, "code", ROWS)}
            | {name: total.column(name) if place < width else total.whole(0) for place, name in enumerate(every)}
        )
        for total, width in zip(totals, widths, strict=True)
    ]
    names = ["which", *keys, "code", ROWS, *every]
    lines = padded[0].stacked(padded[1:]).fetch(names) if len(padded) > 1 else padded[0].fetch(names)
    table = np.array(lines, dtype=np.int64).reshape(len(lines), len(names))
    of = len(keys)
    return [
        {
            "keys": chosen[:, 1 : 1 + of],
            "code": chosen[:, 1 + of],
            "rows": chosen[:, 2 + of],
            "sums": chosen[:, 3 + of : 3 + of + width],
        }
        for place, width in enumerate(widths)
        for chosen in [table[table[:, 0] == place]]
    ]


def read_columns(asked: Sequence[Asked]) -> Iterator[Column]:
    """Yield each column once, as what first needs it declares it."""
    found: dict[Variable, Column] = {}
    for item in asked:
        for column in (*item.cells.columns, item.response, *item.predictors):
            found.setdefault(column.leaf, column)
    yield from found.values()


def _aligned(total: Frame, place: int, keys: Sequence[str], sums: Sequence[str]) -> Frame:
    """Return totals with the number of their table in front, and sums by their places."""
    columns = {"which": total.whole(place)}
    columns |= {name: total.to_whole(total.column(name)) for name in (*keys, "code", ROWS)}
    return total.only(columns | {f"s{i}": total.to_whole(total.column(name)) for i, name in enumerate(sums)})


def _names(fields: Fields, column: Column) -> list[str]:
    place = list(fields).index(column.leaf)
    return [f"c{place}_{entry}" for entry in range(len(fields[column.leaf]))]


def _prepared(frame: Frame, asked: Asked, fields: Fields) -> tuple[Frame, list[str]]:
    """Return a table with the code of the group of each row and the integers that it adds, and their names."""
    code: Expr = frame.whole(0)
    for column in asked.cells.columns:
        (name,) = _names(fields, column)
        code = code * frame.whole(len(column.levels)) + level(frame, frame.column(name), column)
    statistic, response = asked.statistic, _names(fields, asked.response)
    if isinstance(statistic, LevelCounts) and statistic.trials is None:
        wanted = np.dtype(asked.response.leaf.type.dtype)
        found = counted(frame, frame.column(response[0]), wanted, statistic)
        return frame.extended({"code": code * frame.whole(statistic.n_levels) + found}), []
    predictors = [name for column in asked.predictors for name in _names(fields, column)]
    inputs = {f"x{place}": frame.to_number(frame.column(name)) for place, name in enumerate([*predictors, *response])}
    frame = frame.extended({"code": code + frame.whole(0), **inputs})
    match statistic:
        case LevelCounts():
            return with_trials(frame, list(inputs), statistic)
        case BoundedMoments():
            return with_moments(frame, "x0", statistic)
        case GramSums():
            frame, firsts, products = with_products(frame, list(inputs), statistic)
            return frame, [*firsts, *products]
    raise PrivacyError("An engine was asked for sums that it cannot add up; this is an error of pymc_dp.")


# --- the answer -------------------------------------------------------------------------------------------------------


def sums_of(asked: Asked, found: Mapping[str, Array]) -> Array:
    """Return the totals of one table as `Asked.of` does: exact sums, a cell without rows has zeros."""
    statistic, lookup = asked.statistic, asked.cells.lookup
    levels = statistic.n_levels if isinstance(statistic, LevelCounts) and statistic.trials is None else 1
    code, place = np.divmod(found["code"], levels)
    cell = lookup[code]
    if (cell < 0).any():
        raise PrivacyError("A row is in a cell that there is not; this is an error of pymc_dp.")
    if isinstance(statistic, LevelCounts):
        table = np.zeros((asked.cells.count, statistic.n_levels), dtype=np.int64)
        if statistic.trials is None:
            np.add.at(table, (cell, place), found["rows"])
        else:
            np.add.at(table, cell, found["sums"])
        return table[:, 1:] if asked.second else table
    values = np.concatenate([found["rows"][:, None], found["sums"]], axis=1)
    table = np.zeros((asked.cells.count, values.shape[1]), dtype=np.int64)
    np.add.at(table, cell, values)
    if isinstance(statistic, GramSums):
        return _products(statistic, table)
    if isinstance(statistic, BoundedMoments) and statistic.offset:
        table[:, -1] -= statistic.offset * table[:, 0]
    return table if asked.with_sizes else table[:, 1:]


def _products(statistic: GramSums, table: Array) -> Array:
    """Lay out sums of whole numbers by cell: of rows, of t and u, and of the products of all pairs."""
    lines, top = statistic.width + 1, 2**statistic.bits
    first = np.concatenate([table[:, 1 : 1 + lines], table[:, :1] * top], axis=1) * top
    products = table[:, 1 + lines :]
    apart = statistic.apart and len(statistic.cells) > 1
    return laid_out(statistic.reading().shape, first, products if apart else products.sum(axis=0, keepdims=True))


__all__ = ["Field", "Fields", "answered", "obstacles", "read_columns", "sums_of"]
