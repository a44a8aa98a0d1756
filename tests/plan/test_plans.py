"""What each ε would buy, without a look at a private row: by exact sums, by gradients and by samplers."""

import logging

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.audit import contains_canary, plant
from pymc_dp.plan import posteriors, sampler
from pymc_dp.step_methods import cost
from pymc_dp.step_methods.langevin import base
from pymc_dp.step_methods.langevin.base import StochasticGradient
from tests.plan.conftest import REPEATS, coin, grouped


def held(outcome, name="p"):
    return int(outcome.covered[name].sum())


def quick(model, *args, **options):
    return dp.plan(model, *args, **{"repeats": 3, "random_seed": 7, "progressbar": False} | options)


def test_noise_aware_intervals_cover_and_those_that_take_the_release_for_the_rows_do_not(planned):
    aware, plugin = planned.outcomes[1], planned.outcomes[4]
    assert (aware.method, aware.epsilon, plugin.method, plugin.epsilon) == ("aware", 0.1, "plug-in", 0.1)
    assert stats.binomtest(held(aware), REPEATS, 0.9).pvalue > 1e-4
    assert stats.binomtest(held(planned.outcomes[0]), REPEATS, 0.9).pvalue > 1e-4
    assert stats.binomtest(held(plugin), REPEATS, 0.9).pvalue < 1e-12


def test_intervals_narrow_towards_those_that_are_not_private(planned):
    widths = [outcome.summary("p").width for outcome in planned.outcomes[:4]]
    plain, private = widths[0], widths[1:]
    assert sorted(private, reverse=True) == private
    assert plain < private[-1] < 1.03 * plain
    errors = [outcome.summary("p").rmse for outcome in planned.outcomes[:4]]
    assert errors[1] > errors[2] > errors[0]


def test_a_seed_gives_the_same_numbers_whatever_a_budget_is_compared_with(capsys):
    alone, among = quick(coin(), 1.0).to_frame(), quick(coin(), [0.3, 1.0]).to_frame()
    assert alone.equals(among[among["epsilon"] != 0.3].reset_index(drop=True))
    assert not alone.equals(quick(coin(), 1.0, random_seed=8).to_frame())
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_rows_are_not_read(caplog):
    """Tables of the same schema give the same plan, and what is in them is nowhere in it."""
    pages = set()
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        column = plant(rng.integers(0, 2, 80), rows=[3])
        index = plant(rng.integers(0, 3, 80), rows=[5])
        with pm.Model(coords={"g": range(3)}) as model:
            p = pm.Beta("p", 1, 1, dims="g")
            pm.Bernoulli("sick", p[pm.Data("g_index", index.values)], observed=pm.Data("held", column.values))
        assert contains_canary(model, column.canaries) and contains_canary(model, index.canaries)
        with caplog.at_level(logging.DEBUG, logger="pymc_dp"):
            found = quick(model, 1.0)
        assert contains_canary([found, caplog.records], [*column.canaries, *index.canaries]) == []
        pages.add((str(found), found.to_frame().to_json()))
    assert len(pages) == 1


@pytest.mark.slow
def test_the_one_reader_of_rows_is_never_called(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", refuse)
    monkeypatch.setattr("pymc_dp.rows.asked.Asked.of", refuse)
    assert quick(grouped(), 1.0).repeats == 3
    found = quick(coin(7), 1.0, domain=dp.Domain(neighbours="add_remove", n_max=300))
    assert found.rows == "300 rows of at most 300"


def test_a_private_number_of_rows_is_no_more_than_its_bound():
    domain = dp.Domain(neighbours="add_remove", n_max=400)
    assert quick(coin(7), 1.0, domain=domain, n_rows=300).rows == "300 rows of at most 400"
    with pytest.raises(dp.errors.ArgumentError, match="above n_max=400"):
        quick(coin(7), 1.0, domain=domain, n_rows=500)


def test_only_gaussian_noise_gets_the_delta():
    found = quick(coin(), 1.0, delta=1e-6, noise=["laplace", "gaussian"])
    assert [(outcome.method, outcome.delta) for outcome in found.outcomes[1:]] == [("laplace", 0.0), ("gaussian", 1e-6)]
    with pytest.raises(dp.errors.ArgumentError, match="needs delta > 0"):
        quick(coin(), 1.0, noise="gaussian")


def test_the_release_is_the_one_that_sample_would_take():
    """Of one count Laplace noise is less; of many that one row moves together Gaussian noise."""
    with pm.Model() as many:
        for place in range(24):
            pm.Bernoulli(f"y{place}", pm.Beta(f"p{place}", 1, 1), observed=np.zeros(100, dtype=int))
    for model, kind in ((coin(), "laplace"), (many, "gaussian")):
        found = quick(model, 1.0, delta=1e-6, repeats=2)
        private = dp.privatize(model, epsilon=1.0, delta=1e-6, ledger=dp.Ledger(1.0, 1e-6))
        assert found.methods == (kind,) and kind in dp.Release.of(private).record.noise.lower().replace(" ", "")
        assert any(note.startswith("dp.sample releases exact sums") for note in found.notes)


def naive_bayes():
    with pm.Model(coords={"label": [0, 1]}) as model:
        label = pm.Bernoulli("sick", pm.Beta("share", 1, 1), observed=pm.Data("held", np.zeros(60, dtype=int)))
        pm.Bernoulli("seen", pm.Beta("q", 1, 1, dims="label")[label], observed=np.zeros(60, dtype=int))
    return model


def hierarchy():
    with pm.Model(coords={"g": range(2)}) as model:
        z = pm.Normal("z", pm.Normal("centre", 0, 1), 1, dims="g")
        pm.Bernoulli("y", logit_p=z[pm.Data("g_index", np.zeros(60, dtype=int))], observed=np.zeros(60, dtype=int))
    return model


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("build", "how", "names"),
    [(grouped, "on a grid", "p gap"), (naive_bayes, "on a grid", "share q"), (hierarchy, "by NUTS", "centre z")],
)
def test_posteriors_are_found_on_grids_or_by_chains(build, how, names, monkeypatch):
    monkeypatch.setattr(posteriors, "TUNE", 4)
    monkeypatch.setattr(posteriors, "DRAWS_OF_CHAIN", 3)
    found = quick(build(), 5.0, repeats=2, var_names=names.split())
    frame = found.to_frame()
    assert frame["variable"].unique().tolist() == names.split()
    assert np.isfinite(frame["width"]).all() and (frame["width"] > 0).all()
    assert f"Posteriors were found {how}." in " ".join(str(found).replace("│", " ").split())


def flat():
    pm.Bernoulli("y", logit_p=pm.Flat("a"), observed=np.zeros(5, dtype=int))


def weighted():
    p = pm.Beta("p", 1, 1)
    pm.Potential("more", -p)
    pm.Bernoulli("y", p, observed=np.zeros(5, dtype=int))


def discrete():
    pm.Bernoulli("y", pm.math.sigmoid(pm.Poisson("k", 3)), observed=np.zeros(5, dtype=int))


@pytest.mark.parametrize(
    ("build", "why"),
    [(flat, "proper distribution"), (weighted, "ignore a Potential"), (discrete, "continuous free variables")],
)
def test_what_cannot_be_drawn_is_refused(build, why):
    with pm.Model() as model:
        build()
    with pytest.raises(dp.errors.UnsupportedModelError, match=why):
        quick(model, 1.0)


@pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
def test_a_private_model_is_no_model_to_plan_for():
    with pytest.raises(dp.errors.ArgumentError, match="private already"):
        quick(dp.privatize(coin(), epsilon=1.0))


@pytest.fixture
def _uncompiled(monkeypatch):
    """Chains and posteriors of nothing, under more noise than is needed: what is asked for, drawn and told is true."""
    monkeypatch.setattr(base, "noise_multiplier", lambda epsilon, *_, **__: 100 / epsilon)
    monkeypatch.setattr(cost, "some_of", lambda steps: [])
    monkeypatch.setattr(StochasticGradient, "_compile", lambda self: None)
    monkeypatch.setattr(StochasticGradient, "row_norms", lambda self, position, held: np.linalg.norm(held[0], axis=1))
    monkeypatch.setattr(sampler, "slope", lambda step, held: lambda position: held[0].mean() - position)

    def run(cell, table, start):
        return np.random.default_rng(table.seed).normal(table.rows[0].mean(), cell.clip_norm, (50, 2))

    monkeypatch.setattr(sampler, "run", run)


def model_of(values):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 1, shape=2), 1.0, observed=pm.Data("held", values))
    return model


def plan_of_sampler(model, epsilon=1.0, step=None, **options):
    step = step or dp.SGLD(batch_size=10)
    return dp.plan(model, epsilon, delta=1e-5, step=step, **{"random_seed": 1, "progressbar": False} | options)


@pytest.mark.usefixtures("_uncompiled")
def test_rows_are_not_read_for_a_sampler(monkeypatch, caplog):
    """Tables of the same schema give the same plan; what is in them is nowhere in it."""
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda self: pytest.fail("rows were read"))
    pages = set()
    for seed in (1, 2):
        column = plant(np.random.default_rng(seed).normal(size=200), low=-3, high=3)
        model = model_of(np.reshape(column.values, (100, 2)))
        with caplog.at_level(logging.DEBUG, logger="pymc_dp"):
            found = plan_of_sampler(model)
        assert contains_canary([found, str(found), caplog.records], column.canaries) == []
        pages.add((str(found), found.to_frame().to_json()))
    assert len(pages) == 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"width": 0.3}, "width means nothing to a plan for a stochastic-gradient sampler"),
        ({"noise": "laplace"}, "noise means nothing"),
        ({"repeats": 0}, "repeats must be >= 1"),
        ({"n_rows": 10}, "made for the public number of rows, 100"),
        ({"epsilon": []}, "at least one budget"),
    ],
)
@pytest.mark.usefixtures("_uncompiled")
def test_arguments_without_a_meaning_are_refused(options, match):
    with pytest.raises(dp.errors.ArgumentError, match=match):
        plan_of_sampler(model_of(np.zeros((100, 2))), **options)


@pytest.mark.usefixtures("_uncompiled")
def test_a_step_size_is_kept_with_clip_norms_that_it_allows():
    step, model = dp.SGLD(batch_size=10, step_size=3e-5), model_of(np.zeros((100, 2)))
    found = plan_of_sampler(model, 5.0, step=step)
    frame = found.to_frame()
    assert set(frame["step_size"]) == {3e-5} and set(frame["clip_norm"]) == {1.0}, "larger ones leave too little noise"
    with pytest.raises(dp.errors.ArgumentError, match="epsilon=3.0 was not simulated: give one of 5"):
        found.best(3.0)
    with pytest.raises(dp.errors.ArgumentError, match="step_size=10 has too little noise"):
        plan_of_sampler(model, 5.0, step=dp.SGLD(batch_size=10, step_size=10.0))


@pytest.mark.slow
def test_advice_is_good_on_data_like_the_simulated():
    """A chain with the recommended settings meets the posterior of other rows; a clip norm far below does not."""
    n_rows, rng = 2000, np.random.default_rng(3)
    x = rng.normal(size=(n_rows, 2))

    def regression(y):
        with pm.Model() as model:
            slopes = pm.Normal("slopes", 0, 1, shape=2)
            pm.Normal("y", pm.Data("x", x) @ slopes, 1.0, observed=y)
        return model

    step = dp.SGLD(batch_size=200, clip_norm=0.02)
    found = plan_of_sampler(
        regression(np.zeros(n_rows)), 8.0, step=step, covariates={"x": pm.Normal.dist(0, 1, shape=2)}
    )
    best = found.best()
    frame = found.to_frame()
    assert best.distance < 1.0 and best.clip_norm > 0.02
    assert frame[frame["clip_norm"] == 0.02]["distance"].min() > 2 * best.distance
    assert frame["clipped"].is_monotonic_decreasing and frame["clipped"].iloc[0] > 0.9
    truth = np.array([0.7, -0.4])
    real = regression(x @ truth + rng.normal(size=n_rows))
    given = dp.SGLD(batch_size=200, clip_norm=best.clip_norm, step_size=best.step_size)
    tree = dp.sample(500, tune=500, epsilon=8.0, delta=1e-5, step=given, model=real, progressbar=False)
    draws = tree["posterior"]["slopes"].values[0]
    assert np.abs(draws.mean(axis=0) - truth).max() < 4 / np.sqrt(n_rows) * (1 + best.distance)
