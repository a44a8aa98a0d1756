"""``dp.explain``: what is private in a model, what would be released, what it costs, what to change."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from pymc import Model

from pymc_dp.domain import Domain
from pymc_dp.errors import Problem
from pymc_dp.families import FAMILIES
from pymc_dp.families.statistic import BoundedMoments, LevelCounts
from pymc_dp.inspection.likelihoods import Inspection, inspect
from pymc_dp.mechanisms.statistics import ReleasePlan, Statistics, TablePlan, plan_release, table_problems

if TYPE_CHECKING:
    import pandas as pd

EPSILONS = (0.1, 0.3, 1.0, 3.0)
WIDTH = 100
COST_COLUMNS = ("variable", "about", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "noise = sampling at")
RELEASE_COLUMNS = ("variable", "likelihood", "one row adds to", "cells", "sensitivity (Δ1)")
METHOD_COLUMNS = ("call", "guarantee", "remark")


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

    @property
    def ok(self) -> bool:
        """Whether ``dp.sample`` would accept the model."""
        return not self.problems

    def to_frame(self) -> pd.DataFrame:
        """Return one row per observed variable and ε: cells, sensitivity, noise, and noise over sampling noise.

        ``noise_sd`` is in units of the released number, ``noise_per_row`` the same divided by the (expected) number of
        rows of a cell: what the noise adds to a share or a mean.
        """
        import pandas as pd

        columns = ["variable", "likelihood", "statistic", "cells", "rows_per_cell", "epsilon", "noise_sd", "noise_per_row", "noise_over_sampling"]
        rows = []
        for table in self.plan.tables if self.plan else ():
            for epsilon in EPSILONS:
                noise, rows_per_cell = _noise_sd(table, epsilon), _rows_per_cell(table)
                rows.append((table.name, table.observed.distribution, table.labels[-1], table.cells.count, rows_per_cell, epsilon,
                             noise, noise / rows_per_cell, noise / _sampling_sd(table)))  # fmt: skip
        return pd.DataFrame(rows, columns=columns)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=WIDTH, force_terminal=False, legacy_windows=False)
        with console.capture() as capture:
            console.print(self._rich())
        return capture.get().rstrip()

    __repr__ = __str__

    def __rich__(self) -> Any:
        return self._rich()

    def _rich(self) -> Any:
        from rich.console import Group
        from rich.padding import Padding
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        parts: list[Any] = [Text(self._verdict(), style="bold")]
        for title, columns, rows in self._tables():
            table = Table(*columns, box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
            for row in rows:
                table.add_row(*map(Text, row))
            parts += [Text(), Text(title, style="bold"), table]
        for title, lines in self._lists():
            parts += [Text(), Text(title, style="bold"), *[Padding(Text(f"· {line}"), (0, 0, 0, 2)) for line in lines]]
        return Panel(Group(*parts), title="Can this model be private?", width=WIDTH)

    def _repr_html_(self) -> str:
        def cell(text: str, tag: str = "td") -> str:
            return f"<{tag} style='text-align:left;vertical-align:top;padding:2px 12px 2px 0'>{html.escape(text)}</{tag}>"

        colour = "#1a7f37" if self.ok else "#b3261e"
        parts = [f"<p style='font-size:115%;margin:2px 0'><b>{html.escape(self._verdict())}</b></p>"]
        for title, columns, rows in self._tables():
            header = "".join(cell(name, "th") for name in columns)
            body = "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows)
            parts.append(f"<p style='margin:10px 0 2px'><b>{html.escape(title)}</b></p><table style='border-collapse:collapse'><tr>{header}</tr>{body}</table>")
        for title, lines in self._lists():
            items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
            parts.append(f"<p style='margin:10px 0 2px'><b>{html.escape(title)}</b></p><ul style='margin:0'>{items}</ul>")
        return f"<div style='border-left:4px solid {colour};padding:4px 12px;max-width:900px;line-height:1.4'>{''.join(parts)}</div>"

    # --- content ------------------------------------------------------------------------------------------------------

    def _verdict(self) -> str:
        if self.ok:
            return "Yes: dp.sample(epsilon=...) releases noised statistics once; after that every draw is free."
        count = len(self.problems)
        return f"Not as it stands: {count} problem{'s' * (count != 1)} to mend first. Nothing was spent and no row was read."

    def _tables(self) -> list[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
        if self.plan is None:
            return []
        return [
            ("What would be released", RELEASE_COLUMNS, [_release_row(table) for table in self.plan.tables]),
            ("What it costs: noise (sd) in a cell's share or mean, and against sampling noise", COST_COLUMNS, [_cost_row(table) for table in self.plan.tables]),
            ("Which methods fit", METHOD_COLUMNS, METHODS),
        ]

    def _lists(self) -> list[tuple[str, Sequence[str]]]:
        lists: list[tuple[str, Sequence[str]]] = []
        if self.problems:
            lists.append(("Problems, and what to do", [str(problem) for problem in self.problems]))
            lists.append(("Likelihoods that can be released", [", ".join(sorted(FAMILIES))]))
        lists.append(("Private (protected)", self.private or ("nothing",)))
        if self.public:
            lists.append(("Public (declared)", self.public))
        if self.left_out:
            lists.append(("Left out of a private trace, because computed from rows", self.left_out))
        advice = self._advice()
        if advice:
            lists.append(("What to change, and what it would bring", advice))
        lists.append(("Assumed public: true only if none of it was computed from the rows", self.assumptions))
        return lists

    def _advice(self) -> list[str]:
        if self.plan is None:
            return []
        lines = []
        for table in self.plan.tables:
            even = _even_epsilon(table)
            if even > 1:
                many = f"{table.cells.count} cells of about {_rows_per_cell(table):.0f} rows" if table.cells.count > 1 else f"{_rows_per_cell(table):.0f} rows"
                lines.append(f"{table.name}: at ε = 1 the noise exceeds sampling noise ({many}); merging levels, or ε near {even:.2g}, would make them equal.")
            hidden = [column.name for column in table.observed.private_columns]
            if hidden and self.neighbours == "replace":
                lines.append(f"{table.name}: if {' and '.join(hidden)} need no protection, Domain(public=...) makes the cell sizes public"
                             + (" and halves the noise." if isinstance(table.statistic, LevelCounts) and table.statistic.n_levels == 2 else "."))  # fmt: skip
            if isinstance(table.statistic, BoundedMoments):
                lines.append(f"{table.name}: the noise is proportional to the width of the bounds ({table.statistic.low:g}, {table.statistic.high:g}); "
                             "tighter ones that are public knowledge help, and clamp what lies beyond.")  # fmt: skip
        if len(self.plan.tables) > 1:
            lines.append(f"ε is split equally among {len(self.plan.tables)} observed variables; Statistics(share={{name: weight}}) gives more to what matters.")
        return lines


METHODS: list[tuple[str, ...]] = [
    ("dp.sample(epsilon=...)", "exact, hardened", "noise-aware: intervals account for the noise; draws are free"),
    ("dp.privatize(model, epsilon=...)", "exact, hardened", "the same as a plain pm.Model, for any sampler"),
    ("statistics=Statistics(noise_aware=False)", "exact, hardened", "plug-in, the papers' form: overconfident, for comparison"),
]


def explain(model: Model | None = None, domain: Domain | None = None) -> Explanation:
    """Say what is private in a model, what would be released, at what cost, and what to change.

    Parameters
    ----------
    model : pymc.Model, optional
        Defaults to the model of the context.
    domain : Domain, optional
        What is public about one row.

    Returns
    -------
    Explanation
        All findings at once; prints in a terminal and renders in a notebook.

    Raises
    ------
    DomainError
        If `domain` names what the model does not have.

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
    inspection = inspect(pm.modelcontext(model), domain)
    problems = tuple(inspection.problems) + tuple(table_problems(inspection))
    return Explanation(
        problems=problems, private=inspection.private, public=inspection.public, assumptions=inspection.assumptions,
        left_out=inspection.dropped, neighbours=inspection.domain.neighbours, plan=None if problems else _plan(inspection),
    )  # fmt: skip


def _plan(inspection: Inspection) -> ReleasePlan:
    """Plan at ε = 1: noise at other budgets is inversely proportional."""
    return plan_release(inspection, Statistics(), 1.0)


def _release_row(table: TablePlan) -> tuple[str, ...]:
    labels = table.labels if len(table.labels) <= 3 else (table.labels[0], "...", table.labels[-1])
    columns = " x ".join(f"{column.name} ({len(column.levels)})" for column in table.cells.columns) or "one"
    proofs = "; ".join(f"{_in_units(block.movement.l1, block.steps)}: {block.movement.reason}" for block in table.blocks)
    return table.name, table.observed.distribution, ", ".join(labels), columns, proofs


def _in_units(steps: int, sizes: Sequence[float]) -> str:
    return " / ".join(f"{steps * size:.6g}" for size in dict.fromkeys(sizes))


def _cost_row(table: TablePlan) -> tuple[str, ...]:
    rows, sampling = _rows_per_cell(table), _sampling_sd(table)
    cells = [f"±{_noise_sd(table, epsilon) / rows:.2g} ({_noise_sd(table, epsilon) / sampling:.2g}x)" for epsilon in EPSILONS]
    return table.name, f"{rows:.0f} rows a cell", *cells, f"ε = {_even_epsilon(table):.2g}"


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
    return sqrt(rows) * table.statistic.half_width ** table.statistic.powers[0] / sqrt(3 if table.statistic.powers[0] == 1 else 45 / 4)


def _even_epsilon(table: TablePlan) -> float:
    return _noise_sd(table, 1.0) / _sampling_sd(table)
