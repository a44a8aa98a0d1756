"""``dp.plan(step=dp.SGLD(...))``: clip norms and step sizes, chosen by simulation and not by looking at rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp._progress import progress
from pymc_dp._random import public_generator
from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.given import given_model
from pymc_dp.plan.posteriors import moments
from pymc_dp.plan.sampler_result import SamplerPlan
from pymc_dp.plan.trials import DRAWS, TUNE, Cell, cells, clip_norms, judge, run
from pymc_dp.simulation.prior import split
from pymc_dp.simulation.rows import SimulatedTable, draw_tables
from pymc_dp.step_methods.langevin.base import StochasticGradient
from pymc_dp.step_methods.langevin.estimated_norm import EstimatedNorm
from pymc_dp.step_methods.langevin.rehearsal import slope
from pymc_dp.transforms.privatize import refuse_released

TABLES = 3


def plan_sampler(
    model: Model | None,
    losses: Sequence[float],
    *,
    delta: float,
    step: StochasticGradient,
    covariates: Mapping[str, Any],
    n_rows: int | None,
    repeats: int | None,
    domain: Domain | None,
    random_seed: Any,
    progressbar: bool,
) -> SamplerPlan:
    """Try clip norms and step sizes of a sampler on tables from the prior predictive distribution.

    Parameters
    ----------
    model, delta, step, covariates, n_rows, repeats, domain, random_seed, progressbar
        As for `pymc_dp.plan`.
    losses : sequence of float
        Budgets ε.

    Notes
    -----
    **Guarantee.** Reads no private value and spends nothing.
    """
    source, domain = given_model(model, domain)
    refuse_released(source)
    tables = TABLES if repeats is None else _validate.many("repeats", repeats)
    rng = public_generator(random_seed)
    if n_rows is not None:
        _validate.many("n_rows", n_rows)
    steps = priced(step, source, domain, losses, delta)
    first = steps[0]
    inspection = first.inspect(source, domain)
    assert isinstance(inspection, RowInspection)
    held = _n_rows(first, inspection, n_rows)
    simulated = draw_tables(inspection, first.prior_model, covariates, n_rows=held, count=tables, rng=rng)
    norms = [first.row_norms(table.truth, tuple(map(first._held, table.rows))) for table in simulated]
    tried = [cell for bound in steps for cell in cells(bound, clip_norms(bound, norms))]
    with progress(progressbar, "plan", tables * (1 + len(tried))) as advance:
        posteriors = []
        for table in simulated:
            posteriors.append(moments(slope(first, table.rows), table.truth, rng))
            advance(description="posteriors")
        trials = []
        for cell in tried:
            draws = []
            for table in simulated:
                draws.append(run(cell, table, begun(first, table)))
                advance(description=f"clip norm {cell.clip_norm:g}")
            trials.append(judge(cell, draws, posteriors, norms, call_of(step, cell)))
    return SamplerPlan(trials=tuple(trials), sampler=type(step).__name__, rows=f"{held} rows", tables=tables)


def priced(
    step: StochasticGradient, model: Model, domain: Domain | None, losses: Sequence[float], delta: float
) -> list[StochasticGradient]:
    """Bind a step to a model, and price it for every budget; graphs are compiled once."""
    wanted = copy.copy(step)
    if isinstance(step.settings["clip_norm"], EstimatedNorm):
        wanted.settings = {**step.settings, "clip_norm": 1.0}
    count = (TUNE + DRAWS) * step.steps_per_draw
    inspection = step.inspect(model, domain)
    first, _ = wanted.bound(inspection, Budget(losses[0], delta), chains=1, steps=count)
    return [first, *(first.at(Budget(loss, delta)) for loss in losses[1:])]


def begun(step: StochasticGradient, table: SimulatedTable) -> dict[str, np.ndarray]:
    """Return where a chain begins: at PyMC's point, or, where it buys a posterior sample, at the truth."""
    given = {name: np.asarray(value) for name, value in step.prior_model.initial_point().items()}
    if "start" not in step.settings:
        return given
    return {name: part[0] for name, part in zip(given, split(table.truth[None], table.shapes), strict=True)}


def call_of(step: StochasticGradient, cell: Cell) -> str:
    """Return what to write for the settings of a trial."""
    budget = cell.step.budget
    shown = copy.copy(step)
    sized = {} if cell.step_size is None else {"step_size": cell.step_size}
    shown.settings = {**step.settings, "clip_norm": cell.clip_norm, **sized}
    return f"dp.sample({DRAWS}, tune={TUNE}, epsilon={budget.epsilon:g}, delta={budget.delta:g}, step=dp.{shown!r})"


def _n_rows(step: StochasticGradient, inspection: RowInspection, n_rows: int | None) -> int:
    if n_rows is None:
        return step.population
    if n_rows == step.population or (inspection.domain.n_max is not None and n_rows < step.population):
        return n_rows
    raise ArgumentError(
        f"n_rows={n_rows}: batches and noise of {type(step).__name__} are made for the public number of rows, "
        f"{step.population}. Give a model with as many (dummy) rows."
    )


__all__ = ["begun", "call_of", "plan_sampler", "priced"]
