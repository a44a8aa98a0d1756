"""Tables are those that were published, with public levels; any other is refused, and texts say where one belongs."""

import gzip

import numpy as np
import pandas as pd
import pytest

import pymc_dp as dp
from pymc_dp.datasets import _sources

LOADED = {
    "fair": (None, dp.datasets.load_fair, (6366, 10)),
    "randhie": (None, dp.datasets.load_randhie, (20190, 12)),
    "adult": ("adult/adult_train.parquet", dp.datasets.load_adult, (32561, 15)),
    "adult, test": ("adult/adult_test.parquet", lambda: dp.datasets.load_adult("test"), (16281, 15)),
    "syria": (dp.datasets.syria._FILE, dp.datasets.load_syria_events, (16227, None)),
    "collisions": (dp.datasets.collisions._FILE, dp.datasets.load_collisions, (140056, None)),
    "tax units": (dp.datasets.tax_units._FILE, dp.datasets.load_tax_units, (280005, 25)),
}
FACTS = {
    "fair": lambda table: (table["affair"].sum(), ((table["affairs"] > 0) == table["affair"]).all()) == (2053, True),
    "randhie": lambda table: (round(table["visits"].mean(), 6), table["visits"].max()) == (2.860426, 77),
    "adult": lambda table: table["income"].value_counts()[">50K"] == 7841,
    "adult, test": lambda table: table["income"].value_counts()[">50K"] == 3846,
    "syria": lambda table: [len(table.attrs["levels"][name]) for name in ("region", "month")] == [14, 47],
    "collisions": lambda table: table["severity"].value_counts().sort_index().tolist() == [1616, 20038, 118402],
    "tax units": lambda table: round(table["weight"].sum() / 1e6) == 171,
}


def held(name):
    file, load, _ = LOADED[name]
    if file is not None and _sources.local_copy(file) is None:
        pytest.skip(f"needs {file} in the folder named by {_sources.FOLDER_VARIABLE}")
    return load()


@pytest.mark.parametrize("name", LOADED)
def test_a_table_has_the_known_rows(name):
    table, (rows, columns) = held(name), LOADED[name][2]
    assert len(table) == rows and columns in (None, table.shape[1])
    assert FACTS[name](table) and not table.isna().any(axis=None)
    for column, levels in table.attrs.get("levels", {}).items():
        assert table[column].between(0, len(levels) - 1).all()
    table[table.columns[0]] = 0
    assert not held(name).equals(table)  # the next one is its own


@pytest.mark.parametrize("split", ["train", "test"])
def test_codes_of_adult_point_back_at_the_text(split):
    table = held("adult" if split == "train" else "adult, test")
    codes = dp.datasets.encode_adult(table)
    for column, levels in dp.datasets.adult_categories().items():
        assert (np.array(levels)[codes[column]] == table[column].to_numpy()).all()


def test_levels_of_adult_are_102_and_other_values_become_minus_one():
    levels = dp.datasets.adult_categories()
    assert levels.pop("income") == ("<=50K", ">50K") and sum(map(len, levels.values())) == 102
    codes = dp.datasets.encode_adult(pd.DataFrame({"sex": ["Male", None, "male", np.nan], "age": [1, 2, 3, 4]}))
    assert codes.to_dict("list") == {"sex": [1, -1, -1, -1]}
    with pytest.raises(ValueError, match="workclass"):
        dp.datasets.encode_adult(pd.DataFrame({"age": [1]}))
    with pytest.raises(ValueError, match="split must be one of 'train', 'test', got 'tset'. Did you mean 'test'?"):
        dp.datasets.load_adult("tset")


OF_FOLDER = {"syria": dp.datasets.syria, "collisions": dp.datasets.collisions, "tax units": dp.datasets.tax_units}


@pytest.mark.parametrize("name", OF_FOLDER)
def test_missing_and_altered_copies_are_refused(name, tmp_path, monkeypatch):
    module, load = OF_FOLDER[name], LOADED[name][1]
    monkeypatch.delenv(_sources.FOLDER_VARIABLE, raising=False)
    with pytest.raises(dp.datasets.DatasetError, match=f"Set PYMC_DP_DATA to a folder with a copy at {module._FILE}"):
        load()
    monkeypatch.setenv(_sources.FOLDER_VARIABLE, str(tmp_path))
    path = tmp_path / module._FILE
    path.parent.mkdir()
    pd.DataFrame([dict.fromkeys(module._COLUMNS, 1)]).to_parquet(path)
    with pytest.raises(dp.datasets.DatasetError, match="not the published table.*Replace it"):
        load()
    pd.DataFrame({"other": [1]}).to_parquet(path)
    with pytest.raises(dp.datasets.DatasetError, match="lacks the columns"):
        load()


def test_a_changed_file_of_the_package_is_refused(monkeypatch, tmp_path):
    changed = tmp_path / "fair.csv.gz"
    changed.write_bytes(gzip.compress(b"rate_marriage\n1\n"))
    monkeypatch.setattr(dp.datasets.fair, "_TABLE", changed)
    with pytest.raises(dp.datasets.DatasetError, match="not the published table"):
        dp.datasets.load_fair()
