"""Release of noised sufficient statistics: a plan made from public knowledge alone, then one pass and one draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from pymc_dp import _validate
from pymc_dp._random import insecure
from pymc_dp.accounting import Budget, ComposedEvent, DiscreteLaplaceEvent, Event
from pymc_dp.accounting._exact import decimal
from pymc_dp.accounting.pure import pure_epsilon
from pymc_dp.domain import Neighbours
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.families import FAMILIES, Family
from pymc_dp.families.row_sums import Cells, make_cells, sum_rows
from pymc_dp.families.statistic import BoundedMoments, LevelCounts, RowStatistic
from pymc_dp.inspection.findings import MAX_CELLS, Inspection, Observed
from pymc_dp.inspection.rows import Array, rows_of
from pymc_dp.mechanisms.laplace import add_noise, calibrate
from pymc_dp.sensitivity.statistics import Movement, counts_movement, moments_movement, sizes_movement

NOISES = ("laplace",)


@dataclass(frozen=True, init=False)
class Statistics:
    """How sufficient statistics are released.

    Parameters
    ----------
    noise : {"laplace"}
        Discrete Laplace noise: pure ε, no δ.
    noise_aware : bool
        True (default): the posterior accounts for the noise. False: the papers' form, which takes the projected
        release for the exact sums and is overconfident.
    share : mapping of str to float, optional
        Weight of each observed variable in the split of the budget. Default: equal.
    mechanism : None
        Reserved for other ways to release tables; only None is accepted.

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

    def __init__(
        self,
        noise: str = "laplace",
        noise_aware: bool = True,
        share: Mapping[str, float] | None = None,
        mechanism: None = None,
    ) -> None:
        if mechanism is not None:
            raise ArgumentError(
                f"mechanism must be None, got {mechanism!r}. Leave it out: the table of counts or sums is released "
                "directly."
            )
        if not isinstance(noise_aware, bool | np.bool_):
            raise ArgumentError(f"noise_aware must be True or False, got {noise_aware!r}.")
        if share is not None and not isinstance(share, Mapping):
            raise ArgumentError(f"share must map names to weights, got {share!r}. Write share={{name: weight}}.")
        object.__setattr__(self, "noise", _validate.choice("noise", noise, NOISES))
        object.__setattr__(self, "noise_aware", bool(noise_aware))
        object.__setattr__(
            self,
            "share",
            None
            if share is None
            else {name: _validate.epsilon(weight, f"share[{name!r}]") for name, weight in share.items()},
        )

    def __repr__(self) -> str:
        share = f", share={dict(self.share)!r}" if self.share else ""
        return f"Statistics(noise={self.noise!r}, noise_aware={self.noise_aware}{share})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """One integer vector that gets noise of one scale.

    Attributes
    ----------
    columns : tuple of int
        Its columns in the released table.
    steps : tuple of float
        Grid step of each column, in units of the data.
    epsilon, scale : float
        Share of the budget, and noise scale in grid steps.
    movement : Movement
    """

    columns: tuple[int, ...]
    steps: tuple[float, ...]
    epsilon: float
    scale: float
    movement: Movement

    @property
    def event(self) -> DiscreteLaplaceEvent:
        """What the release of this block costs."""
        return DiscreteLaplaceEvent(scale=self.scale, sensitivity=self.movement.l1, shifts=self.movement.shifts)


@dataclass(frozen=True, kw_only=True, eq=False)
class TablePlan:
    """Everything public about the release of one observed variable.

    Attributes
    ----------
    labels : tuple of str
        One per released column.
    scales : (n_columns,) array
        Laplace scale of each column, in units of the data.
    """

    observed: Observed
    family: Family
    statistic: RowStatistic
    cells: Cells
    blocks: tuple[Block, ...]
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the observed variable, and of the release."""
        return self.observed.name

    @property
    def sizes_known(self) -> bool:
        """Whether the number of rows of every cell is public."""
        return self.cells.sizes is not None

    @property
    def epsilon(self) -> float:
        """Share of the budget."""
        return float(sum(decimal(block.epsilon) for block in self.blocks))

    @property
    def scales(self) -> Array:
        """Laplace scale per column, in units of the data; 0 inside ``testing.without_noise``."""
        result = np.zeros(len(self.labels))
        replacement = insecure()
        if replacement is not None and replacement.rng is None:
            return result
        for block in self.blocks:
            result[list(block.columns)] = [block.scale * step for step in block.steps]
        return result


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasePlan:
    """The release of all observed variables of a model; made without reading a private value."""

    tables: tuple[TablePlan, ...]
    neighbours: Neighbours
    statistics: Statistics
    epsilon: float

    @property
    def event(self) -> Event:
        """The cost of the whole release."""
        return ComposedEvent(events=tuple(block.event for table in self.tables for block in table.blocks))


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Noised tables, in units of the data; public."""

    plan: ReleasePlan
    values: Mapping[str, Array]
    guarantee: Literal["exact", "none"]


def plan_release(inspection: Inspection, statistics: Statistics, epsilon: float) -> ReleasePlan:
    """Choose statistics, cells, sensitivities and noise for a model.

    Parameters
    ----------
    inspection : Inspection
    statistics : Statistics
    epsilon : float

    Raises
    ------
    UnsupportedModelError
        With the problems of the inspection and of the families, all at once.
    ArgumentError
        If `share` does not fit the observed variables.
    """
    problems = list(inspection.problems)
    shares = _shares(inspection, statistics, epsilon)
    tables = []
    for observed in inspection.observed:
        found = _plan_table(observed, inspection, shares[observed.name])
        if isinstance(found, Problem):
            problems.append(found)
        else:
            tables.append(found)
    if problems:
        raise UnsupportedModelError(problems)
    plan = ReleasePlan(
        tables=tuple(tables), neighbours=inspection.domain.neighbours, statistics=statistics, epsilon=epsilon
    )
    if pure_epsilon(plan.event) > epsilon:
        raise PrivacyError(f"The planned noise would cost more than epsilon={epsilon}; this is an error of pymc_dp.")
    return plan


def table_problems(inspection: Inspection) -> list[Problem]:
    """Problems that the families find, beyond those of the inspection."""
    return [
        found
        for observed in inspection.observed
        if isinstance(found := _plan_table(observed, inspection, 1.0), Problem)
    ]


def draw_release(plan: ReleasePlan) -> Release:
    """Read the rows once, add them up exactly, and add the noise.

    Notes
    -----
    **Guarantee.** ``plan.epsilon``-differential privacy under ``plan.neighbours`` for everything returned; class
    exact, arithmetic hardened (integer sums, OpenDP noise). The budget must have been charged before this is called.
    """
    values = {table.name: _draw_table(table) for table in plan.tables}
    return Release(plan=plan, values=values, guarantee="exact" if insecure() is None else "none")


def _shares(inspection: Inspection, statistics: Statistics, epsilon: float) -> dict[str, float]:
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
    weights = share or dict.fromkeys(names, 1.0)
    parts = Budget(epsilon).split([weights[name] for name in names]) if names else ()
    return {name: part.epsilon for name, part in zip(names, parts, strict=True)}


def _plan_table(observed: Observed, inspection: Inspection, epsilon: float) -> TablePlan | Problem:
    family = FAMILIES.get(observed.distribution)
    if family is None:
        return Problem(
            where=observed.name,
            what=f"no statistics are known for the likelihood {observed.distribution!r}",
            remedy=f"Likelihoods that can be released: {', '.join(sorted(FAMILIES))}.",
        )
    if prod(len(column.levels) for column in observed.columns) > MAX_CELLS:
        return Problem(
            where=observed.name,
            what=f"its columns span more than {MAX_CELLS} cells, nearly all of them empty",
            remedy="Merge levels, or index its parameters by fewer columns.",
        )
    relation = inspection.domain.neighbours
    cells = make_cells(observed.columns, inspection.n_rows, inspection.domain.n_max)
    known = cells.sizes is not None
    statistic = family.statistic(observed, sizes_known=known)
    if isinstance(statistic, Problem):
        return statistic
    if isinstance(statistic, LevelCounts):
        labels = statistic.labels[1:] if known and statistic.n_levels == 2 else statistic.labels
        labels = tuple(f"count of {label}" for label in labels)
        parts = [
            (
                tuple(range(len(labels))),
                (1.0,) * len(labels),
                counts_movement(statistic, relation, sizes_known=known),
                1.0,
            )
        ]
    else:
        movement = moments_movement(statistic, relation, sizes_known=known)
        labels, sums = statistic.labels, tuple(range(len(statistic.powers)))
        weight = movement.l1 * statistic.unit / statistic.half_width
        parts = [(sums, statistic.steps, movement, weight)]
        if not known:
            labels = ("rows", *labels)
            shifted = tuple(place + 1 for place in sums)
            parts = [
                ((0,), (1.0,), sizes_movement(relation), float(sizes_movement(relation).l1)),
                (shifted, statistic.steps, movement, weight),
            ]
    shares = Budget(epsilon).split([part[3] for part in parts])
    blocks = tuple(
        _block(columns, steps, share.epsilon, movement)
        for (columns, steps, movement, _), share in zip(parts, shares, strict=True)
    )
    return TablePlan(observed=observed, family=family, statistic=statistic, cells=cells, blocks=blocks, labels=labels)


def _block(columns: tuple[int, ...], steps: tuple[float, ...], epsilon: float, movement: Movement) -> Block:
    scale = calibrate(movement.l1, epsilon)
    return Block(columns=columns, steps=steps, epsilon=epsilon, scale=scale, movement=movement)


def _draw_table(table: TablePlan) -> Array:
    sums = sum_rows(table.cells, table.statistic, rows_of(table.observed.leaf), with_sizes=not table.sizes_known)
    if isinstance(table.statistic, LevelCounts) and len(table.labels) < table.statistic.n_levels:
        sums = sums[:, 1:]
    released = np.empty(sums.shape)
    for block in table.blocks:
        columns = list(block.columns)
        released[:, columns] = add_noise(np.ascontiguousarray(sums[:, columns]), block.scale) * np.array(block.steps)
    return released


__all__ = ["BoundedMoments", "Release", "ReleasePlan", "Statistics", "TablePlan", "draw_release", "plan_release"]
