"""What of a table gets noise of one scale, and how far one row moves it; of weighted rows too."""

from __future__ import annotations

from dataclasses import replace

from pymc_dp.domain import MOST_ROWS, Domain
from pymc_dp.errors import ArgumentError, Problem
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.statistic import ExposedCounts, LevelCounts
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.weights import BY_GRADIENTS
from pymc_dp.kernel.noise import Noise
from pymc_dp.release.sensitivity import SumSensitivity, counts_sensitivity, sizes_sensitivity, sums_sensitivity
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import Block, TablePlan
from pymc_dp.rows.weighted import SHARES, finer_bits, largest_of

FOR_COUNTS = 2.0
"""Part of the budget that sums of counts have beside 1 for sums of exposures: bounds of counts are mostly wider."""


def blocks_of(
    statistic: RowStatistic, domain: Domain, noise: Noise, *, known: bool, stays: bool | None = None
) -> tuple[tuple[str, ...], tuple[Block, ...]]:
    """Labels and blocks of a table.

    `known` says whether the sizes of its cells, or their sums of exposures, are public; `stays` whether a row that is
    replaced is so within its cell, by default where they are.
    """
    relation, rows = domain.neighbours, domain.rows_of_one
    if isinstance(statistic, ExposedCounts):
        return _exposed_blocks(statistic, domain, noise, known=known, stays=known if stays is None else stays)
    if isinstance(statistic, LevelCounts):
        levels = statistic.labels[1:] if known and statistic.n_levels == 2 else statistic.labels
        sensitivity = counts_sensitivity(statistic, relation, sizes_known=known).of_person(rows)
        counts = Block(
            columns=tuple(range(len(levels))), steps=(1.0,) * len(levels), sensitivity=sensitivity, noise=noise
        )
        return tuple(f"count of {label}" for label in levels), (counts,)
    sensitivity = sums_sensitivity(statistic, relation, sizes_known=known).of_person(rows)
    # In units of the largest value, so that equal noise on sizes and on sums moves a mean about equally.
    weight = noise.part(noise.weight(sensitivity) * statistic.steps[0] / statistic.scales[0])
    columns = tuple(range(not known, len(statistic.labels) + (not known)))
    sums = Block(columns=columns, steps=statistic.steps, sensitivity=sensitivity, noise=noise, weight=weight)
    if known:
        return statistic.labels, (sums,)
    moved = sizes_sensitivity(relation).of_person(rows)
    weight = noise.part(noise.weight(moved))
    sizes = Block(columns=(0,), steps=(1.0,), sensitivity=moved, noise=noise, weight=weight)
    return ("rows", *statistic.labels), (sizes, sums)


def _exposed_blocks(
    statistic: ExposedCounts, domain: Domain, noise: Noise, *, known: bool, stays: bool
) -> tuple[tuple[str, ...], tuple[Block, ...]]:
    """Return sums of exposures, unless these are public, and sums of counts, each with noise of its own.

    Nothing is lost by two blocks: a row may have the largest exposure and the largest count at once.
    """
    parts = [(statistic.counts, statistic.labels[1], FOR_COUNTS)]
    if not known:
        parts.insert(0, (statistic.exposure, statistic.labels[0], 1.0))
    blocks = []
    for place, (part, label, share) in enumerate(parts):
        moved = sums_sensitivity(part, domain.neighbours, sizes_known=stays).of_person(domain.rows_of_one)
        reason = f"{label}: {moved.reason.replace('centred ', '')}"
        blocks.append(
            Block(
                columns=(place,),
                steps=part.steps,
                sensitivity=replace(moved, reason=reason),
                noise=noise,
                weight=share,
            )
        )
    return tuple(label for _, label, _ in parts), tuple(blocks)


def weighted_blocks(statistic: RowStatistic, domain: Domain, noise: Noise, largest: float) -> tuple[Block, ...]:
    """Return the blocks of sums of weighted rows: as where the number of rows is private, in units of a weight.

    A weighted row adds nothing larger than one that counts once (`rows.weighted`), and anything from nothing to that:
    so that a row that is replaced moves sums by twice as much, in the same cell too. Of counts and of sums of weights,
    which are never negative, two rows differ as those that count once and change their cells do.
    """
    assert not isinstance(statistic, ExposedCounts)
    relation = domain.neighbours
    _, plain = blocks_of(
        statistic, replace(domain, public=frozenset(), neighbours="add_remove", n_max=MOST_ROWS), noise, known=False
    )
    finer = finer_bits(largest_of(statistic))
    fine = f"with any weight up to the largest, in steps finer by 2^{finer}"
    steps = tuple(step * largest / 2**finer for step in plain[-1].steps)
    if isinstance(statistic, LevelCounts):
        moved = _times(counts_sensitivity(statistic, relation, sizes_known=False), 2**finer, fine)
        return (replace(plain[0], sensitivity=moved, steps=steps),)
    moved = _times(sizes_sensitivity(relation), SHARES, "weights are in steps of 2^-20 of the largest")
    alone = _times(sums_sensitivity(statistic, "add_remove", sizes_known=False), 2**finer, fine)
    own = alone if relation == "add_remove" else _times(alone, 2, "in the place of another")
    return replace(plain[0], sensitivity=moved, steps=(largest / SHARES,)), replace(
        plain[1], sensitivity=own, steps=steps
    )


def _times(sensitivity: SumSensitivity, factor: int, reason: str) -> SumSensitivity:
    """Return that of vectors which are at most so many times as long, in L1 and in L2."""
    l1, l2_squared, why = factor * sensitivity.l1, factor**2 * sensitivity.l2_squared, f"{sensitivity.reason}; {reason}"
    return SumSensitivity(l1=l1, l2_squared=l2_squared, shifts=None, reason=why)


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


__all__ = ["blocks_of", "check_wide", "not_weighed", "weighted_blocks"]
