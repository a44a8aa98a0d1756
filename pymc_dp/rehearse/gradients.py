"""Noised gradients of tables that were simulated from a posterior, by what `dp.plan` simulates them with."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from pymc_dp import _validate
from pymc_dp._progress import Advance
from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.choice import Gradients
from pymc_dp.gradients.refit import refit
from pymc_dp.inspection.interpreted import shared
from pymc_dp.plan.rehearsal import HOW, Rehearsal, privately
from pymc_dp.plan.result import Recorder
from pymc_dp.rehearse.asked import Asked
from pymc_dp.rehearse.result import Rehearsed
from pymc_dp.released import Release


def of_gradients(asked: Asked, statistics: Gradients | None, rng: np.random.Generator, advance: Advance) -> Rehearsed:
    """Release noised gradients of each simulated table, and compare with those at hand.

    Parameters
    ----------
    asked : Asked
    statistics : Gradients or None
        How they were released; None: as the record says.
    rng : numpy.random.Generator
    advance : Advance
        Called after each table.
    """
    release, method = asked.release, _method(asked.release, statistics)
    record = release.record
    with shared():
        rehearsal = Rehearsal(asked.model, asked.domain, {"gradients": method}, asked.n_rows)
        asked.require_domain(rehearsal.interface.inspection.domain)
        matched = refit(asked.model, asked.domain, record, release.tables[record.tables[0].name])
    budget = release.epsilon if record.asked is None else record.asked
    (planned,) = rehearsal.budgets([budget], release.delta).values()
    prior = planned.prior.divided(1 / planned.limits.scale)
    simulated, released = (Recorder(rehearsal.names, asked.interval) for _ in range(2))
    for table in rehearsal.tables_at(asked.values, rng, "dp.rehearse"):
        rehearsal.note(simulated, *privately(planned, prior, table), table.truth)
        advance()
    mean, covariance = matched.quadratic.posterior(prior.mean, prior.precision)
    rehearsal.note(released, mean, covariance, mean)
    outcomes = (one.outcome("gradients", budget, release.delta) for one in (simulated, released))
    return Rehearsed.of(
        matched.table.cells,
        *outcomes,
        interval=asked.interval,
        rows=rehearsal.rows,
        how=HOW,
        loose=_assumed(rehearsal),
    )


def _method(release: Release, statistics: Gradients | None) -> Gradients:
    """Return how gradients were released, as far as the record and the caller say."""
    plan = release.record.tables[0].plan
    recorded = {field.name: plan[field.name] for field in fields(Gradients) if field.name in plan}
    method = Gradients(**recorded) if statistics is None else statistics
    _validate.instance("statistics", method, Gradients, "Repeat the dp.Gradients(...) of the release.")
    for name, value in recorded.items():
        if getattr(method, name) != value:
            raise ArgumentError(
                f"statistics has {name}={getattr(method, name)!r}, and idata was released with {name}={value!r}. "
                "Repeat the dp.Gradients(...) of the release."
            )
    if method.local:
        raise ArgumentError(
            "idata is of a local release (momentum_steps), about one mode of several. A simulated table may be of "
            "another mode than its parameters, so that no coverage can be counted."
        )
    return method


def _assumed(rehearsal: Rehearsal) -> tuple[str, ...]:
    """Return the private columns of which nobody said how they are distributed."""
    inspection = rehearsal.interface.inspection
    observed = {item.leaf for item in inspection.observed}
    return tuple(
        column.name
        for column in inspection.columns
        if not (column.public or column.leaf in observed or column.name in rehearsal.covariates)
    )


__all__ = ["of_gradients"]
