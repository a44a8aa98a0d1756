import numpy as np

from pymc_dp.datasets import load_randhie


def test_has_the_published_rows_and_visits():
    table = load_randhie()
    assert table.shape == (20190, 12)
    assert round(table["visits"].mean(), 6) == 2.860426
    assert (table["visits"].min(), table["visits"].max()) == (0, 77)
    assert not table.isna().any(axis=None)


def test_plans_are_those_of_coinsurance_and_deductible():
    table = load_randhie()
    assert table["plan"].value_counts().sort_index().tolist() == [6822, 4065, 1401, 2653, 4175, 1074]
    assert table.attrs["plan_names"][0] == "free"
    assert sorted(table["coinsurance"].unique()) == [0, 25, 50, 95, 100]
    assert (table.loc[table["plan"] == 3, "coinsurance"] == 95).all()


def test_health_is_one_rating_each():
    table = load_randhie()
    assert np.array_equal(table["health"] == 2, table["fair"] == 1)
    assert table[["good", "fair", "poor"]].sum(axis=1).max() == 1
