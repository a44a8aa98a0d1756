from __future__ import annotations

import html
import os
import subprocess
import sys

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.advice.short import LINES
from pymc_dp.errors import DomainError
from pymc_dp.explain import Explanation
from tests.trace.conftest import CANARY, LABELS, build_model, table


def _two_likelihoods(low: int = 0) -> pm.Model:
    answers, groups = table()
    with build_model(answers, groups) as model:
        mu, sigma = pm.Normal("mu", 0, 10), pm.HalfNormal("sigma", 2)
        pm.Normal("income", mu, sigma, observed=np.linspace(low, CANARY, 60), dims="patient")
    return model


@pytest.fixture(scope="module")
def explained() -> Explanation:
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


def test_says_what_is_private_released_and_assumed(explained: Explanation) -> None:
    explanation = explained
    assert explanation.ok
    assert explanation.private == ("answer", "group_index", "income")
    assert explanation.left_out == ("row_probability",)
    text, page = str(explanation.full()), html.unescape(explanation.full()._repr_html_())
    for phrase in ("Yes:", "bounds of income: (0, 100)", "group_index (3)", "number of rows: 60", "row_probability"):
        assert phrase in text and phrase in page, phrase


@pytest.mark.slow
def test_a_budget_that_bounds_next_to_nothing_is_named_so() -> None:
    domain = dp.Domain(bounds={"income": (0, 100)})
    found = dp.explain(_two_likelihoods(), domain, epsilon=20.0, delta=0.5)
    assert [text[:8] for text in found.weak] == ["ε = 20 b", "δ = 0.5 "]
    assert "What this budget is worth" in str(found.full()) and not dp.explain(_two_likelihoods(), domain).weak


@pytest.mark.slow
def test_texts_do_not_depend_on_values(explained: Explanation) -> None:
    one, other = explained, dp.explain(_two_likelihoods(999), dp.Domain(bounds={"income": (0, 100)}))
    assert str(one.full()) == str(other.full()) and one.full()._repr_html_() == other.full()._repr_html_()
    assert str(CANARY) not in str(one.full()) and not any(label in str(one.full()) for label in LABELS)


@pytest.mark.slow
def test_number_of_rows_does_not_show_under_add_remove() -> None:
    explanation = dp.explain(
        _two_likelihoods(), dp.Domain(bounds={"income": (0, 100)}, neighbours="add_remove", n_max=5000)
    )
    assert explanation.ok and "60" not in str(explanation.full()) and "5000" in str(explanation.full())


@pytest.mark.slow
def test_frame_gives_noise_by_epsilon(explained: Explanation) -> None:
    frame = explained.to_frame()
    assert len(frame) == 2 * 4
    answer = frame[frame["variable"] == "answer"].set_index("epsilon")
    assert answer.loc[1.0, "noise_sd"] == pytest.approx(np.sqrt(2) * 4), "half of ε = 1 on a table with Δ1 = 2"
    assert answer.loc[0.1, "noise_sd"] == pytest.approx(10 * answer.loc[1.0, "noise_sd"])


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (dp.Domain(bounds={"incme": (0, 1)}), "Did you mean 'income'"),
        (dp.Domain(public=["group"]), "Did you mean 'group_index'"),
        (dp.Domain(rows="patients"), "Did you mean 'patient'"),
        (dp.Domain(norms={"income": 1.0}), "Leave it out"),
        (dp.Domain(public=["income"]), "what a likelihood observes is protected"),
    ],
)
def test_unknown_names_get_the_nearest_match(domain: dp.Domain, text: str) -> None:
    with pytest.raises(DomainError, match=text):
        dp.explain(_two_likelihoods(), domain)


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


@pytest.mark.slow
def test_rows_held_one_by_one_show_neither_values_nor_their_number() -> None:
    hidden = dp.Domain(norms={"X": 1.0}, neighbours="add_remove", n_max=5000)
    pages = set()
    for count, fill in ((1237, 0.3), (1237, -CANARY), (1241, 0.0)):
        with pm.Model() as model:
            x = pm.Data("X", np.full((count, 2), float(fill)))
            pm.Bernoulli("y", logit_p=x @ pm.Normal("b", 0, 1, shape=2), observed=np.full(count, int(fill > 0)))
        explanation = dp.explain(model, hidden, delta=1e-6)
        pages.add((str(explanation.full()), explanation.full()._repr_html_(), repr(explanation.advice)))
    assert len(pages) == 1
    page = html.unescape(pages.pop()[0])
    page = " ".join(page.replace("│", " ").split())
    assert "1237" not in page and "at most 1183" in page and "half the prior sd of b" in page


@pytest.mark.slow
def test_texts_are_the_same_in_every_process() -> None:
    program = (
        "import numpy as np, pymc as pm, pymc_dp as dp\n"
        "with pm.Model() as model:\n"
        "    x, z = pm.Data('x', np.zeros(300)), pm.Data('z', np.zeros(300))\n"
        "    a, b = pm.Normal('a'), pm.Normal('b')\n"
        "    pm.StudentT('y', nu=4, mu=a + b * x, sigma=1, observed=np.zeros(300))\n"
        "    pm.Laplace('w', a * z, 1, observed=np.zeros(300))\n"
        "bounded = dp.truncate(model, {'a': (-1, 1), 'b': (-1, 1)})\n"
        "domain = dp.Domain(bounds={name: (-1, 1) for name in 'xzyw'})\n"
        "print(dp.explain(model), dp.explain(bounded, domain).full(), dp.sensitivity(bounded, domain))\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1 and "T falls" in texts.pop()


def test_twelve_lines_say_what_to_do() -> None:
    with _two_likelihoods() as model:
        pm.Potential("nudge", pm.math.sum(model["answer"]))
        pm.Exponential("wait", 1.0, observed=np.ones(60))
    found = dp.explain(model)
    text = " ".join(str(found).replace("│", " ").split())
    assert len(found.problems) > 2 and f"{len(found.problems) - 2} more problem" in text
    assert all(problem.remedy[:30] in text for problem in found.problems[:2])
    assert len(str(found).splitlines()) <= LINES
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


def test_numbers_of_all_rows_are_told_to_be_public_ones_and_only_once() -> None:
    with pm.Model() as model:
        x, b = pm.Data("x", np.linspace(0, 9, 60)), pm.Normal("b", 0, 1)
        pm.Normal("y", b * (x - x.mean()) / x.std(), 1, observed=np.zeros(60))
    found = dp.explain(model, dp.Domain(bounds={"x": (0, 9), "y": (-1, 1)}), delta=1e-5)
    assert len(found.problems) > 1 and len({problem.remedy for problem in found.problems}) == 1
    assert str(found).count("to do") == 1 and "more problem" not in str(found)
    assert "(x - 50) / 10 for" in " ".join(str(found).replace("│", " ").split())


def test_where_a_delta_is_all_that_lacks_nothing_else_is_to_do() -> None:
    with pm.Model() as model:
        x, b = pm.Data("age", np.linspace(20, 90, 60)), pm.Normal("b", 0, 1)
        mu, alpha = pm.math.exp(b * x / 50), pm.Exponential("alpha", 1)
        pm.NegativeBinomial("los", mu=mu, alpha=alpha, observed=np.ones(60, dtype=int))
    found = dp.explain(model, dp.Domain(bounds={"age": (18, 100), "los": (0, 60)}))
    text = " ".join(str(found).replace("│", " ").split())
    assert "to do Pass delta=1e-06, far below 1 / number of rows: dp.sample then releases" in text
    assert text.count("to do") == 1 and "Cut" not in text and "fits dp.sample(epsilon=..., delta=...)" in text
    assert "Cut 'age' into" in (rest := " ".join(str(found.full()).replace("│", " ").split()))
    assert "as a number, or release a histogram" in rest and "Give it" not in rest


def test_a_potential_of_rows_is_told_to_be_a_likelihood() -> None:
    with pm.Model() as model:
        y, b = pm.Data("y", np.zeros(60)), pm.Normal("b", 0, 1)
        pm.Potential("density", pm.logp(pm.Normal.dist(b, 1), y).sum())
        pm.Normal("z", b, 1, observed=np.zeros(60))
    (problem, *_) = dp.explain(model, dp.Domain(bounds={"z": (-1, 1)})).problems
    assert "pm.CustomDist('y', ..., logp=logp, observed=y)" in problem.remedy and "public=['y']" in problem.remedy
