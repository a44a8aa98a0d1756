"""``dp.plan(step=dp.SGLD(...))``: clip norms and step sizes, chosen by simulation and not by looking at rows.

Clip norms and step sizes of a stochastic-gradient sampler, tried out on simulated tables.

The result of ``dp.plan(step=dp.SGLD(...))``: what each clip norm and step size would do, and the call to make.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, Any, override

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp._display import Listing, Page, Shown, Table
from pymc_dp._progress import progress
from pymc_dp._random import public_generator
from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.randomness import Insecure, use_insecure
from pymc_dp.plan.posteriors import Moments, moments
from pymc_dp.simulation.prior import split
from pymc_dp.simulation.rows import SimulatedTable, draw_tables
from pymc_dp.step_methods.langevin.base import StochasticGradient
from pymc_dp.step_methods.langevin.estimated_norm import EstimatedNorm
from pymc_dp.step_methods.langevin.rehearsal import changed, limits, on_rows, slope
from pymc_dp.transforms.privatize import refuse_released

if TYPE_CHECKING:
    import pandas as pd


QUANTILES = (0.5, 0.75, 0.9, 0.99, 1.0)
"""Of the norms of the rows' gradients at the truth: the clip norms that are tried."""
FRACTIONS = (1 / 16, 1 / 4, 1, 4, 16)
"""Of the default step size."""
TUNE, DRAWS = 500, 500


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """One choice of what is public.

    Attributes
    ----------
    step : StochasticGradient
        With these settings, priced.
    step_size : float or None
        None: the rule that the step was given.
    """

    step: StochasticGradient
    clip_norm: float
    step_size: float | None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a clip norm and a step size came to, averaged over simulated tables and parameters.

    Attributes
    ----------
    epsilon, delta : float
    clip_norm : float
    step_size : float or None
        None: by the rule that the step was given.
    clipped : float
        Share of rows whose gradient at the truth is longer than the clip norm.
    mean_error : float
        Root mean square of the error of posterior means, in posterior standard deviations.
    sd_ratio : float
        Geometric mean of standard deviations over those of the posterior.
    distance : float
        Root mean square of the Wasserstein distance between normal distributions of these means and standard
        deviations, in posterior standard deviations; infinite where a chain did not stay finite.
    call : str
        ``dp.sample`` with these settings.
    """

    epsilon: float
    delta: float
    clip_norm: float
    step_size: float | None
    clipped: float
    mean_error: float
    sd_ratio: float
    distance: float
    call: str


def clip_norms(step: StochasticGradient, norms: Sequence[Array]) -> list[float]:
    """Return the clip norms to try: quantiles of simulated norms, and the one that the step was given."""
    finite = [one[np.isfinite(one)] for one in norms]
    held = [np.quantile(one, QUANTILES) for one in finite if one.size]
    found = {rounded(value) for value in np.median(held, axis=0) if value > 0} if held else set()
    return sorted({*found, step.clip_norm})


def cells(step: StochasticGradient, norms: Sequence[float]) -> list[Cell]:
    """Return what is to be tried at the price of a step: step sizes below what the price allows."""
    if step.settings["step_size"] is None:
        return [cell for norm in norms for cell in _by_size(changed(step, clip_norm=norm), norm)]
    found, refused = [], None
    for norm in norms:
        try:
            trial = changed(step, clip_norm=norm)
        except ArgumentError as error:
            refused = error
            continue
        size = step.settings["step_size"]
        found.append(Cell(step=trial, clip_norm=norm, step_size=size if isinstance(size, float) else None))
    if refused is not None and not found:
        raise refused
    return found


def _by_size(step: StochasticGradient, norm: float) -> list[Cell]:
    largest, default = limits(step).natural, min(limits(step))
    wanted = sorted({rounded(min(part * default, largest), math.floor) for part in FRACTIONS})
    return [Cell(step=changed(step, step_size=size), clip_norm=norm, step_size=size) for size in wanted]


def run(cell: Cell, table: SimulatedTable, start: Any) -> Array:
    """Return draws of one chain on a simulated table, (DRAWS, n_parameters), those of tuning left out."""
    rng = np.random.default_rng(table.seed)
    point, found = dict(start), []
    with np.errstate(all="ignore"), use_insecure(Insecure(rng)):
        step = on_rows(cell.step, table.rows, rng, TUNE)
        for place in range(TUNE + DRAWS):
            point, _ = step.step(point)
            if place >= TUNE:
                found.append(step.gradients.flat(point))
    return np.array(found)


def judge(
    cell: Cell, draws: Sequence[Array], posteriors: Sequence[Moments], norms: Sequence[Array], call: str
) -> Trial:
    """Compare chains, one per table, with the posteriors of their tables."""
    with np.errstate(all="ignore"):
        errors = np.array([(chain.mean(axis=0) - of.mean) / of.sd for chain, of in zip(draws, posteriors, strict=True)])
        ratios = np.array([chain.std(axis=0) / of.sd for chain, of in zip(draws, posteriors, strict=True)])
        distance = math.sqrt(np.mean(errors**2 + (ratios - 1) ** 2))
        mean_error, sd_ratio = math.sqrt(np.mean(errors**2)), math.exp(np.mean(np.log(ratios)))
    budget = cell.step.budget
    return Trial(
        epsilon=budget.epsilon,
        delta=budget.delta,
        clip_norm=cell.clip_norm,
        step_size=cell.step_size,
        clipped=float(np.mean([np.mean(~(one <= cell.clip_norm)) for one in norms])),
        mean_error=mean_error,
        sd_ratio=sd_ratio,
        distance=distance if math.isfinite(distance) else math.inf,
        call=call,
    )


def rounded(value: float, how: Any = round) -> float:
    """Return a number of two digits."""
    places = 1 - math.floor(math.log10(value))
    return float(f"{how(value * 10.0**places) / 10.0**places:.2g}")


FAR = 1.0
"""Distance, in posterior sds, beyond which no setting that was tried samples from the posterior."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SamplerPlan(Shown):
    """What clip norms and step sizes of a sampler would do, by simulation from the prior; no private row was read.

    Attributes
    ----------
    trials : tuple of Trial
    sampler : str
    rows : str
        How many rows were simulated, in words.
    tables : int
        Tables behind each number.

    Examples
    --------
    >>> numbers = {"epsilon": 1.0, "delta": 1e-6, "step_size": None, "clipped": 0.1, "mean_error": 0.1, "sd_ratio": 1.1}
    >>> short = Trial(**numbers, clip_norm=1.0, distance=0.4, call="dp.SGLD(clip_norm=1)")
    >>> long = Trial(**numbers, clip_norm=2.0, distance=0.2, call="dp.SGLD(clip_norm=2)")
    >>> SamplerPlan(trials=(short, long), sampler="SGLD", rows="100 rows", tables=2).best().call
    'dp.SGLD(clip_norm=2)'
    """

    trials: tuple[Trial, ...]
    sampler: str
    rows: str
    tables: int

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Budgets."""
        return tuple(dict.fromkeys(trial.epsilon for trial in self.trials))

    def best(self, epsilon: float | None = None) -> Trial:
        """Return the trial that came nearest to the posterior; `epsilon` may be left out where there is one budget.

        Raises
        ------
        ArgumentError
            For a budget that was not simulated.
        """
        if epsilon is None and len(self.epsilons) == 1:
            epsilon = self.epsilons[0]
        found = [trial for trial in self.trials if trial.epsilon == epsilon]
        if not found:
            raise ArgumentError(
                f"epsilon={epsilon} was not simulated: give one of {', '.join(f'{one:g}' for one in self.epsilons)}."
            )
        return min(found, key=lambda trial: trial.distance)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per trial, its columns the attributes of `Trial`."""
        import pandas as pd

        names = [item.name for item in fields(Trial)]
        return pd.DataFrame([[getattr(trial, name) for name in names] for trial in self.trials], columns=names)

    @property
    @override
    def _page(self) -> Page:
        best = [self.best(epsilon) for epsilon in self.epsilons]
        good = any(trial.distance <= FAR for trial in best)
        near = (
            "" if good else " No setting that was tried comes near the posterior: more rows or a larger ε are needed."
        )
        return Page(
            title=f"Which clip norm and step size for {self.sampler}?",
            headline=f"{self.rows}, {self.tables} tables simulated from the prior; no private row was read.{near}",
            good=good,
            parts=[
                Listing(title="Recommended", lines=[trial.call for trial in best]),
                *(self._table(epsilon) for epsilon in self.epsilons),
                Listing(title="How to read it", lines=NOTES),
            ],
        )

    def _table(self, epsilon: float) -> Table:
        columns = ("clip norm", "step size", "rows clipped", "error of mean", "sd over true", "distance")
        own = [trial for trial in self.trials if trial.epsilon == epsilon]
        rows = [_cells(trial) for trial in sorted(own, key=lambda trial: trial.distance)]
        return Table(title=f"ε = {epsilon:g}, δ = {own[0].delta:g}", columns=columns, rows=rows)


NOTES = (
    "The share of rows whose gradient, at the parameters that a table was drawn with, is longer than the clip norm.",
    "Error of means: root mean square over parameters and tables, in posterior sds, on the unconstrained scale; sd "
    "over true: geometric mean. The distance puts both together: 0 is the posterior itself.",
    "The reference is the posterior of the same table without clipping, noise or batches, with as many steps as it "
    "needs. Chains begin at the model's initial point, as real ones do; half of their steps are tuning, and all are "
    "paid for.",
    (
        "The results hold for tables like those that the prior simulates: where the prior is much wider than what is "
        "known, so are they."
    ),
)


def _cells(trial: Trial) -> tuple[str, ...]:
    size = "as given" if trial.step_size is None else f"{trial.step_size:g}"
    shown = (f"{trial.mean_error:.2g}", f"{trial.sd_ratio:.2g}", f"{trial.distance:.2g}")
    if not isfinite(trial.distance):
        shown = ("diverged", "", "")
    return f"{trial.clip_norm:g}", size, f"{trial.clipped:.0%}", *shown


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


__all__ = [
    "DRAWS",
    "TUNE",
    "Cell",
    "SamplerPlan",
    "Trial",
    "begun",
    "call_of",
    "cells",
    "clip_norms",
    "judge",
    "plan_sampler",
    "priced",
    "rounded",
    "run",
]
