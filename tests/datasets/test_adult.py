import numpy as np
import pandas as pd
import pytest

from pymc_dp.datasets import _sources, adult, adult_categories, encode_adult, load_adult

N_ROWS = {"train": 32561, "test": 16281}


@pytest.fixture(params=N_ROWS)
def split(request):
    if _sources.local_copy(f"adult/adult_{request.param}.parquet") is None:
        pytest.skip(f"needs adult/adult_{request.param}.parquet in the folder named by {_sources.FOLDER_VARIABLE}")
    return request.param


def example(**columns) -> pd.DataFrame:
    row = dict.fromkeys(adult._COLUMNS, 1) | {name: levels[-1] for name, levels in adult_categories().items()} | columns
    return pd.DataFrame([row]).astype(adult._COLUMNS)


def test_local_copy_is_the_published_table(split):
    table = load_adult(split)
    assert table.shape == (N_ROWS[split], 15)
    assert dict(table.dtypes) == dict(example().dtypes)
    assert table["income"].value_counts()[">50K"] == {"train": 7841, "test": 3846}[split]


def test_download_gives_the_same_table_as_the_local_copy(split, monkeypatch):
    expected = load_adult(split)
    original = adult._serialise(expected, split)
    monkeypatch.delenv(_sources.FOLDER_VARIABLE)
    monkeypatch.setattr(adult, "zip_member", lambda *args, **kwargs: original)
    pd.testing.assert_frame_equal(load_adult(split), expected)


def test_every_value_is_in_the_public_levels(split):
    codes = encode_adult(load_adult(split))
    assert codes.shape == (N_ROWS[split], 9)
    for column, levels in adult_categories().items():
        assert codes[column].between(0, len(levels) - 1).all()


def test_codes_point_back_at_the_text(split):
    table = load_adult(split)
    codes = encode_adult(table)
    for column, levels in adult_categories().items():
        assert (np.array(levels)[codes[column]] == table[column].to_numpy()).all()


def test_altered_local_copy_is_refused(split, tmp_path, monkeypatch):
    (tmp_path / "adult").mkdir()
    table = load_adult(split)
    table.loc[0, "age"] += 1
    table.to_parquet(tmp_path / f"adult/adult_{split}.parquet")
    monkeypatch.setenv(_sources.FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(_sources.DatasetError, match="not the published table.*PYMC_DP_DATA"):
        load_adult(split)


def test_local_copy_with_other_columns_is_refused(tmp_path, monkeypatch):
    (tmp_path / "adult").mkdir()
    example().rename(columns={"sex": "gender"}).to_parquet(tmp_path / "adult/adult_train.parquet")
    monkeypatch.setenv(_sources.FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(_sources.DatasetError, match="gender"):
        load_adult()


@pytest.mark.parametrize("split", N_ROWS)
def test_reading_undoes_writing(split):
    table = pd.concat([example(), example(age=90, workclass="Private", income="<=50K")], ignore_index=True)
    pd.testing.assert_frame_equal(adult._parse(adult._serialise(table, split)), table)


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split must be one of 'train', 'test', got 'tset'. Did you mean 'test'?"):
        load_adult("tset")


def test_there_are_102_levels_of_8_columns_and_no_level_twice():
    levels = adult_categories()
    assert levels.pop("income") == ("<=50K", ">50K")
    assert len(levels) == 8
    assert sum(map(len, levels.values())) == 102
    assert all(len(set(names)) == len(names) for names in levels.values())


def test_changing_the_returned_levels_changes_nothing():
    adult_categories().clear()
    assert len(adult_categories()) == 9


def test_unknown_and_missing_values_become_minus_one_without_a_word():
    table = pd.DataFrame({"sex": ["Male", None, "male", np.nan], "age": [1, 2, 3, 4]}, index=[9, 8, 7, 6])
    codes = encode_adult(table)
    assert list(codes.columns) == ["sex"]
    assert codes["sex"].to_dict() == {9: 1, 8: -1, 7: -1, 6: -1}
    assert codes["sex"].dtype == "int64"


def test_table_without_any_categorical_column_is_refused():
    with pytest.raises(ValueError, match="workclass"):
        encode_adult(pd.DataFrame({"age": [1]}))
