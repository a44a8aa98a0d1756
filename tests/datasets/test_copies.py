"""Copies of data sets in a folder of the user: what is not the published table is refused."""

import numpy as np
import pandas as pd
import pytest

import pymc_dp as dp
from tests.datasets.test_events import LOG, read

NUMBERS = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
ORDER = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship"),
    *("race", "sex", *NUMBERS[3:], "native_country", "income"),
]


def adult(**renamed):
    levels = {name: found[-1] for name, found in dp.datasets.adult_categories().items()}
    row = dict.fromkeys(ORDER, "x") | dict.fromkeys(NUMBERS, 1) | levels
    return pd.DataFrame([row])[ORDER].rename(columns=renamed)


@pytest.mark.parametrize(("table", "says"), [(adult(), "not the published table"), (adult(sex="gender"), "gender")])
@pytest.mark.parametrize("split", ["train", "test"])
def test_copies_that_are_not_the_published_table_are_refused(table, says, split, tmp_path, monkeypatch):
    (tmp_path / "adult").mkdir()
    table.to_parquet(tmp_path / f"adult/adult_{split}.parquet")
    monkeypatch.setenv("PYMC_DP_DATA", str(tmp_path))
    with pytest.raises(dp.datasets.DatasetError, match=f"(?s){says}.*(Remove it|PYMC_DP_DATA)"):
        dp.datasets.load_adult(split)


def test_events_are_read_from_files(tmp_path):
    path = tmp_path / "log.csv"
    LOG.to_csv(path, index=False)
    assert read(path).to_dict("list") == read().to_dict("list")
    with pytest.raises(dp.errors.ArgumentError, match="source names no file: .* Give a path, or a DataFrame"):
        read(tmp_path / "missing.csv")


def test_counts_without_a_profile_and_cells_outside_of_the_table_are_refused():
    given = {
        "states": np.zeros((2, 1, 3), dtype=int),
        "start": np.ones((2, 1)),
        "transition": np.ones((2, 1, 1)),
        "profiles": {"a": np.full((2, 1, 2), 0.5)},
    }
    counts = {"a": np.array([[1, 2]])}
    with pytest.raises(dp.errors.ArgumentError, match="profiles has no b. Give a profile for each field of counts"):
        dp.datasets.held_out_log_likelihood(
            **given, cells=np.array([[0, 0]]), counts={**counts, "b": np.array([[1, 2]])}
        )
    with pytest.raises(dp.errors.ArgumentError, match="within 1 chains of 3 steps"):
        dp.datasets.held_out_log_likelihood(**given, cells=np.array([[0, 3]]), counts=counts)
