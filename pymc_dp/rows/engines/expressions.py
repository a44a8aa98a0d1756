"""What one row adds to exact sums, as expressions that every engine computes alike, bit for bit.

Written without a function of the engine: choices, comparisons, ``+ - *`` and casts alone. The arithmetic is that of
`families.row_sum_kernels` and `rows.gram_kernels`; three things make it the same, and total, everywhere:

- Values are chosen between bounds first; NaN and null take the last branch (``x <= inf`` is false for NaN in IEEE order
  and in that of databases, where NaN is the greatest).
- Rounding to whole numbers, half to even, is ``(v + C) - C`` with ``C = 1.5 * 2**52`` in any IEEE arithmetic.
- What would round to 0 is set to 0 before it is multiplied: PostgreSQL raises on underflow.

Every number is held within its public range again once it is an int64, the square next to its root. So the sensitivity
of sums rests on integers and on that a row of the engine depends on one row; the engine's floats can cost identity,
never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from pymc_dp.families.gram import GramSums, Source
from pymc_dp.families.histogram import Bins
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.rows import Column, limits_of
from pymc_dp.kernel.readings import square
from pymc_dp.kernel.shapes import GRID
from pymc_dp.rows.engines.frames import Expr, Frame
from pymc_dp.rows.levels import Label, Levels

HALF_EVEN = 6755399441055744.0
"""1.5 * 2**52: added and subtracted, it leaves the nearest whole number of what is below 2**51."""
SLACK = GRID // 2 + 2**7
"""How far a rounded square times the grid may be from the exact one (`kernel.shapes.Curve`)."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """A column in an engine.

    Attributes
    ----------
    name : str
    dtype : dtype
        Of its numbers; object where it holds texts.
    levels : Levels or None
        Of its labels, which count as their codes.
    """

    name: str
    dtype: np.dtype[Any]
    levels: Levels | None = None


def as_held(frame: Frame, field: Field, wanted: np.dtype[Any], absent: int) -> Expr:
    """Return a stored column as the model would hold it: int64 for integers and booleans, else float64.

    Parameters
    ----------
    frame : Frame
    field : Field
    wanted : dtype
        That of the model; narrower integers are clipped.
    absent : int
        What stands for no value where the model holds integers. Floats keep their nulls, which count as NaN.
    """
    stored = field.dtype
    value = frame.column(field.name)
    if field.levels is not None:
        code = _code(frame, value, field.levels)
        return frame.to_number(code) if wanted.kind == "f" else _clipped(frame, code, np.dtype(np.int64), wanted)
    if stored.kind == "b":
        one, none = frame.choose(value, frame.whole(1), frame.whole(0)), frame.missing(value)
        if wanted.kind != "f":
            return frame.choose(none, frame.whole(absent), one)
        return frame.choose(none, frame.number(math.nan), frame.to_number(one))
    if wanted.kind == "f":
        return frame.to_number(value)
    held = _clipped(frame, frame.to_whole(value), stored, wanted)
    return frame.choose(frame.missing(value), frame.whole(absent), held)


def _clipped(frame: Frame, value: Expr, stored: np.dtype[Any], wanted: np.dtype[Any]) -> Expr:
    """Return an int64 as the nearest integer of another dtype."""
    least, most = limits_of(wanted)
    if np.iinfo(stored).max > most:
        value = frame.choose(value > frame.whole(most), frame.whole(most), value)
    if np.iinfo(stored).min < least:
        value = frame.choose(value < frame.whole(least), frame.whole(least), value)
    return value


def _code(frame: Frame, value: Expr, levels: Levels) -> Expr:
    """Return the code of a label: that of all others, and what tells the one that it is from it, added up."""
    rest, last = levels.rest, len(levels.labels) - 1

    def more(first: int, end: int) -> Expr:  # as deep as the logarithm of their number
        if end - first > 1:
            return more(first, (first + end) // 2) + more((first + end) // 2, end)
        same = _is_label(frame, value, levels.named[first])
        return frame.whole(0) if same is None else frame.choose(same, frame.whole(first - rest), frame.whole(0))

    found = more(0, len(levels.named)) if levels.named else frame.whole(0)
    return within(frame, found + frame.whole(rest), 0, last, above=rest)


def _is_label(frame: Frame, value: Expr, label: Label) -> Expr | None:
    """Return whether a value is a label; None for one that none is."""
    if isinstance(label, str):
        whole = label.encode("utf-8", "ignore").decode() == label
        return frame.same_text(value, label) if whole else None
    if not -(2**63) <= label < 2**63:
        return None
    number, one = frame.to_whole(value), frame.whole(label)
    return (number >= one) & (number <= one)


def level(frame: Frame, value: Expr, column: Column) -> Expr:
    """Return the place of an int64 among the levels of a column, as `row_sum_kernels.fold` finds it."""
    low, high = int(column.levels[0]), int(column.levels[-1])
    return within(frame, value, low, high, above=high if column.outside == "nearest" else low) - frame.whole(low)


def within(frame: Frame, value: Expr, low: int, high: int, *, above: int) -> Expr:
    """Return an int64 within public ends: what lies over them becomes `above`, all else outside `low`."""
    outside = frame.choose(value > frame.whole(high), frame.whole(above), frame.whole(low))
    return frame.choose((value >= frame.whole(low)) & (value <= frame.whole(high)), value, outside)


def counted(frame: Frame, value: Expr, wanted: np.dtype[Any], statistic: LevelCounts) -> Expr:
    """Return the level of a row, 0 to K - 1: of counts that are no trials; of an int64, unless they are bins."""
    last = statistic.n_levels - 1
    if isinstance(statistic, Bins):
        number = frame.to_number(value) if wanted.kind != "f" else value
        return _bin(frame, number, statistic.edges, statistic.n_levels // 2, last)
    return within(frame, value, 0, last, above=0)


def _bin(frame: Frame, value: Expr, edges: Sequence[float], missing: int, last: int) -> Expr:
    """Return the number of edges below a value, by halving: the expression is as deep as their logarithm."""

    def below(first: int, end: int) -> Expr:
        if first == end:
            return frame.whole(first)
        middle = (first + end) // 2
        return frame.choose(value <= frame.number(edges[middle]), below(first, middle), below(middle + 1, end))

    return frame.choose(value <= frame.number(math.inf), below(0, last), frame.whole(missing))


def with_moments(frame: Frame, name: str, statistic: BoundedMoments) -> tuple[Frame, list[str]]:
    """Return a table with the integers of the powers of a float64 column, and their names.

    Parameters
    ----------
    frame : Frame
    name : str
        Of the column.
    statistic : BoundedMoments
    """
    low, high = statistic.low, statistic.high
    middle = min(max(0.5 * (low + high), low), high)
    frame = _steps(frame, [name], [(low, high, middle, statistic.centre, 1.0 / statistic.unit)])
    (k,), (least, most) = _step_names([name]), statistic.reach
    step = frame.column(k)
    frame = frame.extended({"k": within(frame, step, least, most, above=most)})
    if 2 not in statistic.powers:
        return frame, ["k"]
    # The squares of the kernel, of floats: of more than 53 bits they are not those of integers.
    number = frame.to_number(frame.column("k"))
    rounded = _rounded(frame, number * number * frame.number(1.0 / GRID))
    frame = frame.extended({"r": frame.to_whole(rounded)})
    frame = frame.extended({"q": within(frame, frame.column("r"), 0, GRID, above=GRID)})
    off = frame.column("q") * frame.whole(GRID) - frame.column("k") * frame.column("k")
    fits = (off >= frame.whole(-SLACK)) & (off <= frame.whole(SLACK))
    frame = frame.extended(
        {
            "first": frame.choose(fits, frame.column("k"), frame.whole(least)),
            "second": frame.choose(fits, frame.column("q"), frame.whole(square(least))),
        }
    )
    return frame, [("first", "second")[power - 1] for power in statistic.powers]


def with_products(frame: Frame, names: Sequence[str], statistic: GramSums) -> tuple[Frame, list[str], list[str]]:
    """Return a table with whole numbers of a regression, their names, and those of the products of all pairs.

    Parameters
    ----------
    frame : Frame
    names : sequence of str
        Of float64 columns: those of the predictors, and of the response at last.
    statistic : GramSums
        Of boxes.
    """
    top = 2**statistic.bits
    ranges = [each for source in (*statistic.sources, statistic.response) for each in _boxes(source, top)]
    frame = _steps(frame, names, ranges)
    firsts = [f"t{place}" for place in range(len(names))]
    steps = [frame.column(name) for name in _step_names(names)]
    frame = frame.extended(
        {name: within(frame, step, -top, top, above=top) for name, step in zip(firsts, steps, strict=True)}
    )
    pairs = list(combinations_with_replacement(range(len(names)), 2))
    products = {f"p{i}_{j}": frame.column(firsts[i]) * frame.column(firsts[j]) for i, j in pairs}
    return frame.extended(products), firsts, list(products)


def _boxes(source: Source, top: int) -> list[tuple[float, float, float, float, float]]:
    """Ranges of the columns of an array: half as wide again as their bounds, which are clamped as integers."""
    return [
        (centre - 1.5 * half, centre + 1.5 * half, centre, centre, top / half)
        for centre, half in zip(source.centres, source.halves, strict=True)
    ]


def _step_names(names: Sequence[str]) -> list[str]:
    return [f"{name}_step" for name in names]


def _steps(frame: Frame, names: Sequence[str], ranges: Sequence[tuple[float, float, float, float, float]]) -> Frame:
    """Return a table with ``rint((clip(x, low, high) - centre) * per_unit)`` as int64, NaN at `middle`.

    Parameters
    ----------
    ranges : sequence of (low, high, middle, centre, per_unit)
        One per column.
    """
    clamped, moved, steps = {}, {}, {}
    for name, (low, high, middle, centre, per_unit) in zip(names, ranges, strict=True):
        value, about, small = frame.column(name), frame.column(f"{name}_moved"), 0.25 / per_unit
        clamped[f"{name}_clamped"] = _clamped(frame, value, low, high, middle)
        moved[f"{name}_moved"] = frame.column(f"{name}_clamped") - frame.number(centre)
        tiny = (about > frame.number(-small)) & (about < frame.number(small))
        scaled = frame.choose(tiny, frame.number(0.0), about) * frame.number(per_unit)
        steps[f"{name}_step"] = frame.to_whole(_rounded(frame, scaled))
    return frame.extended(clamped).extended(moved).extended(steps)


def _clamped(frame: Frame, value: Expr, low: float, high: float, middle: float) -> Expr:
    least, most = frame.number(low), frame.number(high)
    finite = frame.choose((value > most) & (value <= frame.number(math.inf)), most, frame.number(middle))
    return frame.choose((value >= least) & (value <= most), value, frame.choose(value < least, least, finite))


def _rounded(frame: Frame, value: Expr) -> Expr:
    return (value + frame.number(HALF_EVEN)) - frame.number(HALF_EVEN)


def with_trials(frame: Frame, names: Sequence[str], statistic: LevelCounts) -> tuple[Frame, list[str]]:
    """Return a table with the counts that vectors of counts add, as `row_sum_kernels.add_trials` finds them.

    Parameters
    ----------
    frame : Frame
    names : sequence of str
        Of the float64 columns of a row.
    statistic : LevelCounts
        Of trials.
    """
    assert statistic.trials is not None
    frame = frame.extended({"left0": frame.whole(statistic.trials)})
    taken = [f"taken{place}" for place in range(len(names))]
    for place, name in enumerate(names[:-1]):
        value, left = frame.column(name), frame.column(f"left{place}")
        room, none = frame.to_number(left), frame.number(0.0)
        most = frame.choose((value >= room) & (value <= frame.number(math.inf)), room, none)
        held = frame.choose((value > none) & (value < room), value, most)
        frame = frame.extended({f"rounded{place}": frame.to_whole(_rounded(frame, held))})
        rounded = frame.column(f"rounded{place}")
        inside = (rounded >= frame.whole(0)) & (rounded <= left)
        frame = frame.extended({taken[place]: frame.choose(inside, rounded, frame.whole(0))})
        frame = frame.extended({f"left{place + 1}": left - frame.column(taken[place])})
    last = frame.column(f"left{len(names) - 1}")
    return frame.extended({taken[-1]: last + frame.whole(0)}), taken


__all__ = ["Field", "as_held", "counted", "level", "with_moments", "with_products", "with_trials", "within"]
