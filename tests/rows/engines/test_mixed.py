"""Plans: what makes each row of one row of a table is let through, all else is refused; nothing depends on the rows."""

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.rows.engines.mixed import UNREADABLE, seen_by_dask, seen_by_duckdb, seen_by_polars, seen_by_spark
from tests.rows.engines.engines import session

pa, pl, duckdb = (pytest.importorskip(name) for name in ("pyarrow", "polars", "duckdb"))
col = pl.col


def frame():
    return pl.LazyFrame({"y": [1.0, 2.0], "g": [0, 1], "name": ["ann", "bob"], "age (years)": [30, 40]})


def file(tmp_path):
    frame().collect().write_parquet(tmp_path / "stays.parquet")
    frame().collect().write_csv(tmp_path / "stays.csv")
    return str(tmp_path / "stays.parquet")


OF_ROWS = {
    "aggregate": lambda one: one.group_by("g").agg(col("y").sum()),
    "join": lambda one: one.join(one, on="g").select("y", "g"),
    "window": lambda one: one.with_columns(y=col("y").sum().over("g")),
    "filter by mean": lambda one: one.filter(col("y") > col("y").mean()),
    "sort and slice": lambda one: one.sort("y").head(1),
    "shift": lambda one: one.with_columns(y=col("y").shift()),
    "rank": lambda one: one.with_columns(y=col("y").rank()),
    "fill": lambda one: one.with_columns(y=col("y").fill_null(strategy="forward")),
    "number": lambda one: one.with_row_index("n"),
    "length": lambda one: one.with_columns(y=col("y") / pl.len()),
    "function": lambda one: one.map_batches(lambda found: found),
    "python": lambda one: one.with_columns(y=col("y").map_elements(lambda value: value, return_dtype=pl.Float64)),
    "unpivot": lambda one: one.unpivot(["y"], index="g", value_name="v").select("g", y="v"),
    "corr": lambda one: one.with_columns(y=pl.corr("y", "g")),
    "text": lambda one: one.with_columns(t=col("name").str.join("")),
    "fold": lambda one: one.with_columns(y=pl.fold(pl.lit(0.0), lambda a, b: a + b, ["y", "g"])),
    "codes by order": lambda one: one.with_columns(y=col("name").cast(pl.Categorical).to_physical()),
    "series": lambda one: one.with_columns(y=pl.Series([1.0, 2.0])),
    "in all": lambda one: one.with_columns(t=col("g").is_in(col("g").implode())),
    "quotes": lambda one: one.with_columns(**{'g"': col("g")}).with_columns(y=col('g"').skew()),
}
BY_ROWS = {
    "itself": lambda one: one,
    "sort": lambda one: one.sort("y", descending=True),
    "filter": lambda one: one.filter(col("y") > 0, col("g") == 1),
    "missing": lambda one: one.drop_nulls().fill_null(0).fill_nan(0.0),
    "function": lambda one: one.with_columns(y=col("y").clip(0, 1).exp() + pl.max_horizontal("y", "g")),
    "arithmetic": lambda one: one.with_columns(y=-col("y") * 1e-7 + col("g") // 2 - col("g") % 2 / 3 + 1e20),
    "names": lambda one: one.with_columns(**{"JOIN x.sum() OVER": col("y")}).rename({"age (years)": "age"}),
    "casts": lambda one: one.cast({"y": pl.Float32}).with_columns(g=col("g").cast(pl.Int8, strict=False)),
    "choice": lambda one: one.with_columns(g=pl.when(col("name") == "ann (1)").then(1).otherwise(0)),
    "lists": lambda one: one.with_columns(g=col("name").is_in(["ann", "bob (2)"]), y=col("g").replace_strict({0: 2})),
    "logic": lambda one: one.filter((col("y") > 1) & (col("g") < 2) | ~col("y").is_between(0, 1)).drop("name"),
    "query": lambda one: one.sql("select g, case when y > 1 then y else 0 end as y from self where y < 3"),
}


@pytest.mark.parametrize("plan", OF_ROWS)
def test_plans_that_mix_rows_are_refused(plan):
    mixed = OF_ROWS[plan](frame())
    with pytest.raises(dp.errors.ArgumentError, match=r"may make one row of several ones.*assume_rows=True"):
        dp.Table(mixed, {"y": mixed.collect_schema().names()[0]}).layouts()


def test_what_is_assumed_is_listed():
    beside = dp.Table(frame().head(1), {"y": "y"}, assume_rows=True)
    assert beside.layouts()["y"].n_rows == 1
    assert any("assume_rows=True: its plan was not read" in text for text in beside.assumptions)
    assert len(dp.Table(frame(), {"y": "y"}).assumptions) == 1


@pytest.mark.parametrize("plan", BY_ROWS)
def test_plans_that_do_not_are_taken(plan):
    assert seen_by_polars(BY_ROWS[plan](frame())) is None


def test_files_of_polars(tmp_path):
    path = file(tmp_path)
    assert seen_by_polars(pl.scan_parquet(path).filter(col("y") > 1)) is None
    assert "ROW_INDEX" in seen_by_polars(pl.scan_parquet(path, row_index_name="n"))
    assert "SLICE" in seen_by_polars(pl.scan_parquet(path, n_rows=1))
    texts = pl.scan_csv(tmp_path / "stays.csv")
    with pytest.raises(dp.errors.ArgumentError, match="schema may be inferred from rows"):
        dp.Table(texts, {"y": "y"}).layouts()
    assert dp.Table(texts, {"y": "y"}, assume_rows=True).layouts()["y"].n_rows == 2


QUERIES = [
    ("from t", None),
    ("select y + 1 as y, g from t where y > 0 and y < 9", None),
    ("select y as limit_join, g as window from t order by y", None),
    ("select case when g > 1 then y when g is null then 0 else abs(y) end as y, coalesce(y, 0) as z from t", None),
    ("select y::float as y, try_cast(s as double) as z, nullif(g, 1), y between 0 and 1, -y, s = 'a' from t", None),
    ("from t where g in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)", None),
    ("with q as (from t) select q.y as z from q where g is not distinct from 1", None),
    ("from plain", None),
    ("select g, sum(y) as y from t group by g", "LOGICAL_AGGREGATE"),
    ("select t.y, t.g from t join t as u using (g)", "JOIN"),
    ("select y - avg(y) over () as y from t", "LOGICAL_WINDOW"),
    ("select case when row_number() over () > 1 then y end as y from t", "LOGICAL_WINDOW"),
    ("select rowid as y from t", "rowid"),
    ("select random() as y from t", "random"),
    ("select noisy(y) as y from t", "random"),
    ("select mine(y) as y from t", "mine"),
    ("from t order by y limit 3", "LOGICAL_LIMIT"),
    ("select unnest([y, y]) as y from t", "UNNEST"),
    ("select g in (select g from t) as y from t", "JOIN"),
    ("from (pivot t on g using sum(y))", "LOGICAL_CHUNK_GET"),
    ("select range::double as y from range(3)", "a scan by range"),
]


def connected():
    connection = duckdb.connect()
    connection.execute("create table t as select range::double as y, range % 3 as g, 'a' as s from range(100)")
    connection.execute("create view plain as select y from t where y > 1")
    connection.execute("create macro noisy(x) as x + random()")
    connection.create_function("mine", lambda value: value, ["DOUBLE"], "DOUBLE")
    return connection


@pytest.mark.parametrize(("query", "seen"), QUERIES)
def test_plans_of_duckdb(query, seen):
    connection = connected()
    found = seen_by_duckdb(connection.sql(query))
    assert found is None if seen is None else seen in found


def test_files_and_tables_in_memory_of_duckdb(tmp_path):
    connection, path = connected(), file(tmp_path)
    held = pa.table({"y": [1.0, 2.0], 'odd "name': [1, 2]})
    connection.register("held", held)
    for plain in (
        connection.from_arrow(held).project("y + 1 as y").filter("y > 1").order("y"),
        connection.sql(f"select y as z from '{path}' where g > 0"),
        connection.sql(f"select p.y from read_parquet(['{path}'], union_by_name = true) as p"),
    ):
        assert seen_by_duckdb(plain) is None, plain.sql_query()
    for mixed in (
        connection.from_arrow(held).project("sum(y) over () as y"),
        connection.sql(f"select row_number() over () as y from '{path}'"),
        connection.read_parquet(path, file_row_number=True),
        connection.sql(f"select file_row_number as y from read_parquet('{path}')"),
        connection.sql(f"from '{tmp_path / 'stays.csv'}'"),
    ):
        assert seen_by_duckdb(mixed) is not None, mixed.sql_query()


def test_refusals_of_duckdb_do_not_depend_on_rows():
    """Its optimizer drops a branch by statistics: whether the query is refused would say what the extremes are."""
    said = set()
    for highest in (10.0, 10_000.0):
        connection = duckdb.connect()
        connection.execute("create table t as select range::double as y from range(10)")
        connection.execute("insert into t values (?)", [highest])
        for query in ("from t where y > 1000", "from t where y > 1000 limit 3"):
            said.add((query, seen_by_duckdb(connection.sql(query))))
    assert len(said) == 2


def test_plans_of_dask():
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    typed = pandas.DataFrame({"y": [1.0, 2.0], "g": [0, 1]}).astype({"g": "int64[pyarrow]"})
    held = frames.from_pandas(typed, npartitions=2)
    kept = held[held.y > 1]
    for plain in (
        held,
        held[["g", "y"]].rename(columns={"y": "z"}),
        kept.assign(z=kept.y * 2 + 1 - kept.g / 3),
        held.assign(z=(held.g > 1) & ~(held.g < 1) | (held.g == 2), w=abs(-held.y)),
        held[(held.y > 1) & held.y.notnull()],
        held.astype({"y": "float32"}).dropna(),
        held.assign(z=held.y.between(0, 1).astype("bool[pyarrow]"), w=held.g.isin([1, 2]).astype("bool[pyarrow]")),
    ):
        assert seen_by_dask(plain) is None, plain.expr
    for mixed, seen in (
        (held.assign(y=held.y - held.y.mean()), "Mean"),
        (held.assign(y=held.y.cumsum()), "CumSum"),
        (held.query("y > y.mean()"), "Query"),
        (held.map_partitions(lambda one: one), "MapPartitions"),
        (held.merge(held, on="g"), "Merge"),
        (held.drop_duplicates(), "DropDuplicates"),
        (held.head(1, compute=False), "Head"),
        ((kept.y + held.y).to_frame(), "several filters"),
    ):
        assert seen in seen_by_dask(mixed)
    with pytest.raises(dp.errors.ArgumentError, match="may make one row of several ones"):
        dp.Table(held.assign(y=held.y.cumsum()), {"y": "y"}).layouts()


@pytest.mark.parametrize(
    ("kind", "changed", "seen"),
    [
        ("int8[pyarrow]", lambda x: np.square(x).astype("float64"), "UFuncElemwise"),
        ("Int64", lambda x: (2**53 + 1) // x, "FloorDiv"),
        ("Int64", lambda x: x % x, "Mod"),
        ("float32", lambda x: (x.fillna(np.float64(0.1)) + 1e8) - 1e8, "Fillna"),
        ("float32", lambda x: x.where(x > 0, np.float64(0.1)), "Where"),
        ("int64[pyarrow]", lambda x: x.mask(x > 1), "Mask"),
        ("int8[pyarrow]", lambda x: x.clip(0.5, 2), "Clip"),
        ("int64[pyarrow]", lambda x: x.astype("category").astype("string"), "a cast from or to category"),
        ("int64[pyarrow]", lambda x: x.astype("string"), "a cast from or to string"),
        ("datetime64[ns]", lambda x: x.astype("string"), "a cast from or to datetime64"),
        ("datetime64[ns]", lambda x: x[x > x], "GT of datetime64"),
        ("object", lambda x: x.isin([1]), "Isin of object"),
        ("string", lambda x: x + "a", "Add of string"),
    ],
)
def test_operations_of_dask_whose_types_depend_on_other_rows(kind, changed, seen):
    dask, frames, pandas = map(pytest.importorskip, ("dask", "dask.dataframe", "pandas"))
    with dask.config.set({"dataframe.convert-string": False}):
        held = frames.from_pandas(pandas.DataFrame({"x": pandas.Series([1, 2, 3], dtype=kind)}), npartitions=1)
        assert seen in seen_by_dask(changed(held.x).to_frame("out"))


def test_a_plan_that_cannot_be_read_is_refused(monkeypatch):
    def broken(native):
        raise ValueError("secret")

    monkeypatch.setattr("pymc_dp.rows.engines.lazy.SEEN", {"Polars": broken})
    with pytest.raises(dp.errors.ArgumentError, match=UNREADABLE):
        dp.Table(frame(), {"y": "y"}).layouts()
    assert seen_by_spark(object()) == UNREADABLE


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")
@pytest.mark.slow
@pytest.mark.spark
def test_plans_of_spark(tmp_path):
    functions, path = pytest.importorskip("pyspark.sql.functions"), file(tmp_path)
    spark = session()
    held = spark.createDataFrame([(1.0, 1), (2.0, 2)], "y double, g int")
    held.createOrReplaceTempView("t")
    for plain in (
        held.withColumnRenamed("g", "Join").where("y > 0").orderBy("y"),
        spark.sql(
            "select case when y > 1 then y else abs(y) end as y, cast(g as double) as z from t where g in (1, 2)"
        ),
        spark.sql(
            "select coalesce(y, 0) as y, y between 0 and 1 as z, -y + g * 2 / 3 as w, try_cast('1' as int) from t"
        ),
        spark.read.parquet(path).select("y"),
        held.fillna(0).dropna(),
    ):
        assert seen_by_spark(plain) is None
    for mixed, seen in (
        (held.groupBy("g").agg(functions.sum("y").alias("y")), "Aggregate"),
        (held.join(held, "g"), "Join"),
        (held.limit(1), "Limit"),
        (held.sample(0.5), "Sample"),
        (held.union(held), "Union"),
        (held.withColumn("z", functions.explode(functions.array("y", "y"))), "Generate"),
        (held.withColumn("y", functions.monotonically_increasing_id()), "MonotonicallyIncreasingID"),
        (held.withColumn("y", functions.spark_partition_id()), "SparkPartitionID"),
        (held.withColumn("y", functions.rand()), "Rand"),
        (held.select(functions.udf(lambda value: value, "double")("y").alias("y")), "PythonUDF"),
        (spark.sql("select g in (select g from t) as y from t"), "InSubquery"),
        (spark.sql("select exists(select 1 from t) as y from t"), "Exists"),
        (spark.read.parquet(path).select("_metadata.row_index"), "GetStructField"),
        (spark.read.schema("y double").csv(str(tmp_path / "stays.csv")), "CSV"),
    ):
        assert seen in seen_by_spark(mixed)
        with pytest.raises(dp.errors.ArgumentError, match="may make one row of several ones"):
            dp.Table(mixed, {"y": mixed.columns[0]}).layouts()
