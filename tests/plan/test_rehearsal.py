"""Noised gradients rehearsed on tables from the prior: closed forms against NUTS, and what is said of coverage."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.kernel.randomness import insecure

DELTA = 1e-5
ROWS = 600


def logistic(x=None, y=None, n=ROWS):
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=2)
        held = pm.Data("x", np.zeros((n, 2)) if x is None else x)
        pm.Bernoulli("y", logit_p=a + held @ b, observed=np.zeros(n, dtype=int) if y is None else y)
    return model


def domain(high=1.0, **more):
    return dp.Domain(bounds={"x": (-high, high)}, **more)


def plan(**given):
    settings = {"delta": DELTA, "statistics": dp.Gradients(steps=20), "repeats": 4, "random_seed": 2, "misfit": False}
    return dp.plan(given.pop("model", None) or logistic(), **{
        "epsilon": [1.0, 8.0], "domain": domain(), "progressbar": False, **settings, **given
    })  # fmt: skip


@pytest.fixture(scope="module")
def planned():
    return plan()


def test_budgets_and_narrow_columns_each_have_a_row(planned):
    frame = planned.to_frame()
    narrow = frame["method"].iloc[-1]
    assert frame["method"].tolist() == 2 * ["not private", "gradients", "gradients", narrow, narrow]
    assert frame["variable"].unique().tolist() == ["a", "b"]
    wide = frame[(frame["variable"] == "b") & (frame["epsilon"] == 8.0)].set_index("method")
    assert wide.loc[narrow, "width"] > 3 * wide.loc["gradients", "width"], "columns that hardly vary say less"
    assert (frame[frame["method"] == "gradients"]["width_ratio"] > 0.9).all()
    assert planned.methods == ("gradients",) and planned.suggest(width=10.0, var_name="b").method == "gradients"


def test_each_budget_has_a_label(planned):
    text = " ".join(str(planned).replace("│", " ").split())
    assert text.count("calibrated label") + text.count(": calibrated, as") == 4 and "no row was read" in text


def test_no_row_is_read_and_values_do_not_matter(planned, monkeypatch):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    other = logistic(np.full((ROWS, 2), 0.7), np.ones(ROWS, dtype=int))
    assert plan(model=other).to_frame().equals(planned.to_frame()) and insecure() is None


@pytest.mark.slow
def test_other_numbers_of_rows_and_parts(planned):
    found = plan(n_rows=5000, var_names=["b"], epsilon=8.0, repeats=2, width=0.2)
    assert found.var_names == ("b",) and found.rows == "5000 rows" and set(found.wanted) == {"b"}
    widths = [one.outcomes[0].summary("b").width for one in (planned, found)]
    assert 2 < widths[0] / widths[1] < 4, "√(5000 / 600) = 2.9"


def test_wrong_calls_say_the_way_out():
    model, both = logistic(), [dp.Statistics(), dp.Gradients()]
    for given, text in (
        ({"delta": 0.0}, "Give delta > 0"),
        ({"statistics": both}, "once for each"),
        ({"noise": "laplace"}, "noise= is for exact sums"),
        ({"step": dp.OPS()}, "step= is for exact sums"),
        ({"var_names": ["c"]}, "var_names"),
        ({"covariates": {}}, r"dp.Gradients\(columns="),
    ):
        with pytest.raises(dp.errors.ArgumentError, match=text):
            plan(model=model, **given)
    with pytest.raises(dp.errors.ArgumentError, match="n_max=100"):
        plan(model=model, domain=domain(neighbours="add_remove", n_max=100), n_rows=200)


@pytest.mark.slow
def test_without_a_method_gradients_are_rehearsed_where_sample_would_release_them():
    found = dp.plan(logistic(), 8.0, delta=DELTA, domain=domain(), repeats=2, progressbar=False, misfit=False)
    assert found.methods == ("gradients",)
    assert "dp.sample releases noised gradients, because exact sums would need a polynomial" in found.notes[0]


def counts(n):
    with pm.Model() as model:
        a, b, x = pm.Normal("a", 1, 0.5), pm.Normal("b", 0, 0.3), pm.Data("x", np.zeros(n))
        pm.Poisson("y", pm.math.exp(a + b * x), observed=np.zeros(n, dtype=int))
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (0, 60)})


@pytest.mark.slow
def test_rows_that_do_not_fit_are_rehearsed_too():
    model, bounds = counts(600)
    found = plan(model=model, domain=bounds, epsilon=1.0, repeats=4, misfit=True)
    text = " ".join(str(found).replace("│", " ").split())
    assert len({one.kind for one in found.misfit}) == 3
    assert [len(one.z) for one in found.misfit] == [2, 1, 1], "four tables in all"
    assert "Rows that do not fit the model, all variables together rows method" in text
    assert all(np.isfinite(one.z).all() and (one.ratios > 0.5).all() for one in found.misfit)
    assert not plan(model=model, domain=bounds, epsilon=1.0, repeats=2).misfit
