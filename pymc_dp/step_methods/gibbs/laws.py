"""Exact draws from truncated conjugate laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal
from pymc_dp.step_methods.gibbs.conditionals import Conjugate, Sums, Values


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
            np.add.at(counts, link.places, sums[link.table.name].sums)
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


__all__ = ["BetaBernoulli", "DirichletCategorical", "GammaPoisson", "NormalMean", "UniformDeviation"]
