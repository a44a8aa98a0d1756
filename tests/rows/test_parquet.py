"""Parquet files as rows: row groups, files, nulls, and what is refused."""

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
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


def test_a_folder_is_its_files_in_the_order_of_their_names(small, tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    for place, part in enumerate(np.array_split(np.arange(200), 3)):
        pq.write_table(pa.table(columns_of(part)), folder / f"part-{place}.parquet")
    (folder / "_SUCCESS").touch()
    source = dp.Parquet(folder, COLUMNS)
    assert repr(source).startswith(f"Parquet('{folder}'")
    found = read(small, source, tmp_path)
    assert all(np.array_equal(found[name], expected) for name, expected in zip("xgy", table(), strict=True))
    (folder / "country=NL").mkdir()
    with pytest.raises(dp.errors.ArgumentError, match="whose names may hold a column"):
        source.layouts()
    (tmp_path / "empty").mkdir()
    with pytest.raises(dp.errors.ArgumentError, match=r"must hold files \*\.parquet"):
        dp.Parquet(tmp_path / "empty", COLUMNS).layouts()


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
    with pytest.raises(dp.errors.ArgumentError) as refused:
        dp.Parquet(tmp_path / "t.parquet", columns).layouts()
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
        with pytest.raises(dp.errors.ArgumentError, match=message) as refused:
            dp.Parquet(files, {"x": "a"}).layouts()
        assert "secret" not in str(refused.value)


def test_a_broken_file_shows_no_value(small, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns_of()), path, compression="none")
    source = dp.Parquet(path, COLUMNS)
    found = with_stored(inspect(small, None).rows, source)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(500) + whole[504:])
    (tmp_path / "s").mkdir()
    with pytest.raises(dp.errors.PrivacyError, match="cannot be read"):
        spooled(Passes.of(found, source), scratch=Scratch(folder=str(tmp_path / "s")))
    assert list((tmp_path / "s").iterdir()) == []


def test_what_pyarrow_says_of_a_block_is_not_shown(small, tmp_path, monkeypatch):
    pq.write_table(pa.table(columns_of()), tmp_path / "table.parquet")

    def fails(*given, **named):
        raise pa.ArrowInvalid("the value 8675309 of row 3 is out of range")

    source = dp.Parquet(tmp_path / "table.parquet", COLUMNS)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fails)
    with pytest.raises(dp.errors.PrivacyError, match="cannot be read") as caught:
        read(small, source, tmp_path)
    assert "8675309" not in str(caught.value)
