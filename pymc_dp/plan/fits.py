"""The private model of one budget with its release held open: fitted to one simulated release after another.

One posterior sample, simulated: exact sums drawn given the prior, and one draw of the tempered posterior.

The methods that a plan compares, each by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp.accounting import Budget
from pymc_dp.accounting.noise_kinds import NOISE_KINDS
from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.choice import Gradients
from pymc_dp.inspection.findings import Inspection, RowInspection
from pymc_dp.inspection.rows import Array
from pymc_dp.networks import FourierUpdates, LaplaceUpdates
from pymc_dp.plan.batches import at_points, components, density_terms
from pymc_dp.plan.posteriors import Chain, Grids, UnnoisedDensity
from pymc_dp.plan.truths import Truths, all_counts
from pymc_dp.release.record import make_tables
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleasePlan, TablePlan
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.ops.from_sums import BySums
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.likelihood import ExactSums
from pymc_dp.transforms.privatize import bounded, observe, prepare, sizes_seen
from pymc_dp.transforms.released_logp import held


@dataclass(frozen=True, kw_only=True, eq=False)
class Held:
    """One released table of a private model.

    Attributes
    ----------
    value : shared variable
        The released table.
    seen : shared variable or None
        Sizes of its groups as another table shows them, where one does.
    rate : shared variable
        Of the prior of its sizes, see `Sizes`.
    """

    table: TablePlan
    density: ReleaseDensity
    value: Any
    seen: Any
    rate: Any


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenModel:
    """A private model, and what its releases are put into."""

    model: Model
    plan: ReleasePlan
    held: tuple[Held, ...]
    noise_aware: bool

    def hold(self, release: Mapping[str, Array]) -> None:
        """Make a release the observed values of the model."""
        for item in self.held:
            value = release[item.table.name]
            if not self.noise_aware:
                value = item.density.project(value)
            rate = item.density.of_release(value, at_most=bounded(item.table, self.plan)).sizes.rate
            if rate is not item.rate:
                item.rate.set_value(np.asarray(rate))
            item.value.set_value(np.ascontiguousarray(value, dtype=np.float64))
            if item.seen is not None:
                seen, _ = sizes_seen(item.table, self.plan, release)
                item.seen.set_value(np.asarray(seen, dtype=np.float64))


def open_model(
    inspection: Inspection, plan: ReleasePlan, release: Mapping[str, Array], *, exact: bool = False
) -> OpenModel:
    """Build the private model of a plan around one release.

    Parameters
    ----------
    inspection, plan
    release : mapping of str to (n_cells, n_statistics) array
    exact : bool
        Without noise: the posterior that is not private.
    """
    new, parameters = prepare(inspection, plan)
    noise_aware = plan.statistics.noise_aware and not exact
    found = []
    for table, described, given in zip(plan.tables, make_tables(plan), parameters, strict=True):
        seen, noise = sizes_seen(table, plan, release) if noise_aware else (None, 0.0)
        sizes: Any = None if seen is None else held(seen)
        kind = UnnoisedDensity if exact else ReleaseDensity
        density = kind.of(table, noise_aware=noise_aware, seen=sizes, noise=noise)
        rate: Any = held(density.sizes.rate)
        density = replace(density, sizes=replace(density.sizes, rate=rate))
        if exact:
            density = replace(density, scales=np.zeros(len(table.labels)))
        observe(new, described, given, density, release[table.name])
        value = new.rvs_to_values[new[table.name]]
        found.append(Held(table=table, density=density, value=value, seen=sizes, rate=rate))
    opened = OpenModel(model=new, plan=plan, held=tuple(found), noise_aware=noise_aware)
    opened.hold(release)
    return opened


class Fit:
    """Draws of the posterior of any release of one plan, by grids where they will do, else by NUTS.

    Parameters
    ----------
    opened : OpenModel
        Holding the release of the first truth.
    truths : Truths
    """

    def __init__(self, opened: OpenModel, truths: Truths) -> None:
        self.opened = opened
        # Variances of the noise, where they are free variables, come after those of the model itself.
        beside = [(len(item.density.sizes.bound), item.density.latent) for item in opened.held if item.density.latent]
        rng, self.count = np.random.default_rng(0), truths.points.shape[1]
        noise = [np.log(rng.exponential(size=(len(truths.points), cells * sums))) for cells, sums in beside]
        shapes, points = [*truths.shapes, *beside], np.concatenate([truths.points, *noise], axis=1)
        terms = density_terms(opened.model, shapes)
        self.grids = Grids.of(terms, components(terms, points), points)
        self.chain = None
        if self.grids is None:
            self.chain = Chain(opened.model, np.median(points, axis=0), shapes)

    @property
    def how(self) -> str:
        """In words."""
        return "on a grid" if self.chain is None else "by NUTS"

    def draws(self, release: Mapping[str, Array], seed: int) -> Array:
        """Return draws of the posterior of a release, (n_draws, n_elements): of the elements of a truth."""
        self.opened.hold(release)
        if self.grids is not None:
            return self.grids.draws()[:, : self.count]
        assert self.chain is not None
        return self.chain.draws(seed)[:, : self.count]


def outputs_of(opened: OpenModel, names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> Any:
    """Return variables of a model as a function of points of its value variables."""
    graphs = opened.model.replace_rvs_by_values([opened.model[name] for name in names])
    return at_points(opened.model, graphs, shapes)


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
        if isinstance(seen, RowInspection) or not isinstance(bound.posterior, BySums):
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
        assert isinstance(step.posterior, BySums)
        self.step, self.posterior, self.plan = step, step.posterior, plan
        self.blank = {str(value.name): np.zeros(()) for value in step.prior_model.value_vars}

    def draw(self, sums: Mapping[str, tuple[Array, Array]], seed: int) -> Array:
        """Return one draw, (1, n_elements), given the sums of one simulation."""
        tables = {table.name: table for table in self.plan.tables}
        names = [table.name for table in self.posterior.sums.tables]
        held = {name: _exact(tables[name], *sums[name]) for name in names}
        temperature = self.step.temperature
        rng = np.random.default_rng(seed)
        drawn = self.posterior.simulated(rng, held, temperature.inverse, temperature.prior)
        point = self.step.values.move(self.blank, drawn)
        return np.concatenate([np.ravel(value) for value in point.values()])[None].astype(np.float64)


def _exact(table: TablePlan, sums: Array, sizes: Array) -> ExactSums:
    counts = all_counts(table, sums, sizes)
    if counts is not None:
        return ExactSums(sums=counts, sizes=counts.sum(axis=-1))
    assert hasattr(table.statistic, "shifts")
    own = sums if table.sizes_known else sums[:, 1:]
    return ExactSums(sums=own + np.outer(sizes, table.statistic.shifts), sizes=sizes.astype(np.float64))


def named_methods(noise: Any, statistics: Any, delta: float) -> dict[str, Statistics]:
    """Return the methods asked for: by kind of noise, or as Statistics.

    By default, Laplace noise, and Gaussian noise where there is a δ for it.
    """
    if statistics is None:
        kinds = noise if noise is not None else ["laplace", *(["gaussian"] if delta else [])]
        kinds = [kinds] if isinstance(kinds, str) else _validate.several("noise", kinds)
        if not kinds:
            raise ArgumentError(f"noise must name at least one of {', '.join(map(repr, NOISE_KINDS))}.")
        return {kind: Statistics(noise=kind) for kind in kinds}
    if noise is not None:
        raise ArgumentError("noise= and statistics= both say what to compare. Give one.")
    if isinstance(statistics, Statistics):
        statistics = [statistics]
    named = dict(statistics) if isinstance(statistics, Mapping) else _named(statistics)
    if not named:
        raise ArgumentError("statistics must hold at least one dp.Statistics.")
    for name, method in named.items():
        if not isinstance(method, Statistics) or not isinstance(name, str):
            raise ArgumentError(
                f"statistics must be dp.Statistics, a list of them or a mapping of names to them; got "
                f"{_validate.shown(method)} under {_validate.shown(name)}."
            )
        if isinstance(method.mechanism, FourierUpdates):
            raise ArgumentError(
                f"dp.plan simulates tables, but {method.mechanism!r} releases coefficients. Compare "
                "dp.networks.LaplaceUpdates() instead; dp.explain(model) tells the noise of both."
            )
    return named


def _named(statistics: Sequence[Any]) -> dict[str, Any]:
    """Name methods by their noise and by what is not the default; a number tells apart what still looks alike."""
    named: dict[str, Any] = {}
    for method in _validate.several("statistics", statistics):
        if not isinstance(method, Statistics):
            raise ArgumentError(f"statistics must be dp.Statistics or a list of them, got {_validate.shown(method)}.")
        share = f", {', '.join(f'{name} {part:g}' for name, part in method.share.items())}" if method.share else ""
        joint = f", {method.mechanism!r}" if isinstance(method.mechanism, LaplaceUpdates) else ""
        name = base = f"{method.noise}{'' if method.noise_aware else ', plug-in'}{share}{joint}"
        while name in named:
            name = f"{base} ({sum(other.startswith(base) for other in named) + 1})"
        named[name] = method
    return named


def gradient_methods(statistics: Any) -> dict[str, Gradients] | None:
    """Return methods that release gradients by their names; None where exact sums are asked for.

    Raises
    ------
    ArgumentError
        For a mixture.
    """
    if isinstance(statistics, Gradients):
        return {"gradients": statistics}
    if not isinstance(statistics, Mapping | list | tuple):
        return None
    held = list(statistics.values()) if isinstance(statistics, Mapping) else list(statistics)
    count = sum(isinstance(one, Gradients) for one in held)
    if not count:
        return None
    if count < len(held):
        raise ArgumentError(
            "dp.Gradients and dp.Statistics are rehearsed on tables that are simulated in different ways: call "
            "dp.plan once for each."
        )
    names = list(statistics) if isinstance(statistics, Mapping) else [repr(one) for one in held]
    return dict(zip(names, held, strict=True))


__all__ = [
    "Fit",
    "OneDraw",
    "OpenModel",
    "bound_steps",
    "gradient_methods",
    "named_methods",
    "open_model",
    "outputs_of",
]
