"""The same table in every engine, and in memory."""

import atexit
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.kernel.tallies import added_up
from pymc_dp.release.plan import lay_out
from pymc_dp.rows.columns import Columns, Item, entries, name_of, shape_of
from pymc_dp.rows.gate import opened_gate
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.source import StoredSource
from pymc_dp.rows.stored import Layout, Part, StoredRows
from tests.accounting.ledgers import server

pa = pytest.importorskip("pyarrow")
HERE = ["polars", "duckdb", "parquet"]
SLOWER = [
    pytest.param("dask", marks=pytest.mark.slow(cases="all")),
    pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow(cases="all")]),
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow(cases="all")]),
]
ENGINES = [*HERE, *SLOWER]
SQL = {"bool": "bool", "int16": "int2", "int32": "int4", "int64": "int8", "float32": "float4", "float64": "float8"}
SQL["object"] = "text"
SPARK = {"bool": "boolean", "int16": "smallint", "int32": "int", "int64": "bigint", "float32": "float"}
SPARK["object"] = "string"


class Held(StoredRows):
    """Columns with missing values, in memory: what engines are held against."""

    def __init__(self, parts: Mapping[str, Part], columns: Mapping[str, Columns]) -> None:
        self._parts, self._columns = parts, columns

    def layouts(self) -> dict[str, Layout]:
        return {
            name: Layout(
                n_rows=len(next(iter(self._parts.values())).values),
                shape=shape_of(held),
                dtypes=tuple(self._part(item).values.dtype for item in entries(held)),
            )
            for name, held in self._columns.items()
        }

    def blocks(self, size: int) -> Iterator[dict[str, Sequence[Part]]]:
        yield {name: [self._part(item) for item in entries(held)] for name, held in self._columns.items()}

    def _part(self, item: Item) -> Part:
        one = self._parts[name_of(item)]
        if isinstance(item, str):
            return one
        labels = [
            None if none else label for label, none in zip(one.values.tolist(), one.missing.tolist(), strict=True)
        ]
        return Part(item.places(labels), None)


def part(values: Any, missing: Any = None) -> Part:
    values = np.asarray(values)
    return Part(values, np.zeros(len(values), dtype=bool) if missing is None else np.asarray(missing))


def in_engine(engine: str, parts: Mapping[str, Part], columns: Mapping[str, Columns]) -> tuple[StoredRows, Held]:
    """Return a table in an engine, and the same in memory."""
    return MAKERS[engine](parts, columns), Held(parts, columns)


def arrow(parts: Mapping[str, Part]) -> Any:
    return pa.table({name: pa.array(held.values, mask=held.missing) for name, held in parts.items()})


def lists(parts: Mapping[str, Part]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return names and rows, None where there is no value."""
    columns = [
        [None if none else value for value, none in zip(held.values.tolist(), held.missing.tolist(), strict=True)]
        for held in parts.values()
    ]
    return list(parts), list(zip(*columns, strict=True))


def polars(parts: Mapping[str, Part], columns: Mapping[str, Columns]) -> dp.Table:
    return dp.Table(pytest.importorskip("polars").from_arrow(arrow(parts)).lazy(), columns)


def duckdb(parts: Mapping[str, Part], columns: Mapping[str, Columns]) -> dp.Table:
    connection = pytest.importorskip("duckdb").connect()
    connection.register("held", arrow(parts))
    connection.execute("create table stored as from held")
    return dp.Table(connection.table("stored"), columns)


def dask(parts: Mapping[str, Part], columns: Mapping[str, Columns]) -> dp.Table:
    """Return rows in types of Arrow, but floats, NaN for null, in those of NumPy."""
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")

    def mapped(kind: Any) -> Any:
        return None if pa.types.is_floating(kind) else pandas.ArrowDtype(kind)

    return dp.Table(frames.from_pandas(arrow(parts).to_pandas(types_mapper=mapped), npartitions=2), columns)


def parquet(parts: Mapping[str, Part], columns: Mapping[str, Columns]) -> dp.Parquet:
    """Return rows in two files, of several row groups each."""
    folder, whole = Path(mkdtemp()), arrow(parts)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for place, part_of in enumerate((whole.slice(0, len(whole) // 3), whole.slice(len(whole) // 3))):
        pytest.importorskip("pyarrow.parquet").write_table(part_of, folder / f"{place}.parquet", row_group_size=97)
    return dp.Parquet(folder, columns)


@cache
def database() -> Any:
    """Return a connection to a server that is there until the process ends."""
    psycopg = pytest.importorskip("psycopg")
    running = server()
    url = running.__enter__()
    connection = psycopg.connect(url, autocommit=True)
    atexit.register(lambda: (connection.close(), running.__exit__(None, None, None)))
    return connection


def postgres(parts: Mapping[str, Part], columns: Mapping[str, Columns]) -> dp.Table:
    connection, (names, rows) = database(), lists(parts)
    kinds = ", ".join(f'"{name}" {SQL[str(held.values.dtype)]}' for name, held in parts.items())
    connection.execute("drop table if exists stored")
    connection.execute(f"create table stored ({kinds})")
    quoted = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor, cursor.copy(f"copy stored ({quoted}) from stdin") as copied:
        for row in rows:
            copied.write_row(row)
    return dp.Table.sql(connection, "stored", columns)


@cache
def session() -> Any:
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    built = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return (
        built.config("spark.sql.shuffle.partitions", "2").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    )


def spark(parts: Mapping[str, Part], columns: Mapping[str, Columns]) -> dp.Table:
    schema = ", ".join(f"{name} {SPARK.get(str(held.values.dtype), 'double')}" for name, held in parts.items())
    return dp.Table(session().createDataFrame(lists(parts)[1], schema=schema).repartition(2), columns)


MAKERS = {"polars": polars, "parquet": parquet, "duckdb": duckdb, "dask": dask, "postgres": postgres, "spark": spark}


def exact(
    model: Any, domain: dp.Domain | None, stored: StoredRows, statistics: dp.Statistics | None = None
) -> list[Any]:
    """Return the exact sums of a release of stored rows, after all checks."""
    found = with_stored(inspect(model, domain).sums, stored)
    found.require()
    asked = lay_out(found, statistics or dp.Statistics()).asked
    passes = Passes.of(found, stored)
    problems = passes.check(asked)
    assert problems == (), problems
    with opened_gate():
        source = StoredSource(asked, passes)
        return source.totals() or added_up([one.tally for one in asked], source)


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))
