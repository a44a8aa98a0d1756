"""What releasing statistics would cost, and what would make it cheaper.

What ``explain`` says about privacy under a metric.

What one row can move, as the samplers that fit are charged for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from math import prod

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp._display import Table, shorten
from pymc_dp.domain import Domain
from pymc_dp.families.features import BoundedFeatures
from pymc_dp.families.gram import GramSums
from pymc_dp.families.histogram import MOST_DEFAULT, Bins
from pymc_dp.families.stated_sums import StatedSums
from pymc_dp.families.statistic import BoundedMoments, ExposedCounts, LevelCounts, OwnTotals
from pymc_dp.inspection.findings import Inspection
from pymc_dp.kernel.accounting.gdp import delta_of_mu
from pymc_dp.release.approximations import approximations_of
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleaseLayout, ReleasePlan, TablePlan
from pymc_dp.release.typical_noise import even_epsilon, noise_sd, sampling_sd
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.ops.converged import ConvergedPosterior
from pymc_dp.step_methods.ops.one_sample import OF_KERNEL
from pymc_dp.step_methods.preview import Preview

EPSILONS = (0.1, 0.3, 1.0, 3.0)
COST_COLUMNS = ("variable", "rows a cell", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "equal at")
RELEASE_COLUMNS = ("variable", "likelihood", "one row adds to", "cells", "sensitivity (Δ1)")
COST = "What it costs: noise (sd) added to a cell's share or mean (in brackets: over sampling noise)"
FRAME_COLUMNS = (
    "variable",
    "likelihood",
    "statistic",
    "cells",
    "rows_per_cell",
    "epsilon",
    "noise_sd",
    "noise_per_row",
    "noise_over_sampling",
)
METHOD_COLUMNS = ("call", "guarantee", "temperature or noise, and what is lost")
OBSTACLE_COLUMNS = ("call", "what is in the way")
RELEASES = (
    ("dp.sample(epsilon=...)", "exact, hardened", "the noise above; intervals account for it, and draws are free"),
    ("dp.privatize(epsilon=...)", "exact, hardened", "the same, as a plain pm.Model for any sampler"),
    (
        'Statistics(noise="gaussian")',
        "exact, hardened",
        "with a δ > 0 only: less noise than Laplace's where one row moves many numbers",
    ),
    ("Statistics(noise_aware=False)", "exact, hardened", "plug-in, the papers' form: overconfident, for comparison"),
)
GRADIENTS = (
    "statistics=dp.Gradients()",
    "exact, hardened",
    "for any likelihood with a gradient; intervals account for the noise, and draws are free",
)
WEIGHED = "{}: a smaller upper bound of {} lowers the noise in proportion; larger weights are clamped, which is a bias."
MANY_LEVELS = 100
EXAMPLE_DELTA = 1e-6
CLEARLY, WIDE = 0.9, 1.5
"""Share of Gaussian noise that clearly less is below; noise in grid steps that is as good as continuous."""
TYPICAL_SD = 0.4
"""Of a predictor, in half widths of its bounds."""


def release_tables(layout: ReleaseLayout) -> list[Table]:
    """Show what would be released, and at what cost."""
    released = [_release_row(table) for table in layout.tables]
    costs = [_cost_row(layout, table) for table in layout.tables]
    return [
        Table(title="What would be released", columns=RELEASE_COLUMNS, rows=released),
        Table(title=COST, columns=COST_COLUMNS, rows=costs),
    ]


def frame_rows(layout: ReleaseLayout, epsilons: Sequence[float] = EPSILONS) -> list[tuple[object, ...]]:
    """Return one row per observed variable and ε, under `FRAME_COLUMNS`."""
    return [_frame_row(layout, table, epsilon) for table in layout.tables for epsilon in epsilons]


def release_advice(layout: ReleaseLayout, neighbours: str) -> list[str]:
    """Say what would lower the noise."""
    protected = {table.observed.leaf for table in layout.tables}
    lines = [line for table in layout.tables for line in _table_advice(layout, table, neighbours, protected)]
    if len(layout.tables) > 1:
        lines.append(
            f"ε is split equally among {len(layout.tables)} observed variables; Statistics(share={{name: weight}}) "
            "gives more to what matters."
        )
    return lines


def noise_sds(inspection: Inspection, epsilon: float, delta: float) -> dict[str, tuple[float, float]]:
    """Return by variable the standard deviations of Laplace noise at δ = 0 and of Gaussian noise at `delta`."""
    plans = (
        plan_release(inspection, Statistics(), epsilon),
        plan_release(inspection, Statistics("gaussian"), epsilon, delta),
    )
    return {
        laplace.name: (_planned_sd(laplace), _planned_sd(gaussian))
        for laplace, gaussian in zip(plans[0].tables, plans[1].tables, strict=True)
    }


def _planned_sd(table: TablePlan) -> float:
    """Standard deviation of the noise on the first statistic, in its own units."""
    block = table.blocks[-1]
    return block.noise.deviation(block.scale) * block.steps[0]


def noise_ratio(found: Mapping[str, tuple[float, float]]) -> float:
    """Return the geometric mean of how many times larger Laplace noise is than Gaussian noise."""
    return float(prod(laplace / gaussian for laplace, gaussian in found.values()) ** (1 / len(found)))


def laplace_is_clearly_less(plan: ReleasePlan, delta: float) -> bool:
    """Whether Laplace noise is less than Gaussian noise at `delta` would be, by a margin that needs no accountant.

    Wide discrete Gaussian noise needs what continuous noise does, within a few percent, and what an accountant proves
    is no less. Whether noise of a given width is enough is one evaluation of a formula (`delta_of_mu`); the least
    width takes the distribution of its losses. False where the formula does not tell.
    """
    blocks = [table.blocks[0] for table in plan.tables if len(table.blocks) == 1]
    if len(blocks) < len(plan.tables):
        return False
    laplace = np.array([block.noise.deviation(block.scale) for block in blocks])
    gaussian = np.sqrt(
        [len(blocks) * float(block.sensitivity.l2_squared) for block in blocks]
    )  # at μ = 1, equal shares
    factor = float(np.exp(np.log(laplace / gaussian).mean())) / CLEARLY
    return bool((factor * gaussian >= WIDE).all()) and delta_of_mu(1 / factor, plan.epsilon) > delta


def noise_advice(inspection: Inspection, epsilon: float, delta: float) -> list[str]:
    """Say which noise is the smaller one for this model at a budget, and by how much.

    At δ = 0 only Laplace noise is possible; what a δ of `EXAMPLE_DELTA` would do is stated where it helps. Nothing is
    stated about sums that are less accurate than gradients where there is a δ.
    """
    if any(one.by_polynomial for one in inspection.observed):
        return []
    at = delta or EXAMPLE_DELTA
    if not delta and laplace_is_clearly_less(plan_release(inspection, Statistics(), epsilon), at):
        return []
    found = noise_sds(inspection, epsilon, at)
    ratio = noise_ratio(found)
    if ratio <= 1 and not delta:
        return []
    each = "; ".join(
        shorten([f"{name} {laplace:.3g} and {gaussian:.3g}" for name, (laplace, gaussian) in found.items()], 6)
    )
    sds = f"(sd at ε = {epsilon:g}, Laplace and Gaussian: {each})"
    if ratio > 1:
        remedy = 'Statistics(noise="gaussian")' + ("" if delta else f" with delta={at:g}")
        return [f"Gaussian noise would be {ratio:.2g} times smaller at delta={at:g} {sds}: {remedy}."]
    return [f"Laplace noise, at delta=0, is {1 / ratio:.2g} times smaller than Gaussian noise at delta={at:g} {sds}."]


def _table_advice(layout: ReleaseLayout, table: TablePlan, neighbours: str, protected: Set[Variable]) -> list[str]:
    if isinstance(table.statistic, GramSums):
        return _regression_advice(layout, table, table.statistic)
    if table.weight is not None:
        return [WEIGHED.format(table.name, table.weight.name)]
    lines = _histogram_advice(table)
    even, rows = even_epsilon(layout, table), table.rows_per_cell
    if even > 1:
        many = f"{table.cells.count} cells of about {rows:.0f} rows" if table.cells.count > 1 else f"{rows:.0f} rows"
        lines.append(
            f"{table.name}: at ε = 1 the noise exceeds sampling noise ({many}); ε near {even:.2g}, or "
            f"{'fewer bins' if isinstance(table.statistic, Bins) else 'merging levels'}, would make them equal; "
            "dp.plan simulates how wide intervals would be at any ε."
        )
    private = [item for column in table.observed.private_columns for item in column.sources if not item.public]
    hidden = list(dict.fromkeys(item.name for item in private if item.leaf.name))
    observed = any(item.leaf in protected for item in private)  # never public
    if hidden and not observed and neighbours == "replace" and not isinstance(table.statistic, OwnTotals):
        binary = isinstance(table.statistic, LevelCounts) and table.statistic.n_levels == 2
        exposed = isinstance(table.statistic, ExposedCounts)
        kept = "keeps every row in its cell and at least halves the noise" if exposed else "makes the cell sizes public"
        lines.append(
            f"{table.name}: where {' and '.join(hidden)} may be known to anyone, Domain(public=...) {kept}"
            + (" and halves the noise." if binary else ".")
        )
    for column in table.observed.public_columns:
        if column.levels.dtype.kind == "f" or len(column.levels) > MANY_LEVELS:
            lines.append(
                f"{table.name}: the public column {column.name} makes {len(column.levels)} cells, one per distinct "
                "value, each with noise of its own; a few levels would need less."
            )
    if isinstance(table.statistic, StatedSums):
        lines.append(f"{table.name}: {table.statistic.advice}")
    elif isinstance(table.statistic, ExposedCounts):
        lines.append(_exposed_advice(table.name, table.statistic, known=table.sizes_known))
    elif isinstance(table.statistic, BoundedMoments | BoundedFeatures):
        low, high = table.statistic.low, table.statistic.high
        lines.append(
            f"{table.name}: noise is proportional to the width of the bounds ({low:g}, {high:g}); tighter ones that "
            "are public knowledge help, and what lies beyond is clamped."
        )
    return lines


def _exposed_advice(name: str, statistic: ExposedCounts, *, known: bool) -> str:
    """Say what governs the noise of sums of counts and of exposures."""
    ends = [f"({part.low:g}, {part.high:g})" for part in (statistic.counts, statistic.exposure)]
    of = f"counts, {ends[0]}" + f", and of exposures, {ends[1]}" * (not known)
    return (
        f"{name}: noise is proportional to the upper bound of {of}; smaller ones that are public knowledge help, but "
        "counts beyond theirs are clamped, which makes rates too low."
    )


def _histogram_advice(table: TablePlan) -> list[str]:
    """Say what a histogram is, why it was chosen, and what is lost by it."""
    if not isinstance(table.statistic, Bins):
        return []
    first, last = table.statistic.edges[0], table.statistic.edges[-1]
    return [
        f"{table.name}: a {table.observed.title} likelihood has no finite sufficient statistics, so its values are "
        f"counted in {table.statistic.n_levels} public bins (up to {MOST_DEFAULT} where noise is small), cut from "
        f"{first:g} to {last:g} by the given bounds; the outer bins are open. The position of a value within its "
        "bin is lost. Statistics(mechanism=dp.Histogram(edges)) sets other edges: choose them close together where the "
        "likelihood bends, and never from the rows."
    ]


def _regression_advice(layout: ReleaseLayout, table: TablePlan, statistic: GramSums) -> list[str]:
    """Say what governs the noise of a regression, and what is approximate."""
    lines = [
        *approximations_of(table),
        f"{table.name}: one noise for {statistic.count} sums of products, in units of the bounds: tighter public "
        "bounds (or norms) and fewer predictors help; what lies beyond is clamped.",
    ]
    if table.observed.distribution == "normal":
        lines.append(
            f"{table.name}: values at a bound count as clamped, as in a censored regression; where true values pile "
            "up (at zero, say), set the bounds beyond them."
        )
    rows = float(table.cells.groups.max() if table.cells.sizes is None else table.cells.groups.sum())
    slope = layout.laplace_sd(table, 1.0) / max(rows * TYPICAL_SD**2, 1.0)
    lines.append(
        f"{table.name}: at ε = 1 the noise alone gives a slope an sd of about {slope:.2g}, in half widths of the "
        f"response per half width of the predictor (whose sd is taken as {TYPICAL_SD:g} of its half width); it falls "
        "as 1/ε."
    )
    public = [item.name for item in table.observed.design.predictors if item.public] if table.observed.design else []
    if public and not statistic.known:
        lines.append(
            f"{table.name}: {' and '.join(public)} are public, but get the same noise as the private predictors: "
            "products with those are private."
        )
    return lines


def _release_row(table: TablePlan) -> tuple[str, ...]:
    columns = " x ".join(f"{column.name} ({len(column.levels)})" for column in table.cells.columns) or "one"
    proofs = "; ".join(
        f"{_in_units(block.sensitivity.l1, block.steps)}: {block.sensitivity.reason}" for block in table.blocks
    )
    if isinstance(table.statistic, Bins):
        bins = f"one of {table.statistic.n_levels} bins: {', '.join(shorten(table.statistic.labels, 3))}"
        return table.name, f"{table.observed.title}, as a histogram", bins, columns, proofs
    likelihood = table.observed.distribution if table.family is not None else f"{table.observed.title} regression"
    return table.name, likelihood, ", ".join(shorten(table.labels, 3)), columns, proofs


def _in_units(steps: int, sizes: Sequence[float]) -> str:
    return " / ".join(f"{steps * size:.6g}" for size in dict.fromkeys(sizes))


def _cost_row(layout: ReleaseLayout, table: TablePlan) -> tuple[str, ...]:
    rows, sampling = table.rows_per_cell, sampling_sd(table)
    noise = [noise_sd(layout, table, epsilon) for epsilon in EPSILONS]
    about = "" if table.sizes_known else "≤ " if table.cells.n_private == 1 else "≈ "
    cells = [f"±{sd / rows:.2g} ({sd / sampling:.2g})" for sd in noise]
    return table.name, f"{about}{rows:.0f}", *cells, f"ε = {even_epsilon(layout, table):.2g}"


def _frame_row(layout: ReleaseLayout, table: TablePlan, epsilon: float) -> tuple[object, ...]:
    noise, rows = noise_sd(layout, table, epsilon), table.rows_per_cell
    statistic = table.labels[table.blocks[-1].columns[0]]
    per_row, ratio = noise / rows, noise / sampling_sd(table)
    return table.name, table.observed.distribution, statistic, table.cells.count, rows, epsilon, noise, per_row, ratio


def metric_lines(domain: Domain, previews: Sequence[Preview], layout: ReleaseLayout | None) -> tuple[str, ...]:
    """Say what ε is per unit of, and what it is for a whole row, once per way of using it where these differ."""
    steps = [preview.bound.diameter for preview in previews if preview.bound is not None]
    found = steps if layout is None else [layout.diameter, *steps]
    lines = [
        f"ε is per unit of ρ = {domain.metric}: of two tables, every conclusion is at most e^(ε Σ ρ(x_i, y_i)) times "
        "likelier under one than under the other.",
        "ρ compares rows as they are used: values clamped to their bounds, and rounded to a grid.",
    ]
    for diameter in dict.fromkeys(f"{item:.6g}" for item in found):
        if math.isinf(float(diameter)):
            lines.append("Values have no bounds, so rows may be at any distance: nothing is promised for a whole row.")
        else:
            lines.append(f"Rows are at most {diameter} apart: for a whole row it is {diameter} ε, under replace.")
    return tuple(lines)


def person_lines(domain: Domain) -> tuple[str, ...]:
    """Say what ε is for where a person has several rows; nothing where it is for a row."""
    if (unit := domain.unit) is None:
        return ()
    return (
        f"ε is for {unit}: for all rows with the same {unit.column}, however many there are.",
        f"By exact sums and by noised gradients, {unit.estimand}. Exact sums have {unit.max_rows} times the noise that "
        "there is for one row; noised gradients clip what the rows of a person add up to.",
        "Rows of one person count as independent given the parameters, as the likelihood says: where they are not, "
        "intervals are too narrow. Use a likelihood with more dispersion, or one row a person.",
    )


RANGE_COLUMNS = ("quantity", "value", "how")


def ranges_paid(previews: Sequence[Preview], domain: Domain) -> tuple[tuple[str, ...], ...]:
    """Return, under `RANGE_COLUMNS`, how far one row moves what one posterior sample is drawn from, and is charged."""
    step = next((preview.bound for preview in previews if isinstance(preview.bound, OPS)), None)
    if not isinstance(step, OPS) or not isinstance(step.posterior, (*OF_KERNEL, ConvergedPosterior)):
        return ()
    unit = "" if domain.metric is None else " per unit of ρ"
    return ((f"range R{unit}", f"{step.range.value:.6g}", step.range.reason),)


__all__ = [
    "EXAMPLE_DELTA",
    "FRAME_COLUMNS",
    "RANGE_COLUMNS",
    "frame_rows",
    "laplace_is_clearly_less",
    "metric_lines",
    "noise_advice",
    "noise_ratio",
    "noise_sds",
    "person_lines",
    "ranges_paid",
    "release_advice",
    "release_tables",
]
