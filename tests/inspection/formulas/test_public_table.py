"""The table that stands for the rows."""

import numpy as np
import pandas as pd
import pytest

from pymc_dp.inspection.formulas.design import PublicColumn, PublicTable

NUMBER = PublicColumn(name="x", bounds=(2.0, 8.0))
LABELS = PublicColumn(name="g", levels=pd.CategoricalDtype(list("abc"), ordered=True))


def test_each_column_is_spread_evenly_over_what_is_public():
    frame = PublicTable.of([NUMBER, LABELS], [["x", "g"]]).frame
    assert frame["x"].min() == 2
    assert frame["x"].max() == 8
    assert frame["x"].mean() == pytest.approx(5)
    assert frame["x"].std() == pytest.approx(6 / np.sqrt(12), rel=2e-3)
    assert np.ptp(frame["g"].value_counts()) <= 1
    assert abs(np.corrcoef(frame["x"], frame["g"].cat.codes)[0, 1]) < 0.1


def test_there_are_rows_for_levels_to_meet():
    many = [PublicColumn(name=name, levels=pd.CategoricalDtype(range(30), ordered=True)) for name in "gh"]
    frame = PublicTable.of(many, [["g", "h"]]).frame
    assert len(frame) >= 8 * 900


def test_rows_are_clamped_and_what_is_missing_goes_to_the_middle_or_the_first_label():
    held = pd.Categorical(["c", None, "a", "b"], dtype=LABELS.levels)
    private = pd.DataFrame({"x": [1.0, np.nan, np.inf, 3.0], "g": held})
    rows = PublicTable.of([NUMBER, LABELS], []).rows(private)
    assert rows["x"].tolist() == [2, 5, 8, 3]
    assert rows["g"].tolist() == ["c", "a", "a", "b"]
