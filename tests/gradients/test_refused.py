"""Models that noised gradients refuse, with what is in the way and what to do, before anything is charged."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from tests.gradients import models

Y, X, G = np.arange(8) % 2, np.linspace(-1, 1, 8), np.arange(8) % 3
TIMES, FEW = np.linspace(0.2, 20, 60), np.arange(60) % 5
HAPPENED = {"t": (0.1, 25), "event": (0, 1)}
REFUSED = {}


def refused(where, says, **declared):
    """Enter the function below, which adds variables to a model, as one that is refused."""
    return lambda build: REFUSED.setdefault(build.__name__, (build, where, says, declared))


@refused("kind", "Sum it out")
def discrete():
    pm.Bernoulli("y", logit_p=pm.Normal("a") * pm.Bernoulli("kind", 0.5), observed=Y)


@refused("y", "", bounds={"x": (-1, 1), "y": (-1, 1)})
def rows_that_do_not_separate():
    x = pm.Data("x", X)
    pm.Normal("y", pm.Normal("b") * (x - x.mean()), 1, observed=X)


@refused("p", "its bounds depend on other free variables")
def bounds_that_depend():
    pm.Bernoulli("y", p=pm.Uniform("p", 0, pm.HalfNormal("most")), observed=Y)


@refused("p", "")
def bounded_without_a_transform():
    pm.Bernoulli("y", p=pm.Uniform("p", default_transform=None), observed=Y)


@refused("y", r"y needs bounds: dp.Domain\(bounds={'y': \(0, high\)}\)")
def counts_without_bounds():
    pm.Poisson("y", pm.HalfNormal("rate"), observed=Y)


@refused("y", "hold more than the 16384", bounds={"y": (0, 20_000)})
def counts_with_wide_bounds():
    pm.Poisson("y", pm.HalfNormal("rate"), observed=Y)


@refused("y", "depend on each other", bounds={"y": (-3, 3)})
def entries_that_depend():
    mean = pm.Normal("mu", shape=2)
    pm.MvStudentT("y", nu=4, mu=mean, scale=np.eye(2), observed=np.stack([X, X], axis=1))


@refused("y", "", bounds={"x": (-1, 1), "y": (-9, 9)})
def a_covariance_of_every_row():
    wide = (1 + pm.Data("x", X)[:, None, None] ** 2) * np.eye(2) * pm.Exponential("sd", 1)
    pm.MvNormal("y", np.zeros(2), cov=wide, observed=np.zeros((8, 2)))


@refused("model", "no free variable")
def rows_that_nothing_reaches():
    pm.Normal("a")
    pm.Bernoulli("y", p=0.3, observed=Y)


@refused("other", "same column")
def a_column_that_is_observed_twice():
    y, a = pm.Data("y", Y), pm.Normal("a")
    pm.Bernoulli("one", logit_p=a, observed=y)
    pm.Bernoulli("other", logit_p=2 * a, observed=y)


@refused("model", "5001 parameters, but curvatures are released for at most 5000")
def many_parameters():
    group = pm.Data("g", np.arange(6000) % 5001)
    pm.Bernoulli("y", logit_p=pm.Normal("level", shape=5001)[group], observed=np.zeros(6000, dtype=int))


@refused("x", r"columns={'x': pm.Normal.dist\(0, 1\)}")
def columns_without_bounds():
    pm.Bernoulli("y", logit_p=pm.Data("x", X) * pm.Normal("b"), observed=Y)


@refused("a", "")
def a_prior_that_nothing_is_drawn_from():
    pm.Bernoulli("y", logit_p=pm.Flat("a"), observed=Y)


@refused("Domain(metric=...)", "metric", bounds={"y": (-5, 5)}, metric=dp.metrics.L1("y"))
def a_metric():
    pm.Normal("y", pm.Normal("mu"), 1.0, observed=X)


def by_hand(logp, values, *given, dtype="float64"):
    rate = pm.math.exp(pm.Normal("a", 0, 1))
    pm.CustomDist("t", rate, *given, logp=logp, observed=values, dtype=dtype)


def exponential(t, rate):
    return pt.log(rate) - rate * t


def poisson(k, rate):
    return k * pt.log(rate) - rate - pt.gammaln(k + 1)


@refused("t", r"pm\.Censored\('t', dist, lower=None, upper=end\)", bounds=HAPPENED)
def times_with_an_event_indicator():
    def logp(t, rate, event):
        return pt.switch(t > 0, pt.switch(pt.eq(event, 1), pt.log(rate), 0.0) - rate * t, -np.inf)

    by_hand(logp, TIMES, pm.Data("event", FEW % 2))


@refused("t", "adds up to more than 1", bounds={"t": (0, 30)})
def probabilities_with_too_much_mass():
    by_hand(lambda k, rate: k * pt.log(rate) - pt.gammaln(k + 1), FEW, dtype="int64")


@refused("t", "complete logp, .* dtype='int64'", bounds={"t": (0, 30)})
def probabilities_of_counts_called_real():
    by_hand(poisson, FEW)


def model_of(build):
    with pm.Model() as model:
        build()
    return model


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_in_the_way_is_said_before_anything_is_charged(name):
    build, where, says, declared = REFUSED[name]
    model, domain, ledger = model_of(build), dp.Domain(**declared), dp.Ledger(1.0, 1e-5)
    with pytest.raises(dp.errors.UnsupportedModelError, match=f"(?s){says}") as caught:
        dp.privatize(
            model, epsilon=1.0, delta=1e-5, domain=domain, statistics=dp.Gradients(), ledger=ledger, progressbar=False
        )
    assert where in {problem.where for problem in caught.value.problems} and ledger.history == []
    if (found := dp.explain(model, domain, delta=1e-5).gradients) is not None:
        assert not found.fits and ("metric" in declared or set(found.problems) >= set(caught.value.problems))


def test_every_problem_is_told_at_once():
    with pm.Model() as model:
        a, rows = pm.Normal("a"), pm.Normal("rows", shape=8)
        y = pm.Bernoulli("y", logit_p=a * pm.Bernoulli("kind", 0.5) + rows, observed=Y)
        pm.Potential("sum", y.sum())
    assert {"kind", "rows", "sum"} <= {one.where for one in dp.explain(model, delta=1e-5).gradients.problems}


def test_a_model_most_of_whose_rows_would_add_nothing_is_refused():
    """Rates that overflow: every score is NaN, every row is left out, and no one may be told after the fact."""
    with pm.Model() as model:
        pm.Poisson("y", pt.exp(pm.Normal("a", 2000)), observed=np.ones(8, dtype=int))
    ledger = dp.Ledger(1.0, 1e-5)
    given = {"epsilon": 1.0, "delta": 1e-5, "domain": dp.Domain(bounds={"y": (0, 9)}), "ledger": ledger}
    with pytest.raises(dp.errors.UnsupportedModelError, match="scores that are not finite"):
        dp.privatize(model, statistics=dp.Gradients(), **given)
    assert ledger.history == []


@pytest.mark.parametrize(
    ("logp", "values", "dtype"),
    [
        (exponential, TIMES, "float64"),  # grows without end below 0, where nobody looks
        (lambda t, rate: pt.switch(t > 0, exponential(t, rate), -np.inf), TIMES, "float64"),
        (lambda t, rate: pm.logp(pm.LogNormal.dist(pt.log(rate), 0.5), t), TIMES, "float64"),
        (poisson, FEW, "int64"),
    ],
)
def test_densities_by_hand_are_taken(logp, values, dtype):
    model = model_of(lambda: by_hand(logp, values, dtype=dtype))
    assert dp.explain(model, dp.Domain(bounds={"t": (0, 30)}), delta=1e-5).gradients.fits


@pytest.mark.few(2, cases="all")
@pytest.mark.parametrize("build", models.ALL, ids=lambda build: build.__name__)
def test_all_likelihoods_that_gradients_take_fit(build):
    model, domain = build()
    found = dp.explain(model, domain, delta=1e-5).gradients
    assert found.fits and found.n_rows == models.ROWS and found.width_ratio(dp.Budget(1.0, 1e-5)) > 1


UNIT = {"neighbours": "add_remove", "n_max": 9}


@pytest.mark.parametrize(
    ("given", "declared", "says"),
    [
        ({"delta": 0.0}, {}, "no guarantee at delta=0"),
        ({"ledger": dp.Ledger(1.0)}, {}, "The ledger has delta=0, and this release needs delta=1e-05"),
        ({}, {**UNIT, "unit": dp.Unit("who", max_rows=4097)}, "max_rows must be at most 4096"),
        ({"statistics": dp.Gradients(robust=True, momentum_steps=20)}, {}, "either robust=True or momentum_steps"),
    ],
)
def test_calls_that_cannot_be_are_refused_before_anything_is_charged(given, declared, says):
    with model_of(lambda: pm.Bernoulli("y", logit_p=pm.Normal("a"), observed=Y)) as model:
        pm.Data("who", np.arange(8))
    unit = "who" if declared else None
    ledger = given.get("ledger") or dp.Ledger(1.0, 1e-5, neighbours="add_remove" if unit else "replace", unit=unit)
    settings = {"epsilon": 1.0, "delta": 1e-5, "statistics": dp.Gradients(), "ledger": ledger, **given}
    with pytest.raises(dp.errors.ArgumentError, match=says):
        dp.privatize(model, domain=dp.Domain(**declared), **settings)
    assert ledger.history == []


@pytest.mark.parametrize(
    ("given", "says"),
    [({"steps": 5}, "steps"), ({"momentum_steps": -1}, "momentum_steps"), ({"momentum_steps": 5}, "0, or at least 20"),
     ({"momentum_steps": 2.5}, "momentum_steps"), ({"robust": 1}, "robust"), ({"scratch": 5}, "must be a path, got 5")],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(given, says):
    with pytest.raises(dp.errors.ArgumentError, match=says):
        dp.Gradients(**given)


def test_parameters_are_the_fewest_numbers_that_meet_the_rows():
    """Group intercepts behind their mean and spread; three levels of fifty weights of public features."""
    model, domain = models.groups()
    assert dict(dp.explain(model, domain, delta=1e-5).gradients.parts) == {"b": 3, "alpha": 4}
    with pm.Model() as model:
        weights, features = pm.Normal("weights", shape=50), pm.Data("features", np.ones((3, 50)))
        levels = pm.Deterministic("levels", features @ weights)
        pm.Bernoulli("y", logit_p=levels[pm.Data("g", G)], observed=Y)
    assert dict(dp.explain(model, dp.Domain(public=["features"]), delta=1e-5).gradients.parts) == {"levels": 3}
