"""A draw from the annealed posterior, as near to its mode as a budget allows: no candidates are needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, override

from pymc import Model

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection, RowInspection
from pymc_dp.inspection.priors import priors_of
from pymc_dp.proofs.certificates import log_concave
from pymc_dp.release.record import SamplerRecord
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.ops.converged import ConvergedPosterior
from pymc_dp.step_methods.ops.from_rows import CELLS, RowGridPosterior
from pymc_dp.step_methods.ops.one_sample import OPS
from pymc_dp.step_methods.ops.price import Temperature, sharpest
from pymc_dp.step_methods.ops.row_density import RowDensity
from pymc_dp.step_methods.ops.row_proofs import Trial
from pymc_dp.step_methods.row_functions import Nodes
from pymc_dp.step_methods.row_functions.node_bounds import MOST_NUMBERS
from pymc_dp.transforms.likelihood import TableLikelihood


class AnnealedMode(OPS):
    """Draw from the density ∝ ``(prior(θ) exp(Σ l(x, θ)))^β``, β as large as the budget allows, also above 1.

    Parameters
    ----------
    assume_converged : bool
        As for `OPS`.

    Notes
    -----
    **Guarantee.** As for `OPS`: bounded range ``η = β R``. Under a metric R is per unit of it, drawn on a grid alone,
    where it is enforced: rows count for public nodes (`Nodes`).
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
    def _per_unit(self, inspection: RowInspection, density: RowDensity) -> RowGridPosterior | str:
        metric = inspection.domain.metric
        assert metric is not None
        nodes = Nodes.of(inspection.columns, metric, inspection.n_rows)
        room = math.floor((MOST_NUMBERS / nodes.count) ** (1 / density.dimension))
        grid = RowGridPosterior.of(density, max(2, min(room, CELLS.get(density.dimension, 2))))
        if isinstance(grid, str):
            return f"{grid}, and no other way enforces ε per unit of a metric"
        self.measure(inspection.columns, metric, [nodes])
        self.range = replace(self.range, reason=f"{self.range.reason}; enforced at {nodes}")
        return grid.on(nodes, self.range.value)

    @override
    def _chain(self, inspection: RowInspection, density: RowDensity, trial: Trial) -> ConvergedPosterior | str:
        if inspection.domain.metric is not None:
            return "a chain enforces nothing per unit"
        return super()._chain(inspection, density, trial)

    @override
    def _temperature(self, funding: Funding) -> Temperature:
        return sharpest(self.range.value, funding.budget, funding.uses, self.added)

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
            what="its prior is not proved log-concave, and a power of another density may have infinite mass",
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
