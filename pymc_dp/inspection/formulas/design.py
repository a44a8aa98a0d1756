"""Columns of a design: what a formula makes of each row, with the public range of each and its mean in public.

A table that stands for the rows wherever a model learns from them, made of nothing but what is declared public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.rows import Array, Bounds

LEAST_ROWS = 1_000
GRID = 10_000
"""Points, about, at which a part of a formula is looked at for its range."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicColumn:
    """What is public about one column of a data frame.

    Attributes
    ----------
    name : str
    bounds : (low, high)
        Range of numbers; means nothing for labels.
    levels : pandas.CategoricalDtype or None
        Declared labels; None for numbers.
    whole : bool
        Whether the numbers are whole ones.
    """

    name: str
    bounds: Bounds = (0.0, 1.0)
    levels: pd.CategoricalDtype | None = None
    whole: bool = False

    def spread(self, count: int) -> Array:
        """Return `count` values spread evenly: an arithmetic sequence from bound to bound, or each level as often."""
        if self.levels is not None:
            return np.arange(count) * len(self.levels.categories) // count
        values = np.linspace(*self.bounds, count)
        return np.rint(values) if self.whole else values

    def points(self, count: int) -> Array:
        """Return about `count` values with both ends among them, or one of each level."""
        return np.arange(len(self.levels.categories)) if self.levels is not None else self.spread(max(count, 2))

    def series(self, values: Array) -> Any:
        """Return values, or places of levels, as a column of a data frame."""
        if self.levels is None:
            return pd.Series(values.astype(np.float64))
        return pd.Series(pd.Categorical.from_codes(values, dtype=self.levels))

    def clamped(self, held: Any) -> Array:
        """Return values within the bounds, NaN at the middle, or places of levels, missing labels at the first."""
        if self.levels is not None:
            return np.maximum(held.cat.codes.to_numpy(), 0).astype(np.int64)
        values = within(held.to_numpy(dtype=np.float64, na_value=np.nan), *self.bounds)
        return np.rint(values) if self.whole else values


def within(values: Array, low: float, high: float) -> Array:
    """Return values clamped to [low, high], NaN at the middle."""
    return np.where(np.isnan(values), low / 2 + high / 2, np.clip(values, low, high))


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicTable:
    """Public columns, and a data frame spread evenly over them."""

    columns: Mapping[str, PublicColumn]
    frame: pd.DataFrame

    @classmethod
    def of(cls, columns: Sequence[PublicColumn], together: Iterable[Iterable[str]]) -> PublicTable:
        """Spread rows over columns; there are enough for levels that are looked at `together` to meet.

        Each column is evenly spread by itself (numbers have mean (low + high) / 2 and standard deviation
        (high - low) / √12, up to 0.1 %), and the columns are shuffled against each other with fixed seeds.
        """
        sizes = {column.name: len(column.points(1)) for column in columns if column.levels is not None}
        meeting = [math.prod(sizes.get(name, 1) for name in names) for names in together]
        count = max([LEAST_ROWS, *sizes.values(), *(8 * size for size in meeting)])
        shuffled = {
            column.name: column.series(np.random.default_rng([count, place]).permutation(column.spread(count)))
            for place, column in enumerate(columns)
        }
        return cls(columns={column.name: column for column in columns}, frame=pd.DataFrame(shuffled))

    def known(self, names: Iterable[str]) -> frozenset[str]:
        """Return the columns among names: formulae counts literals as names, too."""
        return frozenset(names) & frozenset(self.columns)

    def grid(self, names: Iterable[str]) -> pd.DataFrame:
        """Return points that cover the public box of some columns, its corners included."""
        columns = [self.columns[name] for name in sorted(self.known(names))]
        each = round(GRID ** (1 / max(1, sum(column.levels is None for column in columns)))) | 1
        axes = np.meshgrid(*(column.points(each) for column in columns), indexing="ij")
        filled = {column.name: column.series(axis.ravel()) for column, axis in zip(columns, axes, strict=True)}
        return pd.DataFrame(filled, index=None if filled else range(1))

    def rows(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the private rows, every value within what is public."""
        with np.errstate(all="ignore"):
            return pd.DataFrame(
                {name: column.series(column.clamped(data[name])) for name, column in self.columns.items()}
            )


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
    bounds: Bounds


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
    shown, ranges = design_matrix(term, table.frame), term_ranges(term, table)
    _check(term, shown, ranges)
    held = design_matrix(term, rows)
    return [
        DesignColumn(label=label, values=within(held[:, j], *ranges[j]), shown=shown[:, j], bounds=ranges[j])
        for j, label in enumerate(term.labels)
    ]


def term_ranges(term: Any, table: PublicTable) -> list[Bounds]:
    """Return the range of each column of a term: products of the ranges of its parts, in formulae's order."""
    return reduce(_products, [_component_ranges(component, table) for component in term.components])


def _products(left: list[Bounds], right: list[Bounds]) -> list[Bounds]:
    corners = [[a * b for a in one for b in other] for one in left for other in right]
    return [(min(ends), max(ends)) for ends in corners]


def _component_ranges(component: Any, table: PublicTable) -> list[Bounds]:
    values = design_matrix(component, table.grid(component.var_names))
    return list(zip(values.min(axis=0).tolist(), values.max(axis=0).tolist(), strict=True))


def design_matrix(part: Any, frame: pd.DataFrame) -> Array:
    """Evaluate a term or a part of it, by the numbers it has learned in public; no warning tells of a value."""
    with np.errstate(all="ignore"):
        values = np.asarray(part.eval_new_data(frame), dtype=np.float64)
    return values.reshape(len(frame), -1)


def _check(term: Any, shown: Array, ranges: list[Bounds]) -> None:
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


__all__ = [
    "DesignColumn",
    "PublicColumn",
    "PublicTable",
    "design_columns",
    "design_matrix",
    "group_index",
    "term_ranges",
    "within",
]
