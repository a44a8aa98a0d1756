"""Labels become codes row by row, whatever they are stored as; lists that say two things are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pymc_dp as dp
from pymc_dp.rows.gate import opened_gate
from pymc_dp.rows.levels import label_column
from pymc_dp.rows.stored import Arrays

CITIES = dp.Levels("city", ["Rome", "Oslo"])
HELD = ["Oslo", None, "Rome", "Bonn", "Oslo"]


class Loud(str):
    """A text that says nothing about itself but by what it is."""

    __slots__ = ()

    def __eq__(self, other):
        raise ValueError(str.__str__(self))

    def __hash__(self):
        raise ValueError(str.__str__(self))


STORED = {
    "objects": np.array(HELD, dtype=object),
    "objects of all sorts": np.array(["Oslo", float("nan"), Loud("Rome"), ["x"], Loud("Oslo")], dtype=object),
    "texts": np.array(["Oslo", "", "Rome", "Bonn", "Oslo"]),
    "variable texts": np.array(["Oslo", "", "Rome", "Bonn", "Oslo"], dtype=np.dtypes.StringDType()),
    "pandas": pd.Series(HELD),
    "pandas objects": pd.Series(HELD, dtype=object),
    "pandas categories": pd.Series(HELD, dtype="category"),
    "polars": pl.Series(HELD),
    "polars categories": pl.Series(HELD, dtype=pl.Categorical),
}


@pytest.mark.parametrize("kind", STORED)
def test_labels_become_codes(kind):
    codes = CITIES.codes(STORED[kind])
    assert codes.tolist() == [1, 2, 0, 2, 1] and codes.dtype == np.int64


@pytest.mark.parametrize(
    ("labels", "other", "says"),
    [
        (["a", 1], "other", "all texts or all whole numbers"),
        (["a", "a"], "other", "must differ"),
        (["a", "other"], "other", "must differ from each other and from other='other'"),
        ([1, 2], "1", "must differ"),
        ([1.5], "other", "must be a text or a whole number"),
        ("abc", "other", "must be a list"),
        (["a"], "", "other must be a name"),
    ],
)
def test_lists_that_say_two_things_are_refused(labels, other, says):
    with pytest.raises(dp.errors.ArgumentError, match=says):
        dp.Levels("city", labels, other=other)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (np.array([1.5]), "dtype float64 and 1 axes"),
        (np.array([["Oslo"]]), "2 axes"),
        (np.ma.array([1]), "array of texts"),
        (["Oslo"], "got a list"),
        (pd.Series([1.5]), "series of Float64"),
        (pl.Series([1], dtype=pl.Int128), "series of Int128"),
        (pd.Series([1.5]).astype("category"), "categories of values must be .*series of Float64"),
        (np.array([1]), "are texts, and its values whole numbers"),
    ],
)
def test_what_holds_no_labels_is_refused(values, says):
    with pytest.raises(dp.errors.ArgumentError, match=says):
        CITIES.codes(values)


def test_no_value_is_looked_at_before_it_is_read():
    class Guarded(list):
        def __iter__(self):
            raise AssertionError("values were read")

    for held in (pd.Series(HELD), pl.Series(HELD), np.array(HELD, dtype=object)):
        column = label_column({"city": held}, "city")
        assert (column.column, column.whole, column.n_rows) == ("city", False, 5)
        with pytest.raises(dp.errors.PrivacyError, match="before they are paid for"):
            list(column.blocks())
        with opened_gate():
            assert list(column.blocks()) == [[label if isinstance(label, str) else None for label in HELD]]


def not_utf8(texts):
    """Texts as Arrow holds them, of which it has not looked at one."""
    pa = pytest.importorskip("pyarrow")
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))])


ENGINES = {
    "pyarrow": lambda pa, held: pa.chunked_array([held.slice(0, 1), held.slice(1)]),
    "pyarrow dictionary": lambda pa, held: pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pa.array(range(len(held)), pa.int8()), held)]
    ),
    "pandas": lambda pa, held: pd.Series(pd.array(pa.chunked_array([held.cast(pa.large_string())]), dtype="str")),
    "pandas of Arrow": lambda pa, held: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([held]))),
    "polars": lambda pa, held: pl.from_arrow(pa.table({"c": held}))["c"],
    "polars categories": lambda pa, held: pl.from_arrow(pa.table({"c": held}))["c"].cast(pl.Categorical),
}


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("last", [b"x", b"\xff\xfe", b"\xed\xa0\x80", b""])
def test_no_bytes_of_a_row_decide_whether_a_column_can_be_read(kind, last):
    pa = pytest.importorskip("pyarrow")
    held = ENGINES[kind](pa, not_utf8([b"Oslo", b"Rome", last]))
    assert CITIES.codes(held).tolist() == [1, 0, 2]
    with opened_gate():
        labels = [label for block in label_column({"city": held}, "city").blocks() for label in block]
    assert labels == ["Oslo", "Rome", last.decode("utf-8", "replace")]


def test_no_refusal_shows_how_long_a_label_is():
    for held in (np.array([["Oslo", "x" * 87]]), np.array(["Oslo", "x" * 87]).astype("S")):
        with pytest.raises(dp.errors.ArgumentError) as caught:
            label_column({"city": held}, "city")
        assert "87" not in str(caught.value)
    with pytest.raises(dp.errors.ArgumentError) as caught:
        dp.SGLD(rows={"y": np.array("x" * 87)})
    assert "87" not in str(caught.value) and "has dtype str and 0 axes" in str(caught.value)
    assert str(Arrays({"y": np.array(["x" * 87])}).layouts()["y"]) == "str"
