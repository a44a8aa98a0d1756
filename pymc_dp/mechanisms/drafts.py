"""Tables laid out for a release, and the noise of all of them chosen at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem
from pymc_dp.families import Family
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.families.regression import gram_statistic, known_gram
from pymc_dp.families.row_sums import MAX_ROWS, Cells, make_cells
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.findings import MAX_CELLS, Inspection, Observed
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.block import Block
from pymc_dp.mechanisms.choice import choose, too_many
from pymc_dp.mechanisms.noise import NOISES, Noise
from pymc_dp.mechanisms.reach import reach_of
from pymc_dp.mechanisms.release_plan import TablePlan
from pymc_dp.mechanisms.updates import LaplaceUpdates
from pymc_dp.sensitivity.gram import gram_movement
from pymc_dp.sensitivity.statistics import Movement, counts_movement, sizes_movement, sums_movement

if TYPE_CHECKING:
    from pymc_dp.mechanisms.statistics import Statistics


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A block without its noise yet; `weight` is its part of its table's share."""

    columns: tuple[int, ...]
    steps: tuple[float, ...]
    movement: Movement
    weight: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """A table without its noise yet."""

    observed: Observed
    family: Family | None
    statistic: RowStatistic | GramSums
    cells: Cells
    labels: tuple[str, ...]
    parts: tuple[Part, ...]
    gram: Array | None = None
    reach: float = 0.0


def draft_table(observed: Observed, inspection: Inspection, statistics: Statistics) -> Draft | Problem:
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
        return _regression_draft(observed, inspection, cells, statistics.noise)
    family, statistic = choose(observed, statistics.histogram(observed.name), named=named, sizes_known=known)
    if isinstance(statistic, Problem):
        return statistic
    if problem := too_many(observed, statistic, cells.count):
        return problem
    whole = isinstance(statistics.mechanism, LaplaceUpdates) and statistics.mechanism.papers
    labels, parts = _parts(statistic, relation, NOISES[statistics.noise], known=known and not whole)
    return Draft(observed=observed, family=family, statistic=statistic, cells=cells, labels=labels, parts=tuple(parts))


def _regression_draft(observed: Observed, inspection: Inspection, cells: Cells, noise: str) -> Draft | Problem:
    """Lay out the sums of products of a regression: one vector, with noise of one scale."""
    domain = inspection.domain
    assert observed.design is not None
    # Where the number of rows is private, nothing may depend on whether they fit.
    statistic = gram_statistic(observed, cells, inspection.n_rows if domain.n_max is None else MAX_ROWS, noise)
    if isinstance(statistic, Problem):
        return statistic
    steps = (statistic.step,) * statistic.count
    movement = gram_movement(statistic, domain.neighbours)
    # Priors that are refused may hold rows: these are not drawn from.
    drawn = not observed.design.identity and not inspection.problems
    part = Part(columns=tuple(range(statistic.count)), steps=steps, movement=movement, weight=1.0)
    return Draft(
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
) -> tuple[tuple[str, ...], list[Part]]:
    """Labels and blocks of a table; `known` says whether the sizes of its cells are public."""
    if isinstance(statistic, LevelCounts):
        levels = statistic.labels[1:] if known and statistic.n_levels == 2 else statistic.labels
        movement = counts_movement(statistic, relation, sizes_known=known)
        counts = Part(columns=tuple(range(len(levels))), steps=(1.0,) * len(levels), movement=movement, weight=1.0)
        return tuple(f"count of {label}" for label in levels), [counts]
    movement = sums_movement(statistic, relation, sizes_known=known)
    places = range(len(statistic.labels))
    # In units of the largest value, so that equal noise on sizes and on sums moves a mean about equally.
    weight = noise.part(noise.weight(movement) * statistic.steps[0] / statistic.scales[0])
    if known:
        return statistic.labels, [Part(columns=tuple(places), steps=statistic.steps, movement=movement, weight=weight)]
    sizes = sizes_movement(relation)
    return ("rows", *statistic.labels), [
        Part(columns=(0,), steps=(1.0,), movement=sizes, weight=noise.part(noise.weight(sizes))),
        Part(columns=tuple(place + 1 for place in places), steps=statistic.steps, movement=movement, weight=weight),
    ]


def with_noise(
    drafts: Sequence[Draft], shares: Mapping[str, float], statistics: Statistics, epsilon: float, delta: float
) -> tuple[TablePlan, ...]:
    """Choose the noise of all blocks of all tables at once."""
    noise, boxed = NOISES[statistics.noise], isinstance(statistics.mechanism, LaplaceUpdates)
    if boxed:
        # By their sensitivities: all counts then get noise of one scale, that of the sum of the sensitivities.
        shares = {draft.observed.name: noise.part(noise.weight(draft.parts[0].movement)) for draft in drafts}
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
            boxed=boxed,
        )
        for draft in drafts
    )


__all__ = ["Draft", "Part", "draft_table", "with_noise"]
