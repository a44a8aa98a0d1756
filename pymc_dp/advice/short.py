"""``dp.explain`` in twelve lines: what is private, what would be released, and what fits or what is in the way."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from pymc_dp._display import Page, Table, width
from pymc_dp.accounting import Budget
from pymc_dp.advice.releases import frame_rows
from pymc_dp.errors import NEEDS_BOUNDS, Problem
from pymc_dp.release.tables import ReleaseLayout

REST = ".full() has every method and its price, and all that is assumed"
LINES = 12
"""Of the page, edges included."""
BESIDE = 20
"""Columns beside the text of a row: edges, indents and the names of rows."""


Row = tuple[str, str, int]
"""Name, text, and the most lines of it."""


def short_page(
    title: str,
    verdict: str,
    *,
    good: bool,
    private: Sequence[str],
    problems: Sequence[Problem],
    layout: ReleaseLayout | None,
    gradients: Sequence[str],
    widths: str,
    budget: Budget,
    methods: Sequence[str],
    assumed: Sequence[str],
    beware: Sequence[str],
    advice: Sequence[str],
) -> Page:
    """Return the page; it has as many rows as fit, and texts that are too long end in "…".

    Parameters
    ----------
    title, verdict : str
    good : bool
    private : sequence of str
    problems : sequence of Problem
        Why nothing can be released as it is.
    layout : ReleaseLayout, optional
        Of exact sums, where they can be released.
    gradients : sequence of str
        What is said of noised gradients, where ``dp.sample`` would release these.
    widths : str
        How wide intervals would be by each release; empty where no formula says so.
    budget : Budget
    methods : sequence of str
        Calls that fit.
    assumed, beware, advice : sequence of str
        What is taken as public; what the budget is worth; what would help.
    """
    remedies = list(dict.fromkeys(_remedy(one) for one in problems))
    rows: list[Row] = [("private", ", ".join(private) or "nothing", 1)]
    if gradients:
        rows += [("released", gradients[0], 2)]
    elif len(remedies) == 1:
        rows.append(("to do", f"{problems[0].remedy} Why: {problems[0].where}: {problems[0].what}.", 5))
    elif problems:
        rows += [("to do", text, 2) for text in remedies[:2]]
    elif layout is not None:
        rows += [("released", text, 1) for text in _released(layout, budget, noise=not widths)]
    if widths:
        rows.append(("intervals", widths, 2))
    rows.append(("fits", "; ".join(methods) or "nothing", 1))
    if gradients or not problems:
        rows.append(("assumed", "; ".join(assumed) or "nothing", 1))
    others = len(remedies) - 2
    more = f"{others} more problem{'s' * (others > 1)}, " if others > 0 and not gradients else ""
    rows.append(("the rest", f"{more}{REST}", 1))
    headline = _cut(verdict, 2, beside=4)
    left = LINES - 3 - len(headline.splitlines()) - sum(len(_cut(text, most).splitlines()) for _, text, most in rows)
    if widths:  # of two lines, as they are counted, one more or less
        tall = 2 + (left > 0) - (left < 0)
        left -= len(_cut(widths, tall).splitlines()) - len(_cut(widths, 2).splitlines())
        rows = [(name, text, tall if name == "intervals" else most) for name, text, most in rows]
    said = [("beware", text) for text in beware] or [("would help", text) for text in advice if not gradients][:1]
    if said and gradients and left < 2:  # why gradients are released is in .full() too
        rows, left = [(name, text, 1 if name == "released" else most) for name, text, most in rows], 2
    for name, text in said[:2]:
        if (most := min(left, 2)) > 0:
            rows.insert(-1, (name, text, most))
            left -= len(_cut(text, most).splitlines())
    table = Table(title="", rows=[(name, _cut(text, most)) for name, text, most in rows])
    return Page(title=title, headline=headline, good=good, parts=[table])


def _remedy(problem: Problem) -> str:
    """Return what to do, after the name of what it is about where it does not begin with that of the column itself."""
    named = NEEDS_BOUNDS in problem.remedy or problem.remedy.startswith(problem.where) or problem.where == "model"
    return problem.remedy if named else f"{problem.where}: {problem.remedy}"


def _released(layout: ReleaseLayout, budget: Budget, *, noise: bool) -> list[str]:
    """One line for each of two variables, and how many more there are; with the `noise` where no width is known."""
    lines = []
    for row in frame_rows(layout, (budget.epsilon,)):
        name, likelihood, _, cells, _, epsilon, _, per_row, _ = row
        many = f"{cells} cells" if cells != 1 else "one cell"
        ends = f"; noise of ±{per_row:.2g} in a share or mean at ε = {epsilon:g}" if noise else ""
        lines.append(f"exact sums of {name}: {likelihood}, {many}{ends}")
    return lines if len(lines) <= 2 else [lines[0], f"and {len(lines) - 1} more variables"]


def _cut(text: str, most: int, *, beside: int = BESIDE) -> str:
    return "\n".join(wrap(" ".join(text.split()), max(20, width() - beside), max_lines=most, placeholder=" …"))


__all__ = ["short_page"]
