"""The canary: public constants go through the very expressions in the engine, before anything is charged.

An engine, version or processor that rounds, orders NaN, or contracts products otherwise than the kernels is refused.
Nothing private is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pymc_dp.families.gram import GramSums
from pymc_dp.families.histogram import Bins
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.rows.asked import Asked
from pymc_dp.rows.engines.added import Fields, answered, read_columns, sums_of
from pymc_dp.rows.engines.expressions import Field
from pymc_dp.rows.engines.frames import Frame
from pymc_dp.rows.passes import cast
from pymc_dp.rows.stored import Part

ROW = "pymc_dp_row"
SPECIAL = (
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 1.7e308, -1.7e308),
    *(0.49999999999999994, 0.5, 1.5, 2.5, -0.5, 1 / 3, 0.1, 1.0, -1.0, 2.0**53 + 2, -1e16, 1e300),
)
DRAWN = 12
"""Constants that are drawn between the bounds of each use of a column, beside ties and bounds."""
NULLS = 4
"""Missing values in each column."""


def sings(frame: Frame, asked: Sequence[Asked], fields: Fields) -> bool:
    """Compare an engine with the kernels on constants, row by row and all rows together.

    Parameters
    ----------
    frame : Frame
        Of the table; of the same engine, constants are made.
    asked : sequence of Asked
        Without obstacles.
    fields : mapping of Variable to sequence of Field

    Returns
    -------
    bool
        Whether all integers are the same.
    """
    parts = constants(asked, fields)
    table = frame.constants(parts)
    n_rows = len(parts[ROW].values)
    single = answered(table, asked, fields, keys=[ROW])
    whole = answered(table, asked, fields)
    held = {column.leaf: _held(column, fields, parts) for column in read_columns(asked)}
    for item, by_row, total in zip(asked, single, whole, strict=True):
        for row in range(n_rows):
            chosen = by_row["keys"][:, 0] == row
            found = {name: values[chosen] for name, values in by_row.items()}
            if len(found["code"]) != 1 or not _agrees(item, found, held, slice(row, row + 1)):
                return False
        if not _agrees(item, total, held, slice(None)):
            return False
    return True


def _agrees(asked: Asked, found: Mapping[str, Array], held: Mapping[Any, Array], rows: slice) -> bool:
    return np.array_equal(sums_of(asked, found), asked.of(lambda column: held[column.leaf][rows]))


def _held(column: Column, fields: Fields, parts: Mapping[str, Part]) -> Array:
    return cast(column, [_coded(field, parts[field.name]) for field in fields[column.leaf]])


def _coded(field: Field, part: Part) -> Part:
    """Return constants as they are stored with their labels as codes."""
    if field.levels is None:
        return part
    none = np.zeros(len(part.values), dtype=bool) if part.missing is None else part.missing
    labels = [None if missing else label for label, missing in zip(part.values.tolist(), none.tolist(), strict=True)]
    return Part(field.levels.places(labels), None)


def constants(asked: Sequence[Asked], fields: Fields) -> dict[str, Part]:
    """Return awkward values for every column in the engine, as many for each, and the number of the row."""
    rng = np.random.default_rng(0)
    values: dict[str, list[Any]] = {}
    kinds: dict[str, Field] = {}
    for item in asked:
        for column, entry, of_interest in _uses(item):
            field = fields[column.leaf][entry]
            kinds[field.name] = field
            of_labels = field.levels is not None
            values.setdefault(field.name, []).extend(_labels(field) if of_labels else of_interest(rng))
    made = {
        name: np.array(found, dtype=object) if kinds[name].dtype == object else _of_dtype(kinds[name].dtype, found)
        for name, found in values.items()
    }
    n_rows = max(map(len, made.values())) + NULLS
    parts = {}
    for name, found in made.items():
        order = rng.permutation(n_rows)
        # What is missing is a repetition: no value is left out.
        parts[name] = Part(np.resize(found, n_rows)[order], order >= n_rows - NULLS)
    return parts | {ROW: Part(np.arange(n_rows), None)}


def _labels(field: Field) -> list[Any]:
    """Return labels, and what is nearly one."""
    assert field.levels is not None
    named = field.levels.named
    if field.dtype != object:
        return [near for label in named for near in (label, int(label) - 1, int(label) + 1)]
    texts = [
        text for label in map(str, named) for text in (label, f"{label} ", f" {label}", label.upper(), label.lower())
    ]
    plain = [text for text in texts if "\0" not in text and text.encode("utf-8", "ignore").decode() == text]
    return [*plain, "", "\u00e9", "e\u0301", "other"]


def _uses(asked: Asked) -> Iterator[tuple[Column, int, Callable[[np.random.Generator], list[float]]]]:
    """Yield columns, entries of their rows, and what makes values that matter for what is done with them."""
    for column in asked.cells.columns:
        yield column, 0, partial(_near, column.levels[[0, -1]].tolist(), 1.0)
    statistic, response = asked.statistic, asked.response
    match statistic:
        case BoundedMoments():
            box = (statistic.low, statistic.high, statistic.centre, statistic.unit)
            yield response, 0, partial(_in_box, *box)
        case GramSums():
            for column, source in zip(
                (*asked.predictors, response), (*statistic.sources, statistic.response), strict=True
            ):
                for entry, (centre, half) in enumerate(zip(source.centres, source.halves, strict=True)):
                    unit = half / 2.0**statistic.bits
                    yield column, entry, partial(_in_box, centre - half, centre + half, centre, unit)
        case Bins():
            yield response, 0, partial(_near, list(statistic.edges), 0.0)
        case LevelCounts():
            last = statistic.n_levels - 1 if statistic.trials is None else statistic.trials
            for entry in range(statistic.width):
                yield response, entry, partial(_counts, last)


def _near(ends: Sequence[float], step: float, rng: np.random.Generator) -> list[float]:
    held = [float(end) for end in ends]
    beyond = [end + sign * step for end in held for sign in (-1, 1)] if step else []
    return [*held, *_neighbours(held), *beyond]


def _in_box(low: float, high: float, centre: float, unit: float, rng: np.random.Generator) -> list[float]:
    ties = [centre + (step + 0.5) * unit for step in (0, 1, 2, -1, -2, 1001, -1002)]
    drawn = low + (high - low) * rng.random(DRAWN)
    held = [low, high, centre, 0.5 * low + 0.5 * high, centre + 1e-3 * unit, *ties]
    return [*held, *_neighbours(held), *drawn.tolist(), low - unit, high + unit]


def _counts(last: int, rng: np.random.Generator) -> list[float]:
    held = [0.0, 1.0, float(last), float(last - 1)]
    drawn = rng.uniform(0, last + 1, DRAWN).tolist()
    return [*held, *_neighbours(held), last + 1.0, last // 2 + 0.5, last // 3, *drawn]


def _neighbours(values: Sequence[float]) -> list[float]:
    return [math.nextafter(value, end) for value in values for end in (-math.inf, math.inf)]


def _of_dtype(dtype: np.dtype[Any], values: Sequence[float]) -> Array:
    """Return values, and what is special about a dtype, in it."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.array([*SPECIAL, *values]).astype(dtype)
    ends = np.iinfo(dtype)
    whole = [int(value) for value in values if math.isfinite(value)]
    more = [ends.min, ends.max, ends.min + 1, ends.max - 1, 0, 1, 2, -1, 2**53 + 1, -(2**53) - 1]
    return np.array([min(max(value, ends.min), ends.max) for value in (*more, *whole)], dtype=dtype)


__all__ = ["constants", "sings"]
