"""Latents with one entry per row: drawn from their own row each, and released with the chain.

Given the released latents, rows sit in public cells; given the parameters, each latent sees one row. So all latents of
a scan are one update (parallel composition), and the updates of parameters cost what they cost under public columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from pymc import Model
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.domain import Domain
from pymc_dp.errors import DomainError
from pymc_dp.inspection.findings import Inspected, Inspection
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import shapes_of
from pymc_dp.inspection.rows import reached, rebuild

LATENTS = "dp_row_latents"


@dataclass(frozen=True, kw_only=True, eq=False)
class RowLatent:
    """A discrete free variable with one entry per row, independent of each other and with one common prior.

    Attributes
    ----------
    name : str
    levels, rows : int
    prior : Variable
        Probabilities of the levels, or of level 1, over the free variables of the model it comes from.
    model : pymc.Model
        That model.
    """

    name: str
    levels: int
    rows: int
    prior: Variable
    model: Model

    def join(self, prior_model: Model) -> None:
        """Add the latent to the prior model of the model that holds it as a column; its rows have places, no labels."""
        to_prior_model = {self.model[str(rv.name)]: prior_model[str(rv.name)] for rv in prior_model.free_RVs}
        (prior,), _ = rebuild([self.prior], to_prior_model)
        with prior_model:
            if prior.type.ndim:
                pm.Categorical(self.name, p=prior, shape=self.rows)
            else:
                pm.Bernoulli(self.name, p=prior, shape=self.rows)
        order = {str(rv.name): place for place, rv in enumerate(self.model.free_RVs)}
        prior_model.free_RVs.sort(key=lambda rv: order[str(rv.name)])


def inspect_with_latents(found: Inspected) -> Inspection | None:
    """Inspect a model with its latents per row as columns of the table; None where it has none, or that fails too.

    Reads schema only. The latents are noted on the model of the result.
    """
    model, held, n_rows = found.model, found.domain, found.sums.n_rows
    if held.neighbours != "replace" or held.metric is not None:
        return None
    known = [latent for rv in model.free_RVs if (latent := _latent(model, rv, n_rows)) is not None]
    latents = {model[latent.name] for latent in known}
    others = set(model.free_RVs) - latents
    if not latents or latents & set(reached([latent.prior for latent in known], others)):
        return None  # what feeds the prior of other latents does not see its own row alone
    bounds = {**held.bounds, **{latent.name: (0, latent.levels - 1) for latent in known}}
    try:
        columns = pm.do(model, {latent.name: _column(model[latent.name], n_rows) for latent in known})
        inspection = inspect(columns, Domain(rows=held.rows, bounds=bounds, norms=held.norms, public=held.public)).sums
    except (DomainError, NotImplementedError):  # PyMC does not clone models with initial values of their own
        return None
    if inspection.problems:
        return None
    setattr(columns, LATENTS, tuple(known))
    return replace(inspection, inspected=found)


def _column(rv: Variable, n_rows: int) -> Variable:
    """Return a column of a latent's own static type: else PyMC would add a check of the number of rows to the graph."""
    return pytensor.shared(np.zeros(n_rows, dtype=rv.type.dtype), name=rv.name, shape=rv.type.shape)


def latents_of(inspection: Inspection) -> tuple[RowLatent, ...]:
    """Latents per row that stand as columns in an inspected model."""
    found: tuple[RowLatent, ...] = getattr(inspection.model, LATENTS, ())
    return found


def _latent(model: Model, rv: Variable, n_rows: int) -> RowLatent | None:
    op: Any = rv.owner.op
    if not isinstance(op, RandomVariable) or op.name not in ("bernoulli", "categorical") or rv.type.ndim != 1:
        return None
    shapes = shapes_of(model)
    (prior,) = op.dist_params(rv.owner)
    event = 1 if op.name == "categorical" else 0
    if prior.type.ndim == event + 1 and prior.type.broadcastable[0]:
        prior = prior[0]
    if shapes[rv.name] != (n_rows,) or prior.type.ndim != event:
        return None
    levels = prior.type.shape[-1] if event else 2
    if levels is None and prior in set(model.free_RVs):
        levels = int(shapes[prior.name][-1])
    for var in reached([prior], model.free_RVs):  # the probabilities of all rows alike, of nothing but parameters
        if var.owner is None and (not isinstance(var, Constant) or np.size(var.data) not in (0, 1, levels)):
            return None
    if levels is None or not 2 <= levels < n_rows:
        return None
    return RowLatent(name=str(rv.name), levels=int(levels), rows=n_rows, prior=prior, model=model)


__all__ = ["RowLatent", "inspect_with_latents", "latents_of"]
