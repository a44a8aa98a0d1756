"""Whether observed variables are read as exact sums, or row by row.

What values free variables may have, and what a table's parameters may then be: public boxes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.families import with_closed_form
from pymc_dp.inspection.columns import levels_of
from pymc_dp.inspection.findings import Inspection, RowInspection
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.intervals.expression import UnknownOperation
from pymc_dp.proofs.parameter_boxes import Box, boxes_of, check_bounds
from pymc_dp.samplers.gibbs import GibbsRows
from pymc_dp.step_methods.gibbs.row_latents import RowLatent, latents_of
from pymc_dp.transforms.likelihood import TableLikelihood, sums_problems, table_likelihoods
from pymc_dp.transforms.prior_model import shared_prior_model


def box_of(prior: Prior) -> Box:
    """Bounds of a free variable; infinite where its prior gives none."""
    levels = levels_of(prior)
    if levels is not None:
        low, high = np.full(prior.shape, float(levels[0])), np.full(prior.shape, float(levels[-1]))
    elif prior.low is not None and prior.high is not None:
        low, high = np.array(prior.low, dtype=float), np.array(prior.high, dtype=float)
    else:
        low, high = np.full(prior.shape, -np.inf), np.full(prior.shape, np.inf)
    return Box(low=low, high=high)


def boxes_by_variable(prior_model: Model) -> dict[Variable, Box]:
    """Bounds of every free variable of a prior model."""
    return {prior.variable: box_of(prior) for prior in priors_of(prior_model)}


def table_boxes(table: TableLikelihood, free: Mapping[Variable, Box]) -> list[Box]:
    """Bounds of every parameter of a table in each of its cells.

    Raises
    ------
    UnknownOperation
        Naming the operation without a rule.
    """
    found = boxes_of(table.parameters, free)
    check_bounds(table.parameters, free, found)
    return [_per_cell(box, table.n_cells, ndim) for box, ndim in zip(found, table.family.event_ndims, strict=True)]


def _per_cell(box: Box, count: int, ndim: int) -> Box:
    """Give a parameter one entry per cell; `ndim` axes of it are no cells."""
    shape = (count, *box.low.shape[len(box.low.shape) - ndim :])
    return Box(
        low=np.broadcast_to(box.low, shape),
        high=np.broadcast_to(box.high, shape),
        feeds={name: np.broadcast_to(places, shape) for name, places in box.feeds.items()},
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihoods:
    """The likelihoods of a model beside its prior model.

    Attributes
    ----------
    prior_model : pymc.Model
        Latents of the rows included.
    tables : tuple of (TableLikelihood, boxes of its parameters)
        Where exact sums are enough for all of them.
    rows : GibbsRows or None
        Otherwise: rows of all of them.
    inspection : RowInspection or None
        Of these rows.
    latents : tuple of RowLatent
    """

    prior_model: Model
    tables: tuple[tuple[TableLikelihood, list[Box]], ...]
    rows: GibbsRows | None = None
    inspection: RowInspection | None = None
    latents: tuple[RowLatent, ...] = ()


def likelihoods_of(inspection: Inspection, summed: Collection[str] | None = None) -> Likelihoods:
    """Find the likelihoods of an inspected model, by exact sums where these are enough for all. Reads no private value.

    Parameters
    ----------
    inspection : Inspection
    summed : collection of str
        Likelihoods of which exact sums are to be taken where they can be; by default all of which they are enough.

    Raises
    ------
    UnsupportedModelError
        With what is in the way of exact sums, if the likelihood does not factorise over rows either.
    """
    summed = with_closed_form() if summed is None else summed
    if isinstance(inspection, RowInspection):
        return _of_rows(inspection)
    problems = sums_problems(inspection, summed)
    if not problems:
        found, problems = _tables(inspection)
        if not problems:
            return found
    rows = None if latents_of(inspection) else inspection.inspected.rows
    if rows is None or rows.problems:
        raise UnsupportedModelError(problems)
    return _of_rows(rows)


def _tables(inspection: Inspection) -> tuple[Likelihoods, list[Problem]]:
    """Bound the parameters of every table; those that no rule bounds are left out."""
    prior_model, tables = table_likelihoods(inspection)
    latents = latents_of(inspection)
    for latent in latents:
        latent.join(prior_model)
    free, bounded, problems = boxes_by_variable(prior_model), [], []
    for table in tables:
        try:
            boxes = table_boxes(table, free)
            form = table.family.closed_form
            if form is not None and not form.applies(table.statistic, [(box.low, box.high) for box in boxes]):
                raise UnknownOperation("more than one of them is unknown")
            bounded.append((table, boxes))
        except UnknownOperation as error:
            problems.append(
                Problem(
                    where=table.name,
                    what=f"its parameters are computed by an operation without proved bounds: {error}",
                    remedy="Let them be free variables, selections of them, or simple functions such as sigmoid "
                    "and exp of sums of them.",
                )
            )
    return Likelihoods(prior_model=prior_model, tables=tuple(bounded), latents=latents), problems


def _of_rows(rows: RowInspection) -> Likelihoods:
    prior_model = shared_prior_model(rows)
    return Likelihoods(prior_model=prior_model, tables=(), rows=GibbsRows(rows, prior_model), inspection=rows)


__all__ = ["Likelihoods", "box_of", "boxes_by_variable", "likelihoods_of", "table_boxes"]
