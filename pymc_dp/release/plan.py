"""Release of noised sufficient statistics: a plan made from public knowledge alone, then one pass and one draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pymc_dp import _validate
from pymc_dp._random import insecure
from pymc_dp.accounting import total_epsilon
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.families.characters import NetworkSums
from pymc_dp.families.gram import GramSums
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.networks import FourierUpdates, LaplaceUpdates, Updates
from pymc_dp.release.layout import lay_out
from pymc_dp.release.noise import NOISES
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import Drawn, ReleasePlan, TablePlan
from pymc_dp.rows.gate import predictors_of, private_values
from pymc_dp.rows.sums import sum_products, sum_rows


def plan_release(inspection: Inspection, statistics: Statistics, epsilon: float, delta: float = 0.0) -> ReleasePlan:
    """Choose statistics, cells, sensitivities and noise for a model.

    Parameters
    ----------
    inspection : Inspection
    statistics : Statistics
    epsilon, delta : float
        Budget of the whole release.

    Raises
    ------
    UnsupportedModelError
        With the problems of the inspection and of the families, all at once.
    ArgumentError
        If `share` does not fit the observed variables.
    """
    if isinstance(statistics.mechanism, Updates) and inspection.domain.metric is not None:
        raise ArgumentError(
            f"{statistics.mechanism!r} is not accounted per unit of a metric. Leave mechanism out, or metric."
        )
    layout = lay_out(inspection, statistics)
    shares = _shares(layout.tables, statistics)
    NOISES[statistics.noise].check(delta)  # only now: another delta is no remedy for what cannot be released
    plan = ReleasePlan(
        tables=_with_noise(layout.tables, shares, statistics, epsilon, delta),
        neighbours=inspection.domain.neighbours,
        statistics=statistics,
        epsilon=epsilon,
        delta=delta,
        diameter=layout.diameter,
        grids=layout.grids,
    )
    return _checked(plan)


def _checked(plan: ReleasePlan) -> ReleasePlan:
    """Return a plan whose cost, as the accountants read it, is within its budget."""
    if total_epsilon(plan.event, plan.delta).epsilon > plan.epsilon:
        raise PrivacyError(
            f"The planned noise would cost more than epsilon={plan.epsilon}; this is an error of pymc_dp."
        )
    return plan


def _shares(tables: Sequence[TablePlan], statistics: Statistics) -> dict[str, float]:
    names = [table.name for table in tables]
    share = statistics.share
    if share is not None:
        for name in share:
            if name not in names:
                raise ArgumentError(
                    f"share names {name!r}, which is no observed variable (known: "
                    f"{names}).{_validate.nearest(name, names)}"
                )
        if missing := [name for name in names if name not in share]:
            raise ArgumentError(f"share leaves out {missing}. Give every observed variable a weight > 0.")
    return dict(share or dict.fromkeys(names, 1.0))


def _with_noise(
    tables: Sequence[TablePlan], shares: Mapping[str, float], statistics: Statistics, epsilon: float, delta: float
) -> tuple[TablePlan, ...]:
    """Choose the noise of all blocks of all tables at once."""
    noise, mechanism = NOISES[statistics.noise], statistics.mechanism
    if isinstance(mechanism, LaplaceUpdates):
        # By their sensitivities: all counts then get noise of one scale, that of the sum of the sensitivities.
        shares = {table.name: noise.part(noise.weight(table.blocks[0].sensitivity)) for table in tables}
    weights = [
        shares[table.name] * block.weight / sum(item.weight for item in table.blocks)
        for table in tables
        for block in table.blocks
    ]
    sensitivities = [block.sensitivity for table in tables for block in table.blocks]
    scales = iter(noise.scales(sensitivities, weights, epsilon, delta))
    found = [
        replace(table, blocks=tuple(replace(block, scale=next(scales)) for block in table.blocks)) for table in tables
    ]
    if isinstance(mechanism, FourierUpdates):
        found = [replace(table, increment=_increment(table, mechanism)) for table in found]
    return tuple(found)


def _increment(table: TablePlan, mechanism: FourierUpdates) -> float:
    (block,) = table.blocks
    return 2 * mechanism.t * table.sums.count * block.scale * block.steps[0]


def draw_release(plan: ReleasePlan) -> Drawn:
    """Read the rows once, add them up exactly, and add the noise.

    Notes
    -----
    **Guarantee.** ``plan.epsilon``-differential privacy under ``plan.neighbours`` for everything returned; class
    exact, arithmetic hardened (integer sums, OpenDP noise). The budget must have been charged before this is called.
    """
    values = {table.name: _draw_table(table) for table in plan.tables}
    return Drawn(plan=plan, values=values, guarantee="exact" if insecure() is None else "none")


def _exact_sums(table: TablePlan) -> Array:
    """Add up the rows. Reads private data, once."""
    if isinstance(table.statistic, NetworkSums):
        return table.statistic.exact(_exact_families(table))[:, None]
    values = private_values(table.observed.leaf)
    if isinstance(table.statistic, GramSums):
        assert table.observed.design is not None
        return sum_products(table.statistic, table.cells, predictors_of(table.observed.design), values)[None]
    return sum_rows(table.cells, table.by_cells[1], values, with_sizes=not table.sizes_known)


def _exact_families(table: TablePlan) -> list[Array]:
    """Count the configurations of every family of a network. Reads private data, once."""
    network, found = table.sums.network, []
    for place, (observed, cells) in enumerate(zip(table.variables, table.parents, strict=True)):
        levels = LevelCounts(labels=tuple(map(str, range(network.nodes[place].n_levels))))
        counts = sum_rows(cells, levels, private_values(observed.leaf), with_sizes=False)
        found.append(counts.reshape(network.shape(place)))
    return found


def _draw_table(table: TablePlan) -> Array:
    sums = _exact_sums(table)
    if isinstance(table.statistic, LevelCounts) and len(table.labels) < table.statistic.n_levels:
        sums = sums[:, 1:]
    released = np.empty(sums.shape)
    for block in table.blocks:
        columns = list(block.columns)
        noised = block.noise.add(np.ascontiguousarray(sums[:, columns]), block.scale)
        released[:, columns] = noised * np.array(block.steps)
    return released


__all__ = ["draw_release", "plan_release"]
