"""``dp.explain``: what is private in a model, what would be released, what it costs, what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp._display import Listing, Page, Table, shorten
from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.errors import Problem
from pymc_dp.families import FAMILIES
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.inspect import context_model, inspect
from pymc_dp.mechanisms.statistics import ReleasePlan, Statistics, TablePlan, plan_release, table_problems
from pymc_dp.step_methods.base import Preview, PrivateStep
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.langevin import SGLD
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.ops import OPS

if TYPE_CHECKING:
    import pandas as pd

EPSILONS = (0.1, 0.3, 1.0, 3.0)
COST_COLUMNS = ("variable", "rows a cell", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "equal at")
RELEASE_COLUMNS = ("variable", "likelihood", "one row adds to", "cells", "sensitivity (Δ1)")
METHOD_COLUMNS = ("call", "guarantee", "what it would do")
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Everything ``explain`` found; prints as text, renders in notebooks, and nothing in it depends on a private value.

    Attributes
    ----------
    problems : tuple of Problem
        Why the model cannot be released as it is, each with its remedy; empty if it can.
    private, public : tuple of str
        Names of the arrays of rows that are protected, and of those declared public.
    assumptions : tuple of str
        What is taken as public without a proof.
    left_out : tuple of str
        Deterministics that a private trace will not have, because they are computed from rows.
    """

    problems: tuple[Problem, ...]
    private: tuple[str, ...]
    public: tuple[str, ...]
    assumptions: tuple[str, ...]
    left_out: tuple[str, ...]
    neighbours: str
    plan: ReleasePlan | None
    budget: Budget
    samplers: tuple[Preview, ...]

    @property
    def ok(self) -> bool:
        """Whether ``dp.sample`` would accept the model, and release its statistics."""
        return not self.problems

    @property
    def methods(self) -> tuple[str, ...]:
        """Calls that would accept the model at this budget."""
        statistics = ("dp.sample()", "dp.privatize()") if self.ok else ()
        return (*statistics, *(sampler.call for sampler in self.samplers if sampler.fits))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per observed variable and ε: cells, noise, and noise over sampling noise.

        ``noise_sd`` is in units of the released number, ``noise_per_row`` the same divided by the (expected) number of
        rows of a cell: what the noise adds to a share or a mean.
        """
        import pandas as pd

        rows = [_frame_row(table, epsilon) for table in (self.plan.tables if self.plan else ()) for epsilon in EPSILONS]
        return pd.DataFrame(rows, columns=list(FRAME_COLUMNS))

    def __str__(self) -> str:
        return self._page().text()

    __repr__ = __str__

    def __rich__(self) -> Any:
        return self._page().rich()

    def _repr_html_(self) -> str:
        return self._page().html()

    def _page(self) -> Page:
        parts: list[Table | Listing] = []
        if self.plan is not None:
            tables = self.plan.tables
            released = [_release_row(table) for table in tables]
            cost = "What it costs: noise (sd) added to a cell's share or mean (in brackets: over sampling noise)"
            parts.append(Table(title="What would be released", columns=RELEASE_COLUMNS, rows=released))
            parts.append(Table(title=cost, columns=COST_COLUMNS, rows=[_cost_row(table) for table in tables]))
        title = f"Which methods fit, at {self._loss()}"
        parts.append(Table(title=title, columns=METHOD_COLUMNS, rows=self._methods()))
        if self.problems:
            parts.append(Listing(title="Problems, and what to do", lines=[str(problem) for problem in self.problems]))
            parts.append(Listing(title="Likelihoods that can be released", lines=[", ".join(sorted(FAMILIES))]))
        parts.append(Listing(title="Private (protected)", lines=[", ".join(self.private) or "nothing"]))
        if self.public:
            parts.append(Listing(title="Public (declared)", lines=[", ".join(self.public)]))
        if self.left_out:
            title = "Left out of a private trace, because computed from rows"
            parts.append(Listing(title=title, lines=[", ".join(self.left_out)]))
        if advice := self._advice():
            parts.append(Listing(title="What to change, and what it would bring", lines=advice))
        title = "Assumed public: true only if none of it was computed from the rows"
        parts.append(Listing(title=title, lines=self.assumptions))
        return Page(title="Can this model be private?", headline=self._verdict(), good=self.ok, parts=parts)

    def _verdict(self) -> str:
        if self.ok:
            return "Yes: dp.sample(epsilon=...) releases noised statistics once; after that every draw is free."
        count = len(self.problems)
        plural = "s" * (count != 1)
        others = [sampler.call for sampler in self.samplers if sampler.fits]
        if others:
            return (
                f"Yes, by {' or '.join(others)}; to release statistics instead, {count} problem{plural} would have to "
                "be mended."
            )
        return (
            f"Not as it stands: {count} problem{plural} to mend first. Nothing was spent and no private row was read."
        )

    def _loss(self) -> str:
        delta = f", δ = {self.budget.delta:g}" if self.budget.delta else ", δ = 0"
        return f"ε = {self.budget.epsilon:g}{delta}"

    def _methods(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [(call, guarantee, remark) for call, guarantee, remark in METHODS if self.ok]
        if not self.ok:
            rows.append(("dp.sample(epsilon=...)", "-", "not as it stands: see the problems below"))
        for sampler in self.samplers:
            call = sampler.call.removeprefix("dp.sample(").removesuffix(")")
            told = [f"one row moves {text}" for name, text in sampler.facts if name == "one row moves"]
            rows.append(
                (call, f"{sampler.guarantee}, float64", "; ".join([sampler.noise, *told]))
                if sampler.fits
                else (call, "-", f"not as it stands: {sampler.problem}")
            )
        return rows

    def _advice(self) -> list[str]:
        if self.plan is None:
            return []
        tables = self.plan.tables
        lines = [line for table in tables for line in _table_advice(table, self.neighbours)]
        if len(tables) > 1:
            lines.append(
                f"ε is split equally among {len(tables)} observed variables; Statistics(share={{name: weight}}) "
                "gives more to what matters."
            )
        return lines


def _table_advice(table: TablePlan, neighbours: str) -> list[str]:
    lines = []
    even, rows = _even_epsilon(table), _rows_per_cell(table)
    if even > 1:
        many = f"{table.cells.count} cells of about {rows:.0f} rows" if table.cells.count > 1 else f"{rows:.0f} rows"
        lines.append(
            f"{table.name}: at ε = 1 the noise exceeds sampling noise ({many}); ε near {even:.2g}, or merging "
            "levels, would make them equal."
        )
    hidden = [column.name for column in table.observed.private_columns if column.leaf.name]
    if hidden and neighbours == "replace":
        binary = isinstance(table.statistic, LevelCounts) and table.statistic.n_levels == 2
        lines.append(
            f"{table.name}: where {' and '.join(hidden)} may be known to anyone, Domain(public=...) makes the cell "
            "sizes "
            "public" + (" and halves the noise." if binary else ".")
        )
    for column in table.observed.public_columns:
        if column.levels.dtype.kind == "f" or len(column.levels) > 100:
            lines.append(
                f"{table.name}: the public column {column.name} makes {len(column.levels)} cells, one per distinct "
                "value, each with noise of its own; a few levels would need less."
            )
    if isinstance(table.statistic, BoundedMoments):
        low, high = table.statistic.low, table.statistic.high
        lines.append(
            f"{table.name}: noise is proportional to the width of the bounds ({low:g}, {high:g}); tighter ones that "
            "are public knowledge help, and what lies beyond is clamped."
        )
    return lines


METHODS = (
    ("dp.sample(epsilon=...)", "exact, hardened", "noise-aware: intervals account for the noise; draws are free"),
    ("dp.privatize(epsilon=...)", "exact, hardened", "the same as a plain pm.Model, for any sampler"),
    ("Statistics(noise_aware=False)", "exact, hardened", "plug-in, the papers' form: overconfident, for comparison"),
)


def explain(
    model: Model | None = None, domain: Domain | None = None, *, epsilon: float = 1.0, delta: float = 0.0
) -> Explanation:
    """Say what is private in a model, what would be released, at what cost, which methods fit, and what to change.

    Parameters
    ----------
    model : pymc.Model, optional
        Defaults to the model of the context.
    domain : Domain, optional
        What is public about one row.
    epsilon, delta : float
        Budget at which the samplers are looked at; 1 and 0 by default. Some need δ > 0.

    Returns
    -------
    Explanation
        All findings at once; prints in a terminal and renders in a notebook.

    Raises
    ------
    DomainError
        If `domain` names what the model does not have.
    ArgumentError
        If `epsilon` or `delta` is out of range.

    Notes
    -----
    **Guarantee.** Reads shapes and dtypes of private arrays, never a value (public columns are read), and spends
    nothing. Under ``add_remove`` the number of rows is not shown.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     rate = pm.Gamma("rate", 2, 1)
    ...     visits = pm.Poisson("visits", rate, observed=np.array([0, 2, 1]))
    >>> print(explain(model).problems[0])
    visits: a Poisson count has no upper bound, so one row could move the sum by any amount. Give a public range: ...
    """
    source, budget = context_model(model), Budget(_validate.epsilon(epsilon), delta)
    inspection = inspect(source, domain)
    problems = tuple(inspection.problems) + tuple(table_problems(inspection))
    return Explanation(
        problems=problems,
        private=inspection.private,
        public=inspection.public,
        assumptions=inspection.assumptions,
        left_out=inspection.dropped,
        neighbours=inspection.domain.neighbours,
        plan=None if problems else _plan(inspection),
        budget=budget,
        samplers=tuple(step.preview(source, domain, budget) for step in specifications()),
    )


def specifications() -> tuple[PrivateStep, ...]:
    """Every private sampler, with its default settings."""
    return (OPS(), TemperedGibbs(), BarkerMetropolis(), SGLD())


def _plan(inspection: Inspection) -> ReleasePlan:
    """Plan at ε = 1: noise at other budgets is inversely proportional."""
    return plan_release(inspection, Statistics(), 1.0)


def _release_row(table: TablePlan) -> tuple[str, ...]:
    columns = " x ".join(f"{column.name} ({len(column.levels)})" for column in table.cells.columns) or "one"
    proofs = "; ".join(
        f"{_in_units(block.movement.l1, block.steps)}: {block.movement.reason}" for block in table.blocks
    )
    return table.name, table.observed.distribution, ", ".join(shorten(table.labels, 3)), columns, proofs


def _in_units(steps: int, sizes: Sequence[float]) -> str:
    return " / ".join(f"{steps * size:.6g}" for size in dict.fromkeys(sizes))


def _cost_row(table: TablePlan) -> tuple[str, ...]:
    rows, sampling = _rows_per_cell(table), _sampling_sd(table)
    noise = [_noise_sd(table, epsilon) for epsilon in EPSILONS]
    about = "" if table.sizes_known else "≤ " if table.cells.n_private == 1 else "≈ "
    cells = [f"±{sd / rows:.2g} ({sd / sampling:.2g})" for sd in noise]
    return table.name, f"{about}{rows:.0f}", *cells, f"ε = {_even_epsilon(table):.2g}"


def _frame_row(table: TablePlan, epsilon: float) -> tuple[object, ...]:
    noise, rows = _noise_sd(table, epsilon), _rows_per_cell(table)
    statistic = table.labels[table.blocks[-1].columns[0]]
    per_row, ratio = noise / rows, noise / _sampling_sd(table)
    return table.name, table.observed.distribution, statistic, table.cells.count, rows, epsilon, noise, per_row, ratio


def _noise_sd(table: TablePlan, epsilon: float) -> float:
    """Standard deviation of the noise on the first statistic, in its own units (plans are made at ε = 1)."""
    block = table.blocks[-1]
    return sqrt(2) * block.scale * block.steps[0] / epsilon


def _rows_per_cell(table: TablePlan) -> float:
    """Rows of a typical cell: the public sizes' median, else rows spread evenly (over the bound under add_remove)."""
    if table.sizes_known:
        return float(np.median(table.cells.groups))
    return max(float(np.median(table.cells.groups)) / table.cells.n_private, 1.0)


def _sampling_sd(table: TablePlan) -> float:
    """Standard deviation of the exact statistic if the data were spread evenly over levels, or over the bounds."""
    rows = _rows_per_cell(table)
    if isinstance(table.statistic, LevelCounts):
        share = 1 / table.statistic.n_levels
        return sqrt(rows * share * (1 - share))
    return (
        sqrt(rows)
        * table.statistic.half_width ** table.statistic.powers[0]
        / sqrt(3 if table.statistic.powers[0] == 1 else 45 / 4)
    )


def _even_epsilon(table: TablePlan) -> float:
    return _noise_sd(table, 1.0) / _sampling_sd(table)
