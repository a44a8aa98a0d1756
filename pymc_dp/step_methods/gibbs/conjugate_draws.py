"""Exact draws from truncated conjugate distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.draws.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal
from pymc_dp.families.conjugate_form import Chance, Evidence, Rate
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.gibbs.conditionals import Conjugate, Link, Sums, Values, gather


def evidence(link: Link, values: Values, sums: Sums) -> Evidence:
    """Look at the sums of one table, the other parameters given."""
    found = sums[link.table.name]
    return Evidence(statistic=link.table.statistic, sums=found.sums, sizes=found.sizes, given=link.given(values))


def exponents(link: Link, values: Values, sums: Sums) -> tuple[Array, Array]:
    """Return a and b of the likelihood of one table in each cell."""
    assert isinstance(link.form, Chance | Rate)
    return link.form.exponents(evidence(link, values, sums))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class BetaChance(Conjugate):
    """Beta or uniform prior of a probability p, and likelihoods ``p^a (1 - p)^b``."""

    kind: ClassVar[str] = "truncated beta"

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        a, b = self.hyper(values)
        for link in self.links:
            places = link.places(values)
            hits, misses = exponents(link, values, sums)
            a = a + beta * gather(places, hits, self.shape)
            b = b + beta * gather(places, misses, self.shape)
        return truncated_beta(rng, a, b, self.low, self.high)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class GammaPower(Conjugate):
    """Likelihoods ``t^a e^(-b t)`` of a power ``t = v^power`` that is a rate or a precision: t is a truncated gamma.

    With a gamma (or exponential) prior of the rate v itself, an inverse gamma prior of a scale or variance v with
    ``t = 1 / v``, or a uniform prior of any v: then t has the prior density ``t^(1/power - 1)``.

    Attributes
    ----------
    power : float
        Not 0.
    """

    kind: ClassVar[str] = "truncated gamma"
    power: float

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        shape, rate = self.hyper(values)
        for link in self.links:
            places = link.places(values)
            more, pace = exponents(link, values, sums)
            pace = np.maximum(pace, 0.0) * link.factor(values, self.name) ** (self.power / link.exponent)
            shape = shape + beta * gather(places, more, self.shape)
            rate = rate + beta * gather(places, pace, self.shape)
        ends = np.sort([self.low**self.power, self.high**self.power], axis=0)
        drawn = truncated_gamma(rng, shape, rate, ends[0], ends[1]) ** (1 / self.power)
        return np.clip(drawn, self.low, self.high)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NormalMean(Conjugate):
    """Normal or uniform prior of the mean of a normal, or of the logarithm of a log-normal, of known or held sd."""

    kind: ClassVar[str] = "truncated normal"

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        mean, sd = self.hyper(values)
        precision = 1 / sd**2
        weighted = np.where(precision > 0, mean, 0.0) * precision
        for link in self.links:
            places, seen = link.places(values), evidence(link, values, sums)
            scale = beta / np.square(seen.given[0])
            weighted = weighted + gather(places, scale * (seen.line + seen.origin * seen.rows), self.shape)
            precision = precision + gather(places, scale * seen.rows, self.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.where(precision > 0, weighted / precision, 0.0)
            return truncated_normal(rng, centre, 1 / np.sqrt(precision), self.low, self.high)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DirichletShares(Conjugate):
    """(Truncated) Dirichlet prior of category probabilities; `shape` has the categories last."""

    kind: ClassVar[str] = "truncated Dirichlet"

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        (alpha,) = self.hyper(values)
        counts = np.zeros((self.size // self.shape[-1], self.shape[-1]))
        for link in self.links:
            places = link.places(values)
            held = places >= 0
            np.add.at(counts, places[held], sums[link.table.name].sums[held])
        return truncated_dirichlet(rng, alpha + beta * counts.reshape(self.shape), self.low)


__all__ = ["BetaChance", "DirichletShares", "GammaPower", "NormalMean", "evidence"]
