"""What `dp.plan` refuses, before anything is drawn; plans of rows that fit no model, of bins, and of one draw."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from tests.plan.conftest import coin, heavy_tailed


def regression() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("a") + pm.Data("x", np.zeros(50)) * pm.Normal("b")
        pm.Normal("y", mu, 1.0, observed=np.zeros(50))
    return model


def public_groups() -> dict:
    with pm.Model(coords={"g": range(2)}) as model:
        index = pm.Data("g_index", np.array([0] * 90 + [1] * 10))
        pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="g")[index], observed=np.zeros(100, dtype=int))
    return {"model": model, "domain": dp.Domain(public=["g_index"])}


def planned(model=None, epsilon=1.0, **given):
    settings = {"repeats": 2, "random_seed": 7, "progressbar": False}
    return dp.plan(given.pop("model", model) or coin(), epsilon, **settings | given)


BOTH = dp.Domain(bounds={"x": (-1, 1), "y": (-3, 3)})
REFUSED = [
    ({"interval": 1.0}, "interval must be between 0 and 1, got 1. Take 0.9"),
    ({"step": dp.TemperedGibbs()}, r"step=.* cannot be simulated without rows: only dp.OPS\(\) can"),
    ({"noise": []}, "noise must name at least one of 'laplace', 'gaussian'"),
    ({"noise": "laplace", "statistics": dp.Statistics()}, "noise= and statistics= both say what to compare"),
    ({"statistics": []}, "statistics must hold at least one dp.Statistics"),
    ({"statistics": {"mine": 3}}, "mapping of names to them; got 3 under 'mine'"),
    ({"statistics": [3]}, "statistics must be dp.Statistics or a list of them, got 3"),
    ({"statistics": dp.Statistics(mechanism=dp.networks.FourierUpdates())}, "releases coefficients. Compare"),
    ({"statistics": [dp.Statistics(), dp.Gradients()]}, "call dp.plan once for each"),
    ({"width": 0.0}, "width of p must be > 0, got 0"),
    ({"n_rows": 50, **public_groups()}, "n_rows=50 cannot be simulated: the public column g_index says how many"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "says"), REFUSED, ids=[" ".join(given) for given, _ in REFUSED])
def test_wrong_arguments_are_named(given, says):
    with pytest.raises(ArgumentError, match=says):
        planned(**given)


def test_two_unknowns_of_one_likelihood_are_covered():
    """Most of 24 intervals of 90% each; a width of several variables is a mapping."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=np.zeros(50))
    given = {"domain": dp.Domain(bounds={"y": (-5, 5)})}
    with pytest.raises(ArgumentError, match=r"units of one variable, but there are several: .* \{'mu': 0.3\}"):
        planned(model, width=0.3, **given)
    found = planned(model, repeats=12, width={"mu": 0.3}, **given)
    for outcome in found.outcomes:
        for name in ("mu", "sigma"):
            assert outcome.covered[name].sum() >= 7
    assert found.outcomes[1].summary("sigma").width > found.outcomes[0].summary("sigma").width


def test_a_regression_is_rehearsed_by_gradients():
    with pytest.raises(UnsupportedModelError, match="Why: y: dp.plan simulates rows") as error:
        planned(regression(), domain=BOTH)
    assert "dp.plan(delta=..., statistics=dp.Gradients()), which make up such columns" in str(error.value)
    assert "or call dp.privatize on a model with made-up rows" in str(error.value)


def test_methods_without_names_are_named_by_what_is_not_the_default():
    same = dp.Statistics(noise_aware=False)
    found = planned(statistics=[same, same])
    assert list(found.methods) == ["laplace, plug-in", "laplace, plug-in (2)"]
    assert planned(statistics=same).methods == ("laplace, plug-in",)


def test_one_draw_is_compared_with_intervals():
    """A posterior draw of 100 rows at a large ε is about as far off as two posterior standard deviations are."""
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(100, dtype=int))
    model = dp.truncate(model, {"p": (0.05, 0.95)})
    frame = planned(model, [0.5, 50.0], step=dp.OPS(), repeats=40).to_frame().set_index(["method", "epsilon"])
    own, few = frame.loc[("OPS", 50.0)], frame.loc[("OPS", 0.5)]
    plain = frame.loc["not private"].iloc[0]
    assert np.isnan(own["width"]) and few["rmse"] > 1.5 * own["rmse"]
    assert own["rmse"] == pytest.approx(np.sqrt(2) * plain["rmse"], rel=0.5)


def test_two_ways_to_bin_one_column_are_compared_on_the_same_rows():
    model, domain = heavy_tailed(500)
    bins = {f"{count}": dp.Statistics(mechanism=dp.Histogram(count)) for count in (4, 10)}
    frame = planned(model, 2.0, domain=domain, statistics=bins, repeats=6).to_frame().set_index("method")
    assert frame.loc["10", "width"] < 1.1 * frame.loc["4", "width"]
    assert frame.loc["not private", "rmse"] < 0.3


@pytest.fixture(scope="module")
def misfitting():
    model = regression()
    statistics = {"short": dp.Gradients(steps=10)}
    return planned(model, 2.0, delta=1e-5, statistics=statistics, domain=BOTH, repeats=3, var_names=["a", "b"])


def test_rows_that_do_not_fit_are_rehearsed_too(misfitting):
    assert misfitting.methods == ("short",)
    text = " ".join(str(misfitting).replace("│", " ").split())
    assert [one.kind for one in misfitting.misfit] == ["heavier tails", "overdispersed rows", "skewed columns"]
    assert all(0 < one.rms < 20 and one.method == "short" for one in misfitting.misfit)
    assert "z is how far private means are from those without privacy given the same rows" in text
