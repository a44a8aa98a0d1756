"""One posterior sample, simulated: exact sums drawn given the prior, and one draw of the tempered posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_dp import _validate
from pymc_dp.accounting import Budget
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.findings import Inspection, RowInspection
from pymc_dp.inspection.rows import Array
from pymc_dp.plan.truths import all_counts
from pymc_dp.release.tables import ReleasePlan, TablePlan
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.ops.from_sums import TablePosterior
from pymc_dp.transforms.likelihood import ExactSums


def bound_steps(step: Any, inspection: Inspection, losses: list[float], delta: float) -> dict[float, OPS]:
    """Return a step for each budget, priced for one draw.

    Raises
    ------
    ArgumentError
        For any step but OPS, and for models whose rows OPS would hold one by one: there is nothing to simulate them by.
    UnsupportedModelError
        Where OPS does not fit the model.
    """
    if step is None:
        return {}
    if not isinstance(step, OPS):
        raise ArgumentError(f"step={_validate.shown(step)} cannot be simulated without rows: only dp.OPS() can.")
    seen = step.of_inspected(inspection.inspected)
    found = {}
    for loss in losses:
        bound, _ = step.bound(seen, Budget(loss, delta), chains=1, steps=1)
        if isinstance(seen, RowInspection) or not isinstance(bound.posterior, TablePosterior):
            raise ArgumentError(
                f"step={step!r} holds the rows of this model one by one, so that it cannot be simulated without them. "
                "Leave step out."
            )
        found[loss] = bound
    return found


class OneDraw:
    """Draws of OPS at one budget from exact sums of simulated rows.

    Parameters
    ----------
    step : OPS
        Bound to the model and priced.
    plan : ReleasePlan
        Any release of the model: its tables are laid out as the sums.
    """

    def __init__(self, step: OPS, plan: ReleasePlan) -> None:
        assert isinstance(step.posterior, TablePosterior)
        self.step, self.posterior, self.plan = step, step.posterior, plan
        self.blank = {str(value.name): np.zeros(()) for value in step.prior_model.value_vars}

    def draw(self, sums: Mapping[str, tuple[Array, Array]], seed: int) -> Array:
        """Return one draw, (1, n_elements), given the sums of one simulation."""
        tables = {table.name: table for table in self.plan.tables}
        held = [_exact(tables[table.name], *sums[table.name]) for table in self.posterior.tables]
        temperature = self.step.temperature
        rng = np.random.default_rng(seed)
        drawn = self.posterior.draw(rng, held, temperature.inverse, temperature.prior)
        point = self.step.values.move(self.blank, drawn)
        return np.concatenate([np.ravel(value) for value in point.values()])[None].astype(np.float64)


def _exact(table: TablePlan, sums: Array, sizes: Array) -> ExactSums:
    counts = all_counts(table, sums, sizes)
    if counts is not None:
        return ExactSums(sums=counts, sizes=counts.sum(axis=-1))
    assert hasattr(table.statistic, "shifts")
    own = sums if table.sizes_known else sums[:, 1:]
    return ExactSums(sums=own + np.outer(sizes, table.statistic.shifts), sizes=sizes.astype(np.float64))


__all__ = ["OneDraw", "bound_steps"]
