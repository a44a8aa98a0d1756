"""What of a model would be released, exact sums or noised gradients, and how wide intervals would be."""

from __future__ import annotations

from math import sqrt

from pymc_dp._display import shorten
from pymc_dp.accounting import Budget
from pymc_dp.advice.default import Default
from pymc_dp.advice.releases import EXAMPLE_DELTA, frame_rows
from pymc_dp.errors import ArgumentError
from pymc_dp.families.gram import GramSums
from pymc_dp.gradients.levels import MOST_FULL
from pymc_dp.gradients.outlook import Outlook
from pymc_dp.release.tables import ReleaseLayout

LAYERED = (
    "Parameters multiply functions of other parameters, as the layers of a neural net do: the log-likelihood is not "
    "concave. Take dp.Gradients(momentum_steps=150), which finds one of its modes. What it releases is local: it "
    "predicts, but no coverage of its intervals is claimed, and no formula says how wide they are."
)
NOTICED = 1.005
"""Ratio of widths from which a number is shown."""
MANY = (
    f"With more than {MOST_FULL} parameters that is not calibrated: intervals may be too narrow, above all for what "
    "all groups share. Rehearse with dp.plan."
)


def release_lines(
    default: Default, outlook: Outlook, layout: ReleaseLayout | None, budget: Budget, *, sums: bool
) -> list[str]:
    """Say what would be released and why, and the widths that can be predicted without a simulation.

    Parameters
    ----------
    default : Default
    outlook : Outlook
    layout : ReleaseLayout or None
        Of exact sums, where their width can be predicted.
    budget : Budget
    sums : bool
        Whether exact sums can be released.
    """
    lines = []
    if sums or default.by_gradients:
        lines.append(f"dp.sample releases {default.why}.")
    if layout is not None:
        lines += _of_sums(layout, budget.epsilon)
    return [*lines, *(_of_gradients(outlook, budget) if outlook.fits else [_in_the_way(outlook)])]


def _of_sums(layout: ReleaseLayout, epsilon: float) -> list[str]:
    """Widths where a table has sums of its own in every cell: their noise beside the noise of sampling."""
    found = []
    for table, row in zip(layout.tables, frame_rows(layout, (epsilon,)), strict=True):
        if not isinstance(table.statistic, GramSums):
            ratio = sqrt(1 + float(str(row[-1])) ** 2)
            found.append(f"Exact sums of {table.name}: {_wide(ratio)} at ε = {epsilon:g}.")
    return found


def _of_gradients(outlook: Outlook, budget: Budget) -> list[str]:
    names = [f"{name} ({size})" if size > 1 else name for name, size in outlook.parts]
    count = f"{outlook.size} parameter{'s' * (outlook.size != 1)}"
    at = budget if budget.delta else Budget(budget.epsilon, EXAMPLE_DELTA)
    try:
        wide = f"{_wide(outlook.width_ratio(at))} at ε = {at.epsilon:g}, δ = {at.delta:g}"
    except ArgumentError:  # a budget that buys next to nothing
        wide = f"at ε = {at.epsilon:g}, δ = {at.delta:g} they would be as wide as the prior"
    return [
        f"Noised gradients: {count} enter{'s' * (outlook.size == 1)} the likelihood: {', '.join(shorten(names, 6))}. "
        f"{wide[0].upper()}{wide[1:]}, by a formula in their number, the number of rows and the budget; "
        "dp.plan(statistics=dp.Gradients()) tries it on simulated tables.",
        *[LAYERED] * outlook.layered,
        *[MANY] * (outlook.size > MOST_FULL),
    ]


def _in_the_way(outlook: Outlook) -> str:
    return f"Noised gradients do not fit: {' '.join(map(str, outlook.problems))}"


def _wide(ratio: float) -> str:
    times = f"{ratio:.3g} times " if ratio >= NOTICED else ""
    return f"intervals would be about {times}as wide as without privacy"


__all__ = ["release_lines"]
