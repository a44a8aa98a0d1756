import gzip

import pytest

from pymc_dp.datasets import DatasetError, fair, load_fair


def test_has_one_row_per_woman_with_the_published_counts():
    table = load_fair()
    assert table.shape == (6366, 10)
    assert table["rate_marriage"].value_counts().sort_index().tolist() == [99, 348, 993, 2242, 2684]
    assert table["affair"].sum() == 2053


def test_affair_is_whether_any_time_was_spent():
    table = load_fair()
    assert ((table["affairs"] > 0) == (table["affair"] == 1)).all()


def test_codes_are_integers_in_the_documented_ranges():
    table = load_fair()
    ranges = {"rate_marriage": (1, 5), "affair": (0, 1), "religious": (1, 4), "educ": (9, 20), "occupation": (1, 6)}
    for column, bounds in ranges.items():
        assert table[column].dtype == "int64"
        assert (table[column].min(), table[column].max()) == bounds
    assert not table.isna().any(axis=None)


def test_changing_a_loaded_table_leaves_the_next_one_alone():
    table = load_fair()
    table["rate_marriage"] = 0
    assert load_fair()["rate_marriage"].min() == 1


def test_the_table_is_that_of_statsmodels():
    pandas = pytest.importorskip("pandas")
    published = pytest.importorskip("statsmodels.datasets.fair").load_pandas().data
    codes = dict.fromkeys(("rate_marriage", "religious", "educ", "occupation", "occupation_husb"), "int64")
    pandas.testing.assert_frame_equal(load_fair()[list(published)], published.astype(codes), check_exact=True)


def test_a_changed_file_is_refused(monkeypatch, tmp_path):
    changed = tmp_path / "fair.csv.gz"
    changed.write_bytes(gzip.compress(b"rate_marriage\n1\n"))
    monkeypatch.setattr(fair, "_TABLE", changed)
    with pytest.raises(DatasetError, match="not the published table"):
        load_fair()
