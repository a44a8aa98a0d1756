"""Bambi's weighted response: the same model, with the column of its weights beside it."""

import bambi
import numpy as np
import pandas as pd
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError

BOUNDS = {"y": (-3, 3), "x": (0, 1), "w": (0.5, 2)}
TABLE = pd.DataFrame({"y": np.linspace(-1, 1, 6), "x": np.linspace(0, 1, 6), "w": [1.0, np.nan, 0.1, 9.0, np.inf, 1.5]})


def test_a_weighted_response_is_the_response_with_a_column_of_weights():
    filled = TABLE.assign(w=TABLE.w.fillna(0.7).replace(np.inf, 9.0))  # bambi takes numbers
    domain, plain = dp.Domain(bounds=BOUNDS), bambi.Model("y ~ x", TABLE)
    found = [
        dp.models.from_bambi(bambi.Model("weighted(y, w) ~ x", filled), domain),
        dp.models.from_bambi(plain, dp.Domain(bounds=BOUNDS, weights={"y": "w"})),
    ]
    once, _ = dp.models.from_bambi(plain, dp.Domain(bounds={"y": (-3, 3), "x": (0, 1)}))
    for (model, own), missing in zip(found, (0.7, 1.25), strict=True):
        assert own.weights == {"y": "w_data"} and own.bounds["w_data"] == (0.5, 2)
        np.testing.assert_array_equal(model["w_data"].get_value(), [1, missing, 0.5, 2, 2, 1.5])
        assert set(model.named_vars) - set(once.named_vars) == {"w_data"}
        point = once.initial_point()
        assert model.compile_logp(mode="FAST_COMPILE")(point) == once.compile_logp(mode="FAST_COMPILE")(point)
        assert "pseudo-posterior" in str(dp.explain(model, own, delta=1e-5))


def test_weights_that_are_no_column_or_have_no_bounds_are_refused():
    table, domain = TABLE.fillna(1.0).replace(np.inf, 9.0), dp.Domain(bounds=BOUNDS)
    for formula, given, why in (
        ("weighted(y, np.exp(x)) ~ x", domain, "no column, or the response is none"),
        ("weighted(y, w) ~ x", dp.Domain(bounds={"y": (-3, 3), "x": (0, 1)}), "without bounds"),
        ("weighted(y, w) ~ x", dp.Domain(bounds=BOUNDS, weights={"y": "w"}), "given twice"),
        ("y ~ x", dp.Domain(bounds=BOUNDS, weights={"z": "w"}), "not of the response"),
    ):
        with pytest.raises(UnsupportedModelError, match=why):
            dp.models.from_bambi(bambi.Model(formula, table), given)
