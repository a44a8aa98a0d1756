"""What a trace, a release and a report say of the intervals of a posterior."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr

import pymc_dp as dp
from tests.golden.topics import FOLDER
from tests.trace.conftest import build_model, table

OK = "Verdict on intervals: ok. Everything in this trace is covered by ε = 1 for one row of the table."
REASONS = [
    {"word": "wide but ok", "what": "Intervals are wide", "remedy": "Spend more"},
    {"word": "do not use", "what": "The iterations ended far away", "remedy": "Use narrower priors"},
    {"word": "doubtful", "what": "Rows vary more than the model says", "remedy": "Change the likelihood"},
    {"word": "doubtful", "what": "Responses are at a bound", "remedy": "Spend more"},
]


def release(epsilon: float = 1.0, **options: Any) -> dp.Release:
    return dp.Release.of(dp.privatize(build_model(*table()), epsilon=epsilon, ledger=dp.Ledger(2.0), **options))


def regression(n: int = 200) -> pm.Model:
    """A regression whose parameters have labels."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (n, 2))
    with pm.Model(coords={"what": ["age", "income"]}) as model:
        slope = pm.Normal("slope", 0, 1, dims="what")
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ slope, observed=rng.random(n) < 0.5)
    return model


def by_gradients(epsilon: float = 1.0) -> dict[str, Any]:
    few = {"statistics": dp.Gradients(steps=10, trust_model=True), "ledger": dp.Ledger(2.0, 1e-5), "progressbar": False}
    return {"epsilon": epsilon, "delta": 1e-6, "domain": dp.Domain(bounds={"x": (-1, 1)}), **few}


def with_plan(made: dp.Release, **changes: Any) -> dp.Release:
    """The same release with another plan of its table; None leaves an entry out."""
    record = json.loads(json.dumps(made.record.to_dict()))
    plan = {**record["tables"][0]["plan"], **changes}
    record["tables"][0]["plan"] = {name: item for name, item in plan.items() if item is not None}
    return dp.Release.from_dict({"record": record, "tables": {name: one.tolist() for name, one in made.tables.items()}})


@pytest.fixture(scope="module")
def drawn() -> xr.DataTree:
    settings = {"tune": 10, "chains": 1, "cores": 1, "quiet": True, "compute_convergence_checks": False}
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return dp.sample(10, model=regression(), random_seed=1, **settings, **by_gradients())


@pytest.fixture(scope="module")
def gradients(drawn: xr.DataTree) -> dp.Release:
    return dp.Release.of(drawn)


def shown(report: object) -> str:
    return " ".join(str(report).replace("│", " ").split())


def test_exact_sums_are_ok_and_every_first_line_says_so(trace: xr.DataTree, tmp_path) -> None:
    verdict = trace.dp.verdict
    assert (verdict.word, str(verdict), verdict.reasons, verdict.warns) == ("ok", "ok", (), False)
    assert "Verdict on intervals" in repr(verdict) and "ok" in verdict._repr_html_()
    report = trace.dp.report()
    assert report.headline == OK and str(report).splitlines()[1].startswith(f"│ {OK[:60]}")
    assert OK in report._repr_html_() and OK in trace.dp._repr_html_() and repr(trace.dp).startswith(OK)
    assert "accounts for the noise; verdict: ok" in shown(report)
    saved = json.loads(report.save(tmp_path / "a.json").read_text(encoding="utf-8"))
    assert saved["headline"] == OK and saved["verdict"] == {"word": "ok", "reasons": []}
    assert OK in report.save(tmp_path / "a.html").read_text(encoding="utf-8")


def test_sums_taken_as_exact_are_doubtful_and_fitted_again_at_no_cost() -> None:
    made = release(statistics=dp.Statistics(noise_aware=False))
    assert made.verdict.word == "doubtful" and "treats noised sums as exact" in str(made.verdict)
    again = dp.Release.of(dp.condition(build_model(*table()), made))
    assert again.verdict.word == "ok" and again.record.event == made.record.event
    assert release(0.01, statistics=dp.Statistics(noise_aware=False)).verdict.word == "do not use"


def test_the_worst_reason_comes_first_and_a_remedy_is_said_once(gradients: dp.Release) -> None:
    found = with_plan(gradients, verdict=REASONS).verdict
    assert found.word == "do not use" and found.warns
    assert [one.word for one in found.reasons] == ["do not use", "doubtful", "doubtful", "wide but ok"]
    assert str(found) == (
        "do not use: The iterations ended far away. Use narrower priors. Rows vary more than the model says. Change "
        "the likelihood. Responses are at a bound. Spend more. Intervals are wide."
    )
    text = " ".join(repr(found).replace("│", " ").split())
    assert "do not use: The iterations ended far away." in text and "wide but ok: Intervals are wide." in text
    assert with_plan(gradients, verdict=REASONS[:1]).verdict.word == "wide but ok"
    assert with_plan(gradients, verdict=REASONS[2:]).verdict.word == "doubtful"


def test_a_warning_follows_the_verdict_and_names_parameters_by_their_labels() -> None:
    with dp.testing.insecure_randomness(1):
        wide = dp.Release.of(dp.privatize(regression(40), **by_gradients(0.1))).verdict
    assert wide.word == "wide but ok" and all(name in str(wide) for name in ("slope[age]", "slope[income]"))
    rng = np.random.default_rng(5)
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(pm.Normal("level", 0.7, 0.3)), observed=rng.choice([0, 20], 4000, p=[0.9, 0.1]))
    with pytest.warns(dp.errors.PosteriorWarning, match='The verdict on this release is "d') as caught:
        private = dp.privatize(
            model, epsilon=3.0, delta=1e-6, domain=dp.Domain(bounds={"y": (0, 60)}),
            statistics=dp.Gradients(steps=10), ledger=dp.Ledger(3.0, 1e-5), progressbar=False,
        )  # fmt: skip
    said = str(caught[0].message)
    quoted = f'"{dp.Release.of(private).verdict}"'
    assert said == f"The verdict on this release is {quoted} The release was made and charged."
    assert "Rows vary" in said and "NegativeBinomial" in said


def test_traces_of_earlier_versions_have_a_verdict() -> None:
    for name, word in (("trace_released.nc", "ok"), ("trace_sampled.nc", "doubtful")):
        with xr.open_datatree(FOLDER / name) as tree:
            tree.load()
        assert tree.dp.verdict.word == word
        assert tree.dp.report().headline.startswith(f"Verdict on intervals: {word}. Everything in this trace")
    assert "12 draws of a sampler, which are too few" in str(tree.dp.verdict)
