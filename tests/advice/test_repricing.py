from __future__ import annotations

import re

import pymc as pm
import pytest

import pymc_dp as dp
from tests.advice.conftest import clamped_location, counts, location, logistic, slope

TWO = dp.Budget(1.0, 1e-6)


def _temperature(case, budget=TWO, step=None):
    preview = (step or dp.OPS()).preview(*case, budget)
    assert preview.fits, preview.problem
    found = re.search(r"(temperature|beta =) ([\d.e-]+)", preview.bound.describe().noise)
    return float(found[2]) if found[1] == "temperature" else 1 / float(found[2])


def _line(explanation, *phrases):
    found = [line for line in explanation.advice if all(phrase in line for phrase in phrases)]
    assert len(found) == 1, explanation.advice
    return found[0]


def _falls(line):
    return [float(number) for number in re.search(r"T falls from ([\d.]+) to ([\d.]+) with", line).groups()]


def test_public_covariates_are_priced_by_what_is_declared_of_them(explained):
    model, declared = slope()  # as far out as is declared: what is public is read
    public = dp.Domain(bounds=declared.bounds, public=["X"])
    line = _line(explained("slope"), "Domain(public=['X']), where X may be known to anyone")
    assert _falls(line)[1] == pytest.approx(_temperature((model, public)), rel=1e-3)


@pytest.mark.slow
def test_narrower_bounds_are_priced_as_those_models_are(explained):
    found = explained("location")
    narrower = _line(found, "bounds (-2.5, 2.5) of mu instead of (-5, 5)")
    assert _falls(narrower)[1] == pytest.approx(_temperature(location(bounds=(-2.5, 2.5))), rel=1e-3)
    values = _line(found, "bounds of y half as wide, where public knowledge allows these")
    model, _ = location(bounds=(-5.0, 5.0))
    assert _falls(values)[1] == pytest.approx(_temperature((model, dp.Domain(bounds={"y": (-2.5, 2.5)}))), rel=1e-3)


def test_the_cost_of_the_posterior_itself_is_enough_and_not_much_more(explained):
    line = _line(explained("counts", delta=0.0), "the posterior itself")
    needed = float(re.search(r"ε = ([\d.]+)\.", line).group(1))
    assert _temperature(counts(0.05, 0.95), dp.Budget(needed)) == 1
    assert _temperature(counts(0.05, 0.95), dp.Budget(needed - 0.02)) > 1


def test_delta_helps_chains_and_fewer_scans_do(explained):
    found = explained("counts", delta=0.0)
    gibbs = dp.TemperedGibbs()
    told = _falls(_line(found, "TemperedGibbs", "δ = 1e-06 instead of 0"))
    assert told[1] == pytest.approx(_temperature(counts(0.05, 0.95), TWO, gibbs), rel=1e-3)
    before, after = _falls(_line(found, "TemperedGibbs", "100 scans instead of 1000"))
    assert before == pytest.approx(10 * after, rel=1e-3), "losses add at δ = 0"
    assert "each step may move a row by" in _line(found, "Barker")


@pytest.mark.slow
def test_what_would_let_one_sample_fit_does(explained):
    line = _line(explained("logistic"), "it would fit")
    truncated = dp.truncate(logistic()[0], {"b": (-2, 2)})
    assert f"T = {_temperature((truncated, logistic()[1])):.4g}, with dp.truncate(model, {{'b': (-2, 2)}})." in line
    line = _line(explained("clamped"), "it would fit")
    model, domain = clamped_location()
    truncated = dp.truncate(model, {"mu": (-20, 20)})
    assert f"T = {_temperature((truncated, domain)):.4g}, with dp.truncate(model, {{'mu': (-20, 20)}})." in line


@pytest.mark.slow
def test_a_change_whose_proof_was_given_up_is_not_reported(explained, monkeypatch):
    assert _line(explained("clamped"), "it would fit")
    monkeypatch.setattr("pymc_dp.advice.repricing.TOLERANCE", -1.0)
    advice = dp.explain(*clamped_location(), epsilon=1.0, delta=1e-6).advice
    assert not [line for line in advice if "would fit" in line]


@pytest.mark.slow
def test_nothing_is_advised_where_the_posterior_is_drawn_from(explained):
    assert not [line for line in explained("counts", epsilon=7.0).advice if "dp.OPS()" in line]


def test_models_that_cannot_be_helped_get_no_advice():
    with pm.Model() as model:
        pm.MvNormal("y", mu=pm.Normal("mu", shape=2), cov=[[1.0, 0.0], [0.0, 1.0]], observed=[[0.0, 1.0]] * 5)
    assert dp.explain(model).advice == ()
