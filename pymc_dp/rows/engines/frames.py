"""A table inside an engine, as the expressions of this package see it: one language, spoken to all engines.

Every operation is total: no value of a row makes it raise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from pymc_dp.rows.columns import Item
from pymc_dp.rows.stored import Part

Expr = Any
"""What a language makes of a column: it has ``+ - *``, comparisons, and ``&`` between comparisons."""
ROWS = "rows"
"""Column of the number of rows in totals."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What is public about a table in an engine.

    Attributes
    ----------
    dtypes : mapping of str to dtype
        Of the columns that were asked for.
    names : tuple of str
        Of all columns.
    texts : collection of str
        Of the columns that were asked for, those of texts.
    others : mapping of str to str
        Types, as the engine calls them, of columns that were asked for and are neither numbers nor booleans.
    """

    dtypes: Mapping[str, np.dtype[Any]]
    texts: Collection[str]
    names: tuple[str, ...]
    others: Mapping[str, str]


class Frame(ABC):
    """Rows in an engine and what is asked of them; immutable, and nothing runs until something is fetched."""

    engine: str
    """Its name in texts."""
    adds: bool = True
    """Whether it adds up rows itself; where not, they are read in blocks and added up here."""

    # --- the language of its expressions ------------------------------------------------------------------------------

    @staticmethod
    @abstractmethod
    def column(name: str) -> Expr:
        """Return a column."""

    @staticmethod
    @abstractmethod
    def number(value: float) -> Expr:
        """Return a float64, infinities included."""

    @staticmethod
    @abstractmethod
    def whole(value: int) -> Expr:
        """Return an int64."""

    @staticmethod
    @abstractmethod
    def same_text(value: Expr, text: str) -> Expr:
        """Return whether a text is this one, byte for byte; text that the engine cannot hold is none of its."""

    @staticmethod
    @abstractmethod
    def choose(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """Return one of two; `otherwise` where the condition is unknown (null)."""

    @staticmethod
    @abstractmethod
    def missing(value: Expr) -> Expr:
        """Return whether there is no value."""

    @staticmethod
    @abstractmethod
    def to_whole(value: Expr) -> Expr:
        """Return integers, or whole floats below 2**63, as int64."""

    @staticmethod
    @abstractmethod
    def to_number(value: Expr) -> Expr:
        """Return integers or floats as float64."""

    # --- tables -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def schema(self, names: Sequence[str]) -> Schema:
        """Return what is public, without a look at any row."""

    @abstractmethod
    def only(self, columns: Mapping[str, Expr]) -> Self:
        """Return a table of these columns."""

    @abstractmethod
    def extended(self, columns: Mapping[str, Expr]) -> Self:
        """Return the table with more columns."""

    @abstractmethod
    def totals(self, keys: Sequence[str], sums: Sequence[str]) -> Self:
        """Return the number of rows (`ROWS`) and sums of int64 columns, by keys."""

    @abstractmethod
    def stacked(self, others: Sequence[Self]) -> Self:
        """Return the rows of several tables of the same columns, one after the other."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def fetch(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        """Run it: return the rows of a small table of integers. One statement, so one state of the source."""

    @abstractmethod
    def parts(self, items: Sequence[Item], size: int) -> Iterator[dict[Item, Part]]:
        """Run it: yield at most `size` rows at a time, all in one pass over one state of the source. **Private**."""

    @abstractmethod
    def constants(self, parts: Mapping[str, Part]) -> Self:
        """Return a table of public values in the same engine."""

    def mixed(self) -> str | None:
        """Return what the plan has beside operations that make a row of one row; None where there is nothing."""
        return None


__all__ = ["ROWS", "Expr", "Frame", "Schema"]
