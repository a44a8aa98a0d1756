from __future__ import annotations

import pytest

from pymc_dp.accounting import Budget
from pymc_dp.advice.samplers import previews
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
