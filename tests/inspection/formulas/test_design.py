"""Ranges of columns of a design."""

import numpy as np
import pytest

from tests.inspection.formulas.models import bounded

RANGES = {
    "y ~ x:w": {"x:w_data": (0, 10)},
    "y ~ I(x**2 - x)": {"I(x ** 2 - x)_data": (-0.25, 0)},
    "y ~ np.log(w)": {"np.log(w)_data": (np.log(0.5), np.log(10))},
    "y ~ np.divide(x, w)": {"np.divide(x, w)_data": (0, 2)},
    "y ~ g:w": {f"g[{level}]:w_data": (0, 10) for level in "bca"},
    "y ~ S(g)": {"S(g)[b]_data": (-1, 1), "S(g)[c]_data": (-1, 1)},
    "y ~ np.where(g == 'a', x, w)": {"np.where(g == 'a', x, w)_data": (0, 10)},
}


@pytest.mark.parametrize("formula", RANGES)
def test_bounds_of_columns_are_their_range_over_the_public_box(formula):
    _, _, domain = bounded(formula)
    for name, pair in RANGES[formula].items():
        assert domain.bounds[name] == pytest.approx(pair, abs=1e-6)
