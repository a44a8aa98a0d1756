"""What would help: a few changes of budget, model and domain, each priced on the spot."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pymc import Model

from pymc_dp.accounting import BoundedRangeEvent, Budget, SelfComposedEvent, total_epsilon
from pymc_dp.advice.releases import EXAMPLE_DELTA
from pymc_dp.advice.samplers import call_of, short, temperature_of
from pymc_dp.advice.tightened import halved_bounds, reached_by_rows, tightened, with_public
from pymc_dp.domain import Domain
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import Inspected, RowInspection
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.priors import priors_of
from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.langevin import SGLD
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.ops.from_rows import ScoredGrid
from pymc_dp.step_methods.ops.price import by_range
from pymc_dp.step_methods.preview import Preview, previewed
from pymc_dp.transforms.prior_model import shared_prior_model

FEWER = 10
WORTH = 0.95
"""A change is reported where it lowers the temperature at least to this share."""
MOST_EPSILON = 10.0
LARGER = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """What was asked of ``explain``."""

    found: Inspected
    budget: Budget


def sampler_advice(asked: Asked, previews: tuple[Preview, ...]) -> list[str]:
    """Return what would make a sampler fit, or run cooler; every number was computed for this model."""
    converged = any(preview.fits and preview.guarantee == "asymptotic" for preview in previews)
    return [f"{short(preview.call)}: {line}." for preview in previews for line in _lines(asked, preview, converged)]


def _lines(asked: Asked, preview: Preview, converged: bool) -> Iterator[str]:
    step = preview.bound
    if isinstance(step, OPS):
        if step.temperature.inverse < 1:
            yield from _of_one_sample(asked, step)
    elif isinstance(step, TemperedGibbs):
        if step.beta < 1:
            yield from _of_gibbs(asked, step)
    elif isinstance(step, BarkerMetropolis):
        yield from _of_barker(asked, step)
    elif isinstance(step, SGLD):
        yield from _of_langevin(asked, step)
    elif preview.call == call_of(OPS()):
        yield from _would_fit(asked, converged)


def _of_one_sample(asked: Asked, step: OPS) -> Iterator[str]:
    now = 1 / step.temperature.inverse
    yield from _with_delta(asked, step, now)
    needed = _cost_of_the_posterior(step)
    if asked.budget.epsilon < needed <= MOST_EPSILON:
        yield f"the posterior itself (T = 1) would need ε = {needed:g}"
    if step.claimed == "exact":
        yield from _of_narrower_parameters(asked, now)
        yield from _of_narrower_values(asked, now)
    if isinstance(step.posterior, ScoredGrid):
        yield from _of_public_covariates(asked, step, now)


def _of_gibbs(asked: Asked, step: TemperedGibbs) -> Iterator[str]:
    now, steps = 1 / step.beta, step.funding.steps
    yield from _with_delta(asked, step, now)
    fewer = steps // FEWER
    yield from _cooler(now, _priced(step, asked.budget, fewer), f"{fewer} scans instead of {steps}")


def _of_barker(asked: Asked, step: BarkerMetropolis) -> Iterator[str]:
    if asked.budget.delta == 0:
        now, then = (_reach(one) for one in (step, _repriced(step, Budget(asked.budget.epsilon, EXAMPLE_DELTA))))
        if then is not None and now is not None and now < WORTH * then:
            yield f"with δ = {EXAMPLE_DELTA:g} instead of 0 each step may move a row by {then:.2g} instead of {now:.2g}"


def _of_langevin(asked: Asked, step: SGLD) -> Iterator[str]:
    other, larger = copy.copy(step), LARGER * step.batches.size
    if larger > step.population:
        return
    other.settings = {**step.settings, "batch_size": larger}
    then = _repriced(other, asked.budget)
    if isinstance(then, SGLD) and step.step_size < WORTH * then.step_size:
        yield f"step size {then.step_size:.2g} instead of {step.step_size:.2g} with batch_size={larger}"


def _with_delta(asked: Asked, step: PrivateStep, now: float) -> Iterator[str]:
    if asked.budget.delta == 0:
        then = _priced(step, Budget(asked.budget.epsilon, EXAMPLE_DELTA))
        yield from _cooler(now, then, f"δ = {EXAMPLE_DELTA:g} instead of 0")


def _reach(step: PrivateStep | None) -> float | None:
    if not isinstance(step, BarkerMetropolis):
        return None
    return step.spending.range_of(step.spending.reserved / step.funding.steps)


def _cooler(now: float, then: float | None, change: str) -> Iterator[str]:
    if then is not None and then <= WORTH * now:
        yield f"T falls from {now:.4g} to {then:.4g} with {change}"


def _priced(step: PrivateStep, budget: Budget, steps: int | None = None) -> float | None:
    """Temperature of a step at another budget, or for another number of steps; None where that is impossible."""
    return temperature_of(_repriced(step, budget, steps))


def _repriced(step: PrivateStep, budget: Budget, steps: int | None = None) -> PrivateStep | None:
    try:
        return step.at(budget, steps=steps)
    except PrivacyError:
        return None


def _cost_of_the_posterior(step: OPS) -> float:
    """Least ε at which the posterior is drawn from as it is, rounded up; inf where that is impossible."""
    delta = step.funding.budget.delta
    event = SelfComposedEvent(event=BoundedRangeEvent(eta=step.range.value), count=step.funding.uses)
    found = math.ceil(total_epsilon(event, delta).epsilon * 100 + 1e-6) / 100
    return found if _priced(step, Budget(found, delta)) == 1.0 else math.inf


def _would_fit(asked: Asked, converged: bool) -> Iterator[str]:
    """Say what would let one posterior sample take the model: by exact draws, if chains are `converged` already."""
    narrower = _narrower(asked)
    if narrower is None:
        return
    model, change = narrower
    found = _looked(inspect(model, asked.found.domain), asked.budget)
    if found is not None and found[0] < asked.found.sums.most_rows and not (found[1] and converged):
        yield f"it would fit, at T = {found[0]:.4g}, with {change}{found[1]}"


def _looked(known: Inspected, budget: Budget) -> tuple[float, str] | None:
    """Temperature of one posterior sample, and what it has to be asked for; None where it would not fit."""
    try:
        found = previewed(OPS(assume_converged=True), known, budget)
    except PrivacyError:
        return None
    temperature = temperature_of(found.bound)
    if temperature is None:
        return None
    return temperature, " and assume_converged=True" if found.guarantee == "asymptotic" else ""


def _narrower(asked: Asked) -> tuple[Model, str] | None:
    rows = asked.found.rows
    if rows.problems:
        return None
    try:
        found = tightened(asked.found.model, priors_of(shared_prior_model(rows)), reached_by_rows(rows))
    except PrivacyError:
        return None
    return None if found is None else (found.model, str(found))


def _of_narrower_parameters(asked: Asked, now: float) -> Iterator[str]:
    changed = _narrower(asked)
    if changed is not None:
        yield from _cooler(now, _temperature(asked, changed[0], asked.found.domain), changed[1])


def _of_narrower_values(asked: Asked, now: float) -> Iterator[str]:
    rows = asked.found.rows
    bounds = {} if rows.problems else halved_bounds(asked.found.domain, rows)
    if bounds:
        names = " and ".join(bounds)
        then = _temperature(
            asked, asked.found.model, replace(asked.found.domain, bounds={**asked.found.domain.bounds, **bounds})
        )
        yield from _cooler(now, then, f"bounds of {names} half as wide, where public knowledge allows these")


def _temperature(asked: Asked, model: Model, domain: Domain) -> float | None:
    """Temperature of an exact draw; None where there is none."""
    found = _looked(inspect(model, domain), asked.budget)
    return None if found is None or found[1] else found[0]


def _of_public_covariates(asked: Asked, step: OPS, now: float) -> Iterator[str]:
    rows = asked.found.rows
    if asked.found.domain.neighbours != "replace":
        return
    opened, names = with_public(rows)
    then = _with_rows(asked, opened, step) if names else None
    where = f"Domain(public={list(names)}), where {' and '.join(names)} may be known to anyone"
    yield from _cooler(now, then, where)


def _with_rows(asked: Asked, inspection: RowInspection, step: OPS) -> float | None:
    """Temperature with other columns."""
    model = shared_prior_model(inspection)
    try:
        grid = ScoredGrid(inspection, model, priors_of(model), step.settings.get("grid"), papers=False)
        return 1 / by_range(grid.scores.range, asked.budget, step.funding.uses, grid.scores.slack).inverse
    except PrivacyError:
        return None


__all__ = ["Asked", "sampler_advice"]
