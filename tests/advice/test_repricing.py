from __future__ import annotations

import re

import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.advice.samplers import temperature_of
from pymc_dp.step_methods.ops import OPS
from tests.advice.conftest import clamped_location, counts, logistic

TWO = Budget(1.0, 1e-6)


def _temperature(case, budget=TWO, step=None):
    preview = (step or OPS()).preview(*case, budget)
    assert preview.fits, preview.problem
    return temperature_of(preview.bound)


def _line(explanation, *phrases):
    found = [line for line in explanation.advice if all(phrase in line for phrase in phrases)]
    assert len(found) == 1, explanation.advice
    return found[0]


def _falls(line):
    return [float(number) for number in re.search(r"T falls from ([\d.]+) to ([\d.]+) with", line).groups()]


@pytest.mark.slow
def test_truncation_is_priced_as_the_truncated_model_is(explained):
    model, domain = logistic()
    truncated = dp.truncate(model, {"b": (-2, 2)})
    expected = [_temperature((model, domain)), _temperature((truncated, domain))]
    line = _line(explained("logistic"), "dp.truncate(model, {'b': (-2, 2)})")
    assert _falls(line) == pytest.approx(expected, rel=1e-3)


def test_the_cost_of_the_posterior_itself_is_enough_and_not_much_more(explained):
    line = _line(explained("counts", delta=0.0), "the posterior itself")
    needed = float(re.search(r"ε = ([\d.]+)\.", line).group(1))
    assert _temperature(counts(0.05, 0.95), Budget(needed)) == 1
    assert _temperature(counts(0.05, 0.95), Budget(needed - 0.02)) > 1


@pytest.mark.slow
def test_what_would_let_one_sample_fit_does(explained):
    line = _line(explained("logistic", delta=0.0), "it would fit")
    assert f"at T = {_temperature(logistic()):.4g}, with δ = 1e-06 instead of 0" in line
    line = _line(explained("clamped"), "it would fit")
    model, domain = clamped_location()
    truncated = dp.truncate(model, {"mu": (-20, 20)})
    assert f"T = {_temperature((truncated, domain)):.4g}, with dp.truncate(model, {{'mu': (-20, 20)}})." in line
