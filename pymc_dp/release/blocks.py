"""What of a table gets noise of one scale, and how far one row moves it; of weighted rows too."""

from __future__ import annotations

from dataclasses import replace

from pymc_dp.accounting.noise_kinds import NoiseKind
from pymc_dp.domain import MOST_ROWS, Domain
from pymc_dp.errors import ArgumentError, Problem
from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic, SumStatistic
from pymc_dp.families.stated_sums import StatedSums
from pymc_dp.families.statistic import ExposedCounts, LevelCounts, OwnTotals
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Column
from pymc_dp.inspection.weights import BY_GRADIENTS
from pymc_dp.kernel.table import WEIGHT
from pymc_dp.release.sensitivity import SumSensitivity
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import Block, TablePlan
from pymc_dp.rows.asked import tally_of

LEAVES = "one row leaves one cell and joins another"
FOR_COUNTS = 2.0
"""Part of the budget that sums of counts have beside 1 for sums of exposures: bounds of counts are mostly wider."""


Laid = tuple[tuple[str, ...], tuple[Block, ...]]
"""Labels and blocks of a table."""


def blocks_of(
    statistic: RowStatistic,
    cells: Cells,
    domain: Domain,
    noise: NoiseKind,
    *,
    known: bool,
    totals: Column | None = None,
) -> Laid:
    """Lay out a table; `known` says whether the sizes of its cells, or their sums of exposures, are public."""
    relation, rows = domain.neighbours, domain.rows_of_one
    if isinstance(statistic, ExposedCounts):
        return _exposed_blocks(statistic, cells, domain, noise, known=known)
    if isinstance(statistic, LevelCounts):
        second = known and statistic.n_levels == 2 and not isinstance(statistic, OwnTotals)
        tally = tally_of(statistic, cells, second=second, totals=totals)
        levels = statistic.labels[1:] if second else statistic.labels
        (move,) = tally.moves(relation, rows)
        sensitivity = SumSensitivity.of(move, why(_of_counts(statistic, relation, second=second), rows))
        counts = Block(
            columns=tuple(range(len(levels))), steps=(1.0,) * len(levels), sensitivity=sensitivity, noise=noise
        )
        return tuple(f"count of {label}" for label in levels), (counts,)
    tally = tally_of(statistic, cells, sized=not known)
    moves = tally.moves(relation, rows)
    sensitivity = SumSensitivity.of(moves[-1], why(_of_sums(statistic, relation, stays=known), rows))
    # In units of the largest value, so that equal noise on sizes and on sums moves a mean about equally.
    weight = noise.part(noise.weight(sensitivity) * statistic.steps[0] / statistic.scales[0])
    columns = tuple(range(not known, len(statistic.labels) + (not known)))
    sums = Block(columns=columns, steps=statistic.steps, sensitivity=sensitivity, noise=noise, weight=weight)
    if known:
        return statistic.labels, (sums,)
    moved = SumSensitivity.of(moves[0], why(_of_sizes(relation), rows))
    weight = noise.part(noise.weight(moved))
    sizes = Block(columns=(0,), steps=(1.0,), sensitivity=moved, noise=noise, weight=weight)
    return ("rows", *statistic.labels), (sizes, sums)


def _exposed_blocks(statistic: ExposedCounts, cells: Cells, domain: Domain, noise: NoiseKind, *, known: bool) -> Laid:
    """Return sums of exposures, unless these are public, and sums of counts, each with noise of its own.

    Nothing is lost by two blocks: a row may have the largest exposure and the largest count at once.
    """
    parts = [(statistic.counts, statistic.labels[1], FOR_COUNTS)]
    if not known:
        parts.insert(0, (statistic.exposure, statistic.labels[0], 1.0))
    blocks = []
    for place, (part, label, share) in enumerate(parts):
        tally = tally_of(part, cells)
        (move,) = tally.moves(domain.neighbours, domain.rows_of_one)
        reason = why(_of_sums(part, domain.neighbours, stays=tally.fixed), domain.rows_of_one)
        moved = SumSensitivity.of(move, f"{label}: {reason.replace('centred ', '')}")
        blocks.append(Block(columns=(place,), steps=part.steps, sensitivity=moved, noise=noise, weight=share))
    return tuple(label for _, label, _ in parts), tuple(blocks)


def weighted_blocks(statistic: RowStatistic, cells: Cells, domain: Domain, noise: NoiseKind, largest: float) -> Laid:
    """Lay out sums of weighted rows: as where the number of rows is private, in units of a weight.

    A weighted row adds nothing larger than one that counts once, and anything from nothing to that: so that a row that
    is replaced moves sums by twice as much, in the same cell too. Of counts and of sums of weights, which are never
    negative, two rows differ as those that count once and change their cells do.
    """
    assert not isinstance(statistic, ExposedCounts)
    relation = domain.neighbours
    alone = replace(domain, public=frozenset(), neighbours="add_remove", n_max=MOST_ROWS)
    labels, plain = blocks_of(statistic, cells, alone, noise, known=False)
    labels = tuple("weights" if one == "rows" else one.replace("count of", "weights of", 1) for one in labels)
    tally = tally_of(statistic, cells, sized=not isinstance(statistic, LevelCounts), weighted=True)
    moves, finer = tally.moves(relation), tally.finer
    fine = f"with any weight up to the largest, in steps finer by 2^{finer}"
    steps = tuple(step * largest / 2**finer for step in plain[-1].steps)
    if isinstance(statistic, LevelCounts):
        moved = SumSensitivity.of(moves[0], f"{_of_counts(statistic, relation, second=False)}; {fine}")
        return labels, (replace(plain[0], sensitivity=moved, steps=steps),)
    sizes = SumSensitivity.of(moves[0], f"{_of_sizes(relation)}; weights are in steps of 2^-20 of the largest")
    reason = f"{_of_sums(statistic, 'add_remove', stays=False)}; {fine}"
    own = SumSensitivity.of(moves[1], reason if relation == "add_remove" else f"{reason}; in the place of another")
    blocks = (
        replace(plain[0], sensitivity=sizes, steps=(largest / WEIGHT,)),
        replace(plain[1], sensitivity=own, steps=steps),
    )
    return labels, blocks


def why(reason: str, rows: int) -> str:
    """Return a reason for a row as one for a person with up to so many rows."""
    return reason if rows == 1 else f"{reason}; a person adds {rows} rows at most"


def _of_counts(statistic: LevelCounts, neighbours: str, *, second: bool) -> str:
    """Say in a line how a row moves counts; `second` if one count of two is released."""
    trials = statistic.trials
    if neighbours == "add_remove":
        return "one row adds 1 to one count" if trials is None else f"one row adds {trials} to all counts together"
    if trials is None:
        alone = "one row moves one count by 1; the other count is the public size less it"
        return alone if second else "one row leaves one count and joins another"
    if second:
        return f"one row moves one count by {trials} at most; the other count is the public total less it"
    return f"one row moves {trials} at most from some counts to others"


def _of_sizes(neighbours: str) -> str:
    """Say in a line how a row moves the numbers of rows per cell."""
    return "one row adds 1 to the size of one cell" if neighbours == "add_remove" else LEAVES


def _of_sums(statistic: SumStatistic, neighbours: str, *, stays: bool) -> str:
    """Say in a line how a row moves sums of bounded numbers; `stays` if it does not leave its cell."""
    if neighbours == "add_remove":
        return "one row adds its centred value"
    if not stays:
        return "one row takes its centred value from one cell to another"
    known = isinstance(statistic, StatedSums) and statistic.table is not None
    return "no two possible rows are further apart" if known else "one row changes its value between the bounds"


def not_weighed(observed: Observed, statistics: Statistics) -> Problem | None:
    """Say why sums of a variable are not weighed, where they are not."""
    if observed.design is None and observed.totals is None and statistics.mechanism is None:
        return None
    what = f"{statistics.mechanism!r}"
    if observed.design is not None:
        what = "sums of a regression on continuous columns"
    elif observed.totals is not None:
        what = "sums of counts with totals or exposures of their own"
    return Problem(where=observed.name, what=f"{what} do not weigh rows", remedy=BY_GRADIENTS)


def check_wide(table: TablePlan) -> None:
    """Refuse weighted counts with less noise than one count, before anything is spent."""
    if table.weight is not None and isinstance(table.statistic, LevelCounts):
        scale = table.blocks[0].scale * table.blocks[0].steps[0]
        if scale < 1:
            raise ArgumentError(
                f"{table.name}: weights of at most {table.largest:g} would have noise of scale {scale:.2g}, and counts "
                "behind noise that narrow are taken for whole numbers, which sums of weights are not. Scale weights to "
                "a mean of about 1, and their bounds with them."
            )


__all__ = ["blocks_of", "check_wide", "not_weighed", "weighted_blocks", "why"]
