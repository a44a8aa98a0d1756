"""The result of ``dp.plan``: a table in a terminal and in a notebook, a data frame, and the ε that a width needs.

What simulated fits came to: interval widths, coverage and errors, by method, budget and variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, log
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, override

import numpy as np

from pymc_dp import _validate
from pymc_dp._display import Listing, Page, Shown, Table
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.plan.misfit import COLUMNS, Misfit, misfit_notes

if TYPE_CHECKING:
    import pandas as pd


NOT_PRIVATE = "not private"


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """Fits of one method at one budget.

    Attributes
    ----------
    method : str
    epsilon, delta : float
        Budget; infinite where nothing is private.
    widths, covered, errors : mapping of str to (repeats, n_elements) arrays
        By variable: width of the interval, whether it holds the truth (1 or 0), and posterior mean less truth. Where a
        method has no interval, the first two are NaN.
    plain : mapping of str to (repeats, n_elements) array, optional
        Widths without privacy, where tables are others than those of other outcomes.
    """

    method: str
    epsilon: float
    delta: float
    widths: Mapping[str, Array]
    covered: Mapping[str, Array]
    errors: Mapping[str, Array]
    plain: Mapping[str, Array] | None = None

    def only(self, names: Sequence[str]) -> Outcome:
        """Return the same of some variables alone."""
        widths, covered, errors = (
            {name: part[name] for name in names} for part in (self.widths, self.covered, self.errors)
        )
        plain = None if self.plain is None else {name: self.plain[name] for name in names}
        return replace(self, widths=widths, covered=covered, errors=errors, plain=plain)

    def summary(self, name: str) -> Summary:
        """Return averages over repeats and the elements of a variable."""
        widths, errors = self.widths[name], self.errors[name]
        each, squares = widths.mean(axis=1), np.mean(errors**2, axis=1)
        rmse = float(np.sqrt(squares.mean()))
        return Summary(
            width=float(each.mean()),
            width_error=_standard_error(each),
            coverage=float(self.covered[name].mean()),
            bias=float(errors.mean()),
            rmse=rmse,
            rmse_error=_standard_error(squares) / (2 * rmse) if rmse else 0.0,
        )


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Averages of one variable's fits, in units of the variable; errors are standard errors, over repeats."""

    width: float
    width_error: float
    coverage: float
    bias: float
    rmse: float
    rmse_error: float


def _standard_error(each: Array) -> float:
    """Of the mean of what each repeat came to."""
    return float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else inf


class Recorder:
    """Collects the fits of one method at one budget.

    Parameters
    ----------
    names : sequence of str
    interval : float
        Probability of the central intervals.
    """

    def __init__(self, names: Sequence[str], interval: float) -> None:
        self.names = tuple(names)
        self.tails = ((1 - interval) / 2, (1 + interval) / 2)
        self.rows: dict[str, list[tuple[Array, Array, Array]]] = {name: [] for name in names}

    def add(self, draws: Sequence[Any], truth: Mapping[str, Array]) -> None:
        """Note draws of one posterior, (n_draws, *shape) arrays by variable; one draw alone has no width."""
        for name, drawn in zip(self.names, draws, strict=True):
            flat, true = np.reshape(drawn, (len(drawn), -1)), np.ravel(truth[name])
            error = flat.mean(axis=0) - true
            width, covered = np.full(len(true), np.nan), np.full(len(true), np.nan)
            if len(flat) > 1:
                low, high = np.quantile(flat, self.tails, axis=0)
                width, covered = high - low, ((low <= true) & (true <= high)).astype(np.float64)
            self.rows[name].append((width, covered, error))

    def add_normal(self, means: Mapping[str, Array], sds: Mapping[str, Array], truth: Mapping[str, Array]) -> None:
        """Note a normal posterior: mean and standard deviation of every element of each variable."""
        reach = NormalDist().inv_cdf(self.tails[1])
        for name in self.names:
            error = means[name] - truth[name]
            half = reach * sds[name]
            self.rows[name].append((2 * half, (np.abs(error) <= half).astype(np.float64), error))

    def outcome(self, method: str, epsilon: float, delta: float, plain: Mapping[str, Array] | None = None) -> Outcome:
        """Return what was collected."""
        widths, covered, errors = (
            {name: np.stack([row[place] for row in rows]) for name, rows in self.rows.items()} for place in range(3)
        )
        return Outcome(
            method=method, epsilon=epsilon, delta=delta, widths=widths, covered=covered, errors=errors, plain=plain
        )  # fmt: skip


def least_epsilon(epsilons: Sequence[float], widths: Sequence[float], wanted: float) -> float | None:
    """Return the least ε whose interval is narrow enough, interpolated between those simulated on log-log scale.

    Widths are made to fall first: where one rises, by chance, it counts as much as the one before. None where no ε
    reaches what is wanted; the least ε where all do.
    """
    order = np.argsort(epsilons)
    losses, falling = np.asarray(epsilons)[order], np.minimum.accumulate(np.asarray(widths)[order])
    reached = np.flatnonzero(falling <= wanted)
    if not len(reached):
        return None
    place = int(reached[0])
    if place == 0:
        return float(losses[0])
    before, after = log(falling[place - 1]), log(falling[place])
    part = (before - log(wanted)) / (before - after)
    return exp(log(losses[place - 1]) + part * (log(losses[place]) - log(losses[place - 1])))


FRAME_COLUMNS = (
    *("variable", "method", "epsilon", "delta", "width", "width_error", "width_ratio", "coverage", "bias", "rmse"),
    "rmse_error",
)
SHORT = 3
"""Standard errors that a coverage may be short of what it should be, by chance."""


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """The least ε that reaches a wanted width, or why there is none.

    Attributes
    ----------
    epsilon, delta : float or None
        Budget; None where no simulated budget reaches the width.
    method : str or None
    width : float
        What was wanted.
    var_name : str
    text : str
        The same in words.

    Examples
    --------
    >>> Suggestion(epsilon=0.2, delta=0.0, method="laplace", width=0.1, var_name="p", text="p: ε = 0.2 by laplace.")
    p: ε = 0.2 by laplace.
    """

    epsilon: float | None
    delta: float | None
    method: str | None
    width: float
    var_name: str
    text: str = field(compare=False)

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan(Shown):
    """What each budget would buy, by simulation from the prior; no private row was read for it.

    Attributes
    ----------
    outcomes : tuple of Outcome
        One for each method and ε; the first is the posterior that is not private.
    repeats : int
        Simulations behind each number.
    interval : float
        Probability of the intervals.
    rows : str
        How many rows were simulated, in words.
    how : str
        How posteriors were found, in words.
    wanted : mapping of str to float
        Widths that were asked for.
    notes : tuple of str
        What else there is to say.
    misfit : tuple of Misfit
        Releases of rows that do not fit the model; empty where none were rehearsed.

    Examples
    --------
    >>> import numpy as np
    >>> def outcome(method, epsilon, width):
    ...     shape = (2, 1)  # two simulations of one parameter
    ...     return Outcome(
    ...         method=method,
    ...         epsilon=epsilon,
    ...         delta=0.0,
    ...         widths={"p": np.full(shape, width)},
    ...         covered={"p": np.ones(shape)},
    ...         errors={"p": np.zeros(shape)},
    ...     )
    >>> outcomes = outcome("not private", inf, 0.1), outcome("laplace", 0.1, 0.4), outcome("laplace", 1.0, 0.2)
    >>> found = Plan(outcomes=outcomes, repeats=2, interval=0.9, rows="100 rows", how="by hand", wanted={})
    >>> found.suggest(width=0.3)
    p: ε = 0.26 by laplace for a mean 90% interval of width 0.3.
    """

    outcomes: tuple[Outcome, ...]
    repeats: int
    interval: float
    rows: str
    how: str
    wanted: Mapping[str, float]
    notes: tuple[str, ...] = ()
    misfit: tuple[Misfit, ...] = ()

    @property
    def var_names(self) -> tuple[str, ...]:
        """Variables."""
        return tuple(self.outcomes[0].widths)

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that were compared, on tables as they are expected."""
        return tuple(dict.fromkeys(outcome.method for outcome in self.outcomes[1:] if outcome.plain is None))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per variable, method and ε, averaged over repeats and the elements of a variable.

        ``width`` of the interval, ``bias`` and ``rmse`` of the posterior mean, and the standard errors ``width_error``
        and ``rmse_error`` are in units of the variable; ``width_ratio`` is the width over that of the posterior that is
        not private.
        """
        import pandas as pd

        rows = [self._row(name, outcome) for name in self.var_names for outcome in self.outcomes]
        return pd.DataFrame(rows, columns=list(FRAME_COLUMNS))

    def suggest(self, width: float, *, var_name: str | None = None) -> Suggestion:
        """Return the least ε whose mean interval is as narrow as `width`, and the method.

        Parameters
        ----------
        width : float
            Mean width of the interval, in units of the variable, > 0.
        var_name : str, optional
            May be left out where there is one variable. The mean is over its elements.

        Raises
        ------
        ArgumentError

        Notes
        -----
        Between simulated budgets the width is interpolated on log-log scale; nothing is said beyond them. A method
        whose intervals cover less than they claim, by more than `SHORT` standard errors at any of its budgets, is left
        out.
        """
        name = self._named(var_name)
        wanted = _validate.number("width", width)
        if wanted <= 0:
            raise ArgumentError(f"width must be > 0, got {wanted:g}.")
        found, short = [], self._short(name)
        for method in self.methods:
            if method in short:
                continue
            own = [outcome for outcome in self.outcomes[1:] if outcome.method == method]
            widths = [outcome.summary(name).width for outcome in own]
            epsilon = least_epsilon([outcome.epsilon for outcome in own], widths, wanted)
            if epsilon is not None:
                found.append((epsilon, own[0].delta, method, epsilon == min(item.epsilon for item in own)))
        if not found:
            text = f"{self._out_of_reach(name, wanted)}{_left_out(short)}"
            return Suggestion(epsilon=None, delta=None, method=None, width=wanted, var_name=name, text=text)
        epsilon, delta, method, least = min(found, key=lambda item: item[:2])
        at = f" at δ = {delta:g}" if delta else ""
        best = f"ε = {epsilon:.3g}{at} by {method}" + (" (the least that was simulated) or less" if least else "")
        others = "; ".join(f"ε = {item[0]:.3g} by {item[2]}" for item in sorted(found)[1:])
        text = f"{name}: {best} for a mean {self.interval:.0%} interval of width {wanted:g}"
        text = f"{text}{f' ({others})' if others else ''}.{_left_out(short)}"
        return Suggestion(epsilon=epsilon, delta=delta, method=method, width=wanted, var_name=name, text=text)

    def _row(self, name: str, outcome: Outcome) -> tuple[object, ...]:
        found = outcome.summary(name)
        return (
            *(name, outcome.method, outcome.epsilon, outcome.delta, found.width, found.width_error),
            *(found.width / self._plain(name, outcome), found.coverage, found.bias, found.rmse),
            found.rmse_error,
        )

    def _plain(self, name: str, outcome: Outcome) -> float:
        """Mean width without privacy, on the same tables."""
        return self.outcomes[0].summary(name).width if outcome.plain is None else float(outcome.plain[name].mean())

    def _named(self, var_name: str | None) -> str:
        if var_name is None:
            if len(self.var_names) > 1:
                raise ArgumentError(
                    f"the plan has several variables, in units of their own: give var_name=, one of "
                    f"{', '.join(map(repr, self.var_names))}."
                )
            return self.var_names[0]
        return _validate.choice("var_name", var_name, self.var_names)

    def _short(self, name: str) -> list[str]:
        """Methods whose intervals cover less than they claim."""
        least = self.interval - SHORT * self._chance
        return [
            method
            for method in self.methods
            if any(o.summary(name).coverage < least for o in self.outcomes[1:] if o.method == method)
        ]

    @property
    def _chance(self) -> float:
        """Standard error of a coverage."""
        return float((self.interval * (1 - self.interval) / self.repeats) ** 0.5)

    def _out_of_reach(self, name: str, wanted: float) -> str:
        plain = self.outcomes[0].summary(name).width
        text = f"{name}: none of the budgets that were simulated reaches a width of {wanted:g}"
        if plain > wanted:
            return f"{text}; without privacy it is {plain:.3g}: more rows are needed."
        return f"{text}; without privacy it is {plain:.3g}: simulate a larger epsilon."

    @property
    @override
    def _page(self) -> Page:
        texts = [self.suggest(width, var_name=name).text for name, width in self.wanted.items()]
        headline = " ".join(texts) or f"{self.rows}, {self.repeats} simulations from the prior; no row was read."
        return Page(
            title="What would ε buy?",
            headline=headline,
            good=True,
            parts=[
                *map(self._table, self.var_names),
                *self._misfits(),
                Listing(title="How to read it", lines=self._notes()),
            ],
        )

    def _table(self, name: str) -> Table:
        columns = ("method", "ε", f"{self.interval:.0%} interval", "over not private", "coverage", "bias", "RMSE")
        return Table(title=name, columns=columns, rows=[self._cells(name, outcome) for outcome in self.outcomes])

    def _misfits(self) -> list[Table]:
        title = "Rows that do not fit the model, all variables together"
        return [Table(title=title, columns=COLUMNS, rows=[one.cells for one in self.misfit])] if self.misfit else []

    def _cells(self, name: str, outcome: Outcome) -> tuple[str, ...]:
        found = outcome.summary(name)
        epsilon = "∞" if outcome.epsilon == inf else f"{outcome.epsilon:g}"
        width = (f"{found.width:.3g}", f"{found.width / self._plain(name, outcome):.2f}", f"{found.coverage:.0%}")
        if found.width != found.width:
            width = ("one draw", "", "")
        return outcome.method, epsilon, *width, f"{found.bias:+.2g}", f"{found.rmse:.2g}"

    def _notes(self) -> tuple[str, ...]:
        deltas = {outcome.method: outcome.delta for outcome in self.outcomes[1:] if outcome.delta}
        at = ", ".join(f"{method} at δ = {delta:g}" for method, delta in deltas.items())
        return (
            f"{self.rows}, parameters and rows simulated from the prior {self.repeats} times, the same for every "
            "budget; no private row was read, and nothing is spent.",
            "Intervals and errors are means over simulations and the elements of a variable, in its units; bias and "
            "RMSE are those of the posterior mean.",
            f"Coverage should be {self.interval:.0%}; chance moves it by about ±{self._chance:.0%}. Posteriors were "
            f"found {self.how}.",
            *([f"Budgets with δ: {at}."] if at else []),
            *self.notes,
            *misfit_notes(self.misfit),
        )


def _left_out(methods: list[str]) -> str:
    return f" Left out, because intervals cover less than they claim: {', '.join(methods)}." if methods else ""


__all__ = ["FRAME_COLUMNS", "NOT_PRIVATE", "Outcome", "Plan", "Recorder", "Suggestion", "Summary", "least_epsilon"]
