"""Columns of a design: what a formula makes of each row, with the public range of each and its mean in public."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.formulas.public_table import PublicTable, within
from pymc_dp.inspection.rows import Array

Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class DesignColumn:
    """One column of a design.

    Attributes
    ----------
    label : str
        As formulae calls it.
    values : (n_rows,) array
        Private, within `bounds`.
    shown : (n,) array
        The same column of the public table.
    bounds : (low, high)
        Range over everything that the public bounds and levels allow; between the points of a fine grid where the
        column is no monotone function of one column or product of such: values beyond are clamped.
    """

    label: str
    values: Array
    shown: Array
    bounds: Range


def design_columns(term: Any, table: PublicTable, rows: pd.DataFrame) -> list[DesignColumn]:
    """Return the columns of a term that has seen the public table, for private rows.

    Parameters
    ----------
    term : formulae.terms.terms.Term
    table : PublicTable
    rows : pandas.DataFrame
        Within what is public.

    Raises
    ------
    UnsupportedModelError
        If a column is not a finite number everywhere in public, or is the same number everywhere.
    """
    shown, ranges = _columns_of(term, table.frame), term_ranges(term, table)
    _check(term, shown, ranges)
    held = _columns_of(term, rows)
    return [
        DesignColumn(label=label, values=within(held[:, j], *ranges[j]), shown=shown[:, j], bounds=ranges[j])
        for j, label in enumerate(term.labels)
    ]


def term_ranges(term: Any, table: PublicTable) -> list[Range]:
    """Return the range of each column of a term: products of the ranges of its parts, in formulae's order."""
    return reduce(_products, [_component_ranges(component, table) for component in term.components])


def _products(left: list[Range], right: list[Range]) -> list[Range]:
    corners = [[a * b for a in one for b in other] for one in left for other in right]
    return [(min(ends), max(ends)) for ends in corners]


def _component_ranges(component: Any, table: PublicTable) -> list[Range]:
    values = _columns_of(component, table.grid(component.var_names))
    return list(zip(values.min(axis=0).tolist(), values.max(axis=0).tolist(), strict=True))


def _columns_of(part: Any, frame: pd.DataFrame) -> Array:
    """Evaluate a term or a part of it, by the numbers it has learned in public; no warning tells of a value."""
    with np.errstate(all="ignore"):
        values = np.asarray(part.eval_new_data(frame), dtype=np.float64)
    return values.reshape(len(frame), -1)


def _check(term: Any, shown: Array, ranges: list[Range]) -> None:
    ends = np.array(ranges)
    if not (np.isfinite(ends).all() and np.isfinite(shown).all()):
        raise _refused(term, "it is not a finite number everywhere between the public bounds", "Narrow the bounds.")
    if not (ends[:, 0] < ends[:, 1]).all() or not np.ptp(shown, axis=0).all():
        raise _refused(term, "one of its columns is the same everywhere between the public bounds", "Leave it out.")


def _refused(term: Any, what: str, remedy: str) -> UnsupportedModelError:
    return UnsupportedModelError([Problem(where=term.name, what=what, remedy=remedy)])


def group_index(factor: Any, table: PublicTable, rows: pd.DataFrame) -> Array:
    """Return the group of each row: places of levels, the last column varying fastest, as formulae counts them."""
    columns = [table.columns[component.name] for component in factor.components]
    sizes = [len(column.points(1)) for column in columns]
    codes = [rows[column.name].cat.codes.to_numpy().astype(np.int64) for column in columns]
    return np.ravel_multi_index(codes, sizes).astype(np.int64)


__all__ = ["DesignColumn", "design_columns", "group_index", "term_ranges"]
