import html
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.trace.conftest import CANARY, build_model, table


def _two_likelihoods(low: int = 0) -> pm.Model:
    answers, groups = table()
    with build_model(answers, groups) as model:
        mu, sigma = pm.Normal("mu", 0, 10), pm.HalfNormal("sigma", 2)
        pm.Normal("income", mu, sigma, observed=np.linspace(low, CANARY, 60), dims="patient")
    return model


@pytest.fixture(scope="module")
def explained() -> Any:
    return dp.explain(_two_likelihoods(), dp.Domain(bounds={"income": (0, 100)}))


def test_all_problems_at_once_with_remedies() -> None:
    with _two_likelihoods() as model:
        pm.Potential("nudge", pm.math.sum(model["answer"]))
        pm.Exponential("wait", 1.0, observed=np.ones(60))
    explanation = dp.explain(model)
    assert not explanation.ok
    assert {problem.where for problem in explanation.problems} >= {"income", "nudge", "wait"}
    assert all(problem.remedy for problem in explanation.problems)
    with pytest.raises(dp.errors.UnsupportedModelError) as caught:
        dp.privatize(model, epsilon=1.0)
    assert caught.value.problems == explanation.problems


def test_says_what_is_private_released_and_assumed(explained: Any) -> None:
    explanation = explained
    assert explanation.ok
    assert explanation.private == ("answer", "group_index", "income")
    assert explanation.left_out == ("row_probability",)
    text, page = str(explanation.full()), html.unescape(explanation.full()._repr_html_())
    for phrase in ("Yes:", "bounds of income: (0, 100)", "group_index (3)", "number of rows: 60", "row_probability"):
        assert phrase in text and phrase in page, phrase


def test_samplers_are_listed_with_temperature_or_with_what_is_in_the_way():
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1, 1), 0.05, 0.95)
        pm.Bernoulli("y", p, observed=np.array([0, 1, 1]))
    explanation = dp.explain(model, epsilon=0.5)
    ops = explanation.samplers[0]
    assert ops.fits and ops.call == "dp.sample(step=dp.OPS())" and ops.call in explanation.methods
    assert ops.noise == "temperature 11.78, for 1 draw"
    assert "Which methods fit, at ε = 0.5, δ = 0" in str(explanation.full())
    with pm.Model() as unbounded:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1]))
    ops = dp.explain(unbounded).samplers[0]
    assert not ops.fits and "dp.truncate(model, {'p': (0.01, 0.99)})" in ops.problem
    assert "epsilon" not in ops.problem
    with pytest.raises(dp.errors.PrivacyError, match="epsilon must be > 0"):
        dp.explain(model, epsilon=-1)


def test_twelve_lines_say_what_to_do() -> None:
    with _two_likelihoods() as model:
        pm.Potential("nudge", pm.math.sum(model["answer"]))
        pm.Exponential("wait", 1.0, observed=np.ones(60))
    found = dp.explain(model)
    text = " ".join(str(found).replace("│", " ").split())
    assert len(found.problems) > 2 and f"{len(found.problems) - 2} more problem" in text
    assert all(problem.remedy[:30] in text for problem in found.problems[:2])
    assert len(str(found).splitlines()) <= 12
    one = dp.explain(_two_likelihoods())
    (problem,) = one.problems
    said = " ".join(str(one).replace("│", " ").split())
    assert "to do Pass delta=1e-06" in said and f"to do Or at delta=0: {problem.remedy}" in said
    assert problem.remedy.startswith("income needs bounds")
    with pm.Model() as waits:
        pm.Normal("wait", pm.math.exp(pm.Normal("mu", 0, 1) * pm.Data("x", np.ones(60))), 1, observed=np.ones(60))
    (problem,) = (found := dp.explain(waits, dp.Domain(bounds={"wait": (0, 9)}), delta=1e-6)).problems
    said = " ".join(str(found).replace("│", " ").split())
    assert f"to do {problem.remedy} Why: {problem.where}: {problem.what}." in said
    assert problem.remedy.startswith("x needs bounds")
