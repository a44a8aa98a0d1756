"""``dp.explain`` on every model: the text, the table of noise, and which samplers fit how well."""

from __future__ import annotations

import pymc_dp as dp
from pymc_dp.advice.short import LINES
from tests.golden.models import MODELS, Case
from tests.golden.plain import Json, lines
from tests.golden.topics import Topic, or_refusal

BUDGETS = {"δ = 0": 0.0, "δ = 1e-6": 1e-6}
QUICK = {"survey; replace; δ = 0", "survey; add_remove; δ = 0", "refused; replace; δ = 0"}


def found(case: Case, neighbours: str, delta: float) -> Json:
    explanation = dp.explain(case.model(), case.domain(neighbours), epsilon=1.0, delta=delta)
    shown = str(explanation).splitlines()
    assert len(shown) <= LINES, "\n".join(shown)
    return {
        "text": lines(str(explanation.full())),
        "frame": explanation.to_frame().to_dict(orient="records"),
        "problems": [str(problem) for problem in explanation.problems],
    }


WITH_DELTA = {
    *("survey, truncated", "linear regression", "logistic regression", "Poisson regression", "robust", "clamped"),
    "bounded normal",
}
"""Models that samplers with Gaussian noise are looked at for, which takes longer."""
ADDED = {"survey", "linear regression", "logistic regression", "robust", "hierarchy, public groups"}


def asked(name: str) -> list[tuple[str, str]]:
    """Relations and budgets at which a model is looked at."""
    budget = "δ = 1e-6" if name in WITH_DELTA else "δ = 0"
    return [("replace", budget)] + [("add_remove", budget)] * (name in ADDED)


EXPLANATIONS = Topic(
    name="explanations",
    entries={
        f"{name}; {neighbours}; {budget}": or_refusal(found, case, neighbours, BUDGETS[budget])
        for name, case in MODELS.items()
        for neighbours, budget in asked(name)
    },
    quick=QUICK,
)
