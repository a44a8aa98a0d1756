"""What simulated fits came to: interval widths, coverage and errors, by method, budget and variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log
from statistics import NormalDist
from typing import Any

import numpy as np

from pymc_dp.inspection.rows import Array

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
        each = widths.mean(axis=1)
        return Summary(
            width=float(each.mean()),
            width_error=float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else inf,
            coverage=float(self.covered[name].mean()),
            bias=float(errors.mean()),
            rmse=float(np.sqrt(np.mean(errors**2))),
        )


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Averages of one variable's fits, in units of the variable; `width_error` is the standard error of `width`."""

    width: float
    width_error: float
    coverage: float
    bias: float
    rmse: float


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


__all__ = ["NOT_PRIVATE", "Outcome", "Recorder", "Summary", "least_epsilon"]
