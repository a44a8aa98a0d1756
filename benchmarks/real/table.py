"""A real table and the model that is fitted to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pymc as pm

import pymc_dp as dp
from benchmarks.real.models import Column, Response, Rows, bounds, clamped, regression


@dataclass(frozen=True)
class Persons:
    """Whose row it is, where ε protects persons: a column of codes, and public bounds on rows and persons."""

    column: str
    max_rows: int
    n_max: int


@dataclass(frozen=True)
class Table:
    """A table and the model of it."""

    name: str
    difficulty: str
    load: Callable[[], Rows]
    columns: tuple[Column, ...]
    response: Response
    apart: bool = False
    persons: Persons | None = None

    def rows(self) -> Rows:
        """Return the rows, each value within its bounds."""
        loaded = self.load()
        found = clamped(loaded, self.columns, self.response)
        return found if self.persons is None else found | {self.persons.column: loaded[self.persons.column]}

    def model(self, rows: Rows | None = None) -> pm.Model:
        """Return the model of the rows."""
        rows = self.rows() if rows is None else rows
        model = regression(rows, self.columns, self.response, apart=self.apart)
        if self.persons is not None:
            pm.Data(self.persons.column, rows[self.persons.column], dims="row", model=model)
        return model

    @property
    def domain(self) -> dp.Domain:
        """What is public."""
        declared = bounds(self.columns, self.response, apart=self.apart)
        if self.persons is None:
            return dp.Domain(bounds=declared)
        unit = dp.Unit(self.persons.column, max_rows=self.persons.max_rows)
        return dp.Domain(bounds=declared, unit=unit, neighbours="add_remove", n_max=self.persons.n_max)

    @property
    def missing(self) -> str | None:
        """Why the rows cannot be had here, or None."""
        try:
            self.load()
        except (OSError, ImportError) as error:
            return str(error)
        return None


TABLES: dict[str, Table] = {}
"""All tables by name."""


def table(
    name: str,
    difficulty: str,
    columns: list[Column],
    response: Response,
    *,
    apart: bool = False,
    persons: Persons | None = None,
) -> Callable[[Callable[[], Rows]], Callable[[], Rows]]:
    """Register a loader of raw columns as a table."""

    def register(load: Callable[[], Rows]) -> Callable[[], Rows]:
        TABLES[name] = Table(name, difficulty, load, tuple(columns), response, apart, persons)
        return load

    return register


def shares(*names: str) -> list[Column]:
    """Return columns of zeros and ones."""
    return [Column(name) for name in names]
