"""What is made of a trace: answers, means over a population, synthetic rows, checks of the release."""

import math

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.answer import regret_bound
from pymc_dp.release.record import ReleaseRecord, SamplerRecord
from pymc_dp.trace.scrub import annotate
from tests.traced import traced

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def paid(posterior, name="OPS", guarantee="exact", power=1.0):
    """A trace of one sampler whose draws are known: variables of shape (n_chains, n_draws, ...)."""
    sampler = SamplerRecord(
        name=name, noise="temperature 2", variables=tuple(posterior), chains=1, steps=1, power=power
    )
    record = ReleaseRecord(
        epsilon=1.0, delta=0.0, guarantee=guarantee, arithmetic="float64", neighbours="replace", noise="", tables=(),
        noise_aware=True, event={}, assumptions=(), left_out=(), sampler=None if name is None else sampler
    )  # fmt: skip
    held = {
        key: (("chain", "draw", *(f"{key}_{axis}" for axis in range(np.ndim(values) - 2))), np.asarray(values))
        for key, values in posterior.items()
    }
    return annotate({"posterior": xr.Dataset(held)}, record, {})


@pytest.fixture
def share(rng):
    return paid({"p": rng.beta(3, 7, size=(2, 300))})


@pytest.mark.parametrize(
    ("utility", "best"), [("squared_error", np.mean), ("absolute_error", np.median), ("log_score", np.mean)]
)
def test_a_named_utility_is_answered_by_what_is_best_for_it(share, utility, best):
    grid = np.linspace(0.001, 0.999, 999)
    found = dp.answer(share, utility, grid)
    assert abs(found.response - best(share["posterior"]["p"].to_numpy())) <= 0.0011
    assert found.response == grid[found.place] and found.utility == found.utilities.max()


def test_a_function_sees_whole_draws(rng):
    draws = {"mean": rng.normal(size=(2, 50)), "slope": rng.normal(size=(2, 50, 3))}
    idata = paid(draws)
    found = dp.answer(idata, lambda draw, r: -abs(draw["mean"] + draw["slope"][r]), [0, 1, 2])
    expected = -np.abs(draws["mean"][:, :, None] + draws["slope"]).mean(axis=(0, 1))
    np.testing.assert_allclose(found.utilities, expected)
    same = dp.answer(idata, "absolute_error", [0.0], query=lambda draw: draw["mean"] + draw["slope"][1])
    assert same.utility == pytest.approx(expected[1])


def test_the_regret_of_independent_draws_is_bounded(rng):
    """Means of 50 draws choose among 20 responses, again and again: the expected loss is known."""
    means, draws, failure = np.linspace(0.3, 0.6, 20), 50, 0.05
    bound = regret_bound(0, 1, 20, draws, failure)
    seen = rng.binomial(draws, means, size=(4000, 20)).argmax(axis=1)
    assert (means.max() - means[seen] > bound).mean() <= failure
    idata = paid({"u": (rng.random((1, draws, 20)) < means).astype(float)})
    found = dp.answer(idata, lambda draw, r: draw["u"][r], range(20), bounds=(0, 1), failure=failure)
    assert found.regret == bound == pytest.approx(math.sqrt(2 * math.log(19 / 0.05) / 50))
    assert "50 independent draws" in repr(found)


def test_no_bound_is_claimed_for_chains_or_without_bounds_of_the_utility(share, rng):
    assert dp.answer(share, "squared_error", [0.1, 0.3]).regret is None
    assert dp.answer(share, "squared_error", [0.1, 0.3], bounds=(-1, 0)).regret > 0
    assert dp.answer(share, "squared_error", [0.3], bounds=(-1, 0)).regret == 0
    for name, guarantee in (("BarkerMetropolis", "stepwise"), ("OPS", "asymptotic"), (None, "exact")):
        chain = paid({"p": rng.random((2, 40))}, name, guarantee)
        found = dp.answer(chain, "squared_error", [0.1, 0.6], bounds=(-1, 0))
        assert found.regret is None and "no bound" in repr(found)


def _added(tree):
    tree["posterior"].dataset = tree["posterior"].to_dataset().assign(q=tree["posterior"]["p"] * 2)


def _changed(tree):
    tree["posterior"]["p"].values[0, 0] += 1e-9


def _without_privacy(tree):
    del tree["privacy"]


@pytest.mark.parametrize("spoil", [_added, _changed, _without_privacy])
def test_draws_that_nothing_paid_for_give_no_answer(share, spoil):
    spoil(share)
    with pytest.raises(dp.errors.TraceError, match=r"were paid for|that were paid"):
        dp.answer(share, "squared_error", [0.5], query="p")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"utility": "square"}, "utility must be one of 'squared_error'"),
        ({"responses": []}, "one response or more"),
        ({"responses": [[0.1, 0.2]]}, "cannot compare a response"),
        ({"query": "q"}, "query must be one of 'p'"),
        ({"utility": lambda draw, r: 0.0, "query": "p"}, "query= is for utilities by name"),
        ({"utility": lambda draw, r: None}, "utility must return a number"),
        ({"utility": "log_score", "responses": [1.0]}, "NaN or infinite"),
        ({"utility": "log_score", "responses": [1.5]}, "log_score needs probabilities"),
        ({"bounds": (0, 1)}, r"outside of bounds=\(0.0, 1.0\)"),
        ({"bounds": (1, 0)}, "low < high"),
        ({"failure": 1}, r"failure must lie in \(0, 1\)"),
    ],
)
def test_arguments_are_checked(share, given, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        dp.answer(share, **{"utility": "squared_error", "responses": [0.5], **given})
    with pytest.raises(dp.errors.ArgumentError, match="must be a trace"):
        dp.answer(None, "squared_error", [0.5])


STATES, AGES = ["north", "south"], ["young", "middle", "old"]
RNG = np.random.default_rng(7)
P = RNG.random((2, 5, 2, 3))
PEOPLE = RNG.integers(1, 1000, (2, 3))


def trace(p=P):
    draws = xr.Dataset({"p": (("chain", "draw", "state", "age"), p)}, {"state": STATES, "age": AGES})
    return xr.DataTree.from_dict({"posterior": draws})


def cells():
    return xr.DataArray(PEOPLE, {"state": STATES, "age": AGES}, ("state", "age"))


def test_means_are_weighted_by_people_of_all_or_of_parts():
    found = dp.poststratify(trace(), cells(), var="p")
    assert found.dims == ("chain", "draw") and found.name == "p"
    np.testing.assert_allclose(found, (P * PEOPLE).sum(axis=(2, 3)) / PEOPLE.sum())
    by_state = dp.poststratify(trace(), cells(), var="p", by="state")
    assert by_state.dims == ("chain", "draw", "state")
    np.testing.assert_allclose(by_state, (P * PEOPLE).sum(axis=3) / PEOPLE.sum(axis=1))
    np.testing.assert_allclose(dp.poststratify(trace(), cells(), var="p", by=["state", "age"]), P)


def test_labels_count_and_not_their_order():
    turned = cells().isel(state=[1, 0], age=[2, 0, 1]).transpose("age", "state")
    series = cells().to_series().sample(frac=1, random_state=1)
    expected = dp.poststratify(trace(), cells(), var="p", by="age")
    for other in (turned, series):
        xr.testing.assert_allclose(dp.poststratify(trace(), other, var="p", by="age"), expected)


REFUSED = {
    "a dim of its own": (lambda: cells().rename(age="ages"), {}, "Did you mean 'age'?"),
    "a label of its own": (lambda: cells().assign_coords(state=["north", "west"]), {}, "the model has 'south'"),
    "more cells": (lambda: xr.concat([cells(), cells()[:1].assign_coords(state=["west"])], "state"), {}, "'west'"),
    "negative counts": (lambda: cells() - 2000, {}, ">= 0"),
    "missing counts": (lambda: cells().where(cells() > PEOPLE.min()), {}, "finite"),
    "a state without people": (lambda: cells() * [[0], [1]], {"by": "state"}, "no people"),
    "no labels": (lambda: cells().drop_vars("age"), {}, "labels"),
    "a table of columns": (lambda: cells().to_dataframe("n"), {}, "set_index"),
    "a cell twice": (lambda: pd.concat([cells().to_series()] * 2), {}, "each cell once"),
    "another variable": (cells, {"var": "q"}, "these|known"),
    "a margin that is none": (cells, {"by": "sex"}, "by"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case):
    made, given, text = REFUSED[case]
    with pytest.raises(dp.errors.ArgumentError, match=text.replace("?", r"\?")):
        dp.poststratify(trace(), made(), **{"var": "p", **given})


def test_a_trace_without_a_posterior_is_refused():
    with pytest.raises(dp.errors.ArgumentError, match="posterior"):
        dp.poststratify(xr.DataTree(), cells(), var="p")


def naive_bayes(rng, n=4000):
    label = (rng.random(n) < 0.3).astype(int)
    age = np.where(label == 1, rng.normal(50, 5, n), rng.normal(30, 5, n))
    group = rng.integers(0, 3, n)
    with pm.Model(coords={"label": [0, 1], "g": range(3)}) as model:
        labels = pm.Bernoulli("sick", pm.Beta("share", 1, 1), observed=pm.Data("label_held", label))
        pm.Normal("age", pm.Normal("mu", 40, 20, dims="label")[labels], 5.0, observed=pm.Data("age_held", age))
        pm.Poisson(
            "visits", pm.Gamma("rate", 2, 1, dims="g")[pm.Data("group", group)], observed=rng.poisson(1 + group, n)
        )
    return model


DOMAIN = dp.Domain(bounds={"age": (0, 100), "visits": (0, 20)})


def at_one_place(model, posterior, dims=None, domain=DOMAIN):
    with dp.testing.without_noise():
        private = dp.privatize(model, epsilon=1.0, domain=domain)
    return traced(private, {name: np.asarray(place)[None] for name, place in posterior.items()}, dims)


@pytest.fixture(scope="module")
def example():
    rng = np.random.default_rng(3)
    model = naive_bayes(rng)
    posterior = {"share": 0.3, "mu": [30.0, 50.0], "rate": [1.0, 2.0, 3.0]}
    return model, at_one_place(model, posterior, {"mu": ("label",), "rate": ("g",)})


def test_rows_follow_the_model(example):
    model, idata = example
    found = dp.synthesize(idata, model, random_seed=1)
    assert set(found.data_vars) == {"sick", "age", "visits", "group"} and found.sizes == {"row": 4000}
    sick = found["sick"].to_numpy()
    assert abs(sick.mean() - 0.3) < 0.03
    for label, mean in ((0, 30.0), (1, 50.0)):
        ages = found["age"].to_numpy()[sick == label]
        assert abs(ages.mean() - mean) < 0.7 and abs(ages.std() - 5) < 0.5
    for group in range(3):
        visits = found["visits"].to_numpy()[found["group"].to_numpy() == group]
        assert abs(visits.mean() - (1 + group)) < 0.15
        assert abs(len(visits) - 4000 / 3) < 150


def test_rows_of_the_model_are_not_read(example):
    model, idata = example
    dummy = naive_bayes(np.random.default_rng(0), 2)
    assert dp.synthesize(idata, dummy, 30, random_seed=1).equals(dp.synthesize(idata, model, 30, random_seed=1))


def test_a_private_number_of_rows_is_the_released_one():
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=(rng.random(120) < 0.5).astype(int))
    idata = at_one_place(model, {"p": 0.5}, domain=dp.Domain(neighbours="add_remove", n_max=1000))
    assert dp.synthesize(idata, model).sizes["row"] == 120


CELLS = 8


@pytest.fixture(scope="module")
def fitted():
    group = np.arange(800) % CELLS
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=CELLS)
        pm.Bernoulli("y", p[pm.Data("group", group)], observed=(np.arange(800) % 3 == 0).astype(int))
    drawn = {"tune": 300, "draws": 300, "chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}
    idata = dp.sample(epsilon=5.0, model=model, ledger=dp.Ledger(5.0), **drawn)
    return idata, dp.condition(model, dp.Release.of(idata))


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_the_release_is_predicted_and_no_row(fitted):
    idata, private = fitted
    checks = pm.sample_posterior_predictive(idata, model=private, progressbar=False, random_seed=1)
    released = checks["observed_data"]["y"]
    np.testing.assert_array_equal(released, dp.Release.of(idata).tables["y"])
    expected = checks["posterior_predictive"]["y"].mean(["chain", "draw"])
    assert np.abs(expected - released).max() < 30
    assert not any(800 in node.sizes.values() for node in checks.children.values())


@pytest.mark.parametrize("temperature", [1.0, 6.0, 20.0])
def test_intervals_from_draws_cover(temperature, rng):
    """A share of heads in 5000 rows, four draws; neither the posterior's width nor that of draws would do."""
    tables, rows, count, truth = 400, 5000, 4, 0.3
    heads = rng.binomial(rows, truth, size=(tables, 1))
    p = rng.beta(1 + heads / temperature, 1 + (rows - heads) / temperature, size=(tables, count))
    found = dp.from_draws.draw_intervals(paid({"p": p.T[None]}, power=1 / temperature))["p"]
    assert found.dims == ("bound", "p_0") and list(found["bound"].values) == ["low", "high"]
    covered = (found.sel(bound="low") < truth) & (found.sel(bound="high") > truth)
    assert 0.86 < float(covered.mean()) < 0.94


def test_one_draw_and_other_samplers_show_no_interval():
    for tree in (paid({"p": np.full((1, 1), 0.3)}), paid({"p": np.full((1, 9), 0.3)}, name="SGLD")):
        with pytest.raises(dp.errors.TraceError, match="two draws of dp.OPS"):
            dp.from_draws.draw_intervals(tree)
