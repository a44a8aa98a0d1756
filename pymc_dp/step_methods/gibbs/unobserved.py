"""Updates of variables that see no row: functions of released states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.draws.truncated import truncated_beta, truncated_dirichlet
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.gibbs.conditionals import Conditional, Sums, Values
from pymc_dp.step_methods.gibbs.selected_elements import NOWHERE
from pymc_dp.step_methods.gibbs.slice import slice_draw


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


@dataclass(frozen=True, kw_only=True, eq=False)
class OfLatents(Conditional):
    """Exact draws of the prior probabilities of discrete variables, given these: at no cost, for they are released.

    Attributes
    ----------
    hyper : callable
        Parameters of the prior as arrays of `shape`, given the values of the other variables.
    low, high : arrays of `shape`
    latents : mapping of str to callable
        From the name of each discrete variable to the element (for a simplex: the row) that each of its entries has,
        or -1.
    """

    hyper: Callable[[Values], tuple[Array, ...]]
    low: Array
    high: Array
    latents: Mapping[str, Callable[[Values], Array]]

    def tally(self, values: Values, size: int, levels: int) -> Array:
        """Count the levels of all entries by element: (size, levels) array."""
        codes = np.concatenate(
            [
                np.where(own >= 0, own * levels + np.asarray(values[name], dtype=np.int64).ravel(), NOWHERE)
                for name, places in self.latents.items()
                for own in [places(values).ravel()]
            ]
        )
        counts = np.bincount(codes[codes >= 0], minlength=size * levels)
        return counts.reshape(size, levels).astype(np.float64)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class BetaOfLatents(OfLatents):
    """Beta or uniform prior of the probability of Bernoulli variables."""

    kind: ClassVar[str] = "truncated beta, sees no row"

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        a, b = self.hyper(values)
        counts = self.tally(values, int(np.prod(self.shape)), 2).reshape(*self.shape, 2)
        return truncated_beta(rng, a + counts[..., 1], b + counts[..., 0], self.low, self.high)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DirichletOfLatents(OfLatents):
    """Dirichlet prior of the probabilities of categorical variables; `shape` has the categories last."""

    kind: ClassVar[str] = "truncated Dirichlet, sees no row"

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        (alpha,) = self.hyper(values)
        levels = self.shape[-1]
        counts = self.tally(values, int(np.prod(self.shape)) // levels, levels)
        return truncated_dirichlet(rng, alpha + counts.reshape(self.shape), self.low)


__all__ = ["BetaOfLatents", "DirichletOfLatents", "Free", "OfLatents"]
