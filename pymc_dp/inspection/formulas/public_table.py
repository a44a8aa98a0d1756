"""A table that stands for the rows wherever a model learns from them, made of nothing but what is declared public."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pymc_dp.inspection.rows import Array

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
    bounds: tuple[float, float] = (0.0, 1.0)
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


__all__ = ["PublicColumn", "PublicTable", "within"]
