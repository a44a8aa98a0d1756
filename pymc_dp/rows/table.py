"""Rows in an engine: lazy frames, and tables of a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Self, final, override

import numpy as np

from pymc_dp import _validate
from pymc_dp.domain import MOST_ROWS
from pymc_dp.errors import ArgumentError, PrivacyError, Problem
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.tallies import LENGTHS
from pymc_dp.rows.asked import Asked
from pymc_dp.rows.columns import (
    Columns,
    Held,
    Item,
    by_model,
    entries,
    every_entry,
    given_columns,
    laid_out,
    name_of,
    names_of,
    no_labels,
    require_named,
    require_numbers,
    shown_columns,
)
from pymc_dp.rows.engines.added import Fields, answered, obstacles, read_columns, sums_of
from pymc_dp.rows.engines.canary import sings
from pymc_dp.rows.engines.expressions import Field
from pymc_dp.rows.engines.frames import Frame, Schema
from pymc_dp.rows.engines.lazy import LazyFrame
from pymc_dp.rows.engines.postgres import PostgresFrame
from pymc_dp.rows.engines.quiet import quiet
from pymc_dp.rows.gate import is_open, require_open
from pymc_dp.rows.levels import Levels
from pymc_dp.rows.passes import CHANGED
from pymc_dp.rows.stored import Layout, Names, Part, StoredRows

FAILED = "The engine failed ({}). What it says may show a value and is left out. {}"
UNSPENT = "Nothing was spent."
SPENT = "The budget is spent, and nothing was released."
DISAGREES = (
    "{} does not add up public constants to the integers that rows in memory would give, so that sums would not be "
    "those of the rows"
)
OTHER = "Use another version of it, or export the table and give it by rows=dp.Parquet(...)."
ONE_OF_ONE = "that each row of {} is made of one row of its source, and that no row of the source makes more than one"
UNREAD = "that the names and types of columns of {} do not come from its rows (assume_rows=True: its plan was not read)"
PATTERN = re.compile(r"\*|\^.*\$")
"""Names that engines take for several columns."""


@final
class Table(StoredRows):
    """Rows in an engine: ``rows=dp.Table(frame, {...})``, or ``dp.Table.sql(connection, "table", {...})``.

    Parameters
    ----------
    frame : lazy frame
        Of Polars, DuckDB (a relation: ``connection.table("survey")``), Dask or Spark.
    columns : mapping of str to str, Levels or a sequence of them
        For each row-level column of the model, by the name of its ``pm.Data`` or of the observed variable: the column
        of the frame, or, where a row of the model holds several values, the columns that these are in. ``dp.Levels``
        stand for a column of labels, which become codes.
    assume_rows : bool
        Take a frame whatever its plan is. Without it, a plan may hold tables, Parquet files, selected and renamed
        columns, filters, sorts, casts, arithmetic, comparisons, choices (CASE) and common functions of one value; all
        else is refused, what is only unknown as well. Of Dask: columns, filters by comparisons, ``+ - * /`` and casts
        of numbers, since pandas chooses types of other results by all values of a partition. With it, each row must be
        made of one row (one person) of the source all the same, and of no row of the source more than one, and the
        schema of CSV or JSON be given, not inferred from rows: only you can know.

    Raises
    ------
    ArgumentError
        If `frame` is no such frame. Where it is used, if its plan has what is not known to be of one row, a column is
        not in it, or values are neither numbers nor booleans of at most 64 bits.

    Notes
    -----
    Counts, histograms, sums, squares and the products of a regression are added up inside the engine, in one
    statement, which counts the rows as well; they are the same integers, bit for bit, as those of rows in memory.
    Before anything is charged, public constants go through the same expressions (a canary): an engine that computes
    otherwise is refused. Noise is drawn in this process, once, after all sums have arrived. Null counts as NaN does.
    ``dp.Gradients`` and samplers on gradients read the frame once, in blocks, into a private copy in files. Of a model
    that computes columns (``x**2``), and from Dask, all rows are read, in blocks, and added up here. Whole numbers and
    booleans from Dask must be in types that hold nulls (``dtype_backend="pyarrow"``): with those of NumPy, pandas reads
    all rows of a partition as another type where one of them has no value.

    **Guarantee.** Sums of integers that were clamped as integers in the engine: neither its rounding nor an order of
    rows or retries of its tasks can move a sum by more than the sensitivity. Assumed public, and listed so: that each
    row of the frame is made of one row of its source and the reverse. The schema is public, and, under
    ``neighbours="replace"``, the number of rows: files whose schema may be inferred from rows (CSV, JSON) are refused
    without `assume_rows`, and it is listed then that theirs was given. While an engine runs, nothing is logged or
    warned of in this process. Sources that change under a running statement have to give it one
    state: databases do; files must not be written to. Not covered: what the engine itself keeps or shows to those who
    run it, its logs, caches, spill files and statistics, and running times. A frame that fails on some values (a cast
    of texts) shows by failing that there is one. Rows are counted before the charge, so that its filters run then.

    Examples
    --------
    >>> import polars as pl
    >>> Table(pl.LazyFrame({"age": [30.0], "answer": [1]}), {"x": "age", "y": "answer"})
    Table(<Polars>, {'x': 'age', 'y': 'answer'})
    """

    once = True

    def __init__(self, frame: object, columns: Mapping[str, Columns], *, assume_rows: bool = False) -> None:
        self._begin(LazyFrame.of(frame), columns, _validate.flag("assume_rows", assume_rows))

    @classmethod
    def sql(cls, connection: object, table: str, columns: Mapping[str, Columns]) -> Self:
        """Return the rows of a table or view in PostgreSQL.

        Parameters
        ----------
        connection : psycopg.Connection
            Not in the middle of a transaction. Rows are read in one of our own: REPEATABLE READ, READ ONLY.
        table : str
            Name of a table or view, ``"survey"`` or ``"schema.survey"``. The text of a query is refused: make a view.
        columns : mapping of str to str, Levels or a sequence of them
            As of `Table`.

        Raises
        ------
        ArgumentError

        Examples
        --------
        >>> Table.sql(None, "survey", {"y": "answer"})
        Traceback (most recent call last):
        pymc_dp.errors.ArgumentError: connection must be a psycopg.Connection, got NoneType. ...
        """
        made = cls.__new__(cls)
        made._begin(PostgresFrame.of(connection, _validate.text("table", table)), columns, True)
        return made

    def _begin(self, frame: Frame, columns: Mapping[str, Columns], assume_rows: bool) -> None:
        self._frame, self._assume = frame, assume_rows
        self.columns: Held = given_columns(columns)

    def __repr__(self) -> str:
        return f"Table(<{self._frame.engine}>, {shown_columns(self.columns)!r})"

    @property
    @override
    def names(self) -> Collection[str]:
        return self.columns  # the rows are not counted for it

    @property
    @override
    def assumptions(self) -> tuple[str, ...]:
        table = f"the table in {self._frame.engine}"
        unread = isinstance(self._frame, LazyFrame) and self._assume
        return (ONE_OF_ONE.format(table), *([UNREAD.format(table)] if unread else []))

    @override
    def layouts(self) -> dict[str, Layout]:
        found = self._schema()
        n_rows = _guarded(self._frame.count)
        return laid_out(self.columns, n_rows, found.dtypes)

    @override
    def blocks(self, size: int) -> Iterator[dict[str, Sequence[Part]]]:
        require_open()
        found = self._frame.parts(every_entry(self.columns), size)
        while True:
            parts = _guarded(lambda: next(found, None))
            if parts is None:
                return
            yield by_model(self.columns, parts)

    @override
    def check(self, asked: Sequence[Asked], names: Names) -> tuple[Problem, ...]:
        if self._in_blocks(asked):
            return ()
        fields = self._fields(asked, names)
        if problems := obstacles(asked, fields):
            return tuple(problems)
        agrees = _guarded(lambda: sings(self._frame, asked, fields))
        what = DISAGREES.format(self._frame.engine)
        return () if agrees else (Problem(where="rows", what=what, remedy=OTHER, kind="outcome"),)

    @override
    def sums(self, asked: Sequence[Asked], names: Names, n_rows: int) -> list[Array] | None:
        require_open()
        if self._in_blocks(asked):
            return None
        if n_rows > MOST_ROWS:
            raise PrivacyError(LENGTHS)
        fields = self._fields(asked, names)
        found = _guarded(lambda: answered(self._frame, asked, fields))
        if any(int(item["rows"].sum()) != n_rows for item in found):
            raise PrivacyError(CHANGED)
        return [sums_of(item, totals) for item, totals in zip(asked, found, strict=True)]

    def _in_blocks(self, asked: Sequence[Asked]) -> bool:
        """Whether rows are read in blocks and added up here."""
        return not self._frame.adds or any(one.computed for one in asked)

    def _fields(self, asked: Sequence[Asked], names: Names) -> Fields:
        dtypes = self._schema().dtypes

        def field(item: Item) -> Field:
            levels = item if isinstance(item, Levels) else None
            return Field(name=name_of(item), dtype=dtypes.get(name_of(item), np.dtype(object)), levels=levels)

        return {
            column.leaf: [field(item) for item in entries(self.columns[names[column.leaf]])]
            for column in read_columns(asked)
        }

    def _schema(self) -> Schema:
        """Return what is public; refuse what does not fit, and plans that mix rows."""
        wanted, where = every_entry(self.columns), f"The table in {self._frame.engine}"
        patterns = [name for name in names_of(wanted) if PATTERN.fullmatch(name)]
        if patterns:
            raise ArgumentError(
                f"{where} is asked for {', '.join(map(repr, patterns))}, which engines take for several columns. "
                "Rename the column in the frame."
            )
        found = _guarded(lambda: self._frame.schema(names_of(wanted)))
        mixed = None if self._assume else _guarded(self._frame.mixed)
        require_named(where, wanted, found.names)
        others = {**found.others, **dict.fromkeys(found.texts, "text")}
        require_numbers(where, {name: kind for name, kind in others.items() if name in wanted})
        for item in wanted:
            if isinstance(item, Levels):
                _require_labels(where, item, found)
        if mixed is not None:
            raise ArgumentError(
                f"The plan of the frame has what may make one row of several ones, or several of one: {mixed}. One "
                "person could move more than one row. Give the frame before that, from a table or Parquet files, by "
                "selects, filters, casts, arithmetic, comparisons and choices; or, if each row is made of one row of "
                "the source all the same, and its schema of none, Table(..., assume_rows=True), which the report lists."
            )
        return found


def _require_labels(where: str, levels: Levels, found: Schema) -> None:
    """Raise ArgumentError where a column holds no labels, or texts for whole numbers, or the reverse."""
    name = levels.column
    if name not in found.texts and (name in found.others or found.dtypes[name].kind not in "iu"):
        raise no_labels(where, name, found.others.get(name) or str(found.dtypes[name]))
    levels.require(whole=name not in found.texts)


def _guarded[T](work: Callable[[], T]) -> T:
    """Run an engine: what it warns of, logs or raises could show a value, and is not passed on."""
    with quiet():
        try:
            return work()
        except (PrivacyError, ImportError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of an engine is no Exception
            failure = type(error).__name__
    raise PrivacyError(FAILED.format(failure, SPENT if is_open() else UNSPENT))  # out here, where it has no context


__all__ = ["Table"]
