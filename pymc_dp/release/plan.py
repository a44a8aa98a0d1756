"""Release of noised sufficient statistics: a plan made from public knowledge alone, then one pass and one draw.

The layout of a release: which statistics of which cells, and how far one row can move them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil, prod

import numpy as np

from pymc_dp import _validate
from pymc_dp._column_bounds import hull_of
from pymc_dp.accounting import total_epsilon
from pymc_dp.accounting.noise_kinds import NOISE_KINDS, NoiseKind
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.families.characters import NetworkSums
from pymc_dp.inspection.exposures import EXPOSED
from pymc_dp.inspection.findings import MAX_CELLS, Inspection, Observed
from pymc_dp.inspection.interpreted import kept_while_shared
from pymc_dp.inspection.network import node_problems
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.totals import SUCCESSES
from pymc_dp.kernel.account import Account
from pymc_dp.kernel.randomness import insecure
from pymc_dp.kernel.tallies import PaidSums, Source
from pymc_dp.metrics import Extent
from pymc_dp.networks import FourierUpdates, LaplaceUpdates, Updates
from pymc_dp.release.blocks import blocks_of, check_wide, not_weighed, weighted_blocks
from pymc_dp.release.default_bins import with_default_bins
from pymc_dp.release.lipschitz_sums import MOST_STEPS, MOVED, extents_of, grid_of, names_of, per_unit, too_many_steps
from pymc_dp.release.network_layout import lay_out_network, papers_problems
from pymc_dp.release.regression_layout import lay_out_regression, without_means
from pymc_dp.release.sensitivity import SumSensitivity
from pymc_dp.release.statistics import Statistics, choose, too_many
from pymc_dp.release.tables import Drawn, ReleaseLayout, ReleasePlan, TablePlan
from pymc_dp.rows.exposures import exposed_cells
from pymc_dp.rows.source import NodesTogether
from pymc_dp.rows.sums import make_cells


def lay_out(inspection: Inspection, statistics: Statistics) -> ReleaseLayout:
    """Choose statistics, cells and sensitivities for a model. Reads no private value, and knows of no budget.

    Raises
    ------
    UnsupportedModelError
        With the problems of the inspection and of the families, all at once.
    ArgumentError
        If the mechanism does not fit the observed variables, or the metric.
    """
    if isinstance(statistics.mechanism, Updates) and inspection.domain.unit is not None:
        raise ArgumentError(
            f"{statistics.mechanism!r} is accounted for rows, not for persons with several rows. Leave mechanism out, "
            "or unit."
        )
    if isinstance(statistics.mechanism, FourierUpdates):
        weighed = [observed for observed in inspection.observed if observed.name in inspection.weights]
        if refused := [problem for observed in weighed if (problem := not_weighed(observed, statistics))]:
            raise UnsupportedModelError(refused)
        inspection.require()  # before this, a variable that is no likelihood looks like one that is no node
        network = lay_out_network(inspection, statistics.mechanism, NOISE_KINDS[statistics.noise])
        if isinstance(network, tuple):
            raise UnsupportedModelError(network)
        return ReleaseLayout(tables=(network,))
    problems = list(inspection.problems)
    if isinstance(statistics.mechanism, LaplaceUpdates):
        problems += _updates_problems(inspection, statistics.mechanism)
    _check_names(inspection, statistics)
    tables = []
    for observed in inspection.observed:
        found = lay_out_table(observed, inspection, statistics)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            tables.append(found)
    if problems:
        raise UnsupportedModelError(problems)
    domain = inspection.domain
    if domain.metric is None:
        return ReleaseLayout(tables=tuple(tables))
    tables, extents = _per_unit(tables, domain, NOISE_KINDS[statistics.noise])
    return ReleaseLayout(tables=tuple(tables), diameter=domain.metric.diameter(extents), grids=_grids(tables, extents))


def _updates_problems(inspection: Inspection, mechanism: LaplaceUpdates) -> list[Problem]:
    """Say what keeps a model from being released by the counts of its nodes."""
    found = [problem for observed in inspection.observed for problem in node_problems(observed)]
    return found + (papers_problems(inspection.domain.neighbours) if mechanism.papers else [])


def table_problems(inspection: Inspection) -> list[Problem]:
    """Problems that the families find, beyond those of the inspection."""
    return [
        found
        for observed in inspection.observed
        if isinstance(found := lay_out_table(observed, inspection, Statistics()), Problem)
    ]


def _check_names(inspection: Inspection, statistics: Statistics) -> None:
    names = [observed.name for observed in inspection.observed]
    for name in statistics.mechanism if isinstance(statistics.mechanism, Mapping) else ():
        if not inspection.problems and name not in names:
            raise ArgumentError(
                f"mechanism names {name!r}, which is no observed variable (known: "
                f"{names}).{_validate.nearest(name, names)}"
            )


def lay_out_table(observed: Observed, inspection: Inspection, statistics: Statistics) -> TablePlan | Problem:
    """Lay out one table, or say why there is none."""
    usual = statistics.mechanism is None
    found = (
        _usual_table(observed, inspection, noise=statistics.noise)
        if usual
        else _table(observed, inspection, statistics)
    )
    refused = None if statistics.noise_aware or isinstance(found, Problem) else without_means(found)
    return refused or found


@kept_while_shared
def _usual_table(observed: Observed, inspection: Inspection, *, noise: str) -> TablePlan | Problem:
    return _table(observed, inspection, Statistics(noise))


def _table(observed: Observed, inspection: Inspection, statistics: Statistics) -> TablePlan | Problem:
    if prod(len(column.levels) for column in observed.columns) > MAX_CELLS:
        return Problem(
            where=observed.name,
            what=f"its columns span more than {MAX_CELLS} cells, nearly all of them empty",
            remedy="Merge levels, or index its parameters by fewer columns.",
        )
    weight, domain = inspection.weights.get(observed.name), inspection.domain
    if weight is not None and (problem := not_weighed(observed, statistics)):
        return problem
    largest = 1.0 if weight is None else hull_of(domain.bounds[weight.name])[1]
    most = domain.most_rows if weight is None else ceil(largest * inspection.most_rows)
    cells = make_cells(observed.columns, inspection.n_rows, most)
    if observed.totals is not None:  # a cell's number of rows says little of what its rows add up to
        exposed = observed.distribution == EXPOSED
        cells = exposed_cells(cells, observed.totals) if exposed else replace(cells, sizes=None)
    known = cells.sizes is not None
    named = isinstance(statistics.mechanism, Mapping)
    if observed.design is not None and named and statistics.histogram(observed.name) is not None:
        return Problem(
            where=observed.name,
            what="it is a regression on continuous columns, which are not counted in bins",
            remedy="Leave it out of mechanism.",
        )
    if observed.design is not None:
        return lay_out_regression(observed, inspection, cells, statistics.noise)
    family, statistic = choose(observed, statistics.histogram(observed.name), named=named, sizes_known=known)
    if isinstance(statistic, Problem):
        return statistic
    if problem := too_many(observed, statistic, cells.count):
        return problem
    whole = isinstance(statistics.mechanism, LaplaceUpdates) and statistics.mechanism.papers
    noise, totals = NOISE_KINDS[statistics.noise], observed.totals if observed.distribution == SUCCESSES else None
    labels, blocks = blocks_of(statistic, cells, domain, noise, known=known and not whole, totals=totals)
    if weight is not None:
        labels, blocks = weighted_blocks(statistic, cells, domain, noise, largest)
    return TablePlan(
        variables=(observed,),
        family=family,
        statistic=statistic,
        cells=cells,
        labels=labels,
        blocks=blocks,
        boxed=isinstance(statistics.mechanism, LaplaceUpdates),
        weight=weight,
        largest=largest,
    )


def _per_unit(
    tables: Sequence[TablePlan], domain: Domain, noise: NoiseKind
) -> tuple[list[TablePlan], dict[str, Extent]]:
    """Return the same tables with sensitivities per unit of the metric, and what its columns of numbers can be."""
    if noise is not NOISE_KINDS["laplace"]:
        raise ArgumentError(
            "Under a metric only Laplace noise is accounted: the loss of Gaussian noise does not grow in proportion to "
            "distance. Leave out Statistics(noise=...)."
        )
    assert domain.metric is not None
    names = names_of(tables)
    extents = extents_of(tables, domain.metric, names)
    found, problems = list[TablePlan](), list[Problem]()
    for table in tables:
        bound = per_unit(table, domain.metric, names, extents)
        if isinstance(bound, Problem):
            problems.append(bound)
            continue
        held = replace(table, per_unit=bound)
        moves = [move for tally in held.tallies for move in tally.moves(domain.neighbours)]
        moved = [
            replace(block, sensitivity=SumSensitivity.of(move, MOVED))
            for block, move in zip(table.blocks, moves, strict=True)
        ]
        if any(block.sensitivity.l1 > MOST_STEPS for block in moved):
            problems.append(too_many_steps(table.name))
        found.append(replace(held, blocks=tuple(moved)))
    if problems:
        raise UnsupportedModelError(problems)
    return found, extents


def _grids(tables: Sequence[TablePlan], extents: Mapping[str, Extent]) -> tuple[str, ...]:
    """Say what values of the metric's columns are rounded to, whichever of its names a metric calls a column by."""
    names = names_of(tables)
    measured = [table for table in tables if names[table.observed.leaf] & extents.keys()]
    steps = {table.name: grid_of(table) for table in measured}
    return tuple(f"{name} to {step:.3g}" for name, step in steps.items() if step is not None)


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
    NOISE_KINDS[statistics.noise].check(delta)  # only now: another delta is no remedy for what cannot be released
    plan = ReleasePlan(
        tables=tuple(
            with_default_bins(table, statistics)
            for table in _with_noise(layout.tables, shares, statistics, epsilon, delta)
        ),
        neighbours=inspection.domain.neighbours,
        relation=inspection.domain.relation,
        unit=inspection.domain.unit,
        statistics=statistics,
        epsilon=epsilon,
        delta=delta,
        diameter=layout.diameter,
        grids=layout.grids,
    )
    return _checked(plan)


def _checked(plan: ReleasePlan) -> ReleasePlan:
    """Return a plan whose cost, as the accountants read it, is within its budget."""
    for table in plan.tables:
        check_wide(table)
    if plan.release.event != plan.event:
        raise PrivacyError("The kernel prices other sums than were planned; this is an error of pymc_dp.")
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
    noise, mechanism = NOISE_KINDS[statistics.noise], statistics.mechanism
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


def charge_release(plan: ReleasePlan, account: Account, label: str) -> PaidSums:
    """Let the kernel charge what a release costs, or raise and charge nothing."""
    return plan.release.charge(account, label)


def draw_release(
    plan: ReleasePlan,
    paid: PaidSums,
    source: Source,
    passed: Callable[[int], None] = lambda rows: None,
) -> Drawn:
    """Read the rows once, add them up exactly, and add the noise.

    Parameters
    ----------
    plan : ReleasePlan
    paid : PaidSums
        From `charge_release`.
    source : Source
        Where the rows are.
    passed : callable
        Called with the number of rows that were read.

    Notes
    -----
    **Guarantee.** ``plan.epsilon``-differential privacy under ``plan.neighbours`` for everything returned; class
    exact, arithmetic hardened (`kernel.tallies.SumRelease`).
    """
    drawn = iter(paid.draw(source if plan.network is None else NodesTogether(source), passed))
    values = {table.name: _in_units(table, list(islice(drawn, len(table.tallies)))) for table in plan.tables}
    return Drawn(plan=plan, values=values, guarantee="exact" if insecure() is None else "none")


def _in_units(table: TablePlan, drawn: Sequence[Array]) -> Array:
    """Return whole numbers in units of the data."""
    whole = drawn[0].T if isinstance(table.statistic, NetworkSums) else np.concatenate(list(drawn), axis=1)
    released = np.empty(whole.shape)
    for block in table.blocks:
        columns = list(block.columns)
        released[:, columns] = whole[:, columns] * np.array(block.steps)
    return released


__all__ = ["charge_release", "draw_release", "lay_out", "plan_release", "table_problems"]
