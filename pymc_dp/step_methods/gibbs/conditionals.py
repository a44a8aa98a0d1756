"""Draws from tempered conditionals: conjugate ones, and any elementwise one on a public grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.exponential import choose
from pymc_dp.mechanisms.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal
from pymc_dp.step_methods.gibbs.boxes import MANY
from pymc_dp.step_methods.gibbs.held_rows import RowScores
from pymc_dp.step_methods.gibbs.slice import slice_draw
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

Values = Mapping[str, Array]
Sums = Mapping[str, ExactSums]


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """How one observed variable's cells hang on a free variable that is their parameter.

    Attributes
    ----------
    table : TableLikelihood
    places : (n_cells,) integer array
        Element (for a simplex: the row) of the free variable in each cell.
    states : str
        Discrete free variable whose values choose the rows, where one does: `places` are then those of its elements.
    """

    table: TableLikelihood
    places: Array
    states: str = ""

    def rows(self, values: Values) -> Array:
        """Row of a variable of simplices in each cell."""
        return np.asarray(values[self.states], dtype=np.int64).ravel()[self.places] if self.states else self.places

    def gather(self, per_cell: Array, size: int) -> Array:
        """Add up a number per cell to one per element."""
        return np.bincount(self.places, weights=np.broadcast_to(per_cell, self.places.shape), minlength=size)


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
    ranges: tuple[float, ...]
    reason: str

    @abstractmethod
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        """Draw this variable given the values of the others (constrained) and the exact sums, tempered by `beta`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Conjugate(Conditional):
    """Exact draws from a truncated conjugate law; all elements at once, for they are independent given the rest.

    Attributes
    ----------
    hyper : callable
        Parameters of the prior as arrays of `shape`, given the values of the other variables.
    low, high : arrays of `shape`
    links : sequence of Link
    """

    hyper: Callable[[Values], tuple[Array, ...]]
    low: Array
    high: Array
    links: Sequence[Link]

    @property
    def size(self) -> int:
        """Number of scalars."""
        return int(np.prod(self.shape))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class BetaBernoulli(Conjugate):
    """Beta or uniform prior of a probability."""

    kind: ClassVar[str] = "truncated beta"

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        a, b = self.hyper(values)
        for link in self.links:
            held = sums[link.table.name].sums
            a = a + beta * link.gather(held[:, 1], self.size).reshape(self.shape)
            b = b + beta * link.gather(held[:, 0], self.size).reshape(self.shape)
        return truncated_beta(rng, a, b, self.low, self.high)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class GammaPoisson(Conjugate):
    """Gamma, exponential or uniform prior of a rate."""

    kind: ClassVar[str] = "truncated gamma"

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        shape, rate = self.hyper(values)
        for link in self.links:
            held, statistic = sums[link.table.name], link.table.statistic
            assert isinstance(statistic, BoundedMoments)
            total = held.sums[:, 0] + statistic.centre * held.sizes
            shape = shape + beta * link.gather(total, self.size).reshape(self.shape)
            rate = rate + beta * link.gather(held.sizes, self.size).reshape(self.shape)
        return truncated_gamma(rng, shape, rate, self.low, self.high)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DirichletCategorical(Conjugate):
    """(Truncated) Dirichlet prior of category probabilities; `shape` has the categories last."""

    kind: ClassVar[str] = "truncated Dirichlet"

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        (alpha,) = self.hyper(values)
        levels = self.shape[-1]
        counts = np.zeros((self.size // levels, levels))
        for link in self.links:
            np.add.at(counts, link.rows(values), sums[link.table.name].sums)
        return truncated_dirichlet(rng, alpha + beta * counts.reshape(self.shape), self.low)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NormalMean(Conjugate):
    """Truncated normal or uniform prior of the mean of a normal whose sd is known or held."""

    kind: ClassVar[str] = "truncated normal"
    deviation: Callable[[Values], Sequence[Array]]

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        mean, sd = self.hyper(values)
        precision = 1 / sd**2
        weighted = np.where(precision > 0, mean, 0.0) * precision
        for link, given in zip(self.links, self.deviation(values), strict=True):
            held, statistic = sums[link.table.name], link.table.statistic
            assert isinstance(statistic, BoundedMoments)
            scale = beta / given**2
            total = held.sums[:, 0] + statistic.centre * held.sizes
            weighted = weighted + link.gather(scale * total, self.size).reshape(self.shape)
            precision = precision + link.gather(scale * held.sizes, self.size).reshape(self.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.where(precision > 0, weighted / precision, 0.0)
            return truncated_normal(rng, centre, 1 / np.sqrt(precision), self.low, self.high)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class UniformDeviation(Conjugate):
    """Uniform prior of the sd of a normal whose mean is known or held: the precision is a truncated gamma.

    With t = sd^-2 the density is ``t^(n/2 - 3/2) e^(-t S/2)``, n and S (the squares about the mean) tempered.
    """

    kind: ClassVar[str] = "truncated inverse root of a gamma"
    mean: Callable[[Values], Sequence[Array]]

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        shape, rate = np.full(self.shape, -0.5), np.zeros(self.shape)
        for link, given in zip(self.links, self.mean(values), strict=True):
            held, statistic = sums[link.table.name], link.table.statistic
            assert isinstance(statistic, BoundedMoments)
            away = given - statistic.centre
            first = held.sums[:, 0] if 1 in statistic.powers else np.zeros(len(held.sizes))
            squares = held.sums[:, -1] - 2 * away * first + held.sizes * away**2
            # Squares rounded to their grid can add up to less than 0, by less than the slack of the range.
            rate = rate + beta / 2 * link.gather(np.maximum(squares, 0.0), self.size).reshape(self.shape)
            shape = shape + beta / 2 * link.gather(held.sizes, self.size).reshape(self.shape)
        return 1 / np.sqrt(truncated_gamma(rng, shape, rate, self.high**-2.0, self.low**-2.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """The compiled log-density of everything that hangs on one variable, at many of its values at once.

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
        """Log-density of each element: (n, size) array."""
        total = np.zeros((len(candidates), size))
        outputs = self.function(candidates, values, sums)
        for output, owner, tempered in zip(outputs, self.owners, self.rows, strict=True):
            flat = np.broadcast_to(output, (len(candidates), *owner.shape)).reshape(len(candidates), -1)
            factor = beta if tempered else 1.0
            places = owner.ravel()
            for element in np.unique(places[places >= 0]):
                total[:, element] += factor * flat[:, places == element].sum(axis=1)
            if (places == MANY).any():
                total += factor * flat[:, places == MANY].sum(axis=1)[:, None]
        return total


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Grid(Conditional):
    """Choice of a cell of a public grid by the exponential mechanism, then a uniform draw within the cell.

    The second is post-processing. Elements that are independent given the rest are chosen together, one mechanism for
    all; others one after the other. Levels of a discrete variable are a grid without widths.

    Likelihoods of rows that are held one by one are added up at knots, and interpolated linearly in between. What a row
    adds to a cell is then a mean of what it adds at two knots, so that its range is not larger.

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
            points = self._moved(current, element, self.points)
            knots = None if self.knots is None else self._moved(current, element, self.knots)
            weights = self.scores.at(points, values, sums, beta, size)[:, element]
            weights = weights + beta * self.rows_at(knots, values)[:, 0]
            chosen = current.copy()
            chosen[element] = flat[choose(rng, weights), element]
            current[element] = self._spread(rng, chosen).reshape(size)[element]
        return current.reshape(self.shape)

    def rows_at(self, knots: Array | None, values: Values) -> Array:
        """Log-likelihood in every cell of the rows held one by one: (n_points, size or 1) array. **Private**."""
        if knots is None:
            return np.zeros((1, 1))
        found = np.zeros((len(knots), 1))
        for scores in self.held:
            found = found + scores(knots, values)
        if knots.shape[0] == len(self.points):
            return found
        places = (np.arange(len(self.points)) + 0.5) * ((len(knots) - 1) / len(self.points))
        before = places.astype(int)
        share = (places - before)[:, None]
        return (1 - share) * found[before] + share * found[before + 1]

    def _moved(self, current: Array, element: int, places: Array) -> Array:
        """Return the variable with one element at each of some places."""
        moved = np.tile(current, (len(places), 1))
        moved[:, element] = places.reshape(len(places), -1)[:, element]
        return moved.reshape(-1, *self.shape)

    def _spread(self, rng: np.random.Generator, chosen: Array) -> Array:
        chosen = chosen.reshape(self.shape)
        return chosen + self.widths * (rng.random(self.shape) - 0.5) if self.widths.any() else chosen


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

    kind: ClassVar[str] = "slice sampling, sees no row"
    density: Callable[[Array, Values], float]
    forward: Callable[[Array, Values], Array]
    backward: Callable[[Array, Values], Array]

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        start = self.forward(values[self.name], values)
        return self.backward(slice_draw(rng, lambda place: self.density(place, values), start), values)


__all__ = [
    "BetaBernoulli",
    "Conditional",
    "Conjugate",
    "DirichletCategorical",
    "Free",
    "GammaPoisson",
    "Grid",
    "Link",
    "NormalMean",
    "Scores",
    "UniformDeviation",
]
