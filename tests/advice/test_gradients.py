"""What explain says of exact sums and noised gradients side by side."""

import html
import re

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp import Budget
from pymc_dp.gradients.choice import width_ratio
from tests.gradients.models import bernoulli, normal, student_t


def lines(*args, **budget):
    (found,) = [part for part in dp.explain(*args, **budget)._listings() if part.title.startswith("What dp.sample")]
    return found.lines


def plain(explanation):
    return " ".join(html.unescape(str(explanation.full())).replace("│", " ").split())


@pytest.mark.slow
def test_gradients_are_named_with_their_parameters_and_widths():
    found = dp.explain(*student_t(), epsilon=2.0, delta=1e-6)
    ratio = width_ratio(5, 40, Budget(2.0, 1e-6), "replace")
    text = plain(found)
    assert "5 parameters enter the likelihood: a, b (3), sigma." in text
    assert f"about {ratio:.3g} times as wide as without privacy at ε = 2, δ = 1e-06" in text
    assert "dp.sample releases noised gradients, because there are no exact sums to release" in text
    assert "Yes: dp.sample(epsilon=..., delta=...) releases noised gradients once" in text
    assert "dp.sample(statistics=dp.Gradients())" in found.methods and not found.ok


@pytest.mark.slow
def test_without_a_delta_the_remedy_is_named():
    text = plain(dp.explain(*student_t()))
    assert "Yes, with a delta > 0: dp.sample(epsilon=..., delta=...) releases noised gradients" in text
    assert "It needs a δ > 0, for example delta=1e-06" in text
    first = lines(*bernoulli())[0]
    assert "the only kind of release at δ = 0; with a δ > 0 it would be noised gradients, because" in first


@pytest.mark.slow
def test_why_they_do_not_fit_is_said_with_the_remedy():
    (line,) = [one for one in lines(normal()[0], dp.Domain(), delta=1e-6) if "do not fit" in one]
    assert "columns={'x': pm.Normal.dist(0, 1)}" in line


def test_widths_under_exact_sums_are_those_of_their_noise():
    """One count of 400 rows, ε = .1: noise of sd √2 · 10 beside √(400 / 4) from sampling."""
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(400, dtype=int))
    (line,) = [one for one in lines(model, epsilon=0.1) if one.startswith("Exact sums of y")]
    assert abs(float(re.search(r"about ([\d.]+) times", line)[1]) - np.sqrt(1 + 2)) < 0.01
