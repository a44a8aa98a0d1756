"""A draw from the annealed posterior, as near to its mode as a budget allows: no candidates are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, override

from pymc import Model

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.priors import log_concave, priors_of
from pymc_dp.release.record import SamplerRecord
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.ops.from_rows import PerUnitGrid
from pymc_dp.step_methods.ops.one_sample import OPS
from pymc_dp.step_methods.ops.price import Temperature, per_unit, sharpest
from pymc_dp.transforms.likelihood import TableLikelihood


class AnnealedMode(OPS):
    """Draw from the density ∝ ``(prior(θ) exp(Σ l(x, θ)))^β``, β as large as the budget allows, also above 1.

    Parameters
    ----------
    assume_converged : bool
        As for `OPS`.

    Notes
    -----
    **Guarantee.** As for `OPS`: bounded range ``η = β R``; under a metric R is per unit of it.
    """

    name = "annealed"

    def __init__(self, assume_converged: bool = False, **funding: Any) -> None:
        super().__init__(assume_converged=assume_converged, **funding)

    @property
    @override
    def temper_prior(self) -> bool:
        return True

    @override
    def plan(self, inspection: Inspection) -> Model:
        prior_model = super().plan(inspection)
        if problems := _flat_powers(prior_model):
            raise UnsupportedModelError(problems)
        return prior_model

    @override
    def _of_states(self, inspection: Inspection, prior_model: Model, tables: Sequence[TableLikelihood]) -> None:
        """Return None: discrete states have no annealed chain here."""

    @override
    def _temperature(self, funding: Funding) -> Temperature:
        asked = self.range.value, funding.budget, funding.uses, self.added
        return per_unit(*asked, sharp=True) if isinstance(self.posterior, PerUnitGrid) else sharpest(*asked)

    @override
    def describe(self) -> SamplerRecord:
        return replace(super().describe(), noise=f"annealed to β = {self.temperature.inverse:.4g}")

    @override
    def _target(self) -> tuple[str, str]:
        return "annealed", f"(prior x likelihood)^β, β = {self.temperature.inverse:.6g}, by {self.temperature.rule}"

    @override
    def _worth(self) -> list[tuple[str, str]]:
        """Return nothing: a mode is no draw."""
        return []

    @override
    def _no_draws(self, reasons: str, assumed: bool = False) -> Problem:
        last = "; or accept the last state of a NUTS chain, whose guarantee is asymptotic: assume_converged=True"
        if self.binding.domain.metric is not None:
            last = ""
        return Problem(
            where="model",
            what=f"its annealed posterior cannot be drawn exactly ({reasons})",
            remedy=f"Give candidates: a grid, arrays of points, or a trace that was paid for{'' if assumed else last}.",
        )


def _flat_powers(prior_model: Model) -> list[Problem]:
    """Say of which priors a power may have no mass: that of an unbounded density."""
    found = [
        Problem(
            where=prior.name,
            what="its prior is not known to be log-concave, and a power of another density may have infinite mass",
            remedy="Give it a log-concave prior (Beta with a, b >= 1, Normal, Uniform with ends), or give candidates.",
        )
        for prior in priors_of(prior_model)
        if not log_concave(prior)
    ]
    return found + [
        Problem(
            where=str(item.name),
            what="it is a Potential, and a power of it may have infinite mass",
            remedy="Give candidates.",
        )
        for item in prior_model.potentials
    ]


__all__ = ["AnnealedMode"]
