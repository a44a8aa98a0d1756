"""What is found in a model that can be released: columns, levels, what is left behind and what is assumed public."""

import warnings

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

N = 6
Y, GROUP, VALUE = np.array([0, 1, 1, 0, 1, 1]), np.arange(N) % 3, np.array([987654.25, 1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.mark.parametrize("filled", ["masked", "nan", "covariate"])
def test_missing_values_are_refused_with_what_to_do(filled):
    values = np.ma.masked_array(VALUE, mask=Y) if filled == "masked" else np.where(Y, np.nan, VALUE)
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore")
        x = pm.Normal("x", pm.Normal("mu"), 1, observed=values)
        if filled == "covariate":
            pm.Normal("y", pm.Normal("b") + x, 1, observed=VALUE)
    with pytest.raises(dp.errors.UnsupportedModelError) as caught:
        dp.privatize(model, epsilon=1.0, statistics=dp.Statistics())
    text = str(caught.value)
    if filled == "covariate":
        assert "A missing covariate is dp.fill(model, {'x': 0.0})" in text and "outcome" not in text
    else:
        assert "x: it has masked or NaN values" in text and "dp.fill" not in text
        assert "leave rows without it out, if it is public which these are" in text


@pytest.mark.parametrize("bounds", [(-1e200, 1e200), (-1e308, 1e308), (0, 1e-200)])
def test_extreme_bounds_are_refused_in_words(bounds):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("s"), observed=VALUE)
    with pytest.raises(dp.errors.UnsupportedModelError, match="(?s)another unit.*too wide or too narrow"):
        dp.privatize(model, epsilon=1.0, domain=dp.Domain(bounds={"y": bounds}), statistics=dp.Statistics())


def test_columns_of_different_length_are_refused():
    with pm.Model(coords={"row": range(N)}) as model:
        g = pm.Data("g", GROUP, dims="row")
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[g], observed=Y, dims="row")
    g.set_value(GROUP[:4].astype(g.type.dtype))
    with pytest.raises(
        dp.errors.UnsupportedModelError, match="'g' and the observed values have different numbers of rows"
    ):
        dp.privatize(model, epsilon=1.0)


def test_what_is_assumed_public_is_listed():
    with pm.Model(coords={"row": [f"person {i}" for i in range(N)], "level": list("abc")}) as model:
        mu = pm.Normal("mu", 0.125, 7.5, initval=0.25)
        p = pm.Normal("p", mu, 2.25, dims="level")
        pm.Normal("y", p[pm.Data("g", GROUP, dims="row")], 3.75, observed=VALUE, dims="row")
        pm.Potential("soft", -(mu**2))
    lines = dp.explain(model, dp.Domain(bounds={"y": (0, 100)}, public=["g"])).assumptions
    text = "\n".join(lines)
    for part in ("0.125", "7.5", "2.25", "3.75", "initial value of mu", "public column g", "bounds of y: (0, 100)"):
        assert part in text
    assert {"number of rows: 6", "dimension level: length 3 and its labels", "the Potential soft"} <= set(lines)
    assert "person" not in text and "987654" not in text
