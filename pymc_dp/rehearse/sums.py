"""Exact sums of tables that were simulated from a posterior, noised as those of the release."""

from __future__ import annotations

import numpy as np

from pymc_dp._display import scalar_name
from pymc_dp._progress import Advance
from pymc_dp.errors import ArgumentError
from pymc_dp.families.statistic import ExposedCounts
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.rows import Array
from pymc_dp.plan.fits import Fit, open_model, outputs_of
from pymc_dp.plan.result import Recorder
from pymc_dp.plan.truths import draw_truths, exact_sums, noised
from pymc_dp.rehearse.asked import Asked
from pymc_dp.rehearse.result import Rehearsed
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleasePlan, TablePlan
from pymc_dp.released import planned
from pymc_dp.synthesize import released_sizes


def of_sums(asked: Asked, rng: np.random.Generator, advance: Advance) -> Rehearsed:
    """Release exact sums of each simulated table, and compare with those at hand.

    Parameters
    ----------
    asked : Asked
    rng : numpy.random.Generator
    advance : Advance
        Called after each table.
    """
    release = asked.release
    if release.of_network:
        raise ArgumentError(
            "idata holds coefficients of a network (dp.networks.FourierUpdates), and dp.rehearse cannot simulate these."
        )
    if asked.n_rows is not None:
        raise ArgumentError("n_rows= is for noised gradients: exact sums say how many rows there are. Leave it out.")
    inspection, tables = planned(asked.model, release)
    asked.require_domain(inspect(asked.model, asked.domain, per_person=True).sums.domain)
    if regressions := [table.name for table in tables if table.family is None]:
        raise ArgumentError(
            f"idata holds sums of products of a regression ({', '.join(regressions)}), of whose predictors only means "
            "and covariances are known, so that dp.rehearse cannot simulate its rows."
        )
    names = [str(rv.name) for rv in asked.model.free_RVs]
    statistics = Statistics(noise=tables[0].kind, noise_aware=release.record.noise_aware)
    plan = ReleasePlan(
        tables=tables,
        neighbours=inspection.domain.neighbours,
        relation=inspection.domain.relation,
        statistics=statistics,
        epsilon=release.epsilon,
        delta=release.delta,
    )
    truths = draw_truths(inspection, tables, names, asked.tables, rng, asked.values)
    sums_seed, noise_seed = (int(seed) for seed in rng.integers(2**31, size=2))
    sizes = {table.name: _sizes(table, release.tables[table.name]) for table in tables}
    values = noised(tables, exact_sums(tables, truths, None, sums_seed, sizes), noise_seed)
    opened = open_model(inspection, plan, release.tables)
    fit, outputs = Fit(opened, truths), outputs_of(opened, names, truths.shapes)
    simulated, released = (Recorder(names, asked.interval) for _ in range(2))
    at_hand = {name: one[0] for name, one in truths.values.items()}  # its widths alone are looked at
    released.add(outputs(fit.draws(release.tables, 0)), at_hand)
    for place in range(truths.repeats):
        draws = outputs(fit.draws({name: one[place] for name, one in values.items()}, place))
        simulated.add(draws, {name: one[place] for name, one in truths.values.items()})
        advance()
    return Rehearsed.of(
        [scalar_name(name, index) for name in names for index in np.ndindex(truths.values[name].shape[1:])],
        *(one.outcome("sums", release.epsilon, release.delta) for one in (simulated, released)),
        interval=asked.interval,
        rows="as many rows as were released, or are public,",
        how=fit.how,
    )


def _sizes(table: TablePlan, values: Array) -> Array:
    """Return sizes of cells as released, in whole rows, or as sums of exposures."""
    found = released_sizes(table, values)
    return found if isinstance(table.statistic, ExposedCounts) else np.rint(found).astype(np.int64)


__all__ = ["of_sums"]
