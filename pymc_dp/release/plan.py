"""Release of noised sufficient statistics: a plan made from public knowledge alone, then one pass and one draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pymc_dp import _validate
from pymc_dp._random import insecure
from pymc_dp.accounting import total_epsilon
from pymc_dp.errors import ArgumentError, PrivacyError, UnsupportedModelError
from pymc_dp.families.gram import GramSums
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.networks import FourierUpdates, LaplaceUpdates, Updates
from pymc_dp.release.block import Block
from pymc_dp.release.layout import lay_out
from pymc_dp.release.network_plan import NAME, draw_network, plan_network
from pymc_dp.release.noise import NOISES
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import Drawn, Layout, ReleasePlan, TablePlan
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
    if isinstance(statistics.mechanism, FourierUpdates):
        NOISES[statistics.noise].check(delta)
        return _checked(_network_release(inspection, statistics, statistics.mechanism, epsilon, delta))
    shares = _shares(inspection, statistics)
    layout = lay_out(inspection, statistics)
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


def _network_release(
    inspection: Inspection, statistics: Statistics, mechanism: FourierUpdates, epsilon: float, delta: float
) -> ReleasePlan:
    inspection.require()  # before this, a variable that is no likelihood looks like one that is no node
    network = plan_network(inspection, mechanism, NOISES[statistics.noise], epsilon, delta)
    if isinstance(network, tuple):
        raise UnsupportedModelError(network)
    return ReleasePlan(
        tables=(),
        neighbours=inspection.domain.neighbours,
        statistics=statistics,
        epsilon=epsilon,
        delta=delta,
        network=network,
    )


def _shares(inspection: Inspection, statistics: Statistics) -> dict[str, float]:
    names = [observed.name for observed in inspection.observed]
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
    tables: Sequence[Layout], shares: Mapping[str, float], statistics: Statistics, epsilon: float, delta: float
) -> tuple[TablePlan, ...]:
    """Choose the noise of all blocks of all tables at once."""
    noise, boxed = NOISES[statistics.noise], isinstance(statistics.mechanism, LaplaceUpdates)
    if boxed:
        # By their sensitivities: all counts then get noise of one scale, that of the sum of the sensitivities.
        shares = {table.observed.name: noise.part(noise.weight(table.parts[0].sensitivity)) for table in tables}
    weights = [
        shares[table.observed.name] * part.weight / sum(item.weight for item in table.parts)
        for table in tables
        for part in table.parts
    ]
    sensitivities = [part.sensitivity for table in tables for part in table.parts]
    scales = iter(noise.scales(sensitivities, weights, epsilon, delta))
    return tuple(
        TablePlan(
            observed=table.observed,
            family=table.family,
            statistic=table.statistic,
            cells=table.cells,
            blocks=tuple(
                Block(
                    columns=part.columns,
                    steps=part.steps,
                    scale=next(scales),
                    sensitivity=part.sensitivity,
                    noise=noise,
                )
                for part in table.parts
            ),
            labels=table.labels,
            delta=delta,
            gram=table.gram,
            reach=table.reach,
            boxed=boxed,
        )
        for table in tables
    )


def draw_release(plan: ReleasePlan) -> Drawn:
    """Read the rows once, add them up exactly, and add the noise.

    Notes
    -----
    **Guarantee.** ``plan.epsilon``-differential privacy under ``plan.neighbours`` for everything returned; class
    exact, arithmetic hardened (integer sums, OpenDP noise). The budget must have been charged before this is called.
    """
    values = {table.name: _draw_table(table) for table in plan.tables}
    if plan.network is not None:
        values[NAME] = draw_network(plan.network)
    return Drawn(plan=plan, values=values, guarantee="exact" if insecure() is None else "none")


def _exact_sums(table: TablePlan) -> Array:
    """Add up the rows. Reads private data, once."""
    values = private_values(table.observed.leaf)
    if isinstance(table.statistic, GramSums):
        assert table.observed.design is not None
        return sum_products(table.statistic, table.cells, predictors_of(table.observed.design), values)[None]
    return sum_rows(table.cells, table.by_cells[1], values, with_sizes=not table.sizes_known)


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
