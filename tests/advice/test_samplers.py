from __future__ import annotations

import pytest

from pymc_dp.accounting import Budget
from pymc_dp.advice.samplers import listed, previews
from pymc_dp.inspection.inspect import inspect
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.ops.converged import ConvergedPosterior
from tests.advice.conftest import clamped_location, counts, logistic

EXACT, CONVERGED = "dp.sample(step=dp.OPS())", "dp.sample(step=dp.OPS(assume_converged=True))"


@pytest.mark.few(1)
@pytest.mark.parametrize("case", [lambda: counts(0.05, 0.95), logistic])
def test_exact_draws_are_offered_alone_and_as_the_step_itself_would(case) -> None:
    found = {preview.call: preview for preview in previews(inspect(*case()), Budget(1.0, 1e-6))}
    assert EXACT in found and CONVERGED not in found
    alone = OPS().preview(*case(), Budget(1.0, 1e-6))
    offered = found[EXACT]
    assert (offered.guarantee, offered.noise, offered.facts) == ("exact", alone.noise, alone.facts)
    assert offered.bound is not None and "assume_converged" not in offered.bound.settings


def test_a_chain_is_offered_only_where_exact_draws_are_refused_and_nothing_is_simulated(monkeypatch) -> None:
    monkeypatch.setattr(ConvergedPosterior, "length", None)
    found = {preview.call: preview for preview in previews(inspect(*clamped_location()), Budget(1.0, 1e-6))}
    assert not found[EXACT].fits and "cannot be drawn exactly" in found[EXACT].problem
    assert found[CONVERGED].fits and found[CONVERGED].guarantee == "asymptotic"


def test_what_exact_draws_refuse_before_drawing_is_told_once() -> None:
    found = {preview.call: preview for preview in previews(inspect(*counts(0.0, 1.0)), Budget(1.0))}
    assert found[EXACT].problem == OPS().preview(*counts(0.0, 1.0), Budget(1.0)).problem != ""
    assert CONVERGED not in found


@pytest.mark.parametrize(("count", "text"), [(1, "a()"), (2, "a() or b()"), (3, "a(), b() or c()")])
def test_calls_are_listed_as_a_sentence_does(count: int, text: str) -> None:
    assert listed([f"dp.sample(step={name}())" for name in "abc"[:count]]) == text
