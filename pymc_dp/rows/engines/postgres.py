"""A table in PostgreSQL, by SQL: one text whose names are quoted and whose values are public constants."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, final, override

import numpy as np

from pymc_dp.errors import ArgumentError
from pymc_dp.rows.columns import Item, name_of, names_of
from pymc_dp.rows.engines.frames import ROWS, Expr, Frame, Schema
from pymc_dp.rows.levels import Levels
from pymc_dp.rows.stored import Part

PLAIN = {16: "bool", 21: "int2", 23: "int4", 20: "int8", 700: "float4", 701: "float8"}
"""Types that are taken, by their numbers in every database (pg_type.dat)."""
DTYPES = {"bool": "bool", "int2": "int16", "int4": "int32", "int8": "int64", "float4": "float32", "float8": "float64"}
TEXTS = (25, 1043)
"""text and varchar; char fills up with blanks."""
OTHERS = {1042: "char", 1700: "numeric", 1082: "date", 1114: "timestamp", 114: "json"}
QUERY = re.compile(r"[;()\n]|^\s*(select|with|values|table|from)\s", re.IGNORECASE)
SERIAL = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


@dataclass(frozen=True)
class Text:
    """An expression, in parentheses wherever it is part of another."""

    sql: str

    def _with(self, sign: str, other: Text) -> Text:
        return Text(f"({self.sql} {sign} {other.sql})")

    def __add__(self, other: Text) -> Text:
        return self._with("+", other)

    def __sub__(self, other: Text) -> Text:
        return self._with("-", other)

    def __mul__(self, other: Text) -> Text:
        return self._with("*", other)

    def __lt__(self, other: Text) -> Text:
        return self._with("<", other)

    def __le__(self, other: Text) -> Text:
        return self._with("<=", other)

    def __gt__(self, other: Text) -> Text:
        return self._with(">", other)

    def __ge__(self, other: Text) -> Text:
        return self._with(">=", other)

    def __and__(self, other: Text) -> Text:
        return self._with("AND", other)


@final
@dataclass(frozen=True)
class PostgresFrame(Frame):
    """A query on a table.

    Attributes
    ----------
    connection : psycopg.Connection
    source : str
        A table's quoted name, or a query in parentheses.
    """

    connection: Any
    source: str
    engine = "PostgreSQL"

    @classmethod
    def of(cls, connection: object, table: str) -> PostgresFrame:
        """Return a table of a database; raise ArgumentError for anything but a connection and a name."""
        psycopg = importlib.import_module("psycopg") if _is_of_psycopg(connection) else None
        if psycopg is None or not isinstance(connection, psycopg.Connection):
            raise ArgumentError(
                f"connection must be a psycopg.Connection, got {type(connection).__name__}. Tables of DuckDB are given "
                'by dp.Table(connection.table("name"), columns), those of other engines as their lazy frames.'
            )
        if QUERY.search(table):
            raise ArgumentError(
                "table must be the name of a table or a view, got the text of a query. Make a view of it, and see to "
                "it that one row of the view depends on one row (one person) of the source."
            )
        parts = table.split(".")
        if not all(parts):
            raise ArgumentError(f"table must be a name, or a schema and a name, got {table!r}.")
        return cls(connection, ".".join(map(_quoted, parts)))

    # --- the language -------------------------------------------------------------------------------------------------

    @staticmethod
    @override
    def column(name: str) -> Expr:
        return Text(_quoted(name))

    @staticmethod
    @override
    def number(value: float) -> Expr:
        return Text(f"CAST('{float(value)!r}' AS DOUBLE PRECISION)")

    @staticmethod
    @override
    def whole(value: int) -> Expr:
        return Text(f"CAST({int(value)} AS BIGINT)")

    @staticmethod
    @override
    def same_text(value: Expr, text: str) -> Expr:
        if "\0" in text:  # no text of a database has it
            return Text("FALSE")
        return Text(f'({value.sql} COLLATE "C" = {_text(text)})')

    @staticmethod
    @override
    def choose(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        return Text(f"(CASE WHEN {condition.sql} THEN {then.sql} ELSE {otherwise.sql} END)")

    @staticmethod
    @override
    def missing(value: Expr) -> Expr:
        return Text(f"({value.sql} IS NULL)")

    @staticmethod
    @override
    def to_whole(value: Expr) -> Expr:
        return Text(f"CAST({value.sql} AS BIGINT)")

    @staticmethod
    @override
    def to_number(value: Expr) -> Expr:
        return Text(f"CAST({value.sql} AS DOUBLE PRECISION)")

    # --- tables -------------------------------------------------------------------------------------------------------

    @override
    def schema(self, names: Sequence[str]) -> Schema:
        with self._reading() as cursor:
            cursor.execute(f"SELECT * FROM {self.source} LIMIT 0", prepare=False)
            found = {item.name: item.type_code for item in cursor.description}
        wanted = {name: found[name] for name in names if name in found}
        others = {name: kind for name, kind in wanted.items() if kind not in (*PLAIN, *TEXTS)}
        return Schema(
            dtypes={name: np.dtype(DTYPES[PLAIN[kind]]) for name, kind in wanted.items() if kind in PLAIN},
            texts={name for name, kind in wanted.items() if kind in TEXTS},
            names=tuple(found),
            others={name: OTHERS.get(kind, f"number {kind}") for name, kind in others.items()},
        )

    @override
    def only(self, columns: Mapping[str, Expr]) -> Self:
        return self._of(f"SELECT {_listed(columns)} FROM {self.source} AS t")

    @override
    def extended(self, columns: Mapping[str, Expr]) -> Self:
        # OFFSET 0 keeps the planner from writing an expression out wherever it is used, which multiplies.
        return self._of(f"SELECT t.*, {_listed(columns)} FROM {self.source} AS t OFFSET 0")

    @override
    def totals(self, keys: Sequence[str], sums: Sequence[str]) -> Self:
        by = ", ".join(map(_quoted, keys))
        each = "".join(f", CAST(SUM({_quoted(name)}) AS BIGINT) AS {_quoted(name)}" for name in sums)
        return self._of(f"SELECT {by}, COUNT(*) AS {_quoted(ROWS)}{each} FROM {self.source} AS t GROUP BY {by}")

    @override
    def stacked(self, others: Sequence[Self]) -> Self:
        sources = [self.source, *(other.source for other in others)]
        return self._of(" UNION ALL ".join(f"SELECT * FROM {source} AS t" for source in sources))

    def _of(self, query: str) -> Self:
        return type(self)(self.connection, f"({query})")

    @override
    def count(self) -> int:
        ((number,),) = self._run(f"SELECT COUNT(*) FROM {self.source} AS t")
        return int(number)

    @override
    def fetch(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        rows = self._run(f"SELECT {', '.join(map(_quoted, names))} FROM {self.source} AS t")
        return [tuple(map(int, row)) for row in rows]

    def _run(self, query: str) -> list[tuple[Any, ...]]:
        with self._reading() as cursor:
            return list(cursor.execute(query, prepare=False).fetchall())

    @override
    def parts(self, items: Sequence[Item], size: int) -> Iterator[dict[Item, Part]]:
        names = names_of(items)
        kinds = self.schema(names).dtypes
        query = f"SELECT {', '.join(map(_quoted, names))} FROM {self.source} AS t"
        with self._reading("pymc_dp_rows") as cursor:
            cursor.execute(query)
            while rows := cursor.fetchmany(size):
                columns = dict(zip(names, zip(*rows, strict=True), strict=True))
                yield {item: _part(columns[name_of(item)], item, kinds) for item in items}

    @override
    def constants(self, parts: Mapping[str, Part]) -> Self:
        kinds = {dtype: kind for kind, dtype in DTYPES.items()}
        columns = [
            [_literal(value, kinds.get(str(part.values.dtype), "text"), none) for value, none in _pairs(part)]
            for part in parts.values()
        ]
        lines = ", ".join(f"({', '.join(line)})" for line in zip(*columns, strict=True))
        return self._of(f"SELECT * FROM (VALUES {lines}) AS v({', '.join(map(_quoted, parts))})")

    @contextmanager
    def _reading(self, name: str = "") -> Iterator[Any]:
        """Read in a transaction of our own, of one state of the database."""
        psycopg = importlib.import_module("psycopg")
        if self.connection.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF:
            raise ArgumentError(
                "The connection is in a pipeline, which sends statements when it likes. Leave "
                "`with connection.pipeline()` first: rows are read in a transaction of their own."
            )
        if self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            raise ArgumentError(
                "The connection is in the middle of a transaction, or closed. End it first, by connection.commit() or "
                "connection.rollback(): rows are read in a transaction of their own."
            )
        rows = {"row_factory": importlib.import_module("psycopg.rows").tuple_row}
        with self.connection.transaction():
            # Of these very classes: a connection may make others, which write values into the text of a statement.
            with psycopg.Cursor(self.connection) as cursor:
                cursor.execute(SERIAL, prepare=False)
            made = (
                psycopg.ServerCursor(self.connection, name, **rows) if name else psycopg.Cursor(self.connection, **rows)
            )
            with made as cursor:
                cursor.format = psycopg.pq.Format.BINARY
                yield cursor


def _is_of_psycopg(connection: object) -> bool:
    return any(kind.__module__.partition(".")[0] == "psycopg" for kind in type(connection).__mro__)


def _quoted(name: str) -> str:
    return importlib.import_module("psycopg.sql").Identifier(name).as_string(None)


def _listed(columns: Mapping[str, Expr]) -> str:
    return ", ".join(f"{expr.sql} AS {_quoted(name)}" for name, expr in columns.items())


def _pairs(part: Part) -> Iterator[tuple[Any, bool]]:
    missing = np.zeros(len(part.values), dtype=bool) if part.missing is None else part.missing
    return zip(part.values.tolist(), missing.tolist(), strict=True)


def _literal(value: Any, kind: str, missing: bool) -> str:
    return f"CAST({'NULL' if missing else _text(str(value))} AS {kind})"


def _text(value: str) -> str:
    return importlib.import_module("psycopg.sql").Literal(value).as_string(None).strip()


def _part(values: Sequence[Any], item: Item, kinds: Mapping[str, np.dtype[Any]]) -> Part:
    if isinstance(item, Levels):
        return Part(item.places(values), None)
    dtype = kinds[item]
    missing = np.array([value is None for value in values])
    return Part(np.array([0 if value is None else value for value in values], dtype=dtype), missing)


__all__ = ["PostgresFrame"]
