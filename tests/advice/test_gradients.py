"""What explain says of exact sums and noised gradients side by side."""

import html
import re

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp import Budget
from pymc_dp.gradients.choice import width_ratio
from tests.gradients.models import bernoulli, student_t


def lines(*args, **budget):
    (found,) = [part for part in dp.explain(*args, **budget)._listings() if part.title.startswith("What dp.sample")]
    return found.lines


def plain(explanation):
    return " ".join(html.unescape(str(explanation.full())).replace("│", " ").split())


@pytest.mark.slow
def test_without_a_delta_the_remedy_is_named():
    text = plain(dp.explain(*student_t()))
    assert "Yes, with a delta > 0: dp.sample(epsilon=..., delta=...) releases noised gradients" in text
    assert "It needs a δ > 0, for example delta=1e-06" in text
    first = lines(*bernoulli())[0]
    assert "the only kind of release at δ = 0; with delta=1e-06 it would be noised gradients, because" in first


def widths(found):
    """Numbers of the line of the page, by release."""
    text = " ".join(html.unescape(str(found)).replace("│", " ").split()).partition("intervals at ε = ")[2]
    number = r"([\d.]+)(?: \([^)]*\))? times (?:as wide as without privacy )?by "
    sums, gradients = (re.search(f"{number}{of}", text) for of in ("exact sums", "noised gradients"))
    return float(sums[1]), float(gradients[1])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_both_releases_are_shown_with_their_widths_whatever_the_delta(delta):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(400, dtype=int))
    sums, gradients = widths(dp.explain(model, epsilon=0.1, delta=delta))
    assert abs(sums - np.sqrt(1 + 2)) < 0.01
    assert gradients == pytest.approx(width_ratio(1, 400, Budget(0.1, 1e-6), "replace"), rel=0.01)
