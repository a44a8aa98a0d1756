import pandas as pd
import pytest

from pymc_dp.datasets import DatasetError, _sources, collisions, load_collisions, load_syria_events, syria

TABLES = {"syria": (syria, load_syria_events), "collisions": (collisions, load_collisions)}


@pytest.fixture(params=TABLES)
def known(request):
    return TABLES[request.param]


def held(module, load):
    if _sources.local_copy(module._FILE) is None:
        pytest.skip(f"needs {module._FILE} in the folder named by {_sources.FOLDER_VARIABLE}")
    return load()


def test_every_code_has_a_name(known):
    table = held(*known)
    assert list(table.columns) == list(table.attrs["levels"])
    assert not table.isna().any(axis=None)
    for name, levels in table.attrs["levels"].items():
        assert table[name].between(0, len(levels) - 1).all()


def test_syria_has_the_known_events():
    table = held(*TABLES["syria"])
    levels = table.attrs["levels"]
    assert len(table) == 16566 - 339
    assert (len(levels["region"]), len(levels["month"])) == (14, 47)
    assert (table.groupby("region").size() > 0).sum() == 14 and table["month"].nunique() == 47
    against = table["sides"] == levels["sides"].index("against civilians")
    assert (against == (table["violence"] == levels["violence"].index("one-sided"))).all()
    government = table["sides"].isin([levels["sides"].index(f"government, {other}") for other in ("insurgents", "IS")])
    assert not table.loc[~government & ~against & (table["sides"] != 7), "government_dead"].any()


def test_collisions_are_those_of_the_year():
    table = held(*TABLES["collisions"])
    levels = table.attrs["levels"]
    assert len(table) == 140056
    assert (len(levels["region"]), len(levels["month"])) == (51, 12)
    assert table["severity"].value_counts().sort_index().tolist() == [1616, 20038, 118402]
    assert (table["several_vehicles"] == 0).sum() == 41116


def test_without_a_copy_it_says_where_one_belongs(known, monkeypatch):
    module, load = known
    monkeypatch.delenv(_sources.FOLDER_VARIABLE, raising=False)
    with pytest.raises(DatasetError, match=f"Set PYMC_DP_DATA to a folder with a copy at {module._FILE}"):
        load()


def test_altered_copies_are_refused(known, tmp_path, monkeypatch):
    module, load = known
    monkeypatch.setenv(_sources.FOLDER_VARIABLE, str(tmp_path))
    path = tmp_path / module._FILE
    path.parent.mkdir()
    pd.DataFrame([dict.fromkeys(module._COLUMNS, 1)]).to_parquet(path)
    with pytest.raises(DatasetError, match="not the published table.*Replace it"):
        load()
    pd.DataFrame({"month": [1]}).to_parquet(path)
    with pytest.raises(DatasetError, match="lacks the columns"):
        load()
