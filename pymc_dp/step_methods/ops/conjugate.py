"""Posteriors that factorise into truncated conjugate distributions: found in the graph, drawn exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from pymc import Model
from pytensor.graph.traversal import ancestors

from pymc_dp.draws.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal
from pymc_dp.errors import Problem
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.priors import Prior, constant_values
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.selections import selections
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

Drawer = Callable[[np.random.Generator, Prior, "Evidence", float, bool], Array]

PAIRS: dict[str, tuple[str, ...]] = {
    "bernoulli": ("beta", "uniform"),
    "poisson": ("gamma", "exponential", "uniform"),
    "normal": ("normal", "uniform"),
    "categorical": ("dirichlet",),
}
"""Which priors are conjugate to which likelihood; all may be truncated."""

ALONE = {
    "beta": "bernoulli",
    "gamma": "poisson",
    "exponential": "poisson",
    "normal": "normal",
    "uniform": "normal",
    "dirichlet": "categorical",
}
"""A likelihood whose posterior without rows is the prior itself, wherever its bounds are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Sums of the rows that feed each element of one free variable: two arrays of its raveled shape (counts: n, K)."""

    first: Array
    second: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """Which element of which prior is the parameter of each cell of a table; `spread` is a known sd per cell.

    An element is a whole vector of probabilities where the likelihood is categorical.
    """

    priors: Array
    elements: Array
    spread: Array | None


@dataclass(frozen=True, kw_only=True, eq=False)
class ConjugatePosterior:
    """A posterior that is a product of truncated conjugate distributions, whatever the rows.

    Attributes
    ----------
    priors : tuple of Prior
        With constant hyper-parameters.
    links : tuple of Link
        One per table.
    kinds : tuple of str
        Likelihood that each prior meets: one for all of its tables.
    """

    priors: tuple[Prior, ...]
    tables: tuple[TableLikelihood, ...]
    links: tuple[Link, ...]
    kinds: tuple[str, ...]
    words = "independent and exact, from truncated conjugate distributions"

    @classmethod
    def of(cls, prior_model: Model, priors: Sequence[Prior], tables: Sequence[TableLikelihood]) -> Self | list[Problem]:
        """Prove the form on the graph, or say what is in the way."""
        problems = [
            Problem(where=str(var.name), what="a Potential has no conjugate form", remedy="")
            for var in prior_model.potentials
        ]
        known = {name for names in PAIRS.values() for name in names}
        for prior in priors:
            if prior.constants is None or prior.low is None or prior.distribution not in known:
                what = f"its prior ({prior.distribution}) is not a plain conjugate one with constant parameters"
                problems.append(Problem(where=prior.name, what=what, remedy=""))
        links = [_link(prior_model, priors, table) for table in tables]
        problems += [link for link in links if isinstance(link, Problem)]
        if problems:
            return problems
        proved = tuple(link for link in links if isinstance(link, Link))
        kinds = []
        for place, prior in enumerate(priors):
            links_of = zip(tables, proved, strict=True)
            met = {table.observed.distribution for table, link in links_of if (link.priors == place).any()}
            if len(met) > 1:  # a uniform prior is conjugate to several, but not to them together
                what = (
                    f"it is a parameter of {' and '.join(sorted(met))} likelihoods, which have no common conjugate form"
                )
                problems.append(Problem(where=prior.name, what=what, remedy=""))
            kinds.append(met.pop() if len(met) == 1 else ALONE[prior.distribution])
        return problems or cls(priors=tuple(priors), tables=tuple(tables), links=proved, kinds=tuple(kinds))

    def boxes(self, table: TableLikelihood) -> list[tuple[Array, Array]]:
        """Bounds of each parameter of a table in each of its cells."""
        link = self.links[self.tables.index(table)]
        ends = [self._ends(which, element) for which, element in zip(link.priors, link.elements, strict=True)]
        low, high = (np.stack([pair[place] for pair in ends]) for place in (0, 1))
        known = [] if link.spread is None else [(link.spread, link.spread)]
        return [(low, high), *known]

    def _ends(self, which: int, element: int) -> tuple[Array, Array]:
        prior = self.priors[which]
        assert prior.low is not None and prior.high is not None
        event = prior.shape[-1:] if prior.distribution == "dirichlet" else ()
        return np.reshape(prior.low, (-1, *event))[element], np.reshape(prior.high, (-1, *event))[element]

    def draw(
        self, rng: np.random.Generator, sums: Sequence[ExactSums], inverse: float, temper_prior: bool
    ) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""
        result = {}
        for place, prior in enumerate(self.priors):
            evidence = self._evidence(place, prior, sums)
            drawn = _DRAWERS[prior.distribution, self.kinds[place]](rng, prior, evidence, inverse, temper_prior)
            result[prior.name] = drawn.reshape(prior.shape)
        return result

    def _evidence(self, place: int, prior: Prior, sums: Sequence[ExactSums]) -> Evidence:
        event = prior.shape[-1] if prior.distribution == "dirichlet" else 1
        count = prior.size // max(event, 1)
        first, second = np.zeros((count, event)), np.zeros((count, event))
        for table, link, held in zip(self.tables, self.links, sums, strict=True):
            mine = link.priors == place
            if not mine.any():
                continue
            kind = table.observed.distribution
            if kind == "categorical":
                one, two = held.sums, np.zeros_like(held.sums)
            elif kind == "bernoulli":
                one, two = held.sums[:, 1:], held.sums[:, :1]
            else:
                assert isinstance(table.statistic, BoundedMoments)
                total = held.sums[:, :1] + table.statistic.centre * held.sizes[:, None]
                weight = 1.0 if link.spread is None else 1 / link.spread[:, None] ** 2
                one, two = total * weight, held.sizes[:, None] * weight
            np.add.at(first, link.elements[mine], one[mine])
            np.add.at(second, link.elements[mine], two[mine])
        squeezed = [item if event > 1 else item[:, 0] for item in (first, second)]
        return Evidence(first=squeezed[0], second=squeezed[1])


def _link(prior_model: Model, priors: Sequence[Prior], table: TableLikelihood) -> Link | Problem:
    kind = table.observed.distribution
    free = {prior.variable: place for place, prior in enumerate(priors)}
    direct = [set(ancestors([item], blockers=list(free))) for item in table.parameters]
    depends_on = [[free[var] for var in found & set(free)] for found in direct]
    if not depends_on[0] or any(depends_on[1:]):
        what = "nothing in it is unknown"
        if any(depends_on[1:]):
            what = "its standard deviation is unknown, which has no conjugate form of bounded range"
        return Problem(where=table.name, what=what, remedy="")
    for prior in (priors[place] for place in sorted(depends_on[0])):
        if prior.distribution not in PAIRS.get(kind, ()):
            what = f"a {prior.distribution} prior is not conjugate to a {kind} likelihood"
            return Problem(where=table.name, what=what, remedy="")
    found = selections(table.parameters[0], [priors[place] for place in sorted(depends_on[0])], prior_model)
    if found is None:
        one = len(depends_on[0]) == 1
        what = f"its parameter is a function of {priors[depends_on[0][0]].name!r}, not one of its elements"
        what = what if one else "its parameters depend on several free variables at once"
        return Problem(where=table.name, what=what, remedy="")
    count = table.cells.count
    which, elements = np.array(sorted(depends_on[0]))[found[0]], found[1]
    if kind == "categorical":
        vectors = _whole_vectors(priors, which, elements, (count, which.shape[-1]))
        if vectors is None:
            names = ", ".join(repr(priors[place].name) for place in sorted(depends_on[0]))
            what = f"its probabilities are not whole rows of {names}"
            return Problem(where=table.name, what=what, remedy="")
        which, places = vectors
    else:
        which, places = (np.broadcast_to(item, (count,)) for item in (which, elements))
    spread = None
    if kind == "normal":
        (value,) = constant_values(table.parameters[1:]) or (None,)
        if value is None:
            what = "its standard deviation is not a constant"
            return Problem(where=table.name, what=what, remedy="")
        spread = np.broadcast_to(value.astype(np.float64), (count,))
        if not (np.isfinite(spread) & (spread > 0)).all():
            return Problem(where=table.name, what="its standard deviation is not a number > 0", remedy="")
    return Link(priors=which, elements=places, spread=spread)


def _whole_vectors(
    priors: Sequence[Prior], which: Array, elements: Array, shape: tuple[int, int]
) -> tuple[Array, Array] | None:
    """Return the prior and the vector of each cell; None where one is made of parts of several, or in another order."""
    which, elements = np.broadcast_to(which, shape), np.broadcast_to(elements, shape)
    levels = np.array([prior.shape[-1] if prior.shape else 1 for prior in priors])[which]
    vectors = elements // levels
    if (levels != shape[1]).any() or (which != which[:, :1]).any() or (vectors != vectors[:, :1]).any():
        return None
    if (elements % levels != np.arange(shape[1])).any():
        return None
    return which[:, 0], vectors[:, 0]


def _beta(rng: np.random.Generator, prior: Prior, evidence: Evidence, inverse: float, temper_prior: bool) -> Array:
    a, b = (item.ravel() for item in _constants(prior)) if prior.distribution == "beta" else (1.0, 1.0)
    prior_power = inverse if temper_prior else 1.0
    ones = prior_power * (np.asarray(a) - 1) + 1 + inverse * evidence.first
    zeros = prior_power * (np.asarray(b) - 1) + 1 + inverse * evidence.second
    return truncated_beta(rng, ones, zeros, *_edges(prior))


def _gamma(rng: np.random.Generator, prior: Prior, evidence: Evidence, inverse: float, temper_prior: bool) -> Array:
    power = inverse if temper_prior else 1.0
    shape: Array | float = 1.0
    rate: Array | float = 0.0
    if prior.distribution == "gamma":
        shape, rate = _constants(prior)[0].ravel(), 1 / _constants(prior)[1].ravel()
    elif prior.distribution == "exponential":
        rate = 1 / _constants(prior)[0].ravel()
    shapes = power * (np.asarray(shape) - 1) + 1 + inverse * evidence.first
    return truncated_gamma(rng, shapes, power * np.asarray(rate) + inverse * evidence.second, *_edges(prior))


def _normal(rng: np.random.Generator, prior: Prior, evidence: Evidence, inverse: float, temper_prior: bool) -> Array:
    power = inverse if temper_prior else 1.0
    mean: Array | float = 0.0
    precision: Array | float = 0.0
    if prior.distribution == "normal":
        mean, precision = _constants(prior)[0].ravel(), power / _constants(prior)[1].ravel() ** 2
    total = precision + inverse * evidence.second
    known = total > 0
    safe = np.where(known, total, 1.0)
    centre = np.where(known, (precision * mean + inverse * evidence.first) / safe, 0.0)
    spread = np.where(known, 1 / np.sqrt(safe), np.inf)
    return truncated_normal(rng, centre, spread, *_edges(prior))


def _dirichlet(rng: np.random.Generator, prior: Prior, evidence: Evidence, inverse: float, temper_prior: bool) -> Array:
    power = inverse if temper_prior else 1.0
    levels = prior.shape[-1]
    alpha = power * (_constants(prior)[0].reshape(-1, levels) - 1) + 1 + inverse * evidence.first
    assert prior.low is not None
    lower = prior.low.reshape(-1, levels)
    drawn = np.stack([truncated_dirichlet(rng, one, low) for one, low in zip(alpha, lower, strict=True)])
    return np.maximum(drawn, lower + np.finfo(float).tiny)  # the simplex has no value for a probability of 0


def _constants(prior: Prior) -> tuple[Array, ...]:
    assert prior.constants is not None
    return prior.constants


def _edges(prior: Prior) -> tuple[Array, Array]:
    assert prior.low is not None and prior.high is not None
    return prior.low.ravel(), prior.high.ravel()


_DRAWERS: dict[tuple[str, str], Drawer] = {
    **{(name, "bernoulli"): _beta for name in PAIRS["bernoulli"]},
    **{(name, "poisson"): _gamma for name in PAIRS["poisson"]},
    **{(name, "normal"): _normal for name in PAIRS["normal"]},
    **{(name, "categorical"): _dirichlet for name in PAIRS["categorical"]},
}
