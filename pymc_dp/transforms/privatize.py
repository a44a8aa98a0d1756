"""Model in, model out: the likelihood on rows becomes a likelihood on released statistics.

A released regression as an observed variable of the private model.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp._progress import reading
from pymc_dp.accounting import Budget, Ledger, check_ledger, require_ledger_delta
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, DomainWarning, UnsupportedModelError
from pymc_dp.families.characters import NetworkSums
from pymc_dp.families.gram import GramSums, Response
from pymc_dp.families.statistic import ExposedCounts, LevelCounts
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.owners import owner_of
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.weights import require_weights
from pymc_dp.kernel.tallies import PaidSums
from pymc_dp.release.paid import PACKAGE, Paid, keep
from pymc_dp.release.paid_account import PaidAccount
from pymc_dp.release.plan import charge_release, draw_release, plan_release
from pymc_dp.release.record import ReleaseRecord, TableRecord, describe, make_tables
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import Drawn, ReleasePlan, TablePlan
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.person_files import BY_TMPDIR, row_of
from pymc_dp.rows.source import RowsOfModel, StoredSource
from pymc_dp.rows.stored import StoredRows
from pymc_dp.transforms.bins import table_parameters
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.network import observe_network
from pymc_dp.transforms.prior_model import forget_sources, prior_model_with
from pymc_dp.transforms.regression import RegressionDensity
from pymc_dp.transforms.released_logp import add_release, held
from pymc_dp.transforms.trial import Trial


def observe_regression(
    new: Model,
    record: TableRecord,
    parameters: Sequence[Variable],
    table: TablePlan,
    value: Array,
    *,
    noise_aware: bool,
    at_most: bool,
) -> None:
    """Add a released regression to the private model, with the unknown moments of its predictors."""
    # Without noise, in tests, the released sums are exact.
    noise_aware = noise_aware and bool(table.scales.any())
    density = regression_density(table, noise_aware=noise_aware, at_most=at_most)
    value = value if noise_aware else density.project(value)
    with new:
        beside = density.latents(record.name, density.coordinates(value))
        add_release(record, [*parameters, held(table.scales), *beside], density, value)


def regression_density(table: TablePlan, *, noise_aware: bool, at_most: bool) -> RegressionDensity:
    """Return the distribution of a released regression.

    Parameters
    ----------
    table : TablePlan
    noise_aware : bool
    at_most : bool
        Whether the number of rows is private, and what is known a bound on it.
    """
    assert isinstance(table.statistic, GramSums)
    return RegressionDensity(
        statistic=table.statistic,
        response=_response(table),
        reach=table.reach,
        sizes=_sizes(table),
        scale=float(table.scales[0]),
        noise=table.kind,
        noise_aware=noise_aware,
        at_most=at_most,
        gram=table.gram,
    )


def _response(table: TablePlan) -> Response:
    design = table.observed.design
    assert design is not None
    likelihood: Any = table.observed.distribution
    return Response(likelihood=likelihood, mean=design.link)


def _sizes(table: TablePlan) -> Array:
    """Public sizes of cells, or one number: that of all rows, or the bound on it."""
    return np.asarray(table.cells.sizes if table.cells.sizes is not None else table.cells.groups[:1])


RECORD = "dp_record"
TABLES = "dp_tables"
VARIABLES = "dp_variables"


class OtherRelease(ABC):
    """What may stand for `Statistics`: another way to release something that stands for the rows."""

    @abstractmethod
    def make_private(
        self,
        model: Model,
        domain: Domain | None,
        budget: Budget,
        *,
        ledger: Ledger | None,
        label: str = "",
        check: Callable[[Model], None] | None = None,
        progressbar: bool = False,
        rows: StoredRows | None = None,
    ) -> Model:
        """Return a private model, as ``dp.privatize`` does, after `check` has seen the model without its rows.

        Where there are stored `rows`, they stand for those of the model.
        """


def make_otherwise(
    way: OtherRelease,
    source: Model,
    domain: Domain | None,
    *,
    epsilon: float,
    delta: float,
    ledger: Ledger | None,
    **shown: Any,
) -> Model:
    """Release something other than statistics; `shown` are the other arguments of `OtherRelease.make_private`."""
    refuse_released(source)
    check_ledger(ledger)
    return way.make_private(source, domain, Budget(_validate.epsilon(epsilon), delta), ledger=ledger, **shown)


def make_private(
    source: Model,
    domain: Domain | None,
    *,
    epsilon: float,
    delta: float,
    statistics: Statistics | None,
    ledger: Ledger | None,
    label: str = "",
    check: Callable[[Inspection, ReleasePlan, Model], None] | None = None,
    trial: Trial | None = None,
    progressbar: bool = False,
    rows: StoredRows | None = None,
) -> Model:
    """Release exact sums, after a `trial`, and after `check` has seen what is planned and the model without its rows.

    Where there are stored `rows`, they stand for those of the model.

    Raises
    ------
    KeyboardInterrupt
        With the private model in its attribute ``private_model``, if it was pressed while the release was made.
    """
    if record_of(source) is not None:
        raise ArgumentError(
            "The model is private already: sample it with pm.sample and pass the trace through dp.scrub; that costs "
            "nothing."
        )
    check_ledger(ledger)
    if isinstance(statistics, Statistics) and statistics.noise == "gaussian":
        require_ledger_delta(ledger, delta)
    inspection, plan = plan_for(source, epsilon=epsilon, delta=delta, domain=domain, statistics=statistics, rows=rows)
    beside = None if rows is None else Passes.of(inspection, rows)
    owner = owner_of(inspection) if plan.unit is not None and beside is None else None
    if beside is None:
        require_weights(inspection)
    if beside is not None and (problems := beside.check(plan.asked)):
        raise UnsupportedModelError(problems)
    if beside is not None and beside.owner is not None:
        BY_TMPDIR.require(inspection, row_of(beside).itemsize)
    new, parameters = prepare(inspection, plan)
    if check is not None:
        check(inspection, plan, new)
    if trial is not None:
        trial.run(plan, lambda values: _simulated(inspection, plan, values))
    made = None
    try:
        budget = Budget(plan.epsilon, plan.delta)
        with PaidAccount(inspection, budget, called=label, ledger=ledger, diameter=plan.diameter) as account:
            sums = charge_release(plan, account, f"statistics of {', '.join(plan.names)}")
            payment = account.payment
            drawn = payment.read(lambda: _drawn(plan, sums, beside, owner, progressbar))
            complete(new, parameters, drawn, describe(inspection, plan, drawn.guarantee))
            made = new
            mark_paid(new, payment)
        warn_of_bounds(drawn)
        return new
    except (Exception, KeyboardInterrupt) as error:
        keep(error, private_model=made)
        raise


def _drawn(
    plan: ReleasePlan, paid: PaidSums, beside: Passes | None, owner: Variable | None, progressbar: bool
) -> Drawn:
    """Draw a release, with a bar over the rows of a table beside the model, unless their number is private."""
    if beside is None:
        return draw_release(plan, paid, RowsOfModel(plan.asked, owner))
    with reading(progressbar, beside.n_rows, plan.neighbours) as advance:
        return draw_release(plan, paid, StoredSource(plan.asked, beside, advance), advance)


def plan_for(
    model: Model,
    *,
    epsilon: float,
    delta: float,
    domain: Domain | None,
    statistics: Statistics | None,
    rows: StoredRows | None = None,
) -> tuple[Inspection, ReleasePlan]:
    """Check every argument and plan the release; reads no private value and spends nothing."""
    loss = _validate.epsilon(epsilon)
    if statistics is not None and not isinstance(statistics, Statistics):
        raise ArgumentError(
            f"statistics must be a dp.Statistics or dp.Gradients, got {_validate.shown(statistics)}. Write "
            "dp.Statistics(...), or dp.Gradients(...)."
        )
    chance = _validate.delta(delta)
    inspection = inspect(model, domain, per_unit=True, per_person=True, weighted=True).sums
    if rows is not None:
        inspection = with_stored(inspection, rows)
    return inspection, plan_release(inspection, statistics or Statistics(), loss, chance)


def prepare(inspection: Inspection, plan: ReleasePlan) -> tuple[Model, list[list[Variable]]]:
    """Build the private model up to its observed variables, and each likelihood's parameters per cell.

    Whatever can fail does so here, before anything is spent.
    """
    per_cell = [table_parameters(table) for table in plan.tables]
    new, moved = prior_model_with(inspection, [parameter for parameters in per_cell for parameter in parameters])
    remaining = iter(moved)
    for table in make_tables(plan):
        new.add_coords({table.cell_dim: table.cells, table.column_dim: table.columns})
    return new, [[next(remaining) for _ in parameters] for parameters in per_cell]


def _simulated(inspection: Inspection, plan: ReleasePlan, values: Mapping[str, Array]) -> Model:
    """Return the private model of a simulated release."""
    new, parameters = prepare(inspection, plan)
    complete(new, parameters, Drawn(plan=plan, values=values, guarantee="none"), describe(inspection, plan, "none"))
    return new


def mark_private(new: Model, record: ReleaseRecord, values: Mapping[str, Array]) -> None:
    """Say of a finished model that it is private, and what was released; drop what quotes the user's program."""
    forget_sources(new)
    setattr(new, RECORD, record)
    setattr(new, TABLES, dict(values))
    setattr(new, VARIABLES, tuple(new.named_vars))


def mark_paid(private: Model, payment: Paid) -> None:
    """Let the record of a private model state its ledger, and the ledger keep the release."""
    record, tables = payment.noted(getattr(private, RECORD)), getattr(private, TABLES)
    setattr(private, RECORD, record)
    payment.keep(record, tables)


def mark_chosen(private: Model, why: str) -> None:
    """Say in the record of a private model which kind of release the library chose, and why."""
    setattr(private, RECORD, replace(getattr(private, RECORD), chosen=why))


def complete(new: Model, parameters: list[list[Variable]], release: Drawn, record: ReleaseRecord) -> None:
    """Make a release the observed variables of a private model, and finish it."""
    observe_tables(new, parameters, release, record)
    mark_private(new, record, release.values)


def observe_tables(new: Model, parameters: list[list[Variable]], release: Drawn, record: ReleaseRecord) -> None:
    """Make a release observed variables of a model that has the priors of the parameters."""
    plan, values = release.plan, release.values
    for table, described, given in zip(plan.tables, record.tables, parameters, strict=True):
        value = values[table.name]
        if isinstance(table.statistic, NetworkSums):
            observe_network(new, described, given[0], table, value, noise_aware=record.noise_aware)
            continue
        if isinstance(table.statistic, GramSums):
            observe_regression(
                new,
                described,
                given,
                table,
                value,
                noise_aware=record.noise_aware,
                at_most=plan.neighbours == "add_remove",
            )
            continue
        seen, noise = sizes_seen(table, plan, values)
        density = ReleaseDensity.of(table, noise_aware=record.noise_aware, seen=seen, noise=noise)
        held_value = value if record.noise_aware else density.project(value)
        density = density.of_release(held_value, at_most=bounded(table, plan))
        observe(new, described, given, density, held_value)


def bounded(table: TablePlan, plan: ReleasePlan) -> bool:
    """Whether what is public of the rows of a table, or of the sum of their weights, is a bound on their number."""
    return plan.neighbours != "replace" or table.weight is not None


def sizes_seen(table: TablePlan, plan: ReleasePlan, values: Mapping[str, Array]) -> tuple[Array | None, float]:
    """Sizes of private groups as the release of the grouping column itself shows them, and its noise scale.

    In naive Bayes the class is observed and indexes the features: its released counts are the sizes of the features'
    groups. Conditioning each feature's table on them is the chain rule, and spends nothing.
    """
    other = plan.sizes_shown(table)
    if other is None:
        return None, 0.0
    seen = values[other.name][0]
    if len(seen) < len(table.cells.columns[0].levels):
        seen = np.array([other.cells.groups[0] - seen[0], seen[0]])
    return seen, float(other.scales[0])


def warn_of_bounds(release: Drawn) -> None:
    """Say so where a released number of rows is far above the public bound on it (a function of the release)."""
    for table in release.plan.tables:
        if not isinstance(table.statistic, GramSums | NetworkSums):
            _warn_of_bound(table, release.values[table.name])


def _warn_of_bound(table: TablePlan, value: Array) -> None:
    bound = table.cells.groups.max() if table.sizes_known or not len(table.cells.groups) else table.cells.groups[0]
    if isinstance(table.statistic, ExposedCounts):
        return
    counts = value / table.statistic.per_row if isinstance(table.statistic, LevelCounts) else value[:, :1]
    if not table.sizes_known and counts.sum() > bound + 20 * table.scales[0] * np.sqrt(counts.size) and bound > 0:
        if table.observed.public_columns:
            return
        warnings.warn(
            f"{table.name}: the released counts add up to about {counts.sum():.0f} rows, but at most {bound} were "
            "declared. The posterior relies on that bound; give a larger n_max (the release stays paid for).",
            DomainWarning,
            skip_file_prefixes=(PACKAGE,),
        )


def observe(
    new: Model, table: TableRecord, parameters: Sequence[Variable], density: ReleaseDensity, value: Array
) -> None:
    """Add the released table to the private model as an observed variable."""
    scales = held(np.broadcast_to(density.scales, value.shape))
    if density.latent:
        new.add_coords({f"{table.name}_sum": table.columns[-density.latent :]})
    with new:
        beside = [scales]
        if density.latent:
            noise = f"{table.name}_noise_variance"
            beside.append(pm.Exponential(noise, 1.0, dims=(table.cell_dim, f"{table.name}_sum")))
        add_release(table, [*parameters, *beside], density, value)


def record_of(model: Model) -> tuple[ReleaseRecord, dict[str, Array]] | None:
    """Return the public record of a private model, or None if the model is not one."""
    record = getattr(model, RECORD, None)
    return None if record is None else (record, getattr(model, TABLES))


def refuse_released(model: Model) -> None:
    """Raise for a private model, where a step is asked to pay for rows that are not there."""
    if record_of(model) is not None:
        raise ArgumentError(
            "The model is private already and holds no rows: sample it with pm.sample, at no cost, and pass the trace "
            "through dp.scrub."
        )


__all__ = ["observe_regression", "regression_density"]
