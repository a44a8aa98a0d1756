"""What a data frame declares of its columns: types are read, rows are not, and what only rows could tell is refused."""

import pickle
import re

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pymc_dp as dp

RATINGS = ["bad", "fair", "good"]
ROWS = {"rating": ["good", "bad", "good"], "smokes": [True, False, True], "age": [31.0, 64.0, 18.5]}
BOUNDS = {"age": (18, 95)}


def polars_frame():
    return pl.DataFrame(ROWS, schema_overrides={"rating": pl.Enum(RATINGS)})


def duckdb_relation():
    connection = duckdb.connect()
    connection.sql("create type rating as enum ('bad', 'fair', 'good')")
    connection.sql("create table survey (rating rating, smokes boolean, age double)")
    connection.executemany("insert into survey values (?, ?, ?)", list(zip(*ROWS.values(), strict=True)))
    return connection.table("survey")


def pandas_frame(**kind):
    return pd.DataFrame(ROWS).assign(rating=lambda rows: pd.Categorical(rows["rating"], categories=RATINGS, **kind))


DECLARED = {"polars": polars_frame, "polars, lazy": lambda: polars_frame().lazy(), "duckdb": duckdb_relation}


@pytest.mark.parametrize("kind", DECLARED)
def test_declared_levels_are_taken_in_their_order(kind):
    domain = dp.Domain.of(DECLARED[kind](), bounds=BOUNDS)
    assert domain == dp.Domain(bounds=BOUNDS, levels={"rating": RATINGS, "smokes": ("False", "True")})
    assert pickle.loads(pickle.dumps(domain)) == domain
    assert eval(repr(domain), {"Domain": dp.Domain}) == domain


def test_categories_of_pandas_without_an_order_are_taken_where_somebody_says_that_they_are_public():
    frame = pandas_frame()
    with pytest.raises(dp.errors.DomainError, match=re.escape("say so, public_levels=['rating']")):
        dp.Domain.of(frame, bounds=BOUNDS)
    assert dp.Domain.of(frame, public_levels=["rating"]).levels["rating"] == tuple(RATINGS)


@pytest.mark.parametrize("cut", [pd.cut, pd.qcut])
def test_intervals_are_refused_as_their_ends_may_be_quantiles_of_the_rows(cut):
    ages = pd.Series([18.5, 31.25, 64.75, 70.125])
    for public in ((), ("group",)):
        with pytest.raises(dp.errors.DomainError, match="are intervals, whose ends may be those of its rows") as caught:
            dp.Domain.of(pd.DataFrame({"group": cut(ages, 3)}), public_levels=public)
        assert not any(digits in str(caught.value) for digits in ("18", "31", "64", "70"))
    named = pd.DataFrame({"group": cut(ages, 3, labels=["young", "middle", "old"])})
    assert dp.Domain.of(named).levels["group"] == ("young", "middle", "old")


UNDECLARED = {
    "texts": pl.DataFrame({"city": ["Rome"]}),
    "objects": pd.DataFrame({"city": pd.Series(["Rome"], dtype=object)}),
    "objects that are numbers": pd.DataFrame({"city": pd.Series([7], dtype=object)}),
    "texts of pandas": pd.DataFrame({"city": ["Rome"]}),
    "categories that occur": pl.DataFrame({"city": pl.Series(["Rome"], dtype=pl.Categorical)}),
    "dictionary": pa.table({"city": pa.array(["Rome"]).dictionary_encode()}),
    "texts in DuckDB": duckdb.sql("select 'Rome' as city"),
}


@pytest.mark.parametrize("kind", UNDECLARED)
@pytest.mark.parametrize("said", [(), ("city",)], ids=["", "called public"])
def test_what_only_rows_could_tell_is_refused_with_the_line_to_write(kind, said):
    with pytest.raises(dp.errors.DomainError, match=re.escape("levels={'city': [...]}")) as caught:
        dp.Domain.of(UNDECLARED[kind], public_levels=said)
    assert "Rome" not in str(caught.value)
    assert dp.Domain.of(UNDECLARED[kind], levels={"city": ["Oslo", "Bonn"]}).levels == {"city": ("Oslo", "Bonn")}
    assert dp.Domain.of(UNDECLARED[kind], columns=[]) == dp.Domain()


def other_rows(frame):
    """A frame of the same types with other values, and fewer rows."""
    rows = {"rating": ["fair"], "smokes": [False], "age": [1e9]}
    return (
        pl.DataFrame(rows, schema=frame.schema) if isinstance(frame, pl.DataFrame) else frame.iloc[:1].assign(age=1e9)
    )


@pytest.mark.parametrize("frame", [polars_frame(), pandas_frame()], ids=["polars", "pandas"])
def test_nothing_depends_on_the_rows(frame):
    given = {"public_levels": ["rating"], "neighbours": "add_remove", "n_max": 10}
    assert dp.Domain.of(frame, **given) == dp.Domain.of(other_rows(frame), **given)
    assert dict(dp.Domain.of(frame, **given).bounds) == {}


def test_no_value_is_looked_at_to_tell_the_type_of_a_column(monkeypatch):
    """Of a column of objects narwhals looks at the first hundred values."""
    looked, infer = [], pd.api.types.infer_dtype
    monkeypatch.setattr(pd.api.types, "infer_dtype", lambda values, **how: looked.append(len(values)) or infer(values))
    frame = pd.DataFrame({"city": pd.Series(["Rome", "Oslo"], dtype=object), "age": [1.0, 2.0]})
    assert dp.Domain.of(frame, columns=["age"]) == dp.Domain()
    with pytest.raises(dp.errors.DomainError, match="whose levels only its rows would tell"):
        dp.Domain.of(frame)
    assert looked and not any(looked)


def test_a_lazy_frame_is_not_run():
    def fails(rows):
        raise AssertionError("it was run")

    frame = polars_frame().lazy().map_batches(fails, schema=polars_frame().schema)
    assert dp.Domain.of(frame).levels["rating"] == tuple(RATINGS)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"frame": ROWS}, dp.errors.DomainError, "must be a data frame"),
        ({"frame": pd.Series([1.0])}, dp.errors.DomainError, "must be a data frame"),
        ({"frame": pd.DataFrame([[1, 2]], columns=["a", "a"])}, dp.errors.DomainError, "columns of different names"),
        ({"bounds": {"agee": (0, 1)}}, dp.errors.DomainError, "Did you mean 'age'?"),
        ({"columns": ["rating", "smoke"]}, dp.errors.DomainError, "Did you mean 'smokes'?"),
        ({"columns": "rating"}, dp.errors.ArgumentError, "columns=('rating',)"),
        ({"public_levels": ["ratings"]}, dp.errors.DomainError, "Did you mean 'rating'?"),
        ({"levels": {"rating": [True, False]}}, dp.errors.DomainError, "texts or whole numbers"),
        ({"levels": {"rating": ["a", "b", "a"]}}, dp.errors.DomainError, "must differ"),
        ({"levels": {"rating": "good"}}, dp.errors.ArgumentError, "levels['rating'] must be a list"),
    ],
)
def test_contradictions_are_refused(given, error, text):
    with pytest.raises(error, match=re.escape(text)):
        dp.Domain.of(**{"frame": polars_frame(), **given})
