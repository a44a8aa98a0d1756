import pandas as pd
import pytest

from pymc_dp.datasets import DatasetError, _sources, load_tax_units, tax_units


@pytest.fixture(scope="module")
def table():
    if _sources.local_copy(tax_units._FILE) is None:
        pytest.skip(f"needs {tax_units._FILE} in the folder named by {_sources.FOLDER_VARIABLE}")
    return load_tax_units()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "income").mkdir()
    monkeypatch.setenv(_sources.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def test_has_the_known_rows(table):
    assert table.shape == (280005, 25)
    assert table["year"].value_counts().to_dict() == {2012: 104376, 2013: 72040, 2014: 103589}
    assert not table.isna().any(axis=None)
    assert round(table["weight"].sum() / 1e6) == 171


def test_earnings_are_the_sum_of_their_parts(table):
    assert (table["wages"] == table["wages_head"] + table["wages_spouse"]).all()
    assert (table["earnings"] == table["wages"] + table["business"] + table["farm"]).all()


def test_text_is_in_the_public_lists(table):
    assert table["status"].value_counts()[table.attrs["statuses"]].tolist() == [146758, 106231, 4712, 22304]
    assert set(table["region"]) == set(table.attrs["regions"])
    assert table.groupby("region")["state"].nunique()[table.attrs["regions"]].tolist() == [9, 12, 17, 13]


def test_without_a_copy_it_says_where_one_belongs(monkeypatch):
    monkeypatch.delenv(_sources.FOLDER_VARIABLE, raising=False)
    with pytest.raises(DatasetError, match=r"Set PYMC_DP_DATA to a folder with a copy at income/cps_taxunits"):
        load_tax_units()


def test_altered_copy_is_refused(folder):
    row = dict.fromkeys(tax_units._COLUMNS, 1)
    pd.DataFrame([row]).to_parquet(folder / tax_units._FILE)
    with pytest.raises(DatasetError, match="not the published table.*Replace it"):
        load_tax_units()


def test_copy_without_a_column_is_refused(folder):
    pd.DataFrame({"FLPDYR": [2012]}).to_parquet(folder / tax_units._FILE)
    with pytest.raises(DatasetError, match="lacks the columns s006, age_head"):
        load_tax_units()
