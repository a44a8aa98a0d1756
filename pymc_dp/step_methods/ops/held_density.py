"""The tempered density of a chain that holds rows one by one: the number of each is held within a public interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.gradient import disconnected_grad, grad
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import stable
from pymc_dp.inspection.one_row import frozen_shared
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.row_density import guarded
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.rows.gate import read
from pymc_dp.samplers.found_range import FoundRange
from pymc_dp.samplers.near_rows import CHUNK, ROOM
from pymc_dp.samplers.row_function import vectorised
from pymc_dp.step_methods.ops.grid import over_flat, prior_terms

ANCHORS, COMPARED = 64, 512
"""Points at which a row's own level is looked at, and rows for which the interval is made narrow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Held:
    """Clamped rows by the names of their columns, how often each of them occurs, and the level of each. Private."""

    rows: dict[str, Array]
    counts: Array
    levels: Array

    def nothing(self) -> Held:
        """Return the same without rows."""
        rows = {name: values[:0] for name, values in self.rows.items()}
        return Held(rows=rows, counts=self.counts[:0], levels=self.levels[:0])


class HeldDensity:
    """Log prior, and the sum over rows of numbers that are held within an interval, as graphs over a flat vector.

    The number of a row at θ is ``l(x, θ) - c(θ) - a(x)``. c is public: under replace the mean of some public rows, and
    where columns are public, that of two rows with the same public values. a, the level of the row, is a sum of its
    numbers at a few public points: a function of the row alone. The interval is the same for all rows: what is found of
    public rows at public points, so that it hardly cuts.

    Parameters
    ----------
    inspection : RowInspection
    found : FoundRange

    Attributes
    ----------
    low, high : float
        The interval.
    range : float
        What neighbours move the sum by, as a range over the parameters, whatever the density and the rows are:
        twice its length under replace, and once under add_remove.

    Raises
    ------
    UnsupportedModelError
        If a parameter is discrete.

    Notes
    -----
    **Guarantee.** A row adds c(θ), which is public, and a number within the interval. So between neighbours the
    difference of both sums ranges over θ by no more than `range`. Numbers are floats, and sums of them too.
    """

    def __init__(self, inspection: RowInspection, found: FoundRange) -> None:
        _refuse_discrete(found.priors)
        self.priors, self.columns, self._found = found.priors, inspection.columns, found
        self._rows, self._replace = found.rows, inspection.domain.neighbours == "replace"
        self._anchors, self._shares, self.low, self.high = _interval(found)
        self.range = (self.high - self.low) * (2 if self._replace else 1)

    @property
    def words(self) -> str:
        """What is enforced, for the trace."""
        centre = "the mean of public rows" if len(self._found.near.centre[1]) or self._found.public else "nothing"
        return (
            f"{self._found.reason}; the number of every row at every point, less {centre} and its own level at public "
            f"points, is held within ({self.low:.4g}, {self.high:.4g})"
        )

    def read(self) -> Held:
        """Return clamped rows; equal rows of whole numbers are counted. Reads private data."""
        return self.held([read(column) for column in self.columns])

    def held(self, table: Sequence[Array]) -> Held:
        """Return rows of a table, one clamped array per column, with their levels.

        Where there is none, a row that counts as nothing is held: not every operation takes a table without rows.
        """
        inputs = self._rows.inputs
        rows = {
            name: np.ascontiguousarray(values.reshape(len(values), *var.type.shape).astype(var.type.dtype))
            for (name, var), values in zip(inputs.items(), table, strict=True)
        }
        counts = np.ones(len(table[0]))
        if not len(counts):
            rows = {name: np.zeros((1, *values.shape[1:]), values.dtype) for name, values in rows.items()}
            return Held(rows=rows, counts=np.zeros(1), levels=np.zeros(1))
        private = not any(column.public for column in self.columns)  # public rows keep their order
        if private and all(column.integer and not column.row_shape for column in self.columns):
            stacked, times = np.unique(np.stack(list(rows.values()), axis=1), axis=0, return_counts=True)
            rows = {name: np.ascontiguousarray(part) for name, part in zip(rows, stacked.T, strict=True)}
            counts = times.astype(np.float64)
        return Held(rows=rows, counts=counts, levels=self._levels(rows))

    def _levels(self, rows: Mapping[str, Array]) -> Array:
        """Return a number of each row; **private** if the rows are."""
        if not len(self._anchors):
            return np.zeros(len(next(iter(rows.values()))))
        size, parts = max(1, CHUNK // len(self._anchors)), []
        for start in range(0, len(next(iter(rows.values()))), size):
            some = {name: values[start : start + size] for name, values in rows.items()}
            parts.append(_numbers(self._found, some, self._anchors) @ self._shares)
        found = np.concatenate(parts)
        return np.where(np.isfinite(found), found, 0.0)

    def stand_ins(self) -> Held:
        """Return shared variables for rows, counts and levels, without rows."""
        rows: dict[str, Any] = {
            name: pytensor.shared(np.zeros((0, *var.type.shape), var.type.dtype), shape=(None, *var.type.shape))
            for name, var in self._rows.inputs.items()
        }
        counts, levels = (pytensor.shared(np.zeros(0), shape=(None,)) for _ in range(2))
        return Held(rows=rows, counts=counts, levels=levels)

    def graphs(self, prior_model: Model, flat: Variable, held: Held) -> tuple[Any, Any]:
        """Return log prior density and the sum over rows as graphs over a flat vector and variables for rows.

        The gradient of the sum is made row by row: one that is NaN or infinite counts as 0.
        """
        one = {var: held.rows[name] for name, var in self._rows.inputs.items()}
        logp, slope = stable(self._rows.logp), self._rows.slope()
        every, slopes, public = vectorised(logp, one), vectorised(slope, one), pt.constant(0.0)
        if self._found.public:
            middle = stable(self._rows.middle_of_ends(self._found.public))
            beside = vectorised(middle, one)
            every, public = every - beside, pt.dot(held.counts, beside)
            slopes = slopes - vectorised(_slope(middle, self._rows.at), one)
        some, shares = self._found.near.centre
        if len(shares):
            near = vectorised(logp, {var: pt.constant(some[name]) for name, var in self._rows.inputs.items()})
            centre = pt.dot(pt.constant(shares), near)
            every, public = every - centre, public + pt.sum(held.counts) * centre
            slopes = slopes - _slope(centre, self._rows.at)
        number = every - held.levels
        inside = (number > self.low) & (number < self.high)
        within = pt.switch(number > self.low, pt.switch(number < self.high, number, self.high), self.low)
        usable = inside & pt.all(pt.isfinite(slopes), axis=1)
        slope = pt.dot(held.counts, pt.switch(usable[:, None], slopes, 0.0))
        total = _with_slope(pt.dot(held.counts, within), self._rows.at, slope) + public
        return _prior(prior_model, self.priors, flat), rebuild([total], {self._rows.at: flat})[0][0]


def _slope(number: Variable, at: Variable) -> Any:
    return grad(number, at, disconnected_inputs="ignore", return_disconnected="zero")


def _with_slope(number: Variable, at: Variable, slope: Variable) -> Any:
    """Return a number whose gradient is a given one; it is 0 where that is infinite, as sums may be."""
    held, place, given = (disconnected_grad(part) for part in (number, at, pt.switch(pt.isfinite(slope), slope, 0.0)))
    return held + pt.dot(given, at - place)


def _numbers(found: FoundRange, rows: Mapping[str, Array], points: Array) -> Array:
    """Return (n_rows, n_points) numbers less what is public about them."""
    some, shares = found.near.centre
    values = found.near.at(rows, points, centred=True)
    return values - shares @ found.near.at(some, points) if len(shares) else values


def _interval(found: FoundRange) -> tuple[Array, Array, float, float]:
    """Choose points and shares whose sums are the levels of rows, such that all rows less these fit a narrow interval.

    A linear program over public rows: the largest number of each, less its level, is below the upper end, and the
    least above the lower one.
    """
    from scipy.optimize import linprog  # heavy, and not needed by most

    near = found.near
    rows = {name: np.concatenate([near.far[name], values]) for name, values in near.public.rows.items()}
    table = _numbers(found, rows, near.points)
    high, low = table.max(axis=1), table.min(axis=1)
    chosen = np.unique(np.concatenate([np.argsort(-high)[:COMPARED // 4], np.argsort(low)[:COMPARED // 4],
                                       np.argsort(low - high)[:COMPARED // 4],
                                       np.linspace(0, len(table) - 1, COMPARED // 4, dtype=int)]))  # fmt: skip
    wide = chosen[np.argsort(low[chosen] - high[chosen])][: ANCHORS // 4]
    places = np.unique(np.concatenate([table[wide].argmax(axis=1), table[wide].argmin(axis=1),
                                       np.linspace(0, len(near.points) - 1, ANCHORS // 2, dtype=int)]))  # fmt: skip
    own, ones = table[np.ix_(chosen, places)], np.ones((len(chosen), 1))
    solved = linprog(
        np.array([*np.zeros(len(places)), 1.0, -1.0]),
        A_ub=np.concatenate([np.hstack([-own, -ones, 0 * ones]), np.hstack([own, 0 * ones, ones])]),
        b_ub=np.concatenate([-high[chosen], low[chosen]]),
        bounds=[(0.0, 1.0)] * len(places) + [(None, None)] * 2,
    )
    shares = np.where(solved.x[:-2] > 1e-9, solved.x[:-2], 0.0) if solved.success else np.zeros(len(places))
    best = (high - table[:, places] @ shares).max() - (low - table[:, places] @ shares).min()
    if best >= (high.max() - low.min()) * (1 - 1e-3):  # levels gain nothing
        shares = np.zeros(len(places))
    kept = shares > 0
    levels = table[:, places[kept]] @ shares[kept]
    ends = float((low - levels).min()), float((high - levels).max())
    room = ROOM * (ends[1] - ends[0])
    return near.points[places[kept]], shares[kept], ends[0] - room, ends[1] + room


def _refuse_discrete(priors: Sequence[Prior]) -> None:
    found = [prior.name for prior in priors if not prior.variable.type.dtype.startswith("float")]
    if found:
        what = "it is discrete, and posteriors of rows held one by one are drawn for continuous parameters only"
        remedy = "Use dp.TemperedGibbs(), or sum the parameter out of the likelihood."
        raise UnsupportedModelError([Problem(where=name, what=what, remedy=remedy) for name in found])


def _prior(prior_model: Model, priors: Sequence[Prior], flat: Variable) -> Any:
    terms = prior_terms(prior_model)
    own, (total,) = over_flat(prior_model, priors, [pt.add(*terms) if len(terms) > 1 else terms[0]])
    # Where a parent is invalid a point is impossible, which is no error: trials look at the ends of supports.
    return stable(frozen_shared(guarded(rebuild([total], {own: flat})[0][0]), ()))


__all__ = ["Held", "HeldDensity"]
