"""What every update of a scan is: a draw of one free variable given the rest, at a known range.

Log-densities of any elementwise variable on a public grid.

Slice sampling, one coordinate after the other: for what costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final, override

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.draws.finite_choice import settled
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.gibbs.owners import MANY

Values = Mapping[str, Array]
Ends = tuple[Array, Array]
"""Public bounds of a free variable."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Conditional(ABC):
    """The update of one free variable given the rest.

    Attributes
    ----------
    name : str
        Free variable.
    shape : tuple of int
    ranges : tuple of float
        The largest that was found, for each draw of the kernel, of how far one row moves the log-likelihood over this
        variable alone. Empty where the update sees no row.
    reason : str
        Where the ranges come from.
    """

    kind: ClassVar[str]
    name: str
    shape: tuple[int, ...]
    ranges: tuple[float, ...] = ()
    reason: str = ""

    @abstractmethod
    def draw(self, rng: np.random.Generator, values: Values) -> Array:
        """Draw this variable given the values of the others (constrained)."""

    @property
    def fact(self) -> tuple[str, str]:
        """The update in public terms, for the trace: of what, and how at which price."""
        paid = f"range {sum(self.ranges):.6g} per scan: {self.reason}" if sum(self.ranges) else "free"
        return f"update of {self.name}", f"{self.kind}{'' if self.ranges else ', sees no row'}; {paid}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """The compiled log-density of all public terms that depend on one variable, at many of its values at once.

    Attributes
    ----------
    size : int
        Elements of the variable.
    function : callable
        From (n, *shape) values of the variable and the values of the others to arrays of (n, ...).
    owners : callable
        From the values of all variables to the element that feeds each entry of each output; `MANY` counts for every
        element.
    """

    size: int
    function: Callable[[Array, Values], Sequence[Array]]
    owners: Callable[[Values], Sequence[Array]]

    def at(self, candidates: Array, values: Values) -> Array:
        """Log-density of each element, up to a constant: (n, size) array."""
        total = np.zeros((len(candidates), self.size))
        for output, places in zip(self.function(candidates, values), self.owners(values), strict=True):
            flat = np.broadcast_to(output, (len(candidates), *places.shape)).reshape(len(candidates), -1)
            owner = places.ravel()
            order = np.argsort(owner, kind="stable")[np.count_nonzero(owner < 0) :]
            if order.size:
                elements, starts = np.unique(owner[order].astype(np.int64), return_index=True)
                total[:, elements] += np.add.reduceat(flat[:, order], starts, axis=1)
            if (owner == MANY).any():
                total += flat[:, owner == MANY].sum(axis=1)[:, None]
        return settled(total)


@dataclass(frozen=True, kw_only=True, eq=False)
class GridUpdate(Conditional):
    """Choice of a cell of a public grid by the kernel, then a uniform draw within the cell, which is post-processing.

    Elements that are independent given the rest are chosen together, others one after the other. Levels of a discrete
    variable are a grid without widths.

    Attributes
    ----------
    points : (n_points, *shape) array
        Middles of the cells, or levels.
    widths : (*shape) array
        Width of the cells of each element; 0 for levels.
    together : bool
    scores : Scores
        Of what is public.
    """

    points: Array
    widths: Array
    together: bool
    scores: Scores

    @property
    def draws(self) -> int:
        """How many choices there are in a scan."""
        return 1 if self.together else self.scores.size

    def candidates(self, values: Values, element: int) -> Array:
        """Return values of the variable among which one is chosen: (n_points, *shape)."""
        if self.together:
            return self.points
        return moved(np.array(values[self.name], dtype=np.float64).reshape(self.shape), element, self.points)

    def public(self, candidates: Array, values: Values, element: int) -> Array:
        """Return public log weights of candidates, (n_points,), or (size, n_points) of elements together."""
        return self.scores.at(candidates, values)[:, self._own(element)].T

    @abstractmethod
    def chosen(self, rng: np.random.Generator, values: Values, element: int) -> Array | int | None:
        """Draw a candidate, or one for each element; None where there is none, and the variable stays."""

    @override
    def draw(self, rng: np.random.Generator, values: Values) -> Array:
        size = self.scores.size
        flat, held = self.points.reshape(len(self.points), size), dict(values)
        current = np.array(values[self.name], dtype=np.float64).reshape(size)
        for element in range(self.draws):
            held[self.name] = current.reshape(self.shape)
            place, own = self.chosen(rng, held, element), self._own(element)
            if place is not None:
                chosen = current.copy()
                chosen[own] = flat[place, np.arange(size)[own]]
                current[own] = spread(rng, chosen.reshape(self.shape), self.widths).reshape(size)[own]
        return current.reshape(self.shape)

    def _own(self, element: int) -> Any:
        return slice(None) if self.together else element


def spread(rng: np.random.Generator, chosen: Array, widths: Array) -> Array:
    """Return uniform draws within the cells whose middles were chosen; levels as they are."""
    return chosen + widths * (rng.random(chosen.shape) - 0.5) if widths.any() else chosen


def moved(current: Array, element: int, places: Array) -> Array:
    """Return a variable with one element at each of some (n_places, *shape) values."""
    found = np.tile(current.ravel(), (len(places), 1))
    found[:, element] = places.reshape(len(places), -1)[:, element]
    return found.reshape(-1, *current.shape)


def somewhere(rng: np.random.Generator, var: Variable, ends: Ends) -> Array:
    """Draw a value of a free variable within its public bounds."""
    low = np.where(np.isfinite(ends[0]), ends[0], np.minimum(-3.0, ends[1] - 1))
    high = np.where(np.isfinite(ends[1]), ends[1], np.maximum(3.0, low + 1))
    dtype = np.dtype(var.type.dtype)
    if dtype.kind in "iub":
        return np.asarray(rng.integers(low.astype(int), high.astype(int), endpoint=True), dtype=dtype)
    return np.asarray(low + (high - low) * rng.random(low.shape), dtype=dtype)


WIDTH = 2.0
MOST_STEPS = 64
"""Widths that an interval may grow by; more would not make it less correct, only longer."""


def slice_draw(
    rng: np.random.Generator, density: Callable[[Array], float], start: Array, widths: Array | float = WIDTH
) -> Array:
    """Update every coordinate of an array once, leaving a density invariant.

    Parameters
    ----------
    rng : numpy.random.Generator
    density : callable
        Log-density up to a constant; -inf or NaN outside of the support.
    start : array
        A point of the support.
    widths : array or float
        Of the first interval of each coordinate, fixed beforehand; the distribution is the same whatever they are.

    References
    ----------
    Neal (2003), Slice sampling, figures 3 and 5, doi 10.1214/aos/1056562461.

    Examples
    --------
    >>> x = slice_draw(np.random.default_rng(1), lambda x: -float((x**2).sum()) / 2, np.zeros(3))
    >>> x.shape
    (3,)
    """
    point = np.array(start, dtype=np.float64)
    flat = point.reshape(-1)
    first = np.broadcast_to(widths, point.shape).ravel()
    for place in range(flat.size):
        _update(rng, density, point, flat, place, float(first[place]))
    return point


def _update(
    rng: np.random.Generator, density: Callable[[Array], float], point: Array, flat: Array, place: int, width: float
) -> None:
    origin = flat[place]

    def at(value: float) -> float:
        flat[place] = value
        found = float(density(point))
        return -np.inf if np.isnan(found) else found

    level = at(origin) - rng.standard_exponential()
    left = origin - width * rng.random()
    right = left + width
    budget = int(rng.integers(MOST_STEPS))
    for _ in range(budget):
        if at(left) <= level:
            break
        left -= width
    for _ in range(MOST_STEPS - 1 - budget):
        if at(right) <= level:
            break
        right += width
    while True:
        value = left + (right - left) * rng.random()
        if at(value) > level or left == right:
            return
        if value < origin:
            left = value
        else:
            right = value


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Free(Conditional):
    """Slice sampling of a variable that sees no row: a function of released states, at no cost.

    It leaves its conditional invariant, where the other updates draw from theirs.

    Attributes
    ----------
    density : callable
        From the variable on its unconstrained scale and the others' values to the log-density.
    forward, backward : callable
        To and from the unconstrained scale, given the others' values.
    """

    kind = "slice sampling"
    density: Callable[[Array, Values], float]
    forward: Callable[[Array, Values], Array]
    backward: Callable[[Array, Values], Array]

    @override
    def draw(self, rng: np.random.Generator, values: Values) -> Array:
        start = self.forward(values[self.name], values)
        return self.backward(slice_draw(rng, lambda place: self.density(place, values), start), values)


__all__ = ["Conditional", "Ends", "Free", "Scores", "Values", "moved", "slice_draw", "somewhere", "spread"]
