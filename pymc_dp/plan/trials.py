"""Clip norms and step sizes of a stochastic-gradient sampler, tried out on simulated tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.plan.posteriors import Moments
from pymc_dp.simulation.rows import SimulatedTable
from pymc_dp.step_methods.langevin.base import StochasticGradient
from pymc_dp.step_methods.langevin.rehearsal import changed, limits, on_rows

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
    step = on_rows(cell.step, table.rows, np.random.default_rng(table.seed), TUNE)
    point, found = dict(start), []
    with np.errstate(all="ignore"):
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


__all__ = ["DRAWS", "TUNE", "Cell", "Trial", "cells", "clip_norms", "judge", "rounded", "run"]
