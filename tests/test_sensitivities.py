"""What the pages of ``dp.sensitivity`` say, and what it refuses; its numbers are tested on the zoo."""

from __future__ import annotations

import html

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.advice.conftest import location

NONE = np.zeros(9, dtype=int)


def _headline(found: object) -> str:
    return str(found).split("\n")[1].strip("│ ")


def test_a_page_says_what_was_found_and_where():
    found = dp.sensitivity(*location(bounds=(-5.0, 5.0)))
    assert _headline(found).startswith(f"R = {found.range.value:.6g}, Δl = {found.log_likelihood.value:.6g}: the")
    text, page = str(found), html.unescape(found._repr_html_())
    for phrase in ("simulated rows", "enforced where a sampler pays", "y = "):
        assert phrase in text and phrase in page
    assert set(found.to_frame()["quantity"]) == {"range", "sensitivity"}


def intercept():
    pm.Bernoulli("y", logit_p=pm.Normal("a", 0, 1), observed=NONE)


def both_loose():
    pm.Normal("y", pm.Normal("a", 0, 1), 1.0, observed=NONE.astype(float))


def scale():
    pm.Normal("y", 0.0, pm.HalfNormal("s"), observed=NONE.astype(float))


def share():
    pm.Bernoulli("y", pm.Uniform("p", 0, 0.5), observed=NONE)


def at_an_end():
    pm.LogNormal("y", pm.Uniform("mu", -1, 1), 1.0, observed=NONE + 1.0)


def counts():
    pm.Poisson("y", pm.Uniform("rate", 1, 2), observed=NONE)


def simplex():
    pm.Categorical("y", pm.Dirichlet("p", np.ones(3)), observed=NONE)


REFUSED = [
    (intercept, {}, ["a: ", "dp.truncate(model, {'a': (-10, 10)})"]),
    (both_loose, {}, ["y: ", "dp.Domain(bounds={'y': (low, high)})", "a: "]),
    (scale, {"y": (-1, 1)}, ["s: ", "dp.truncate(model, {'s': (0.1, 10)})"]),
    (share, {}, ["p: ", "dp.truncate(model, {'p': (0.005, 0.5)})"]),
    (at_an_end, {"y": (0, 5)}, ["y: ", "narrower public bounds", "dp.Domain(bounds={'y': (low, high)})"]),
    (counts, {}, ["y: ", "its values have no bounds"]),
    (simplex, {}, ["p: ", "dp.truncate(model, {'p': (0.01, None)})"]),
]


@pytest.mark.parametrize(("build", "bounds", "words"), REFUSED, ids=[build.__name__ for build, *_ in REFUSED])
def test_what_has_no_range_is_named_with_the_bounds_to_give(build, bounds, words):
    with pm.Model() as model:
        build()
    with pytest.raises(dp.errors.UnsupportedModelError) as refused:
        dp.sensitivity(model, dp.Domain(bounds=bounds))
    text = "\n".join(map(str, refused.value.problems))
    assert all(word in text for word in words), text


def test_a_parameter_without_bounds_needs_none_where_the_range_does_not_grow_with_it():
    """A scale of a hierarchy reaches rows by bounded parameters alone; a bounded function of a parameter is bounded."""
    with pm.Model() as model:
        spread = pm.HalfNormal("spread")
        b = pm.TruncatedNormal("b", 0, spread, lower=-1, upper=1, shape=2)
        at = b[pm.Data("g", NONE % 2)] + pm.math.tanh(pm.Normal("c", 0, 1))
        pm.Bernoulli("y", logit_p=at, observed=NONE)
    assert dp.sensitivity(model, dp.Domain(bounds={"g": (0, 1)})).range.value == pytest.approx(4.0, rel=1e-3)


def test_coefficients_in_a_ball_range_as_far_as_the_paper_says():
    """Wang, Fienberg, Smola (2015): rows of norm 1, coefficients of norm 8 at most. Twice what one row moves."""
    with pm.Model() as model:
        w = pm.Normal("w", 0, 1, shape=8)
        pm.Bernoulli("y", logit_p=pm.Data("x", np.zeros((9, 8))) @ w, observed=NONE)
    found = dp.sensitivity(dp.truncate(model, norms={"w": 8.0}), dp.Domain(norms={"x": 1.0}))
    assert found.range.value == pytest.approx(16.0, rel=1e-6) and found.log_likelihood.value == pytest.approx(8.0)


@pytest.mark.usefixtures("interpreted")
def test_a_network_ranges_by_the_sum_of_its_nodes():
    """Naive Bayes of six features: a class and six shares move for each of two rows."""
    x, y = np.zeros((9, 6), dtype=int), NONE
    with pm.Model() as model:
        label = pm.Bernoulli("y", pm.Uniform("p_y", 0.1, 0.9), observed=y)
        p = pm.Uniform("p", 0.1, 0.9, shape=(6, 2))
        for feature in range(6):
            pm.Bernoulli(f"x{feature}", p[feature, label], observed=x[:, feature])
    assert dp.sensitivity(model).range.value == pytest.approx(14 * np.log(9), rel=1e-6)


def test_it_is_refused_under_a_metric():
    with pytest.raises(dp.errors.UnsupportedModelError, match="per unit of a metric"):
        dp.sensitivity(location()[0], dp.Domain(bounds={"y": (-1, 1)}, metric=dp.metrics.L1("y")))
