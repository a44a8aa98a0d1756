"""Release of noised sufficient statistics: a plan made from public knowledge alone, then one pass and one draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pymc_dp import _validate
from pymc_dp._random import insecure
from pymc_dp.accounting import total_epsilon
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.families.gram import GramSums
from pymc_dp.families.histogram import Histogram
from pymc_dp.families.row_sums import sum_products, sum_rows
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.design import held_rows
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.network import node_problems
from pymc_dp.inspection.rows import Array, rows_of
from pymc_dp.mechanisms.drafts import draft_table, with_noise
from pymc_dp.mechanisms.metric_drafts import drafts_per_unit, grids_of
from pymc_dp.mechanisms.network_plan import NAME, draw_network, papers_problems, plan_network
from pymc_dp.mechanisms.noise import NOISES
from pymc_dp.mechanisms.release_plan import Drawn, ReleasePlan, TablePlan
from pymc_dp.mechanisms.updates import FourierUpdates, LaplaceUpdates, Updates


@dataclass(frozen=True, init=False)
class Statistics:
    """How sufficient statistics are released.

    Parameters
    ----------
    noise : {"laplace", "gaussian"}
        Discrete Laplace noise: pure ε, no δ. Discrete Gaussian noise: needs δ > 0; less noise than Laplace's
        where one row moves many numbers, as in sums of several powers or products.
    noise_aware : bool
        True (default): the posterior accounts for the noise. False: the papers' form, which takes the projected
        release for the exact sums and is overconfident.
    share : mapping of str to float, optional
        Weight of each observed variable in the split of the budget: of ε under Laplace noise, of ρ (zCDP) under
        Gaussian noise, where four times the weight halves the noise. Default: equal.
    mechanism : Histogram, mapping of str to Histogram, LaplaceUpdates, FourierUpdates, or None
        Count values in public bins instead: of all observed variables (but those whose few levels are counted one by
        one anyway), or of those named. Or release a discrete Bayesian network as a whole, with one noise for all; there
        is no `share` then. None (default): bins only where a likelihood has no other statistics.

    Raises
    ------
    ArgumentError

    Examples
    --------
    >>> Statistics(share={"income": 1, "age": 2})
    Statistics(noise='laplace', noise_aware=True, share={'income': 1.0, 'age': 2.0})
    """

    noise: str
    noise_aware: bool
    share: Mapping[str, float] | None
    mechanism: Histogram | Mapping[str, Histogram] | Updates | None

    def __init__(
        self,
        noise: str = "laplace",
        noise_aware: bool = True,
        share: Mapping[str, float] | None = None,
        mechanism: Histogram | Mapping[str, Histogram] | Updates | None = None,
    ) -> None:
        joint = isinstance(mechanism, Updates)
        each = mechanism.values() if isinstance(mechanism, Mapping) else [mechanism] * (mechanism is not None)
        if not joint and not all(isinstance(item, Histogram) for item in each):
            raise ArgumentError(
                "mechanism must be dp.Histogram(edges), a mapping of names to these, dp.LaplaceUpdates(), "
                f"dp.FourierUpdates(), or None, "
                f"got {_validate.shown(mechanism)}. Leave it out to release counts or sums directly."
            )
        if joint and share is not None:
            raise ArgumentError(f"share= splits ε, and {mechanism!r} has one noise for all. Leave it out.")
        noise_aware = _validate.flag("noise_aware", noise_aware)
        if share is not None:
            _validate.mapping("share", share)
        object.__setattr__(self, "noise", _validate.choice("noise", noise, NOISES))
        object.__setattr__(self, "noise_aware", bool(noise_aware))
        object.__setattr__(self, "mechanism", dict(mechanism) if isinstance(mechanism, Mapping) else mechanism)
        object.__setattr__(
            self,
            "share",
            None
            if share is None
            else {name: _validate.epsilon(weight, f"share[{name!r}]") for name, weight in share.items()},
        )

    def __repr__(self) -> str:
        share = f", share={dict(self.share)!r}" if self.share else ""
        mechanism = f", mechanism={self.mechanism!r}" if self.mechanism else ""
        return f"Statistics(noise={self.noise!r}, noise_aware={self.noise_aware}{share}{mechanism})"

    def histogram(self, name: str) -> Histogram | None:
        """Bins asked for the variable of this name."""
        if isinstance(self.mechanism, Updates):
            return None
        return self.mechanism.get(name) if isinstance(self.mechanism, Mapping) else self.mechanism


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
    problems = list(inspection.problems)
    if isinstance(statistics.mechanism, Updates) and inspection.domain.metric is not None:
        raise ArgumentError(
            f"{statistics.mechanism!r} is not accounted per unit of a metric. Leave mechanism out, or metric."
        )
    if isinstance(statistics.mechanism, FourierUpdates):
        NOISES[statistics.noise].check(delta)
        return _checked(_network_release(inspection, statistics, statistics.mechanism, epsilon, delta))
    if isinstance(statistics.mechanism, LaplaceUpdates):
        problems += _updates_problems(inspection, statistics.mechanism)
    shares = _shares(inspection, statistics)
    _check_names(inspection, statistics)
    drafts = []
    for observed in inspection.observed:
        found = draft_table(observed, inspection, statistics)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            drafts.append(found)
    if problems:
        raise UnsupportedModelError(problems)
    NOISES[statistics.noise].check(delta)  # only now: another delta is no remedy for what cannot be released
    domain, diameter, grids = inspection.domain, 1.0, tuple[str, ...]()
    if domain.metric is not None:
        drafts, extents = drafts_per_unit(drafts, domain, NOISES[statistics.noise])
        diameter, grids = domain.metric.diameter(extents), grids_of(drafts, extents)
    plan = ReleasePlan(
        tables=with_noise(drafts, shares, statistics, epsilon, delta),
        neighbours=domain.neighbours,
        statistics=statistics,
        epsilon=epsilon,
        delta=delta,
        diameter=diameter,
        grids=grids,
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
    inspection.require()  # what is no likelihood cannot be told from what is no node
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


def _updates_problems(inspection: Inspection, mechanism: LaplaceUpdates) -> list[Problem]:
    """Say what keeps a model from being released by the counts of its nodes."""
    found = [problem for observed in inspection.observed for problem in node_problems(observed)]
    return found + (papers_problems(inspection.domain.neighbours) if mechanism.papers else [])


def table_problems(inspection: Inspection) -> list[Problem]:
    """Problems that the families find, beyond those of the inspection."""
    return [
        found
        for observed in inspection.observed
        if isinstance(found := draft_table(observed, inspection, Statistics()), Problem)
    ]


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


def _check_names(inspection: Inspection, statistics: Statistics) -> None:
    names = [observed.name for observed in inspection.observed]
    for name in statistics.mechanism if isinstance(statistics.mechanism, Mapping) else ():
        if not inspection.problems and name not in names:
            raise ArgumentError(
                f"mechanism names {name!r}, which is no observed variable (known: "
                f"{names}).{_validate.nearest(name, names)}"
            )


def _exact_sums(table: TablePlan) -> Array:
    """Add up the rows. Reads private data, once."""
    values = rows_of(table.observed.leaf)
    if isinstance(table.statistic, GramSums):
        assert table.observed.design is not None
        return sum_products(table.statistic, table.cells, held_rows(table.observed.design), values)[None]
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


__all__ = ["Statistics", "draw_release", "plan_release", "table_problems"]
