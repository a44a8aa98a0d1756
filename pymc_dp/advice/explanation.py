"""What ``dp.explain`` found: twelve lines of it, or all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, override

from pymc_dp._display import Drawing, Listing, Page, Part, Shown, Table, Whole
from pymc_dp.accounting import Budget
from pymc_dp.advice.gradients import (
    AT_ZERO,
    DELTA_LACKS,
    NEEDS_DELTA,
    WITH_DELTA,
    Default,
    pseudo_lines,
    release_lines,
    widths_line,
)
from pymc_dp.advice.releases import (
    FRAME_COLUMNS,
    GRADIENTS,
    METHOD_COLUMNS,
    OBSTACLE_COLUMNS,
    RANGE_COLUMNS,
    RELEASES,
    frame_rows,
    release_tables,
)
from pymc_dp.advice.samplers import listed, short
from pymc_dp.advice.short import short_page
from pymc_dp.errors import Problem, first_of
from pymc_dp.families import names
from pymc_dp.gradients.choice import Outlook
from pymc_dp.inspection.privacy_rule import RULE
from pymc_dp.release.tables import ReleaseLayout
from pymc_dp.step_methods.preview import Preview

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Can this model be private?"
BOUNDS = "Domain(bounds="
AT_NO_DELTA = "Or at delta=0: "
"""Before what exact sums need, where noised gradients need a δ alone."""
BOUGHT = (
    "Where nothing public says what values can be, dp.find_bounds(model, name, epsilon=0.1, ledger=...) finds bounds. "
    "It is a release, and costs its ε."
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explanation(Shown):
    """Everything ``explain`` found: twelve lines are shown, `full` has all; nothing in it depends on a private value.

    Attributes
    ----------
    problems : tuple of Problem
        Why exact sums of the model cannot be released as it is, each with its remedy; empty if they can.
    private, public : tuple of str
        Names of the arrays of rows that are protected, and of those declared public.
    assumptions : tuple of str
        What is taken as public without a proof.
    left_out : tuple of str
        Deterministics that a private trace will not have, because they are computed from rows.
    samplers : tuple of Preview
        Each private sampler: its temperature or noise, or what is in the way. A chain that is taken to have
        converged is among them only where exact draws are not possible.
    temperature, lost : tuple of str
        Temperature or noise of each of `samplers`, and what it loses against the posterior that is not private; empty
        for those that do not fit.
    ranges : tuple of tuple of str
        Variable, quantity, bound and worst case of what one row can move, where rows are held one by one.
    advice : tuple of str
        What would help; every number in it was computed for this model.
    metric : tuple of str
        What ε means under ``Domain(metric=...)``; empty without one.
    person : tuple of str
        What ε means under ``Domain(unit=...)``; empty without one.
    cautions : tuple of str
        What to look at before the model is released: ids that PyMC may have changed, levels that may be persons,
        parameters in which the likelihood is not smooth.
    weak : tuple of str
        Where the budget bounds next to nothing.
    network : tuple of Drawing and Table
        The discrete Bayesian network that the observed variables form, drawn, and what each mechanism for it releases;
        empty where they form none.
    default : Default
        Which kind of release ``dp.sample`` would choose at this budget, where any fits, and why.
    gradients : Outlook
        Whether ``statistics=dp.Gradients()`` fits, or what is in the way, and the parameters of the likelihood.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.Bernoulli("y", p, observed=np.array([0, 1, 1]))
    >>> import pymc_dp as dp
    >>> found = dp.explain(model)
    >>> found.ok, found.private, found.to_frame()["epsilon"].tolist()
    (True, ('y',), [0.1, 0.3, 1.0, 3.0])
    """

    problems: tuple[Problem, ...]
    private: tuple[str, ...]
    public: tuple[str, ...]
    assumptions: tuple[str, ...]
    left_out: tuple[str, ...]
    neighbours: str
    layout: ReleaseLayout | None
    budget: Budget
    samplers: tuple[Preview, ...] = ()
    temperature: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    ranges: tuple[tuple[str, ...], ...] = ()
    advice: tuple[str, ...] = ()
    metric: tuple[str, ...] = ()
    person: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    network: tuple[Drawing | Table, ...] = ()
    default: Default = AT_ZERO
    gradients: Outlook | None = None

    @property
    def ok(self) -> bool:
        """Whether exact sums of the rows can be released, as ``dp.Statistics()`` does."""
        return not self.problems

    @property
    def methods(self) -> tuple[str, ...]:
        """Calls that would accept the model at this budget."""
        sums = ("dp.sample()", "dp.privatize()") if self.ok else ()
        named = ("sample", "privatize") if self._by_gradients else ()
        gradients = (f"dp.{name}(statistics=dp.Gradients())" for name in named)
        return (*sums, *gradients, *(sampler.call for sampler in self.samplers if sampler.fits))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per observed variable and ε: cells, noise, and noise over sampling noise.

        ``noise_sd`` is in units of the released number, ``noise_per_row`` the same divided by the (expected) number of
        rows of a cell: what the noise adds to a share or a mean.
        """
        import pandas as pd

        return pd.DataFrame(frame_rows(self.layout) if self.layout else [], columns=list(FRAME_COLUMNS))

    @property
    @override
    def _page(self) -> Page:
        return short_page(
            TITLE,
            self._verdict(),
            good=self._good,
            private=self.private,
            problems=self._to_do,
            layout=self.layout,
            gradients=self._released() if self._by_gradients and self.default.by_gradients else (),
            widths=self._widths,
            budget=self.budget,
            methods=self.methods or [WITH_DELTA] * (DELTA_LACKS in self._to_do),
            assumed=self.assumptions,
            beware=(*self.weak, *self.cautions, *self.metric, *self.person, *pseudo_lines(self.gradients)),
            advice=self.advice,
        )

    @property
    def _to_do(self) -> list[Problem]:
        """Of the problems of the two releases, those of the one that needs less: a δ, where that is all."""
        if not self.ok and self.gradients is not None and self.gradients.fits and self.budget.delta == 0:
            bounds = self.problems if all(one.kind == "declaration" for one in self.problems) else ()
            return [DELTA_LACKS, *(replace(one, remedy=f"{AT_NO_DELTA}{one.remedy}") for one in bounds)]
        others = self.gradients.problems if self.gradients and not self.ok else ()
        return first_of(self.problems, others) if others else list(self.problems)

    @property
    def _good(self) -> bool:
        return self.ok or self._by_gradients or bool(self._fitting("exact", "stepwise"))

    def full(self) -> Shown:
        """Return all that was found, to print or to show in a notebook: twelve lines of it are shown otherwise."""
        parts: list[Part] = [] if self.layout is None else [*release_tables(self.layout)]
        parts += [*self.network, *self._method_tables()]
        if self.ranges:
            parts.append(Table(title="What one row can move (nats)", columns=RANGE_COLUMNS, rows=self.ranges))
        parts += self._listings()
        return Whole(Page(title=TITLE, headline=self._verdict(), good=self._good, parts=parts))

    def _listings(self) -> list[Listing]:
        problems = [str(problem) for problem in self.problems]
        families = (
            f"Likelihoods that can be released: {names()}; linear, Bernoulli and Poisson regression on continuous "
            "columns; any other with a logcdf as a histogram."
        )
        known = [families] * (bool(problems) and not any(families in problem for problem in problems))
        bought = [BOUGHT] * (not self.metric and any(BOUNDS in problem for problem in problems))
        found: Iterable[tuple[str, Iterable[str]]] = (
            ("What ε means here", (*self.metric, *self.person)),
            ("What this budget is worth", self.weak),
            ("Beware", self.cautions),
            ("What dp.sample would release, and how wide intervals would be", self._released()),
            ("Why exact sums cannot be released, and what to do", [*problems, *bought, *known]),
            (
                "Columns that the model computes, by row, clamped to these bounds",
                self.layout.computed if self.layout else (),
            ),
            ("What would help", self.advice),
            ("What counts as private", RULE),
            ("Private (protected)", [", ".join(self.private) or "nothing"]),
            ("Public (declared)", [", ".join(self.public)] * bool(self.public)),
            (
                "Left out of a private trace: an entry per row, or computed from an array that is not named public",
                [", ".join(self.left_out)] * bool(self.left_out),
            ),
            ("Assumed public: true only if none of it was computed from the rows", self.assumptions),
        )
        return [Listing(title=title, lines=tuple(lines)) for title, lines in found if tuple(lines)]

    def _fitting(self, *guarantees: str) -> list[str]:
        return [sampler.call for sampler in self.samplers if sampler.fits and sampler.guarantee in guarantees]

    @property
    def _by_gradients(self) -> bool:
        """Whether noised gradients can be released at this budget."""
        return self.gradients is not None and self.gradients.fits and self.budget.delta > 0

    @property
    def _widths(self) -> str:
        """How wide intervals would be by each release, in one line."""
        if self.gradients is None or self.metric:
            return ""
        return widths_line(self.gradients, self.layout, self.budget, sums=self.ok, exact=not self.gradients.weights)

    def _released(self) -> list[str]:
        if self.gradients is None:
            return []
        layout = None if self.metric else self.layout
        return release_lines(self.default, self.gradients, layout, self.budget, sums=self.ok)

    def _verdict(self) -> str:
        if self._by_gradients and self.default.by_gradients:
            return f"Yes: {WITH_DELTA} releases noised gradients once; after that every draw is free."
        if self.ok:
            return "Yes: dp.sample(epsilon=...) releases noised statistics once; after that every draw is free."
        if self.gradients is not None and self.gradients.fits:
            also = f"; or by step={listed(others)}" if (others := self._fitting("exact", "stepwise")) else ""
            return f"Yes, with a delta > 0: {WITH_DELTA} releases noised gradients once, and every draw is free{also}."
        mended = f"{(count := len(self._to_do))} problem{'s' * (count != 1)}"
        proved, assumed = self._fitting("exact", "stepwise"), self._fitting("asymptotic")
        if proved:
            if all(problem.kind == "declaration" for problem in self._to_do):
                first = self._to_do[0].remedy.partition(":")[0].partition(",")[0]
                return f"{first}: then a release has free draws, see below. As it stands, step={listed(proved)} fits."
            return f"Yes, by step={listed(proved)}; for a release with free draws, {mended} would have to be solved."
        if assumed:
            return f"Only by step={listed(assumed)}, if its chain has converged, which nothing proves."
        return "Not as it stands: below is what is in the way. Nothing was spent and no private row was read."

    def _method_tables(self) -> list[Table]:
        δ = f"{self.budget.delta:g}"
        looked = zip(self.samplers, self.temperature, self.lost, strict=True)
        laplace = self.metric or (self.layout and any(one.observed.by_polynomial for one in self.layout.tables))
        releases = [row for row in RELEASES if not (laplace and "gaussian" in row[0])]
        if self.default.by_gradients:
            releases[0] = ("statistics=dp.Statistics()", *releases[0][1:])
        fitting = (
            releases * self.ok
            + [GRADIENTS] * self._by_gradients
            + [
                (
                    f"step={short(sampler.call)}",
                    f"{sampler.guarantee}, {sampler.arithmetic}",
                    f"{noise}; {lost}" if lost else noise,
                )
                for sampler, noise, lost in looked
                if sampler.fits
            ]
        )
        tables = []
        unit = " per unit of ρ" if self.metric else ""
        if fitting:
            title = f"Which methods fit, at ε = {self.budget.epsilon:g}{unit}, δ = {δ}"
            tables.append(Table(title=title, columns=METHOD_COLUMNS, rows=fitting))
        if obstacles := self._obstacles():
            title = f"Which methods do not fit, at ε = {self.budget.epsilon:g}{unit}, δ = {δ}"
            tables.append(Table(title=title, columns=OBSTACLE_COLUMNS, rows=obstacles))
        return tables

    def _obstacles(self) -> list[tuple[str, str]]:
        """Calls that do not fit, those with the same obstacle together."""
        below = " ".join(map(str, self.problems))
        calls: dict[str, list[str]] = {} if self.ok else {below: ["statistics=dp.Statistics()"]}
        if self.gradients is not None and not self._by_gradients:
            what = " ".join(map(str, self.gradients.problems)) or NEEDS_DELTA
            calls.setdefault(what, []).append("statistics=dp.Gradients()")
        for sampler in self.samplers:
            if not sampler.fits:
                calls.setdefault(sampler.problem, []).append(f"step={short(sampler.call)}")
        return [(",\n".join(names), "see below" if what == below else what) for what, names in calls.items()]


__all__ = ["Explanation"]
