"""Lazy frames, by narwhals: Polars, DuckDB, Dask and Spark."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, ClassVar, Self, final, override

import narwhals as nw
import numpy as np
from narwhals import Implementation

from pymc_dp.errors import ArgumentError
from pymc_dp.rows.arrow import part_of
from pymc_dp.rows.arrow_labels import arrow
from pymc_dp.rows.columns import Item, name_of, names_of
from pymc_dp.rows.engines.frames import ROWS, Expr, Frame, Schema
from pymc_dp.rows.engines.mixed import SEEN, UNREADABLE
from pymc_dp.rows.engines.mixed_dask import has_no_null
from pymc_dp.rows.engines.quiet import quiet
from pymc_dp.rows.stored import Part

PLAIN: dict[Any, str] = {
    nw.Boolean: "bool",
    **{kind: kind.__name__.lower() for kind in (nw.Int8, nw.Int16, nw.Int32, nw.Int64)},
    **{kind: kind.__name__.lower() for kind in (nw.UInt8, nw.UInt16, nw.UInt32)},
    **{kind: kind.__name__.lower() for kind in (nw.Float32, nw.Float64)},
}
"""Types that are taken: an integer of these fits int64."""


@final
class LazyFrame(Frame):
    """A lazy frame that narwhals knows, of an engine that was tried.

    Parameters
    ----------
    frame : narwhals.LazyFrame
    """

    def __init__(self, frame: nw.LazyFrame[Any]) -> None:
        self._frame = frame
        self._way = WAYS[frame.implementation]
        self.engine, self.adds = self._way.name, self._way.adds

    @classmethod
    def of(cls, native: object) -> LazyFrame:
        """Return a frame of the user's as one of these; raise ArgumentError for anything else."""
        frame: Any = native
        with quiet(), suppress(Exception):  # a broken frame: its text may show anything
            frame = nw.from_native(native, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            raise ArgumentError(
                f"frame must be a lazy frame, got one in memory ({type(native).__name__}). Write frame.lazy() for "
                "Polars; give columns in memory as arrays, rows={name: array}."
            )
        if not isinstance(frame, nw.LazyFrame) or frame.implementation not in WAYS:
            raise ArgumentError(
                f"frame must be a lazy frame of {', '.join(dict.fromkeys(way.name for way in WAYS.values()))}, got "
                f"{type(native).__name__}. Tables in PostgreSQL are given by dp.Table.sql(connection, name, columns), "
                "files by dp.Parquet(files, columns)."
            )
        return cls(frame)

    # --- the language -------------------------------------------------------------------------------------------------

    @staticmethod
    @override
    def column(name: str) -> Expr:
        return nw.col(name)

    @staticmethod
    @override
    def number(value: float) -> Expr:
        return nw.lit(float(value), dtype=nw.Float64)

    @staticmethod
    @override
    def whole(value: int) -> Expr:
        return nw.lit(int(value), dtype=nw.Int64)

    @staticmethod
    @override
    def same_text(value: Expr, text: str) -> Expr:
        return value == nw.lit(text)

    @staticmethod
    @override
    def choose(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        return nw.when(condition).then(then).otherwise(otherwise)

    @staticmethod
    @override
    def missing(value: Expr) -> Expr:
        return value.is_null()

    @staticmethod
    @override
    def to_whole(value: Expr) -> Expr:
        return value.cast(nw.Int64)

    @staticmethod
    @override
    def to_number(value: Expr) -> Expr:
        return value.cast(nw.Float64)

    # --- tables -------------------------------------------------------------------------------------------------------

    @override
    def schema(self, names: Sequence[str]) -> Schema:
        found = self._frame.collect_schema()
        wanted = {name: found[name] for name in names if name in found}
        self._way.require_types(self._frame.to_native(), wanted)
        untyped = self._way.untyped(self._frame.to_native())
        others = {name: str(kind) for name, kind in wanted.items() if type(kind) not in PLAIN and kind != nw.String}
        others |= {name: "object, which may hold anything" for name in wanted if name in untyped}
        return Schema(
            dtypes={name: np.dtype(PLAIN[type(kind)]) for name, kind in wanted.items() if type(kind) in PLAIN},
            texts={name for name, kind in wanted.items() if kind == nw.String and name not in others},
            names=tuple(found),
            others=others,
        )

    @override
    def only(self, columns: Mapping[str, Expr]) -> Self:
        plain = nw.from_native(self._way.plain(self._frame.to_native()))
        return type(self)(plain.select(**columns))

    @override
    def extended(self, columns: Mapping[str, Expr]) -> Self:
        return type(self)(self._frame.with_columns(**columns))

    @override
    def totals(self, keys: Sequence[str], sums: Sequence[str]) -> Self:
        number = nw.len().alias(ROWS)
        return type(self)(self._frame.group_by(*keys).agg(number, *(nw.col(name).sum() for name in sums)))

    @override
    def stacked(self, others: Sequence[Self]) -> Self:
        return type(self)(nw.concat([self._frame, *(other._frame for other in others)], how="vertical"))

    @override
    def count(self) -> int:
        return int(self._collected(self._frame.select(nw.len())).item())

    @override
    def fetch(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        rows = self._collected(self._frame.select(*names)).rows()
        return [tuple(int(value) for value in row) for row in rows]

    def _collected(self, frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
        return frame.collect(**self._way.collecting)

    @override
    def parts(self, items: Sequence[Item], size: int) -> Iterator[dict[Item, Part]]:
        for table in self._way.tables(self._frame.select(*names_of(items)).to_native(), size):
            whole = table if hasattr(table, "combine_chunks") else arrow().Table.from_batches([table])
            for batch in whole.combine_chunks().to_batches(max_chunksize=size):
                yield {item: part_of(batch.column(name_of(item)), item) for item in items}

    @override
    def constants(self, parts: Mapping[str, Part]) -> Self:
        table = arrow().table({name: arrow().array(part.values, mask=part.missing) for name, part in parts.items()})
        return type(self)(nw.from_native(self._way.constants(self._frame.to_native(), table)))

    @override
    def mixed(self) -> str | None:
        seen: str | None = UNREADABLE
        with suppress(Exception):
            seen = SEEN[self.engine](self._frame.to_native())
        return seen


# --- what narwhals has no word for: blocks, and tables of constants --------------------------------------------------


class Way:
    """What is an engine's own."""

    name: ClassVar[str]
    adds: ClassVar[bool] = True
    collecting: ClassVar[Mapping[str, Any]] = {}

    @staticmethod
    def tables(native: Any, size: int) -> Iterator[Any]:
        """Yield Arrow tables of at most `size` rows, or somewhat more."""
        raise NotImplementedError

    @staticmethod
    def constants(native: Any, table: Any) -> Any:
        """Return an Arrow table as a frame of the same engine, in the types that columns of these names have there."""
        raise NotImplementedError

    @staticmethod
    def plain(native: Any) -> Any:
        """Return the frame with texts that are compared byte by byte."""
        return native

    @staticmethod
    def untyped(native: Any) -> Collection[str]:
        """Return columns whose type says nothing about their values."""
        return ()

    @staticmethod
    def require_types(native: Any, names: Collection[str]) -> None:
        """Raise ArgumentError where values of a column are of another type if one of them is missing."""


@final
class Polars(Way):
    """Its streaming engine."""

    name = "Polars"
    collecting: ClassVar[Mapping[str, Any]] = {"engine": "streaming"}

    @staticmethod
    @override
    def tables(native: Any, size: int) -> Iterator[Any]:
        for frame in native.collect_batches(chunk_size=size, engine="streaming"):
            yield frame.to_arrow()

    @staticmethod
    @override
    def constants(native: Any, table: Any) -> Any:
        return importlib.import_module("polars").from_arrow(table).lazy()


@final
class DuckDB(Way):
    """A relation, of any connection; constants are of the same one, whose macros and collation count."""

    name = "DuckDB"

    @staticmethod
    @override
    def tables(native: Any, size: int) -> Iterator[Any]:
        yield from native.to_arrow_reader(size)

    @staticmethod
    @override
    def constants(native: Any, table: Any) -> Any:
        columns = [[_literal(value, kind) for value in table.column(name).to_pylist()] for name, kind in _kinds(table)]
        lines = ", ".join(f"({', '.join(line)})" for line in zip(*columns, strict=True))
        names = ", ".join(map(_quoted, table.column_names))
        return native.query("pymc_dp_rows", f"select * from (values {lines}) as pymc_dp_values({names})")

    @staticmethod
    @override
    def plain(native: Any) -> Any:
        """Take collations off columns: bytes have none."""
        texts = [name for name, kind in zip(native.columns, native.types, strict=True) if str(kind) == "VARCHAR"]
        decoded = ", ".join(f"decode(encode({_quoted(name)})) as {_quoted(name)}" for name in texts)
        return native.project(f"* replace ({decoded})") if texts else native


def _kinds(table: Any) -> list[tuple[str, str]]:
    """Return columns of an Arrow table and their types in DuckDB."""
    return [(field.name, OF_DUCKDB.get(str(field.type), "VARCHAR")) for field in table.schema]


def _literal(value: object, kind: str) -> str:
    text = "null" if value is None else "'" + str(value).replace("'", "''") + "'"
    return f"cast({text} as {kind})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@final
class Dask(Way):
    """Partitions of pandas: those of a float column have NaN for null.

    Whole numbers and booleans in types of NumPy, which have no null, are refused: where one row has no value, all rows
    of its partition are floats or objects, which have other labels, are clipped otherwise and may name other persons.
    Types of Arrow do not go through expressions of narwhals (a cast of a null raises), so that rows are added up here.
    """

    name = "Dask"
    adds = False

    @staticmethod
    @override
    def tables(native: Any, size: int) -> Iterator[Any]:
        kinds = arrow().Schema.from_pandas(native._meta, preserve_index=False)
        for partition in native.partitions:
            yield arrow().Table.from_pandas(partition.compute(), schema=kinds, preserve_index=False)

    @staticmethod
    @override
    def require_types(native: Any, names: Collection[str]) -> None:
        kinds = {name: str(kind) for name, kind in native.dtypes.items() if name in names and has_no_null(kind)}
        if kinds:
            types = ", ".join(f"{name!r}: '{kind}[pyarrow]'" for name, kind in kinds.items())
            raise ArgumentError(
                f"The table in Dask has {', '.join(map(repr, kinds))} in types of NumPy, which hold no missing values: "
                "where one row has no value, pandas reads all rows of its partition as another type. Read Parquet with "
                f'read_parquet(..., dtype_backend="pyarrow"); call .astype({{{types}}}) on a frame of pandas before '
                "from_pandas; end a comparison with .astype('bool[pyarrow]')."
            )

    @staticmethod
    @override
    def untyped(native: Any) -> Collection[str]:
        return [name for name, kind in native.dtypes.items() if kind == np.dtype(object)]


@final
class Spark(Way):
    """A data frame of its session."""

    name = "Spark"

    @staticmethod
    @override
    def tables(native: Any, size: int) -> Iterator[Any]:
        rows = native.toLocalIterator()
        schema = arrow().schema([(field.name, SPARK[field.dataType.simpleString()]) for field in native.schema])
        while held := list(islice(rows, size)):
            columns = zip(schema, zip(*held, strict=True), strict=True)
            yield arrow().table([arrow().array(column, field.type) for field, column in columns], schema=schema)

    @staticmethod
    @override
    def constants(native: Any, table: Any) -> Any:
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        kinds = {field.name: field.dataType.simpleString() for field in native.schema}
        schema = ", ".join(f"`{name}` {kinds.get(name, 'bigint')}" for name in table.column_names)
        return native.sparkSession.createDataFrame(rows, schema=schema)


OF_DUCKDB = {
    **{"bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT"},
    **{"uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "float": "FLOAT", "double": "DOUBLE"},
}
"""Types of Arrow that are plain, as DuckDB calls them."""
SPARK = {
    "boolean": "bool",
    **{"tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64"},
    **{"float": "float32", "double": "float64", "string": "string"},
}
"""Types of Spark that are plain, as Arrow calls them."""
WAYS: Mapping[Implementation, type[Way]] = {
    Implementation.POLARS: Polars,
    Implementation.DUCKDB: DuckDB,
    Implementation.DASK: Dask,
    Implementation.PYSPARK: Spark,
    Implementation.PYSPARK_CONNECT: Spark,
}


__all__ = ["LazyFrame"]
