"""Release of noised sufficient statistics: a plan made from public knowledge alone, then one pass and one draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from pymc_dp import _validate
from pymc_dp._random import insecure
from pymc_dp.accounting import total_epsilon
from pymc_dp.domain import Domain, Neighbours
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.families import Family
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.families.histogram import Histogram
from pymc_dp.families.regression import gram_statistic, known_gram
from pymc_dp.families.row_sums import MAX_ROWS, Cells, make_cells, sum_products, sum_rows
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.design import held_rows
from pymc_dp.inspection.findings import MAX_CELLS, Inspection, Observed
from pymc_dp.inspection.rows import Array, rows_of
from pymc_dp.mechanisms.choice import choose, too_many
from pymc_dp.mechanisms.noise import NOISES, Noise
from pymc_dp.mechanisms.per_unit import extents_of, grid_of, names_of, per_unit
from pymc_dp.mechanisms.reach import reach_of
from pymc_dp.mechanisms.release_plan import Block, Drawn, ReleasePlan, TablePlan
from pymc_dp.metrics import Extent
from pymc_dp.sensitivity.gram import gram_movement
from pymc_dp.sensitivity.statistics import Movement, counts_movement, sizes_movement, sums_movement


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
    mechanism : Histogram, mapping of str to Histogram, or None
        Count values in public bins instead: of all observed variables (but those whose few levels are counted one by
        one anyway), or of those named. None (default): only where a likelihood has no other statistics.

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
    mechanism: Histogram | Mapping[str, Histogram] | None

    def __init__(
        self,
        noise: str = "laplace",
        noise_aware: bool = True,
        share: Mapping[str, float] | None = None,
        mechanism: Histogram | Mapping[str, Histogram] | None = None,
    ) -> None:
        each = mechanism.values() if isinstance(mechanism, Mapping) else [mechanism] * (mechanism is not None)
        if not all(isinstance(item, Histogram) for item in each):
            raise ArgumentError(
                f"mechanism must be dp.Histogram(edges), a mapping of names to these, or None, got {mechanism!r}. "
                "Leave it out to release counts or sums directly."
            )
        if not isinstance(noise_aware, bool | np.bool_):
            raise ArgumentError(f"noise_aware must be True or False, got {noise_aware!r}.")
        if share is not None and not isinstance(share, Mapping):
            raise ArgumentError(f"share must map names to weights, got {share!r}. Write share={{name: weight}}.")
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
    noise = NOISES[statistics.noise]
    noise.check(delta)
    shares = _shares(inspection, statistics)
    _check_names(inspection, statistics)
    drafts = []
    for observed in inspection.observed:
        found = _draft(observed, inspection, statistics)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            drafts.append(found)
    if problems:
        raise UnsupportedModelError(problems)
    domain, diameter, grids = inspection.domain, 1.0, tuple[str, ...]()
    if domain.metric is not None:
        drafts, extents = _per_unit(drafts, domain, noise)
        diameter, grids = domain.metric.diameter(extents), _grids(drafts, extents)
    plan = ReleasePlan(
        tables=_with_noise(drafts, shares, noise, epsilon, delta),
        neighbours=domain.neighbours,
        statistics=statistics,
        epsilon=epsilon,
        delta=delta,
        diameter=diameter,
        grids=grids,
    )
    if total_epsilon(plan.event, delta).epsilon > epsilon:
        raise PrivacyError(f"The planned noise would cost more than epsilon={epsilon}; this is an error of pymc_dp.")
    return plan


def table_problems(inspection: Inspection) -> list[Problem]:
    """Problems that the families find, beyond those of the inspection."""
    return [
        found
        for observed in inspection.observed
        if isinstance(found := _draft(observed, inspection, Statistics()), Problem)
    ]


def draw_release(plan: ReleasePlan) -> Drawn:
    """Read the rows once, add them up exactly, and add the noise.

    Notes
    -----
    **Guarantee.** ``plan.epsilon``-differential privacy under ``plan.neighbours`` for everything returned; class
    exact, arithmetic hardened (integer sums, OpenDP noise). The budget must have been charged before this is called.
    """
    values = {table.name: _draw_table(table) for table in plan.tables}
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """A block without its noise yet; `weight` is its part of its table's share."""

    columns: tuple[int, ...]
    steps: tuple[float, ...]
    movement: Movement
    weight: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Draft:
    """A table without its noise yet."""

    observed: Observed
    family: Family | None
    statistic: RowStatistic | GramSums
    cells: Cells
    labels: tuple[str, ...]
    parts: tuple[_Part, ...]
    gram: Array | None = None
    reach: float = 0.0


def _per_unit(drafts: Sequence[_Draft], domain: Domain, noise: Noise) -> tuple[list[_Draft], dict[str, Extent]]:
    """Return the same tables with movements per unit of the metric, and what its columns of numbers can be."""
    if noise is not NOISES["laplace"]:
        raise ArgumentError(
            "Under a metric only Laplace noise is accounted: the loss of Gaussian noise does not grow in proportion to "
            "distance. Leave out Statistics(noise=...)."
        )
    assert domain.metric is not None
    names = names_of([draft.observed for draft in drafts])
    extents = extents_of([(draft.observed, draft.statistic) for draft in drafts], domain.metric, names)
    found, problems = list[_Draft](), list[Problem]()
    for draft in drafts:
        bound = per_unit(draft.observed, draft.statistic, domain.metric, names, extents)
        if isinstance(bound, Problem):
            problems.append(bound)
            continue
        sizes = len(draft.parts) > 1  # those of private cells come first
        moved = [
            replace(part, movement=(bound.of_sizes if sizes and place == 0 else bound.of_sums)(part.movement))
            for place, part in enumerate(draft.parts)
        ]
        found.append(replace(draft, parts=tuple(moved)))
    if problems:
        raise UnsupportedModelError(problems)
    return found, extents


def _grids(drafts: Sequence[_Draft], extents: Mapping[str, Extent]) -> tuple[str, ...]:
    steps = {draft.observed.name: grid_of(draft.statistic) for draft in drafts if draft.observed.name in extents}
    return tuple(f"{name} to {step:.3g}" for name, step in steps.items() if step is not None)


def _check_names(inspection: Inspection, statistics: Statistics) -> None:
    names = [observed.name for observed in inspection.observed]
    for name in statistics.mechanism if isinstance(statistics.mechanism, Mapping) else ():
        if not inspection.problems and name not in names:
            raise ArgumentError(
                f"mechanism names {name!r}, which is no observed variable (known: "
                f"{names}).{_validate.nearest(name, names)}"
            )


def _draft(observed: Observed, inspection: Inspection, statistics: Statistics) -> _Draft | Problem:
    """Lay out one table, or say why there is none."""
    if prod(len(column.levels) for column in observed.columns) > MAX_CELLS:
        return Problem(
            where=observed.name,
            what=f"its columns span more than {MAX_CELLS} cells, nearly all of them empty",
            remedy="Merge levels, or index its parameters by fewer columns.",
        )
    relation = inspection.domain.neighbours
    cells = make_cells(observed.columns, inspection.n_rows, inspection.domain.n_max)
    known = cells.sizes is not None
    named = isinstance(statistics.mechanism, Mapping)
    if observed.design is not None and named and statistics.histogram(observed.name) is not None:
        return Problem(
            where=observed.name,
            what="it is a regression on continuous columns, which are not counted in bins",
            remedy="Leave it out of mechanism.",
        )
    if observed.design is not None:
        return _regression_draft(observed, inspection, cells)
    family, statistic = choose(observed, statistics.histogram(observed.name), named=named, sizes_known=known)
    if isinstance(statistic, Problem):
        return statistic
    if problem := too_many(observed, statistic, cells.count):
        return problem
    labels, parts = _parts(statistic, relation, NOISES[statistics.noise], known=known)
    return _Draft(observed=observed, family=family, statistic=statistic, cells=cells, labels=labels, parts=tuple(parts))


def _regression_draft(observed: Observed, inspection: Inspection, cells: Cells) -> _Draft | Problem:
    """Lay out the sums of products of a regression: one vector, with noise of one scale."""
    domain = inspection.domain
    assert observed.design is not None
    # Where the number of rows is private, nothing may hang on whether they fit.
    statistic = gram_statistic(observed, cells, inspection.n_rows if domain.n_max is None else MAX_ROWS)
    if isinstance(statistic, Problem):
        return statistic
    steps = (statistic.step,) * statistic.count
    movement = gram_movement(statistic, domain.neighbours)
    # Priors that are refused may hold rows: these are not drawn from.
    drawn = not observed.design.identity and not inspection.problems
    part = _Part(columns=tuple(range(statistic.count)), steps=steps, movement=movement, weight=1.0)
    return _Draft(
        observed=observed,
        family=None,
        statistic=statistic,
        cells=cells,
        labels=statistic.labels,
        parts=(part,),
        gram=known_gram(statistic, observed.design, cells) if statistic.known else None,
        reach=reach_of(observed.design, statistic, cells) if drawn else 0.0,
    )


def _parts(
    statistic: RowStatistic, relation: Neighbours, noise: Noise, *, known: bool
) -> tuple[tuple[str, ...], list[_Part]]:
    """Labels and blocks of a table; `known` says whether the sizes of its cells are public."""
    if isinstance(statistic, LevelCounts):
        levels = statistic.labels[1:] if known and statistic.n_levels == 2 else statistic.labels
        movement = counts_movement(statistic, relation, sizes_known=known)
        counts = _Part(columns=tuple(range(len(levels))), steps=(1.0,) * len(levels), movement=movement, weight=1.0)
        return tuple(f"count of {label}" for label in levels), [counts]
    movement = sums_movement(statistic, relation, sizes_known=known)
    places = range(len(statistic.labels))
    # In units of the largest value, so that equal noise on sizes and on sums moves a mean about equally.
    weight = noise.part(noise.weight(movement) * statistic.steps[0] / statistic.scales[0])
    if known:
        return statistic.labels, [_Part(columns=tuple(places), steps=statistic.steps, movement=movement, weight=weight)]
    sizes = sizes_movement(relation)
    return ("rows", *statistic.labels), [
        _Part(columns=(0,), steps=(1.0,), movement=sizes, weight=noise.part(noise.weight(sizes))),
        _Part(columns=tuple(place + 1 for place in places), steps=statistic.steps, movement=movement, weight=weight),
    ]


def _with_noise(
    drafts: Sequence[_Draft], shares: Mapping[str, float], noise: Noise, epsilon: float, delta: float
) -> tuple[TablePlan, ...]:
    """Choose the noise of all blocks of all tables at once."""
    weights = [
        shares[draft.observed.name] * part.weight / sum(item.weight for item in draft.parts)
        for draft in drafts
        for part in draft.parts
    ]
    movements = [part.movement for draft in drafts for part in draft.parts]
    scales = iter(noise.scales(movements, weights, epsilon, delta))
    return tuple(
        TablePlan(
            observed=draft.observed,
            family=draft.family,
            statistic=draft.statistic,
            cells=draft.cells,
            blocks=tuple(
                Block(
                    columns=part.columns,
                    steps=part.steps,
                    scale=next(scales),
                    movement=part.movement,
                    noise=noise,
                )
                for part in draft.parts
            ),
            labels=draft.labels,
            delta=delta,
            gram=draft.gram,
            reach=draft.reach,
        )
        for draft in drafts
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
