"""Exact draws from truncated conjugate distributions, given what depends on a variable: tables, or released values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, final, override

import numpy as np

from pymc_dp.families.conjugate_form import Chance, ConjugateForm, Evidence, Mean, Rate, Shares
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.conjugates import Conjugate as Family
from pymc_dp.kernel.conjugates import OneEach, Simplexes
from pymc_dp.kernel.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal
from pymc_dp.samplers.sums import ModelSums, units_of
from pymc_dp.step_methods.gibbs.grid import Values
from pymc_dp.step_methods.gibbs.selected_elements import NOWHERE
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

Sums = Mapping[str, ExactSums]
Elements = Callable[[Values], Array]
"""From the values of other variables to the element (for a simplex: the row) of v in each entry, -1 for none."""
Back = Callable[[Array], Array]
Priors = Mapping[str, Callable[..., tuple[Any, ...]]]
"""From the name of a conjugate prior, and its parameters in PyTensor's order, to those of the draw."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Link(ABC):
    """What depends on a free variable v by a parameter that is ``factor * v[place] ** exponent`` in each cell.

    Attributes
    ----------
    form : ConjugateForm
        What the likelihood says of the parameter.
    exponent : float
    """

    form: ConjugateForm
    exponent: float = 1.0

    @abstractmethod
    def places(self, values: Values) -> Array:
        """Element (for a simplex: the row) of v in each cell, -1 for none."""

    @abstractmethod
    def evidence(self, values: Values, sums: Sums) -> Evidence:
        """Sums of each cell, and the other parameters."""

    def weight(self, beta: float) -> float:
        """Power of the likelihood."""
        return 1.0

    def factor(self, values: Values, name: str) -> Array | float:
        """Factor of each cell; 1 where v has no part."""
        return 1.0

    def exponents(self, values: Values, sums: Sums) -> tuple[Array, Array]:
        """Return a and b of the likelihood in each cell."""
        assert isinstance(self.form, Chance | Rate)
        return self.form.exponents(self.evidence(values, sums))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TableLink(Link):
    """A table of rows, tempered.

    Attributes
    ----------
    table : TableLikelihood
    elements : callable
    given : callable
        From the values to all other parameters of the likelihood, in order: arrays that broadcast to the cells.
    parameter : callable or None
        From the values to the parameter itself, where the factor is not 1.
    """

    table: TableLikelihood
    elements: Elements
    given: Callable[[Values], Sequence[Array]]
    parameter: Callable[[Values], Sequence[Array]] | None = None

    @override
    def places(self, values: Values) -> Array:
        return self.elements(values)

    @override
    def evidence(self, values: Values, sums: Sums) -> Evidence:
        found = sums[self.table.name]
        given = [np.asarray(item, dtype=np.float64) for item in self.given(values)]  # some constants are float32
        return Evidence(statistic=self.table.statistic, sums=found.sums, sizes=found.sizes, given=given)

    @override
    def weight(self, beta: float) -> float:
        return beta

    def linear(
        self, sums: ModelSums, elements: int, values: Values, of: Callable[[Sums], Sequence[Array]]
    ) -> list[Array]:
        """Return public coefficients of the kernel's sums for what is added up for each element: (elements, size) each.

        Parameters
        ----------
        sums : ModelSums
        elements : int
        values : Values
        of : callable
            From sums to numbers of each cell, linear in them.
        """
        places = self.places(values)
        own = np.arange(elements)[:, None] == places
        found: dict[int, Sequence[Array]] = {}
        for column, unit in units_of(self.table):
            found[column] = of({self.table.name: unit})
        slopes = np.stack([np.stack([np.broadcast_to(one, places.shape) for one in found[k]]) for k in found], axis=-1)
        return [sums.placed(self.table.name, np.where(own[:, :, None], one, 0.0)) for one in slopes]

    @override
    def factor(self, values: Values, name: str) -> Array | float:
        if self.parameter is None:
            return 1.0
        places = self.places(values)
        own = np.ravel(values[name])[np.maximum(places, 0)] ** self.exponent
        return np.where(places >= 0, np.broadcast_to(self.parameter(values)[0], places.shape) / own, 1.0)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LatentLink(Link):
    """A discrete free variable, whose entries are released: they are counted by element, and the counts are its cells.

    Attributes
    ----------
    name : str
    elements : callable
        Of its entries.
    size, levels : int
        Number of elements, and of levels.
    """

    name: str
    elements: Elements
    size: int
    levels: int

    @override
    def places(self, values: Values) -> Array:
        return np.arange(self.size)

    @override
    def evidence(self, values: Values, sums: Sums) -> Evidence:
        own = self.elements(values).ravel()
        codes = np.where(own >= 0, own * self.levels + np.asarray(values[self.name], dtype=np.int64).ravel(), NOWHERE)
        counts = np.bincount(codes[codes >= 0], minlength=self.size * self.levels).astype(np.float64)
        table = counts.reshape(self.size, self.levels)
        labels = tuple(map(str, range(self.levels)))
        return Evidence(statistic=LevelCounts(labels=labels), sums=table, sizes=table.sum(axis=1), given=())


def _counted(link: Link, values: Values, held: Sums) -> Sequence[Array]:
    return list(link.evidence(values, held).sums.T)


def no_rows(link: TableLink) -> Sums:
    """Return made-up sums for a link."""
    return {link.table.name: next(iter(units_of(link.table)))[1]}


def gather(places: Array, per_cell: Array, shape: tuple[int, ...]) -> Array:
    """Add up a number per cell to one per element."""
    held = places >= 0
    weights = np.broadcast_to(per_cell, places.shape)[held]
    return np.bincount(places[held], weights=weights, minlength=int(np.prod(shape))).reshape(shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class Conjugate(ABC):
    """Exact draws from a truncated conjugate distribution, of all elements at once: they are independent given the
    rest.

    Attributes
    ----------
    name : str
        Free variable.
    shape : tuple of int
    form : type of ConjugateForm
        What a likelihood says of a parameter that it is the conditional of.
    priors : Priors
    hyper : callable
        Parameters of the prior as arrays of `shape`, given the values of the other variables.
    low, high : arrays of `shape`
    links : sequence of Link
    """

    kind: ClassVar[str]
    form: ClassVar[type[ConjugateForm]]
    priors: ClassVar[Priors]
    name: str
    shape: tuple[int, ...]
    hyper: Callable[[Values], tuple[Array, ...]]
    low: Array
    high: Array
    links: Sequence[Link]

    @abstractmethod
    def draw(
        self, rng: np.random.Generator, values: Values, sums: Sums, beta: float, prior_power: float = 1.0
    ) -> Array:
        """Draw this variable given the values of the others and the sums, tempered; the prior too by its own power."""

    @abstractmethod
    def by_sums(self, sums: ModelSums, values: Values, prior_power: float = 1.0) -> tuple[Family, Back]:
        """Return what the kernel draws it from, and what makes this variable of that draw, which is public."""

    def added(self, sums: ModelSums, values: Values, of: Callable[[Link, Sums], Sequence[Array]]) -> list[Array]:
        """Return coefficients of the sums of what all tables add to each element; see `TableLink.linear`."""
        parts = [link.linear(sums, self.elements, values, partial(of, link)) for link in self.tables]
        return [np.sum(one, axis=0) for one in zip(*parts, strict=True)]

    @property
    def elements(self) -> int:
        """How many parameters are independent of each other."""
        return int(np.prod(self.shape))

    @property
    def tables(self) -> list[TableLink]:
        """Links of rows."""
        return [link for link in self.links if isinstance(link, TableLink)]

    @property
    def released(self) -> list[LatentLink]:
        """Links of what is released, and public."""
        return [link for link in self.links if isinstance(link, LatentLink)]

    @classmethod
    def fits(cls, prior: Prior, exponent: float, *, scaled: bool, power: float) -> bool:
        """Whether a prior is conjugate to a parameter that is ``factor * v ** exponent``."""
        return prior.distribution in cls.priors and exponent == 1 and not scaled


def raised(parameter: Array, power: float) -> Array:
    """Return ``power (parameter - 1) + 1``, the parameter of a density that is taken to a power; exact for 1."""
    return power * parameter + (1 - power)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NormalMean(Conjugate):
    """Normal or uniform prior of the mean of a normal, or of the logarithm of a log-normal, of known or held sd."""

    kind = "truncated normal"
    form = Mean
    priors: ClassVar[Priors] = {"normal": lambda mean, sd: (mean, sd), "uniform": lambda: (0.0, np.inf)}

    @override
    def draw(
        self, rng: np.random.Generator, values: Values, sums: Sums, beta: float, prior_power: float = 1.0
    ) -> Array:
        mean, sd = self.hyper(values)
        evidence = [link.evidence(values, sums) for link in self.links]
        # About the middle of the rows: far from 0 no float of a sum has a digit left for one of them.
        about = np.clip(evidence[0].origin, self.low, self.high) if evidence else np.zeros(self.shape)
        precision = prior_power / sd**2
        weighted = np.where(precision > 0, mean - about, 0.0) * precision
        for link, seen in zip(self.links, evidence, strict=True):
            places = link.places(values)
            scale = link.weight(beta) / np.square(seen.given[0])
            away = seen.origin - about.ravel()[places]
            weighted = weighted + gather(places, scale * (seen.line + away * seen.rows), self.shape)
            precision = precision + gather(places, scale * seen.rows, self.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.where(precision > 0, weighted / precision, 0.0)
            drawn = truncated_normal(rng, centre, 1 / np.sqrt(precision), self.low - about, self.high - about)
        return np.clip(about + drawn, self.low, self.high)

    @override
    def by_sums(self, sums: ModelSums, values: Values, prior_power: float = 1.0) -> tuple[Family, Back]:
        mean, sd = self.hyper(values)
        none = [link.evidence(values, no_rows(link)) for link in self.tables]
        about = np.clip(none[0].origin, self.low, self.high)
        precision = prior_power / sd**2

        def of(link: Link, held: Sums) -> Sequence[Array]:
            seen = link.evidence(values, held)
            away, scale = seen.origin - about.ravel()[link.places(values)], 1 / np.square(seen.given[0])
            return scale * (seen.line + away * seen.rows), scale * seen.rows

        first, second = self.added(sums, values, of)
        weighted = np.where(precision > 0, mean - about, 0.0) * precision
        prior = np.stack([weighted.ravel(), precision.ravel()], axis=1)
        low, high = (self.low - about).ravel(), (self.high - about).ravel()
        family = OneEach(kind="normal", low=low, high=high, prior=prior, first=first, second=second)
        return family, lambda drawn: np.clip(about + drawn.reshape(self.shape), self.low, self.high)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class BetaChance(Conjugate):
    """Beta or uniform prior of a probability p, and likelihoods ``p^a (1 - p)^b``."""

    kind = "truncated beta"
    form = Chance
    priors: ClassVar[Priors] = {"beta": lambda a, b: (a, b), "uniform": lambda: (1.0, 1.0)}

    @override
    def draw(
        self, rng: np.random.Generator, values: Values, sums: Sums, beta: float, prior_power: float = 1.0
    ) -> Array:
        a, b = (raised(item, prior_power) for item in self.hyper(values))
        for link in self.links:
            places, weight = link.places(values), link.weight(beta)
            hits, misses = link.exponents(values, sums)
            a = a + weight * gather(places, hits, self.shape)
            b = b + weight * gather(places, misses, self.shape)
        return truncated_beta(rng, a, b, self.low, self.high)

    @override
    def by_sums(self, sums: ModelSums, values: Values, prior_power: float = 1.0) -> tuple[Family, Back]:
        first, second = self.added(sums, values, lambda link, held: link.exponents(values, held))
        a, b = (raised(item, prior_power) for item in self.hyper(values))
        for link in self.released:
            hits, misses = (gather(link.places(values), one, self.shape) for one in link.exponents(values, {}))
            a, b = a + hits, b + misses
        prior = np.stack([a.ravel(), b.ravel()], axis=1)
        low, high = self.low.ravel(), self.high.ravel()
        family = OneEach(kind="beta", low=low, high=high, prior=prior, first=first, second=second)
        return family, lambda drawn: drawn.reshape(self.shape)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class GammaPower(Conjugate):
    """Likelihoods ``t^a e^(-b t)`` of a power ``t = v^power`` that is a rate or a precision: t is a truncated gamma.

    The prior density of v is ``v^(c - 1) e^(-d t)``: gamma (or exponential) of the rate v itself, inverse gamma of a
    scale or variance v with ``t = 1 / v``, or uniform for any power. Then t has ``t^(c / power - 1) e^(-d t)``.

    Attributes
    ----------
    powers : mapping
        Which power of a variable with a prior must be the rate or precision of the likelihood; None for any.
    power : float
        Not 0.
    """

    kind = "truncated gamma"
    form = Rate
    priors: ClassVar[Priors] = {
        "gamma": lambda shape, scale: (shape, 1 / scale),
        "exponential": lambda scale: (1.0, 1 / scale),
        "invgamma": lambda shape, scale: (-shape, scale),
        "uniform": lambda: (1.0, 0.0),
    }
    powers: ClassVar[Mapping[str, float | None]] = {"gamma": 1.0, "exponential": 1.0, "invgamma": -1.0, "uniform": None}
    power: float

    @override
    def draw(
        self, rng: np.random.Generator, values: Values, sums: Sums, beta: float, prior_power: float = 1.0
    ) -> Array:
        own, rate = self.hyper(values)
        shape, rate = raised(own, prior_power) / self.power, prior_power * rate
        for link in self.links:
            places, weight = link.places(values), link.weight(beta)
            more, pace = link.exponents(values, sums)
            pace = np.maximum(pace, 0.0) * link.factor(values, self.name) ** (self.power / link.exponent)
            shape = shape + weight * gather(places, more, self.shape)
            rate = rate + weight * gather(places, pace, self.shape)
        with np.errstate(divide="ignore"):
            ends = np.sort([self.low**self.power, self.high**self.power], axis=0)
            drawn = truncated_gamma(rng, shape, rate, ends[0], ends[1]) ** (1 / self.power)
        return np.clip(drawn, self.low, self.high)

    @override
    def by_sums(self, sums: ModelSums, values: Values, prior_power: float = 1.0) -> tuple[Family, Back]:
        def of(link: Link, held: Sums) -> Sequence[Array]:
            more, pace = link.exponents(values, held)
            return more, pace * link.factor(values, self.name) ** (self.power / link.exponent)

        own, rate = self.hyper(values)
        first, second = self.added(sums, values, of)
        prior = np.stack([raised(own, prior_power).ravel() / self.power, prior_power * rate.ravel()], axis=1)
        with np.errstate(divide="ignore"):
            low, high = np.sort([self.low.ravel() ** self.power, self.high.ravel() ** self.power], axis=0)
        family = OneEach(kind="gamma", low=low, high=high, prior=prior, first=first, second=second)
        return family, lambda drawn: np.clip(drawn.reshape(self.shape) ** (1 / self.power), self.low, self.high)

    @classmethod
    @override
    def fits(cls, prior: Prior, exponent: float, *, scaled: bool, power: float) -> bool:
        if prior.distribution not in cls.priors or prior.low is None or not (prior.low >= 0).all():
            return False
        return power != 0 and cls.powers[prior.distribution] in (None, power) and _kept(prior, power)


def _kept(prior: Prior, power: float) -> bool:
    """Whether ends of a prior are ends of a power of it in floats: one that becomes 0 or infinite bounds nothing, and
    then whether there is a distribution depends on the rows.
    """
    ends = np.array([prior.low, prior.high], dtype=float)
    ends = ends[(ends > 0) & np.isfinite(ends)]
    with np.errstate(all="ignore"):
        raised_ends = ends**power
    return bool(((raised_ends >= np.finfo(float).tiny) & np.isfinite(raised_ends)).all())


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DirichletShares(Conjugate):
    """(Truncated) Dirichlet prior of category probabilities; `shape` has the categories last."""

    kind = "truncated Dirichlet"
    form = Shares
    priors: ClassVar[Priors] = {"dirichlet": lambda alpha: (alpha,)}

    @property
    @override
    def elements(self) -> int:
        return int(np.prod(self.shape[:-1]))

    @override
    def draw(
        self, rng: np.random.Generator, values: Values, sums: Sums, beta: float, prior_power: float = 1.0
    ) -> Array:
        (alpha,) = self.hyper(values)
        counts = np.zeros((int(np.prod(self.shape[:-1])), self.shape[-1]))
        for link in self.links:
            places = link.places(values)
            held = places >= 0
            np.add.at(counts, places[held], link.weight(beta) * link.evidence(values, sums).sums[held])
        drawn = truncated_dirichlet(rng, raised(alpha, prior_power) + counts.reshape(self.shape), self.low)
        return np.maximum(drawn, self.low + np.finfo(float).tiny)  # the simplex has no value for a probability of 0

    @override
    def by_sums(self, sums: ModelSums, values: Values, prior_power: float = 1.0) -> tuple[Family, Back]:
        (alpha,), levels, count = self.hyper(values), self.shape[-1], self.elements
        counts = np.stack(self.added(sums, values, lambda link, held: _counted(link, values, held)), axis=1)
        prior = raised(alpha, prior_power).reshape(count, levels)
        for link in self.released:
            prior = prior + link.evidence(values, {}).sums
        least = np.broadcast_to(self.low, self.shape).reshape(count, levels)
        tiny = np.finfo(float).tiny  # the simplex has no value for a probability of 0
        return (
            Simplexes(prior=prior, least=least, counts=counts),
            lambda drawn: np.maximum(drawn.reshape(self.shape), self.low + tiny),
        )


CONDITIONALS: tuple[type[Conjugate], ...] = (NormalMean, BetaChance, GammaPower, DirichletShares)
"""All kinds. Where nothing depends on a variable, the first that knows its prior draws it."""

__all__ = [
    "CONDITIONALS",
    "BetaChance",
    "Conjugate",
    "DirichletShares",
    "GammaPower",
    "LatentLink",
    "Link",
    "NormalMean",
    "TableLink",
]
