"""The log density of a release, given one parameter of each cell, as tables: made when its graph is first asked for.

Given a release, the log density of a cell is a function of its parameter alone. Its table takes the length of a few
multiplications to evaluate, where the integral over exact sums takes thousands. What is tabulated is the graph of
`ReleaseDensity` itself, or, for counts of two levels, the functions that it calls. It stays for other values than the
release, for second derivatives, and where a table cannot be made.

Functions of one number as polynomials on panels: many at once, each halved where a polynomial does not follow it.

A row is one function on its own interval of positive numbers. Every panel is fitted at Chebyshev points, those of all
rows in one call; its last coefficients say whether it is halved. Polynomials are those of the values alone: their
slopes are exact slopes of what is evaluated, as leapfrog steps need them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, override

import numpy as np
from numpy.polynomial import chebyshev
from pytensor.tensor.variable import TensorVariable

from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.released_logp import ReleasedLogp, held

DEGREE = 13
WIDTH = DEGREE + 3
"""Numbers of a panel: its middle, the inverse of half its width, and coefficients of powers of the distance."""
TAIL = 3
"""Last coefficients of a fit, which estimate its error."""
VALUE, SLOPE = 5e-8, 2e-6
"""Errors allowed, of a value and of its slope in the logarithm of the coordinate; ten nats below the largest value, and
further below, they grow with the distance from it."""
ROUNDING = 1e-6
"""Errors below this one that halving does not reduce are those of floats."""
DEEPEST = 40
"""Halvings."""
MOST = 256
"""Panels to a row that may wait at once: a function that needs more is not smooth."""

Evaluate = Callable[[Array, Array], Array]
"""From (m,) numbers of rows and (m, n_points) coordinates to values."""

_POINTS = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
_FIT = np.linalg.inv(chebyshev.chebvander(_POINTS, DEGREE)).T
_POWERS = np.zeros((DEGREE + 1, DEGREE + 1))
for _k in range(DEGREE + 1):
    _POWERS[_k, : _k + 1] = chebyshev.cheb2poly(np.eye(_k + 1)[_k])


@dataclass(frozen=True, kw_only=True, eq=False)
class Panels:
    """Polynomials of all rows, panel by panel, in flat arrays.

    Attributes
    ----------
    starts : (n_rows + 1,) array
        First panel of every row.
    ends : (n_panels,) array
        Right ends.
    numbers : (n_panels * WIDTH,) array
    """

    starts: Array
    ends: Array
    numbers: Array


def tabulate(evaluate: Evaluate, left: Array, right: Array) -> Panels:
    """Fit all rows, each between its `left` and its `right` end.

    Raises
    ------
    FloatingPointError
        Where a value is not finite, or a function is not smooth.
    """
    waiting = _Waiting(rows=np.arange(len(left)), left=left, right=right, before=np.full(len(left), np.inf))
    best, done = np.full(len(left), -np.inf), []
    for depth in range(DEEPEST):
        values = evaluate(waiting.rows, waiting.points)
        if not np.isfinite(values).all() or len(values) > MOST * len(left):
            raise FloatingPointError("A function to be tabulated is not finite, or not smooth.")
        np.maximum.at(best, waiting.rows, values.max(axis=1))
        fitted = values @ _FIT
        good = waiting.followed(fitted, _drop(values, best[waiting.rows])) | (depth == DEEPEST - 1)
        done.append((waiting.rows[good], waiting.numbers(fitted)[good], waiting.right[good]))
        waiting = waiting.halved(~good, fitted)
        if not len(waiting.rows):
            break
    rows, numbers, ends = (np.concatenate(parts) for parts in zip(*done, strict=True))
    order = np.lexsort((ends, rows))
    starts = np.searchsorted(rows[order], np.arange(len(left) + 1)).astype(float)
    return Panels(starts=starts, ends=ends[order], numbers=numbers[order].ravel())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Waiting:
    """Panels to be fitted; `before` is the error of the panel that each is a half of."""

    rows: Array
    left: Array
    right: Array
    before: Array

    @property
    def middle(self) -> Array:
        return (self.left + self.right) / 2

    @property
    def half(self) -> Array:
        return (self.right - self.left) / 2

    @property
    def points(self) -> Array:
        return self.middle[:, None] + self.half[:, None] * _POINTS

    def followed(self, fitted: Array, drop: Array) -> Array:
        """Whether errors are small enough where values are so far below the largest one."""
        tail, times = _tail(fitted), np.maximum(1.0, drop / 10)
        steep = tail * DEGREE * self.middle / self.half
        rounding = (tail < ROUNDING * times) & (tail > self.before / 4)
        found: Array = ((tail < VALUE * times) & (steep < SLOPE * times)) | rounding
        return found

    def numbers(self, fitted: Array) -> Array:
        """Return what is kept of every panel, (n_panels, WIDTH)."""
        return np.column_stack([self.middle, 1 / self.half, fitted @ _POWERS])

    def halved(self, which: Array, fitted: Array) -> Self:
        """Return the halves of those panels."""
        ends = np.column_stack([self.left, self.middle, self.right])[which]
        return type(self)(
            rows=np.repeat(self.rows[which], 2),
            left=ends[:, :2].ravel(),
            right=ends[:, 1:].ravel(),
            before=np.repeat(_tail(fitted)[which], 2),
        )


def _drop(values: Array, best: Array) -> Array:
    """How far the largest value of a panel lies below that of its row: not at all where it lies between the ends."""
    at = values.argmax(axis=1)
    inner = (at > 0) & (at < DEGREE)
    found: Array = np.where(inner, 0.0, best - values.max(axis=1))
    return found


def _tail(fitted: Array) -> Array:
    found: Array = np.abs(fitted[:, -TAIL:]).max(axis=1)
    return found


LEAST, HALF = 1e-16, 0.5
"""Of the share of a chart."""
Form = Callable[[TensorVariable, TensorVariable], TensorVariable]


class TableLogp(ReleasedLogp):
    """Log density of the tabulated release, one entry per cell.

    Its `density` is the same as a graph of a released table and a parameter.
    """

    kernel = "pymc_dp.transforms.level_kernels:table_logp"
    slopes = (0,)
    by_cells = True

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        found: TensorVariable = self.density(inputs[1], inputs[0])
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """Which function of the parameter panels are laid over, see `panel_kernels`.

    Attributes
    ----------
    kind : float
        One of those of the class.
    centre, width : float
        Of positive and of real parameters.
    low, high : float
        Least and largest parameter that the likelihood has.
    """

    PROBABILITY: ClassVar[float] = 0.0
    LOG_ODDS: ClassVar[float] = 1.0
    POSITIVE: ClassVar[float] = 2.0
    REAL: ClassVar[float] = 3.0
    kind: float
    centre: float = 1.0
    width: float = 1.0
    low: float = 0.0
    high: float = 1.0

    @property
    def numbers(self) -> Array:
        """What the kernel takes."""
        return np.array([self.kind, self.centre, self.width, self.low, self.high])


@dataclass(frozen=True, kw_only=True, eq=False)
class CellTables:
    """Tables of all cells of one release.

    Attributes
    ----------
    release : (n_cells, n_columns) array
    chart : Chart
    panels : Panels
        Two rows to a cell.
    """

    release: Array
    chart: Chart
    panels: Panels

    def logp(self, value: TensorVariable, parameter: TensorVariable, form: Form) -> TensorVariable:
        """Log density of every cell: (n_cells,) tensor."""
        return TableLogp(form).log_density(parameter, value, *self._held)

    @cached_property
    def _held(self) -> list[TensorVariable]:
        """Of shapes that no compiled model knows, since each release has other panels."""
        panels = self.panels
        return [
            held(self.release),
            held(self.chart.numbers),
            *(held(item, shape=(None,)) for item in (panels.starts, panels.ends, panels.numbers)),
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {name: item for name, item in self.__dict__.items() if name != "_held"}


__all__ = ["DEGREE", "WIDTH", "CellTables", "Chart", "Panels", "TableLogp", "tabulate"]
