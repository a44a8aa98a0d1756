"""Before a release: what is chosen where nobody says so, what is cautioned of, and that what is said is true."""

import html
import re

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.advice.gradients import default_release
from tests.gradients.models import bernoulli, negative_binomial, poisson, student_t, two

BOTH = {"epsilon": 1.0, "delta": 1e-6}


def plain(found):
    return " ".join(html.unescape(str(found)).replace("│", " ").split())


@pytest.mark.slow
def test_without_a_delta_the_remedy_is_named():
    text = plain(dp.explain(*student_t()).full())
    assert "Yes, with a delta > 0: dp.sample(epsilon=..., delta=...) releases noised gradients" in text
    assert "It needs a δ > 0, for example delta=1e-06" in text
    text = plain(dp.explain(*bernoulli()).full())
    assert "the only kind of release at δ = 0; with delta=1e-06 it would be noised gradients, because" in text


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_both_releases_are_shown_with_their_widths_whatever_the_delta(delta):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(400, dtype=int))
    text = plain(dp.explain(model, epsilon=0.1, delta=delta)).partition("intervals at ε = ")[2]
    number = r"([\d.]+)(?: \([^)]*\))? times (?:as wide as without privacy )?by "
    sums, gradients = (float(re.search(f"{number}{of}", text)[1]) for of in ("exact sums", "noised gradients"))
    assert abs(sums - np.sqrt(1 + 2)) < 0.01 and gradients > 2 * sums


def coin():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1, 0, 1]))
    return model, None


def linear(predictors, rows=50, sigma=None):
    names = [f"x{i}" for i in range(predictors)]
    with pm.Model() as model:
        b, sigma = pm.Normal("b", shape=predictors), pm.HalfNormal("sigma") if sigma is None else sigma
        mu = sum(b[i] * pm.Data(name, np.zeros(rows)) for i, name in enumerate(names))
        pm.Normal("y", mu, sigma, observed=np.zeros(rows))
    return model, dp.Domain(bounds={"y": (-5, 5), **dict.fromkeys(names, (-1, 1))})


def cells(count, *, rate_each, most=10):
    """Poisson counts of few parameters, or of one in each cell."""
    with pm.Model() as model:
        group, kinds = pm.Data("group", np.arange(2000) % count), pt.arange(count)
        level = pm.Normal("level", 0, 1, shape=count) if rate_each else pm.Normal("slope", 0, 0.01) * kinds
        pm.Poisson("y", pm.math.exp(level[group]), observed=np.ones(2000, dtype=int))
    return model, dp.Domain(bounds={"y": (0, most)})


def groups(rows, *, levels, mean=1.0, sigma=1.0):
    with pm.Model() as model:
        means = pm.Normal("mean", 0, mean, shape=levels)[pm.Data("group", np.arange(rows) % levels)]
        pm.Normal("y", means, pm.HalfNormal("sigma", sigma), observed=np.zeros(rows))
    return model, dp.Domain(bounds={"y": (-5, 5)})


POLYNOMIAL, NO_SUMS = "polynomial in place of the likelihood of y", "no exact sums to release (y: "
CELLS, SQUARES = "intervals by exact sums would be about", "intervals by noised sums of squares would be about"
CHOSEN = {
    "regression": (bernoulli, 1.0, POLYNOMIAL),
    "counts": (poisson, 1.0, POLYNOMIAL),
    "two responses": (two, 1.0, "polynomial in place of the likelihood of y1"),
    "many predictors": (lambda: linear(21), 1.0, "21 private predictors"),
    "Student's t": (student_t, 1.0, NO_SUMS),
    "overdispersed": (negative_binomial, 1.0, NO_SUMS),
    "many cells, few parameters": (lambda: cells(500, rate_each=False), 1.0, CELLS),
    "noise on squares hides residuals": (lambda: linear(2, 500), 100.0, SQUARES),
    "of many rows, too": (lambda: linear(2, 5000), 1.0, SQUARES),
    "in groups": (lambda: groups(5000, levels=10), 3.0, SQUARES),
    "a walk starts within bounds": (lambda: groups(5000, levels=10, sigma=30.0), 3.0, SQUARES),
    "coin": (coin, 1.0, None),
    "few predictors": (lambda: linear(4), 1.0, None),
    "few cells": (lambda: cells(4, rate_each=False, most=4), 1.0, None),
    "a parameter per cell": (lambda: cells(500, rate_each=True), 1.0, None),
    "gradients would be wide too": (lambda: linear(2, 100), 1.0, None),
    "no squares are needed": (lambda: linear(2, 500, sigma=1.0), 100.0, None),
    "so many means that a quadratic is off": (lambda: groups(200, levels=70), 100.0, None),
    "a walk may not arrive": (lambda: groups(800, levels=60, mean=50.0), 30.0, None),
    "too much noise on gradients": (lambda: groups(800, levels=60), 30.0, None),
    "little noise beside residuals": (lambda: groups(5000, levels=1), 30.0, None),
}
"""Models, budgets, and why gradients are released where they are."""


@pytest.mark.few(16)
@pytest.mark.parametrize("name", CHOSEN)
def test_gradients_are_taken_where_they_say_more_and_sums_elsewhere(name):
    build, epsilon, why = CHOSEN[name]
    found = default_release(*build(), dp.Budget(epsilon, 1e-5))
    kind, reason = (dp.Statistics, "sufficient statistics") if why is None else (dp.Gradients, why)
    assert isinstance(found.statistics, kind) and reason in found.why
    assert (found.delta > 0) == (why is not None or found.statistics.noise == "gaussian")
    if why is not None:
        return
    without = default_release(*build(), dp.Budget(epsilon))
    assert without.statistics == dp.Statistics() and without.delta == 0


def test_neither_rows_nor_a_private_number_of_them_decide(monkeypatch):
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda leaf: pytest.fail("rows were read"))
    both = [default_release(*bernoulli(y=np.full(40, value)), dp.Budget(1.0, 1e-6)) for value in (0, 1)]
    assert both[0] == both[1]
    reasons = set()
    for rows in (100, 500, 5000):
        model, domain = linear(2, rows)
        domain = dp.Domain(bounds=dict(domain.bounds), neighbours="add_remove", n_max=5000)
        reasons.add(default_release(model, domain, dp.Budget(1.0, 1e-6)).why)
    assert len(reasons) == 1


def test_privatize_takes_what_is_chosen_and_its_record_says_why():
    private = dp.privatize(coin()[0], epsilon=1.0, delta=1e-6, ledger=dp.Ledger(1.0, 1e-6))
    record = dp.Release.of(private).record
    assert record.delta == 0 and record.chosen == default_release(*coin(), dp.Budget(1.0, 1e-6)).why


N_ROWS = 400
X = np.linspace(0, 10, N_ROWS)


def of_persons(dtype: str = "int64") -> pm.Model:
    with pm.Model() as model:
        pm.Data("pid", (np.arange(N_ROWS) + 3_000_000_000).astype(dtype))
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(N_ROWS, dtype=int))
    return model


PERSONS = dp.Domain(unit=dp.Unit("pid", max_rows=1), neighbours="add_remove", n_max=5000)


def test_ids_of_32_bits_have_a_line_in_the_explanation():
    found = dp.explain(of_persons(), PERSONS)
    (line,) = found.cautions
    assert line.startswith("pid: ids beyond ±2^31") and "pandas.factorize(ids)[0], or pass ids by rows=" in line
    assert "ids beyond ±2^31" in str(found) and line in " ".join(str(found.full()).replace("│", " ").split())


def by_patient(n_levels: int, *, labels: bool = True) -> pm.Model:
    coords = {"patient": [f"name {k}" for k in range(n_levels)]} if labels else {}
    with pm.Model(coords=coords) as model:
        index = pm.Data("patient_idx", np.arange(N_ROWS) % n_levels)
        z = pm.Normal("z", 0, 1, **({"dims": "patient"} if labels else {"shape": n_levels}))
        pm.Normal("y", 2 * z[index], 1.0, observed=np.zeros(N_ROWS))
    return model


@pytest.mark.few(1)
@pytest.mark.parametrize("budget", [{}, BOTH])
def test_levels_that_are_nearly_as_many_as_rows_may_be_persons(budget):
    found = dp.explain(by_patient(200), dp.Domain(bounds={"y": (-5, 5)}), **budget)
    (line,) = found.cautions
    assert line.startswith("200 levels of patient for 400 rows: their labels and number") and "dp.Unit" in line
    assert "200 levels of patient" in str(found) and "name 7" not in str(found.full())


def curve(mean, **domain):
    with pm.Model() as model:
        x, a, b, tau = pm.Data("x", X), pm.Normal("a"), pm.Normal("b"), pm.Uniform("tau", 0, 10)
        pm.Normal("y", mean(x, a, b, tau), pm.HalfNormal("s", 1), observed=np.zeros(N_ROWS))
    return dp.explain(model, dp.Domain(bounds={"x": (0, 10), "y": (-5, 5)}, **domain), **BOTH)


KINKS = {
    "switch": lambda x, a, b, tau: pm.math.switch(x > tau, a + b * (x - tau), a),
    "hinge": lambda x, a, b, tau: a + b * pt.maximum(x - tau, 0),
    "clip": lambda x, a, b, tau: a + pt.exp(b) * pt.clip(x - tau, 0, 1),
    "sign": lambda x, a, b, tau: a + pt.exp(b) * pt.sign(x - tau),
    "floor": lambda x, a, b, tau: a + pt.exp(b) * pt.floor(x - tau),
    "cast": lambda x, a, b, tau: a + pt.exp(b) * pt.cast(x <= tau, "float64"),
}
SMOOTH = {
    "a hinge of a column": lambda x, a, b, tau: a + pt.exp(b) * pt.maximum(x - 3, 0) + tau,
    "a branch of a column": lambda x, a, b, tau: pm.math.switch(x > 3, a, pt.exp(b)) + tau,
    "a column clipped": lambda x, a, b, tau: a + pt.exp(b) * pt.clip(pt.abs(x), 1, 5) + tau,
    "a probability clipped for floats": lambda x, a, b, tau: a * pt.clip(pt.sigmoid(b * (x - tau)), 1e-6, 1 - 1e-6),
    "a logarithm guarded": lambda x, a, b, tau: a + pt.log(pt.maximum(pt.exp(b * x), 1e-9)) + tau,
    "log1mexp": lambda x, a, b, tau: a + pm.math.log1mexp(-pt.exp(b * x)) + tau,
    "a logarithm of a distance": lambda x, a, b, tau: pt.log(pt.abs(a + b * x)) + tau,
}


@pytest.mark.few(2, cases="all")
@pytest.mark.parametrize("name", [*SMOOTH, *KINKS])
def test_a_change_point_is_to_be_rehearsed_and_a_branch_of_columns_is_none(name):
    found = curve({**KINKS, **SMOOTH}[name])
    start = "the likelihood of y is not smooth in tau: rehearse with dp.plan(...) first"
    assert [line[: len(start)] for line in found.cautions] == [start] * (name in KINKS)
    assert (start[-45:] in str(found)) == (name in KINKS)


GUARDED = {
    "censored": lambda m: pm.Censored("y", pm.Normal.dist(m, 1), -2, 2, observed=np.zeros(N_ROWS)),
    "zero-inflated": lambda m: pm.ZeroInflatedPoisson("y", 0.5, pt.exp(m), observed=np.zeros(N_ROWS, dtype=int)),
    "hurdle": lambda m: pm.HurdlePoisson("y", 0.5, pt.exp(m), observed=np.zeros(N_ROWS, dtype=int)),
    "gamma": lambda m: pm.Gamma("y", mu=pt.exp(m), sigma=pt.exp(m / 2), observed=np.ones(N_ROWS)),
    "laplace": lambda m: pm.Laplace("y", m, 1, observed=np.zeros(N_ROWS)),
    "ordered": lambda m: pm.OrderedLogistic("y", m, [-1.0, 1.0], observed=np.zeros(N_ROWS, dtype=int)),
}


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize("name", GUARDED)
def test_guards_of_pymc_are_no_kinks(name):
    with pm.Model() as model:
        x = pm.Data("x", X)
        GUARDED[name](pm.Normal("a") + pt.exp(pm.Normal("b")) * x)
    found = dp.explain(model, dp.Domain(bounds={"x": (0, 10), "y": (0, 20)}), **BOTH)
    assert found.gradients.fits and found.cautions == ()
