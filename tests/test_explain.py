from __future__ import annotations

import html

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import DomainError
from tests.trace.conftest import CANARY, LABELS, build_model, table


def _two_likelihoods(low: int = 0) -> pm.Model:
    answers, groups = table()
    with build_model(answers, groups) as model:
        mu, sigma = pm.Normal("mu", 0, 10), pm.HalfNormal("sigma", 2)
        pm.Normal("income", mu, sigma, observed=np.linspace(low, CANARY, 60), dims="patient")
    return model


def test_all_problems_at_once_with_remedies() -> None:
    with _two_likelihoods() as model:
        pm.Potential("nudge", pm.math.sum(model["answer"]))
        pm.Exponential("wait", 1.0, observed=np.ones(60))
    explanation = dp.explain(model)
    assert not explanation.ok
    assert {problem.where for problem in explanation.problems} >= {"income", "nudge", "wait"}
    assert all(problem.remedy for problem in explanation.problems)
    with pytest.raises(dp.PrivacyError) as caught:
        dp.privatize(model, epsilon=1.0)
    assert all(str(problem) in str(caught.value) for problem in explanation.problems)


def test_says_what_is_private_released_and_assumed() -> None:
    explanation = dp.explain(_two_likelihoods(), dp.Domain(bounds={"income": (0, 100)}))
    assert explanation.ok
    assert explanation.private == ("answer", "group_index", "income")
    assert explanation.left_out == ("row_probability",)
    text, page = str(explanation), html.unescape(explanation._repr_html_())
    for phrase in ("Yes:", "bounds of income: (0, 100)", "group_index (3)", "number of rows: 60", "row_probability"):
        assert phrase in text and phrase in page, phrase


def test_texts_do_not_depend_on_values() -> None:
    domain = dp.Domain(bounds={"income": (0, 100)})
    one, other = (dp.explain(_two_likelihoods(low), domain) for low in (0, 999))
    assert str(one) == str(other) and one._repr_html_() == other._repr_html_()
    assert str(CANARY) not in str(one) and not any(label in str(one) for label in LABELS)


def test_number_of_rows_does_not_show_under_add_remove() -> None:
    explanation = dp.explain(
        _two_likelihoods(), dp.Domain(bounds={"income": (0, 100)}, neighbours="add_remove", n_max=5000)
    )
    assert explanation.ok and "60" not in str(explanation) and "5000" in str(explanation)


def test_frame_gives_noise_by_epsilon() -> None:
    frame = dp.explain(_two_likelihoods(), dp.Domain(bounds={"income": (0, 100)})).to_frame()
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
    assert "Which methods fit, at ε = 0.5, δ = 0" in str(explanation)
    with pm.Model() as unbounded:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1]))
    ops = dp.explain(unbounded).samplers[0]
    assert not ops.fits and "dp.truncate(model, {'p': (0.01, 0.99)})" in ops.problem
    with pytest.raises(dp.PrivacyError, match="epsilon must be > 0"):
        dp.explain(model, epsilon=-1)
