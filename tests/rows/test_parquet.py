"""Parquet files as rows: row groups, files, nulls, and what is refused."""

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.rows.arrow import part_of
from pymc_dp.rows.parquet import Parquet
from pymc_dp.rows.passes import Passes, by_column, with_stored
from pymc_dp.rows.spool import Scratch, spooled
from tests.step_methods.langevin.conftest import logistic, table

pytestmark = pytest.mark.usefixtures("paid")

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
COLUMNS = {"x": ["a", "b", "c"], "g": "group", "y": "answer"}


@pytest.fixture(scope="module")
def small():
    return logistic(*(column[:4] for column in table()))


def columns_of(rows=slice(None)):
    x, group, answer = (column[rows] for column in table())
    return {**dict(zip("abc", x.T, strict=True)), "group": group.astype(np.int8), "answer": answer.astype(bool)}


def read(model, source, scratch, domain=None):
    found = with_stored(inspect(model, domain).rows, source)
    found.require()
    layouts = source.layouts()
    held = spooled(Passes.of(found, source), scratch=Scratch(folder=str(scratch)))
    return dict(zip(by_column(found, layouts), held, strict=True))


@pytest.mark.parametrize("files", [1, 3])
def test_row_groups_and_files_are_read_in_order(small, tmp_path, monkeypatch, files):
    monkeypatch.setattr("pymc_dp.rows.spool.BLOCK_BYTES", 1000)
    parts, paths = np.array_split(np.arange(200), files), []
    for place, part in enumerate(parts):
        paths.append(tmp_path / f"{place}.parquet")
        pq.write_table(pa.table(columns_of(part)), paths[-1], row_group_size=33)
    found = read(small, Parquet(paths[0] if files == 1 else paths, COLUMNS), tmp_path)
    for name, expected in zip("xgy", table(), strict=True):
        assert np.array_equal(found[name], expected) and found[name].shape == expected.shape


def test_a_folder_is_its_files_in_the_order_of_their_names(small, tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    for place, part in enumerate(np.array_split(np.arange(200), 3)):
        pq.write_table(pa.table(columns_of(part)), folder / f"part-{place}.parquet")
    (folder / "_SUCCESS").touch()
    source = Parquet(folder, COLUMNS)
    assert repr(source).startswith(f"Parquet('{folder}'")
    found = read(small, source, tmp_path)
    assert all(np.array_equal(found[name], expected) for name, expected in zip("xgy", table(), strict=True))
    (folder / "country=NL").mkdir()
    with pytest.raises(ArgumentError, match="whose names may hold a column"):
        source.layouts()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArgumentError, match=r"must hold files \*\.parquet"):
        Parquet(tmp_path / "empty", COLUMNS).layouts()


def test_nulls_are_clamped_as_nan_is(small, tmp_path):
    path = tmp_path / "t.parquet"
    values = {
        "a": pa.array([None, 0.5, np.nan]),
        "b": pa.array([1, None, 3], pa.int16()),
        "c": pa.array([None, None, np.inf], pa.float32()),
        "group": pa.array([None, 2**40, 1]),
        "answer": pa.array([None, True, False]),
    }
    pq.write_table(pa.table(values), path)
    domain = dp.Domain(bounds={"x": (-1, 3), "g": (0, 1)})
    found = read(small, Parquet(path, COLUMNS), tmp_path, domain)
    assert found["x"].tolist() == [[1, 1, 1], [0.5, 1, 1], [1, 3, 3]]
    assert found["g"].tolist() == [0, 1, 1] and found["y"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("columns", "messages"),
    [
        ({"x": ["a", "bb"]}, ["no column 'bb'. Did you mean 'b'?"]),
        ({"x": "raw"}, ["'raw' of type binary, which is neither a number nor a boolean"]),
        (
            {"x": ["day", "price"]},
            ["'day' of type date32", "'price' of type d"],
        ),
        ({"x": "list"}, ["'list' of type list", "Write labels as codes, by a public list of levels"]),
    ],
)
def test_what_is_no_number_is_refused(tmp_path, columns, messages):
    values = {
        "a": [1.0],
        "b": [2.0],
        "raw": [b"secret"],
        "day": pa.array([3], pa.date32()),
        "price": pa.array([None], pa.decimal128(5, 2)),
        "list": [[1.0]],
    }
    pq.write_table(pa.table(values), tmp_path / "t.parquet")
    with pytest.raises(ArgumentError) as refused:
        Parquet(tmp_path / "t.parquet", columns).layouts()
    assert all(message in str(refused.value) for message in messages) and "secret" not in str(refused.value)


def test_files_that_do_not_fit_together_or_are_none_are_refused(tmp_path):
    paths = [tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet", "d.parquet")]
    pq.write_table(pa.table({"a": [1.0]}), paths[0])
    pq.write_table(pa.table({"a": [1]}), paths[1])
    paths[2].write_text("secret")
    for files, message in (
        (paths[:2], "has other dtypes"),
        (paths[2], "cannot be opened as a Parquet file"),
        (paths[3], "cannot be opened as a Parquet file"),
    ):
        with pytest.raises(ArgumentError, match=message) as refused:
            Parquet(files, {"x": "a"}).layouts()
        assert "secret" not in str(refused.value)


def test_a_broken_file_shows_no_value(small, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns_of()), path, compression="none")
    source = Parquet(path, COLUMNS)
    found = with_stored(inspect(small, None).rows, source)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(500) + whole[504:])
    (tmp_path / "s").mkdir()
    with pytest.raises(PrivacyError, match="cannot be read"):
        spooled(Passes.of(found, source), scratch=Scratch(folder=str(tmp_path / "s")))
    assert list((tmp_path / "s").iterdir()) == []


LABELS = [b"Oslo", None, b"Rome", b"\xff\xfe", b"Oslo", b"other", b""]
CITIES = dp.Levels("city", ["Rome", "Oslo"])


def stored_labels(kind):
    """Labels in one of the forms that files hold; one of them is no UTF-8, but in a dictionary."""
    if kind == "dictionary":
        return pa.array(
            [None if held is None else held.decode("utf-8", "replace") for held in LABELS]
        ).dictionary_encode()
    binary = pa.array(LABELS, pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())
    return texts if kind == "string" else texts.cast(getattr(pa, kind)())


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_labels_become_codes_as_they_are_read(small, tmp_path, kind):
    path = tmp_path / "t.parquet"
    group = pa.array([0, 1, 0, 1, 0, 1, 0])
    numbers = {name: np.arange(7.0) for name in "abc"}
    pq.write_table(pa.table({**numbers, "city": stored_labels(kind), "answer": group}), path, row_group_size=3)
    source = Parquet(path, {"x": ["a", "b", "c"], "g": CITIES, "y": "answer"})
    assert source.layouts()["g"].dtypes == (np.dtype(np.int64),)
    found = read(small, source, tmp_path, dp.Domain(bounds={"g": (0, 2)}))
    assert found["g"].tolist() == [1, 2, 0, 2, 1, 2, 2]
    column = source.labels("y")
    assert column.whole and column.column == "answer" and column.n_rows == 7
    counts = Parquet(path, {"g": "city"}).labels("g").counts()
    assert counts == {"Oslo": 2, "Rome": 1, "\ufffd\ufffd": 1, "other": 1, "": 1}


def test_dictionaries_are_never_written_out():
    """As texts these rows would be 2**31 bytes, more than an array of texts holds."""
    levels, n = dp.Levels("city", ["y", "x" * 32768]), 65_537
    for index, code in ((0, 1), (1, 0)):
        places = pa.array(np.full(n, index, dtype=np.int8))
        column = pa.DictionaryArray.from_arrays(places, pa.array(["x" * 32768, "y"]))
        assert set(part_of(column, levels).values.tolist()) == {code}
