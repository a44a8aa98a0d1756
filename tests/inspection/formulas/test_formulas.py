"""Formulas: what is taken, what is limited to what works row by row, and weights."""

import bambi
import formulae
import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dp as dp
from tests.inspection.formulas.models import bounded, table

SHIFT = 3.0
MIXING = {
    "y ~ np.cumsum(x)": "np.cumsum(...)",
    "y ~ np.maximum(x, SHIFT)": "SHIFT is no column",
    "y ~ {x - x.mean()}": "x.mean",
    "y ~ np.log(w, w)": "known with 1 argument",
    "y ~ np.exp(poly(x, 1))": "poly(...)",
    "y ~ {x / w}": "np.divide",
    "y ~ bs(x, knots=SHIFT)": "no number or label",
    "y ~ C(g, Sum)": "no number or label",
    "y ~ exp(x)": "not NumPy's function",
}


def exp(x):
    return x - x.mean()


@pytest.mark.parametrize("formula", MIXING)
def test_what_may_mix_rows_is_refused(formula, monkeypatch):
    env = formulae.environment.Environment([globals()])
    source = bambi.Model("y ~ x", table(0).assign(Sum=1))
    source.formula = bambi.Formula(formula)  # what it cannot build itself, too
    source.parameters["mu"].design.env = env.with_outer_namespace({"np": np})
    monkeypatch.setattr(bambi, "Model", lambda *args, **kwargs: source)
    with pytest.raises(dp.errors.UnsupportedModelError) as refused:
        bounded(formula)
    assert MIXING[formula] in str(refused.value)


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
        with pytest.raises(dp.errors.UnsupportedModelError, match=why):
            dp.models.from_bambi(bambi.Model(formula, table), given)


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


@pytest.fixture(scope="module")
def grouped():
    return bambi.Model("b ~ (1|g)", table(0), family="bernoulli")


def test_a_bambi_model_is_privatized_as_it_is(grouped):
    private = dp.privatize(grouped, epsilon=1.0, ledger=dp.Ledger(epsilon=1.0))
    assert [rv.name for rv in private.free_RVs] == ["Intercept", "1|g_sigma", "1|g_offset"]
    assert list(private.coords["g__factor_dim"]) == ["b", "c", "a"]
    assert not private.data_vars


def test_where_a_model_is_taken_without_its_domain_the_remedy_is_told(grouped):
    with pytest.raises(dp.errors.ArgumentError, match="dp.models.from_bambi"):
        dp.truncate(grouped, {"Intercept": (-1, 1)})


def test_other_models_are_not_bambis():
    with pytest.raises(dp.errors.ArgumentError, match="bambi.Model"):
        dp.models.from_bambi(object())
    with pytest.raises(dp.errors.ArgumentError, match="pymc.Model"):
        dp.privatize(object(), epsilon=1.0)


def test_a_model_of_named_axes_is_refused_with_what_to_write():
    pmd = pytest.importorskip("pymc.dims")
    with pm.Model(coords={"row": range(3)}) as model:
        pmd.Normal("y", pmd.Normal("mu", 0, 1), 1, observed=pmd.as_xtensor(np.zeros(3), dims=("row",)), dims="row")
    for call in (dp.explain, dp.privatize):
        with pytest.raises(dp.errors.ArgumentError, match="must not use pymc.dims, as 'mu' does"):
            call(model, epsilon=1.0)
