"""Conjugate pairs, proved on the graph: the parameter is the variable itself, and nothing else hangs on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.inspection.hidden_markov import emission_of
from pymc_dp.inspection.priors import Prior, priors_of, selection
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.gibbs.boxes import NONE, Box
from pymc_dp.step_methods.gibbs.compiled import Functions, Values
from pymc_dp.step_methods.gibbs.conditionals import (
    BetaBernoulli,
    Conjugate,
    DirichletCategorical,
    GammaPoisson,
    Link,
    NormalMean,
    UniformDeviation,
)
from pymc_dp.step_methods.gibbs.held_rows import HeldLikelihood
from pymc_dp.transforms.likelihood import TableLikelihood


@dataclass(frozen=True, kw_only=True, eq=False)
class Hanging:
    """What depends on one free variable directly.

    Attributes
    ----------
    tables : tuple of (TableLikelihood, boxes of its parameters)
    held : tuple of HeldLikelihood
    children : tuple of Variable
        Free variables whose priors it feeds.
    potentials : tuple of Variable
    """

    tables: tuple[tuple[TableLikelihood, list[Box]], ...]
    held: tuple[HeldLikelihood, ...] = ()
    children: tuple[Variable, ...] = ()
    potentials: tuple[Variable, ...] = ()

    @property
    def rows(self) -> bool:
        """Whether rows depend on it."""
        return bool(self.tables or self.held)


PAIRS: dict[tuple[str, str, int], type[Conjugate]] = {
    ("beta", "bernoulli", 0): BetaBernoulli,
    ("uniform", "bernoulli", 0): BetaBernoulli,
    ("gamma", "poisson", 0): GammaPoisson,
    ("exponential", "poisson", 0): GammaPoisson,
    ("uniform", "poisson", 0): GammaPoisson,
    ("normal", "normal", 0): NormalMean,
    ("uniform", "normal", 0): NormalMean,
    ("uniform", "normal", 1): UniformDeviation,
    ("dirichlet", "categorical", 0): DirichletCategorical,
}
"""From (prior, likelihood, which of its parameters) to the conditional."""

HYPER: dict[tuple[type[Conjugate], str], Callable[..., tuple[Any, ...]]] = {
    (BetaBernoulli, "beta"): lambda a, b: (a, b),
    (BetaBernoulli, "uniform"): lambda: (1.0, 1.0),
    (GammaPoisson, "gamma"): lambda shape, scale: (shape, 1 / scale),
    (GammaPoisson, "exponential"): lambda scale: (1.0, 1 / scale),
    (GammaPoisson, "uniform"): lambda: (1.0, 0.0),
    (NormalMean, "normal"): lambda mean, sd: (mean, sd),
    (NormalMean, "uniform"): lambda: (0.0, np.inf),
    (UniformDeviation, "uniform"): lambda: (),
    (DirichletCategorical, "dirichlet"): lambda alpha: (alpha,),
}
"""Parameters that the draw wants, from those of the prior in PyTensor's order."""


def conjugate(prior: Prior, hanging: Hanging, husk: Model) -> Callable[..., Conjugate] | None:
    """Return what compiles the conjugate conditional of a variable, or None where none is proved.

    The result takes compiled-function maker, ranges and their reason.
    """
    if not hanging.tables or hanging.held or hanging.children or hanging.potentials:
        return None
    if prior.low is None or prior.high is None:
        return None
    slots, links = [], []
    for table, boxes in hanging.tables:
        fed = [place for place, box in enumerate(boxes) if (box.owner(prior.name) != NONE).any()]
        if len(fed) != 1:
            return None
        kind = PAIRS.get((prior.distribution, table.family.distribution, fed[0]))
        link = None if kind is None else _link(kind, table, table.parameters[fed[0]], prior, husk)
        if kind is None or link is None:
            return None
        slots.append((kind, fed[0]))
        links.append(link)
    if len(set(slots)) != 1:
        return None
    return partial(_made, slots[0][0], prior, tuple(links))


def _link(kind: type[Conjugate], table: TableLikelihood, parameter: Variable, prior: Prior, husk: Model) -> Link | None:
    """Return which element, or row, each cell has; None where it is anything but a selection."""
    places, count = selection(parameter, prior, husk), (table.cells.count,)
    if kind is DirichletCategorical:
        if places is None:
            return _by_states(table, parameter, prior, husk)
        places = _rows(places, prior)
    return None if places is None else Link(table=table, places=np.broadcast_to(places, count))


def _by_states(table: TableLikelihood, parameter: Variable, prior: Prior, husk: Model) -> Link | None:
    """Return a link to the rows of a variable that discrete states of the cells select, as in hidden Markov models."""
    if prior.variable.type.ndim != 2:
        return None
    for states in priors_of(husk):
        if states.variable.type.dtype.startswith("int") and states.shape:
            emission = emission_of(parameter, states, [prior])
            if emission is not None:
                places = np.broadcast_to(emission.places, (table.cells.count,))
                return Link(table=table, places=places, states=states.name)
    return None


def _rows(places: Array, prior: Prior) -> Array | None:
    """Which simplex of the variable each cell has; None where its categories are moved about."""
    levels = prior.shape[-1]
    whole = places.shape[-1] == levels and bool((places == places[..., :1] + np.arange(levels)).all())
    return places[..., 0] // levels if whole and bool((places[..., 0] % levels == 0).all()) else None


def _made(
    kind: type[Conjugate],
    prior: Prior,
    links: Sequence[Link],
    functions: Functions,
    ranges: tuple[float, ...],
    reason: str,
) -> Conjugate:
    assert prior.low is not None and prior.high is not None
    more: dict[str, Any] = {}
    if kind in (NormalMean, UniformDeviation):
        other = 1 if kind is NormalMean else 0
        graphs = [link.table.parameters[other] for link in links]
        more["deviation" if other else "mean"] = functions.function(graphs)
    hyper: Callable[[Values], tuple[Array, ...]] = Hyper(
        HYPER[kind, prior.distribution],
        prior.shape,
        prior.constants,
        None if prior.constants is not None else functions.function(prior.parameters),
    )
    return kind(
        name=prior.name,
        shape=prior.shape,
        ranges=ranges,
        reason=reason,
        hyper=hyper,
        low=np.asarray(prior.low, dtype=float),
        high=np.asarray(prior.high, dtype=float),
        links=links,
        **more,
    )


class Hyper:
    """Parameters of a prior, constant or computed from other variables."""

    def __init__(
        self,
        wanted: Callable[..., tuple[Any, ...]],
        shape: tuple[int, ...],
        constants: Sequence[Array] | None,
        function: Callable[[Values], list[Array]] | None,
    ) -> None:
        self.wanted, self.shape, self.function = wanted, shape, function
        self.constants = None if constants is None else self._filled(constants)

    def __call__(self, values: Values) -> tuple[Array, ...]:
        """Evaluate them given the values of other variables."""
        if self.constants is not None:
            return self.constants
        assert self.function is not None
        return self._filled(self.function(values))

    def _filled(self, parameters: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(np.broadcast_to(np.asarray(item, dtype=float), self.shape) for item in self.wanted(*parameters))


__all__ = ["Hanging", "conjugate"]
