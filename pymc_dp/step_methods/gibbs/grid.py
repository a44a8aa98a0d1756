"""Draws of any elementwise variable on a public grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.draws.finite_choice import choose, settled
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.feeds import MANY
from pymc_dp.step_methods.gibbs.conditionals import Conditional, Sums, Values
from pymc_dp.step_methods.gibbs.held_rows import RowScores


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

    Likelihoods of rows that are held one by one are added up at knots, and interpolated linearly in between. What a row
    adds to a cell is then a mean of what it adds at two knots, so that its range is not larger. At the knots that range
    is enforced on the numbers of every row, which are added up as integers.

    Attributes
    ----------
    points : (n_points, *shape) array
        Middles of the cells, or levels.
    widths : (*shape) array
        Width of the cells of each element; 0 for levels.
    together : bool
    scores : Scores
    held : sequence of RowScores
        Of rows held one by one: by element, or for all elements alike.
    knots : (n_knots, *shape) array
        Places from one end of the bounds to the other, where these are added up; the levels themselves where these are
        the cells.
    """

    kind: ClassVar[str] = "exponential mechanism on a grid"
    points: Array
    widths: Array
    together: bool
    scores: Scores
    held: Sequence[RowScores] = ()
    knots: Array | None = None

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        size = int(np.prod(self.shape))
        flat = self.points.reshape(len(self.points), size)
        if self.together:
            weights = self.scores.at(self.points, values, sums, beta, size) + beta * self.rows_at(self.knots, values)
            chosen = flat[choose(rng, weights.T), np.arange(size)]
            return self._spread(rng, chosen)
        current = np.array(values[self.name], dtype=np.float64).reshape(size)
        for element in range(size):
            points = moved(current.reshape(self.shape), element, self.points)
            knots = None if self.knots is None else moved(current.reshape(self.shape), element, self.knots)
            weights = self.scores.at(points, values, sums, beta, size)[:, element]
            weights = weights + beta * self.rows_at(knots, values, element)[:, 0]
            chosen = current.copy()
            chosen[element] = flat[choose(rng, weights), element]
            current[element] = self._spread(rng, chosen).reshape(size)[element]
        return current.reshape(self.shape)

    def rows_at(self, knots: Array | None, values: Values, element: int = 0) -> Array:
        """Log-likelihood in every cell of the rows held one by one: (n_points, size or 1) array. **Private**."""
        if knots is None:
            return np.zeros((1, 1))
        found = np.zeros((len(knots), 1))
        for scores in self.held:
            found = found + scores(knots, values, element)
        if knots.shape[0] == len(self.points):
            return found
        places = (np.arange(len(self.points)) + 0.5) * ((len(knots) - 1) / len(self.points))
        before = places.astype(int)
        share = (places - before)[:, None]
        return (1 - share) * found[before] + share * found[before + 1]

    def _spread(self, rng: np.random.Generator, chosen: Array) -> Array:
        chosen = chosen.reshape(self.shape)
        return chosen + self.widths * (rng.random(self.shape) - 0.5) if self.widths.any() else chosen


def moved(current: Array, element: int, places: Array) -> Array:
    """Return a variable with one element at each of some (n_places, *shape) values."""
    found = np.tile(current.ravel(), (len(places), 1))
    found[:, element] = places.reshape(len(places), -1)[:, element]
    return found.reshape(-1, *current.shape)


__all__ = ["Grid", "Scores", "moved"]
