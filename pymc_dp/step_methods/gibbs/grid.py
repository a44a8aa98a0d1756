"""Draws of any elementwise variable on a public grid.

What every update of a scan is: a draw of one free variable given the rest, at a known range.

Slice sampling, one coordinate after the other: for what costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.draws.finite_choice import choose, settled
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.feeds import MANY
from pymc_dp.transforms.likelihood import ExactSums

Values = Mapping[str, Array]
Sums = Mapping[str, ExactSums]


@dataclass(frozen=True, kw_only=True, eq=False)
class Conditional(ABC):
    """The update of one free variable given the rest.

    Attributes
    ----------
    name : str
        Free variable.
    shape : tuple of int
    ranges : tuple of float
        What each mechanism of the update pays at temperature 1: bound of the range over this variable alone of the
        difference of two rows' log-likelihoods. Empty where the update sees no row.
    reason : str
        Where the ranges come from.
    """

    kind: ClassVar[str]
    name: str
    shape: tuple[int, ...]
    ranges: tuple[float, ...] = ()
    reason: str = ""

    @abstractmethod
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        """Draw this variable given the values of the others (constrained) and the exact sums, tempered by `beta`."""

    @property
    def fact(self) -> tuple[str, str]:
        """The update in public terms, for the trace: of what, and how at which price."""
        paid = f"range {sum(self.ranges):.6g} per scan: {self.reason}" if sum(self.ranges) else "free"
        return f"update of {self.name}", f"{self.kind}{'' if self.ranges else ', sees no row'}; {paid}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """The compiled log-density of everything that depends on one variable, at many of its values at once.

    Attributes
    ----------
    function : callable
        From (n, *shape) values of the variable, the values of the others, and the exact sums, to arrays of (n, ...).
    owners : sequence of integer arrays
        Element that feeds each entry of each output; `MANY` counts for every element.
    rows : sequence of bool
        Whether an output is a likelihood of rows, to be tempered.
    """

    function: Callable[[Array, Values, Sums], Sequence[Array]]
    owners: Sequence[Array]
    rows: Sequence[bool]

    def at(self, candidates: Array, values: Values, sums: Sums, beta: float, size: int) -> Array:
        """Log-density of each element, up to a constant: (n, size) array."""
        public, private = np.zeros((2, len(candidates), size))
        for output, owner, tempered in zip(
            self.function(candidates, values, sums), self.owners, self.rows, strict=True
        ):
            total, factor = (private, beta) if tempered else (public, 1.0)
            flat = np.broadcast_to(output, (len(candidates), *owner.shape)).reshape(len(candidates), -1)
            places = owner.ravel()
            order = np.argsort(places, kind="stable")[np.count_nonzero(places < 0) :]
            if order.size:
                elements, starts = np.unique(places[order], return_index=True)
                total[:, elements] += factor * np.add.reduceat(flat[:, order], starts, axis=1)
            if (places == MANY).any():
                total += factor * flat[:, places == MANY].sum(axis=1)[:, None]
        return settled(public) + private


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Grid(Conditional):
    """Choice of a cell of a public grid by the exponential mechanism, then a uniform draw within the cell.

    The second is post-processing. Elements that are independent given the rest are chosen together, one mechanism for
    all; others one after the other. Levels of a discrete variable are a grid without widths.

    Attributes
    ----------
    points : (n_points, *shape) array
        Middles of the cells, or levels.
    widths : (*shape) array
        Width of the cells of each element; 0 for levels.
    together : bool
    scores : Scores
    """

    kind: ClassVar[str] = "exponential mechanism on a grid"
    points: Array
    widths: Array
    together: bool
    scores: Scores

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        size = int(np.prod(self.shape))
        flat = self.points.reshape(len(self.points), size)
        if self.together:
            weights = self.scores.at(self.points, values, sums, beta, size)
            chosen = flat[choose(rng, weights.T), np.arange(size)]
            return spread(rng, chosen.reshape(self.shape), self.widths)
        current = np.array(values[self.name], dtype=np.float64).reshape(size)
        for element in range(size):
            points = moved(current.reshape(self.shape), element, self.points)
            weights = self.scores.at(points, values, sums, beta, size)[:, element]
            chosen = current.copy()
            chosen[element] = flat[choose(rng, weights), element]
            current[element] = spread(rng, chosen.reshape(self.shape), self.widths).reshape(size)[element]
        return current.reshape(self.shape)


def spread(rng: np.random.Generator, chosen: Array, widths: Array) -> Array:
    """Return uniform draws within the cells whose middles were chosen; levels as they are."""
    return chosen + widths * (rng.random(chosen.shape) - 0.5) if widths.any() else chosen


def moved(current: Array, element: int, places: Array) -> Array:
    """Return a variable with one element at each of some (n_places, *shape) values."""
    found = np.tile(current.ravel(), (len(places), 1))
    found[:, element] = places.reshape(len(places), -1)[:, element]
    return found.reshape(-1, *current.shape)


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
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        start = self.forward(values[self.name], values)
        return self.backward(slice_draw(rng, lambda place: self.density(place, values), start), values)


__all__ = ["Conditional", "Grid", "Scores", "Sums", "Values", "moved", "spread"]
