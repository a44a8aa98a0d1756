import pandas as pd
import pytest

import pymc_dp as dp

LOG = pd.DataFrame(
    {
        "where": ["north", "south", None, "sea", "north", "south"],
        "when": ["2004-01-30", "2004-02-01", "2004-02-09", "2004-02-10", None, "2005-01-01"],
        "type": ["attack", "patrol", "attack", "parade", "attack", None],
        "grade": [1, 7, 1, 2, 1, 1],
        "killed": [0, 2, 0, 1, 0, 0],
        "wounded": [0, None, 1, 3, 0, 0],
    }
)
ARGUMENTS = {
    "region": "where",
    "date": "when",
    "fields": {"type": ["patrol", "attack", "other"], "grade": [2, 1]},
    "regions": ["south", "north", "sea"],
    "first_month": "2004-01",
    "last_month": "2004-03",
    "indicators": {"hurt": ["killed", "wounded"]},
}


def read(source=LOG, **other):
    return dp.datasets.read_events(source, **{**ARGUMENTS, **other})


def test_events_become_codes_of_public_levels():
    found = read()
    assert found.to_dict("list") == {
        "region": [1, 0, 2],
        "month": [0, 1, 1],
        "type": [1, 0, 2],
        "grade": [1, 0, 0],
        "hurt": [0, 1, 1],
    }
    assert found.attrs["levels"] == {
        "region": ["south", "north", "sea"],
        "month": ["2004-01", "2004-02", "2004-03"],
        "type": ["patrol", "attack", "other"],
        "grade": [2, 1],
        "hurt": ["no", "yes"],
    }
    assert set(map(str, found.dtypes)) == {"int64"}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"region": "place"}, "no column place"),
        ({"indicators": {"hurt": ["detained"]}}, "no column detained"),
        ({"indicators": {"type": ["killed"]}}, "both a field and an indicator"),
        ({"regions": []}, "levels of region must be one or more"),
        ({"fields": {"type": ["attack", "attack"]}}, "levels of type"),
        ({"last_month": "2003-12"}, "is before"),
        ({"first_month": "spring"}, "must be months"),
    ],
)
def test_wrong_arguments_are_named(wrong, says):
    with pytest.raises(dp.errors.ArgumentError, match=says):
        read(**wrong)
