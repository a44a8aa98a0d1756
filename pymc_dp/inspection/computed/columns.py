"""Columns that the model computes from those of the table, row by row: ``x ** 2``, ``log(x)``, ``age > 40``."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.errors import PrivacyError, Problem
from pymc_dp.inspection.computed.expressions import Formula, Program, entries_of, name_of, range_of
from pymc_dp.inspection.rows import Array, Column, clamp_floats


@dataclass(frozen=True, kw_only=True, eq=False)
class ComputedColumn(Column):
    """A function of columns of the table, one number a row, clamped to bounds of its own.

    Attributes
    ----------
    given : tuple of Column
        What it is computed from, in the order of `program`; its values are private where one of them is.
    program : Program

    Notes
    -----
    **Guarantee.** A value depends on its row alone, bit for bit, and lies within `bounds` whatever is computed: the
    columns given are clamped before, and the result after. Bounds come from interval arithmetic, but privacy does not
    depend on it: bounds that were too narrow would clamp more.
    """

    given: tuple[Column, ...]
    program: Program

    @property
    @override
    def row_shape(self) -> tuple[int, ...]:
        return ()

    @property
    @override
    def sources(self) -> tuple[Column, ...]:
        return self.given

    @override
    def of(self, values: Callable[[Column], Array]) -> Array:
        held = [_within(column.of(values), column) for column in self.given]
        if len({len(rows) for rows in held}) != 1:
            raise PrivacyError("Columns of one table have different lengths. Give them one length, by one pm.set_data.")
        found = self.program.values(held, len(held[0]))
        if self.integer:
            np.rint(found, out=found)
        return _within(found, self).astype(self.leaf.type.dtype)


def _within(values: Array, column: Column) -> Array:
    """Return a copy of numbers clamped to the bounds of a column, NaN to their middle, one by one, with no warning."""
    if column.bounds is None:
        raise PrivacyError("Values without bounds would be computed with; this is an error of pymc_dp.")
    low, high = column.ends if column.ranges else column.bounds
    with np.errstate(all="ignore"):
        held = np.array(values, dtype=np.float64, order="C")
        clamp_floats(held, low, high)
    return held


def computed_column(where: str, formula: Formula, dtype: str, taken: Container[str] = ()) -> ComputedColumn | Problem:
    """Return the column of a formula, or say why it has no bounds.

    Parameters
    ----------
    where : str
        Name of the likelihood.
    formula : Formula
        Of columns that have bounds.
    dtype : str
        Of the column: whole numbers where it is an index.
    taken : container of str
        Names that others have: columns may be called anything.
    """
    name, given = name_of(formula), tuple(dict.fromkeys(entry.column for entry in entries_of(formula)))
    while name in taken:
        name = f"({name})"
    if not given:
        return Problem(
            where=where,
            what=f"{name} is a function of columns that are constants, by their bounds",
            remedy="Write the number itself in the model.",
        )
    unbounded = [column.name for column in given if column.bounds is None]
    if unbounded:
        return Problem(
            where=where,
            what=f"{name} is computed from {unbounded[0]!r}, of which only the norm of a row is known",
            remedy=f"Give bounds in place of the norm: Domain(bounds={{{unbounded[0]!r}: (low, high)}}).",
        )
    bounds = range_of(formula)
    if bounds is None:
        shown = " and ".join("{!r} ({:g}, {:g})".format(column.name, *column.bounds or ()) for column in given)
        return Problem(
            where=where,
            what=f"{name} may be infinite or no number for a row within the bounds of {shown}",
            remedy="Give public bounds within which it is a number: for a logarithm or a quotient, bounds that leave "
            f"out 0, Domain(bounds={{{given[0].name!r}: (low, high)}}); or cut the column off inside of the model, by "
            "pt.maximum.",
        )
    low, high = bounds
    leaf: Variable = pt.TensorType(dtype, (None,))(name)
    return ComputedColumn(
        name=name,
        leaf=leaf,
        public=all(column.public for column in given),
        bounds=bounds if low < high or np.dtype(dtype).kind == "i" else (low - 1.0, high + 1.0),
        stand_ins=(leaf,),
        given=given,
        program=Program.of(given, formula),
    )


def shown(columns: Iterable[Column]) -> list[str]:
    """Say which columns are computed, and within which bounds: ``x ** 2 in [0, 4]``."""
    found = (column for column in columns if isinstance(column, ComputedColumn) and column.bounds is not None)
    return ["{} in [{:g}, {:g}]".format(column.name, *column.bounds or ()) for column in found]


__all__ = ["ComputedColumn", "computed_column", "shown"]
