"""Formulas of the numbers in one row: what they are called, how large they can be, and their values.

A formula holds numbers, entries of a row, and operations on these, one number each. So what it is for a row depends on
that row alone, whatever the graph was that it was read from; and no operation is here that can fail for some values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import product
from typing import Any

import numpy as np
import pytensor.scalar.basic as ops
from pytensor.graph.basic import Variable
from pytensor.scalar.math import Sigmoid

from pymc_dp.inspection.rows import Array, Bounds, Column

TRIED = 4096
"""Combinations of values of the entries at which a formula is worked out, to find its range."""
FARTHEST = (1e12, 1e300)
"""Sizes of what has no bounds; a formula whose range grows from one to the other has none."""
ZOOMS, AROUND = 8, 33
"""How often an extreme is looked at more closely, and at how many values of each entry."""
LONGEST = 60
"""Letters of a name; a digest stands for the rest of a longer formula."""
DIGITS = 12
"""Of a bound that arithmetic gave: values are clamped to it, so that it need not be an outer one to the last bit."""

COMPARED, ADDED, TIMES, POWERS, ALONE = range(5)
"""How tightly an operation binds its operands."""
WRITTEN: dict[type, tuple[str, int]] = {
    ops.Add: ("{} + {}", ADDED),
    ops.Sub: ("{} - {}", ADDED),
    ops.Mul: ("{} * {}", TIMES),
    ops.TrueDiv: ("{} / {}", TIMES),
    ops.IntDiv: ("{} // {}", TIMES),
    ops.Mod: ("{} % {}", TIMES),
    ops.Pow: ("{} ** {}", POWERS),
    ops.EQ: ("{} == {}", COMPARED),
    ops.NEQ: ("{} != {}", COMPARED),
    ops.LT: ("{} < {}", COMPARED),
    ops.LE: ("{} <= {}", COMPARED),
    ops.GT: ("{} > {}", COMPARED),
    ops.GE: ("{} >= {}", COMPARED),
    ops.AND: ("{} & {}", COMPARED),
    ops.OR: ("{} | {}", COMPARED),
    ops.XOR: ("{} ^ {}", COMPARED),
    ops.Neg: ("-{}", POWERS),
    ops.Invert: ("~{}", POWERS),
    ops.Maximum: ("maximum({}, {})", ALONE),
    ops.Minimum: ("minimum({}, {})", ALONE),
    ops.Abs: ("abs({})", ALONE),
    ops.Sqrt: ("sqrt({})", ALONE),
    ops.Exp: ("exp({})", ALONE),
    ops.Expm1: ("expm1({})", ALONE),
    ops.Log: ("log({})", ALONE),
    ops.Log1p: ("log1p({})", ALONE),
    ops.Log2: ("log2({})", ALONE),
    ops.Log10: ("log10({})", ALONE),
    ops.Sin: ("sin({})", ALONE),
    ops.Cos: ("cos({})", ALONE),
    ops.Tanh: ("tanh({})", ALONE),
    Sigmoid: ("sigmoid({})", ALONE),
    ops.Floor: ("floor({})", ALONE),
    ops.Ceil: ("ceil({})", ALONE),
    ops.Trunc: ("trunc({})", ALONE),
    ops.RoundHalfToEven: ("round({})", ALONE),
    ops.Sign: ("sign({})", ALONE),
    ops.Switch: ("where({}, {}, {})", ALONE),
    ops.Clip: ("clip({}, {}, {})", ALONE),
}
"""Every operation that a formula may have, by its class in PyTensor, how it is written, and how tightly it binds.

Their places here are their codes in `kernel`.
"""
CODES = {kind: code for code, kind in enumerate(WRITTEN)}


@dataclass(frozen=True)
class Number:
    """A public number."""

    value: float

    def __str__(self) -> str:
        return repr(self.value).removesuffix(".0")  # of no other number


@dataclass(frozen=True)
class Entry:
    """One entry of a row of a column."""

    column: Column
    place: int

    def __str__(self) -> str:
        name = _quoted(self.column.name)
        return name if not self.column.row_shape else f"{name}[{self.place}]"

    @property
    def leaf(self) -> Variable:
        """Return what stands for the entries of all rows in graphs."""
        held: Any = self.column.stand_ins[0]
        shape = self.column.row_shape
        return held[(slice(None), *map(int, np.unravel_index(self.place, shape)))] if shape else held


@dataclass(frozen=True)
class Applied:
    """An operation, by its class in PyTensor, on formulas."""

    kind: type
    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        text, rank = WRITTEN[self.kind]
        if rank == ALONE:
            return text.format(*self.parts)
        # The second operand is in brackets also where it binds as tightly: a - (b - c).
        inner = [
            _within(part, rank + (place > 0 or rank in (COMPARED, POWERS))) for place, part in enumerate(self.parts)
        ]
        return text.format(*inner)

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.parts))

    def __hash__(self) -> int:
        return self._hash


def entry_of(column: Column, place: int) -> Formula:
    """Return one entry of a row of a column: a number where every row has the same one."""
    low, high = column.range_of(place) or (-np.inf, np.inf)
    return Number(low) if low == high and column.ranges else Entry(column, place)


Formula = Number | Entry | Applied
ONE = Number(1.0)


PLAIN = re.compile(r"(?!(?:inf|nan)$)[^\W\d]\w*(::\w+)*")
"""Names of columns that no formula is written as, those in a model within a model included."""


def _quoted(name: str) -> str:
    """Return the name of a column as formulas have it: one that may be read as a formula itself is in backquotes."""
    return name if PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _within(part: Formula, least: int) -> str:
    binds = WRITTEN[part.kind][1] if isinstance(part, Applied) else POWERS - 1 if str(part).startswith("-") else ALONE
    return str(part) if binds >= least else f"({part})"


def name_of(formula: Formula) -> str:
    """Return what a column of values of a formula is called: different formulas have different names."""
    text = str(formula)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… #{blake2b(text.encode(), digest_size=4).hexdigest()}"


def applied(kind: type, *parts: Formula) -> Formula:
    """Return an operation on formulas; products and squares in one form, however they are written."""
    if kind is ops.Mul:
        return _multiplied(parts)
    if kind is ops.Sqr:
        return _multiplied([parts[0]] * 2)
    if kind is ops.Pow and isinstance(parts[1], Number) and parts[1].value in range(1, 20):
        return _multiplied([parts[0]] * int(parts[1].value))
    return Applied(kind, parts)


def _multiplied(parts: Sequence[Formula]) -> Formula:
    """Return a product: in one order whatever the order of its factors is, equal ones as a power."""
    number, powers = 1.0, dict[Formula, int]()
    for factor, power in (item for part in parts for item in _factors(part)):
        if isinstance(factor, Number):
            number *= factor.value**power
        else:
            powers[factor] = powers.get(factor, 0) + power
    found: list[Formula] = [
        factor if power == 1 else Applied(ops.Pow, (factor, Number(float(power))))
        for factor, power in sorted(powers.items(), key=lambda item: str(item[0]))
    ]
    if number != 1 or not found:
        found.insert(0, Number(number))
    made = found[0]
    for factor in found[1:]:
        made = Applied(ops.Mul, (made, factor))
    return made


def _factors(formula: Formula) -> Iterator[tuple[Formula, int]]:
    if isinstance(formula, Applied) and formula.kind is ops.Mul:
        for part in formula.parts:
            yield from _factors(part)
    elif isinstance(formula, Applied) and formula.kind is ops.Pow and isinstance(formula.parts[1], Number):
        base, power = formula.parts[0], formula.parts[1].value
        whole = power == int(power) and 0 < power < 20
        yield from [(base, int(power))] if whole else [(formula, 1)]
    else:
        yield formula, 1


def entries_of(formula: Formula) -> list[Entry]:
    """Return the entries that a formula reads, each once."""
    return list(dict.fromkeys(part for part in in_order(formula) if isinstance(part, Entry)))


def in_order(formula: Formula) -> list[Formula]:
    """Return the parts of a formula, each once and after what it is made of; the formula itself is the last one."""
    found: dict[Formula, None] = {}
    stack = [(formula, False)]
    while stack:
        part, ready = stack.pop()
        if part in found:
            continue
        if ready or not isinstance(part, Applied):
            found[part] = None
        else:
            stack.append((part, True))
            stack += [(one, False) for one in reversed(part.parts)]
    return list(found)


def range_of(formula: Formula) -> Bounds | None:
    """Return the range of a formula that is found for rows within their bounds; None where it is no number for some.

    At the ends, evenly between them, and near what is largest and least there; whole numbers are tried one by one where
    they are few. A value beyond is clamped, like any value of a column.
    """
    if isinstance(formula, Entry):
        return formula.column.range_of(formula.place)
    entries = entries_of(formula)
    count = max(2, int(TRIED ** (1 / max(1, len(entries)))))
    values = [_values(entry, count) for entry in entries]
    points = np.array(list(product(*values)), dtype=np.float64).reshape(-1, len(entries))
    found = _worked_out(formula, entries, points)
    if not np.isfinite(found).all():
        return None
    near = (np.abs(points) <= FARTHEST[0]).all(axis=1)
    low, high = float(found.min()), float(found.max())
    if np.ptp(found[near]) < (high - low) * (1 - 1e-9):
        return None
    steps = np.array([np.diff(one).max(initial=0.0) for one in values])
    for sign, place in ((-1.0, found.argmin()), (1.0, found.argmax())):
        best = _closer(formula, entries, points[place], steps, sign)
        low, high = min(low, best), max(high, best)
    return float(f"{low:.{DIGITS}g}"), float(f"{high:.{DIGITS}g}")


def _values(entry: Entry, count: int) -> Array:
    """Return values that an entry takes: its ends, others evenly between them, and 0."""
    low, high = entry.column.range_of(entry.place) or (-np.inf, np.inf)
    if entry.column.integer and high - low < count:
        return np.arange(int(low), int(high) + 1, dtype=np.float64)
    if not np.isfinite(high - low):
        least, most = max(low, -100.0), min(high, 100.0)
        far = [value for size in FARTHEST for value in (-size, size) if low <= value <= high]
        ends = [end for end in (low, high) if np.isfinite(end)]
        return np.unique([*np.linspace(min(least, most), max(least, most), count), *far, *ends])
    found = np.linspace(low, high, count)
    return np.unique([*(np.rint(found) if entry.column.integer else found), *([0.0] if low < 0 < high else [])])


def _closer(formula: Formula, entries: Sequence[Entry], point: Array, steps: Array, sign: float) -> float:
    """Return the largest number (of sign 1), or the least, near a point where it is large, or small, already."""
    point, best = point.copy(), sign * -np.inf
    for zoom in range(ZOOMS):
        for place, entry in enumerate(entries):
            low, high = entry.column.range_of(entry.place) or (-np.inf, np.inf)
            step = steps[place] * (4 / AROUND) ** zoom
            if entry.column.integer or not np.isfinite(step) or step > FARTHEST[0] * 1e-6:
                continue
            tried = np.repeat(point[None], AROUND, axis=0)
            tried[:, place] = np.clip(point[place] + np.linspace(-step, step, AROUND), low, high)
            found = _worked_out(formula, entries, tried)
            if not np.isfinite(found).all():
                return float(sign * np.max(sign * found[np.isfinite(found)], initial=sign * best))
            point = tried[int((sign * found).argmax())]
            best = float(found[int((sign * found).argmax())])
    return best if np.isfinite(best) else float(_worked_out(formula, entries, point[None])[0])


def _worked_out(formula: Formula, entries: Sequence[Entry], points: Array) -> Array:
    """Return the value of a formula at public (n, n_entries) values of its entries."""
    program = Program.of(list(dict.fromkeys(entry.column for entry in entries)), formula)
    return program.run(np.ascontiguousarray(points.T))


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """A formula as a list of operations on numbered registers: numbers first, then entries, then results.

    Attributes
    ----------
    numbers : (n_numbers,) array
    entries : tuple of (int, int)
        Place of the column among those given, and of the entry in its row.
    codes : (n_operations,) int64 array
    operands : (n_operations, 3) int64 array
        Registers; the first one stands for those that an operation has not.
    """

    numbers: Array
    entries: tuple[tuple[int, int], ...]
    codes: Array
    operands: Array

    @classmethod
    def of(cls, columns: Sequence[Column], formula: Formula) -> Program:
        """Return the program of a formula over the entries of some columns."""
        parts = in_order(formula)
        numbers = [part for part in parts if isinstance(part, Number)]
        entries = [part for part in parts if isinstance(part, Entry)]
        steps = [part for part in parts if isinstance(part, Applied)]
        registers: list[Formula] = [*numbers, *entries, *steps]
        places = {part: place for place, part in enumerate(registers)}
        operands = [[places[one] for one in step.parts] for step in steps]
        return cls(
            numbers=np.array([number.value for number in numbers], dtype=np.float64),
            entries=tuple((columns.index(entry.column), entry.place) for entry in entries),
            codes=np.array([CODES[step.kind] for step in steps], dtype=np.int64),
            operands=np.array([(one * 3)[:3] if len(one) < 3 else one for one in operands], dtype=np.int64).reshape(
                -1, 3
            ),
        )

    def values(self, columns: Sequence[Array], n_rows: int) -> Array:
        """Return the value of every row, (n_rows,), each by itself and with no warning.

        The loop goes from row to row, and within a row from operation to operation: no vector instruction takes several
        rows at once, so that a value is the same bit for bit wherever the row stands, and whatever stands beside it.
        """
        rows = np.empty((len(self.entries), n_rows))
        for place, (column, entry) in enumerate(self.entries):
            rows[place] = columns[column].reshape(n_rows, int(np.prod(columns[column].shape[1:])))[:, entry]
        return self.run(rows)

    def run(self, rows: Array) -> Array:
        """Return the same from an (n_entries, n_rows) array of what is read."""
        from pymc_dp.inspection.computed import kernel

        found = np.empty(rows.shape[1])
        kernel.run(self.codes, self.operands, self.numbers, rows, found)
        return found


__all__ = [
    "ONE",
    "Applied",
    "Entry",
    "Formula",
    "Number",
    "Program",
    "applied",
    "entries_of",
    "entry_of",
    "name_of",
    "range_of",
]
