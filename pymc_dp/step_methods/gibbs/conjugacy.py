"""Conjugate pairs, proved on the graph: a parameter is the variable itself (or a power of it), and nothing else depends
on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.families.conjugate_form import Chance, ConjugateForm, Mean, Rate, Shares
from pymc_dp.inspection.priors import Prior, constant_values
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.feeds import NONE
from pymc_dp.proofs.parameter_boxes import Box
from pymc_dp.step_methods.gibbs.compiled import Functions, Values
from pymc_dp.step_methods.gibbs.conditionals import Conjugate, Link
from pymc_dp.step_methods.gibbs.conjugate_draws import BetaChance, DirichletShares, GammaPower, NormalMean
from pymc_dp.step_methods.gibbs.held_rows import HeldLikelihood
from pymc_dp.step_methods.gibbs.selected_elements import Places, placed, places_of
from pymc_dp.step_methods.gibbs.unobserved import BetaOfLatents, DirichletOfLatents, OfLatents
from pymc_dp.transforms.likelihood import TableLikelihood


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependents:
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


CONDITIONALS: dict[type[ConjugateForm], type[Conjugate]] = {
    Chance: BetaChance,
    Rate: GammaPower,
    Mean: NormalMean,
    Shares: DirichletShares,
}
"""From what a likelihood says of one of its parameters to the conditional."""

POWERS: dict[str, float | None] = {"gamma": 1.0, "exponential": 1.0, "invgamma": -1.0, "uniform": None}
"""Which power of a variable with this prior must be the rate or precision of the likelihood; None for any."""

HYPER: dict[tuple[type[Conjugate], str], Callable[..., tuple[Any, ...]]] = {
    (BetaChance, "beta"): lambda a, b: (a, b),
    (BetaChance, "uniform"): lambda: (1.0, 1.0),
    (GammaPower, "gamma"): lambda shape, scale: (shape, 1 / scale),
    (GammaPower, "exponential"): lambda scale: (1.0, 1 / scale),
    (GammaPower, "invgamma"): lambda shape, scale: (shape, scale),
    (NormalMean, "normal"): lambda mean, sd: (mean, sd),
    (NormalMean, "uniform"): lambda: (0.0, np.inf),
    (DirichletShares, "dirichlet"): lambda alpha: (alpha,),
}
"""Parameters that the draw wants, from those of the prior in PyTensor's order."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """One table of a conjugate variable: which of its parameters it feeds, and where."""

    table: TableLikelihood
    slot: int
    places: Places

    @property
    def form(self) -> ConjugateForm | None:
        """What the likelihood says of the parameter."""
        return self.table.family.conjugate_in(self.slot)

    @property
    def conditional(self) -> type[Conjugate] | None:
        """What the likelihood makes of a conjugate prior."""
        return None if self.form is None else CONDITIONALS[type(self.form)]

    @property
    def power(self) -> float:
        """Power of the variable that is the rate or precision of the likelihood; 0 where that is not known."""
        if not isinstance(self.form, Rate):
            return 0.0
        order = self.form.power
        if self.form.times is not None:
            values = constant_values([self.table.parameters[self.form.times]])
            order *= float(values[0].item()) if values is not None and values[0].size == 1 else 0.0
        return order * self.places.exponent


def conjugate(prior: Prior, dependents: Dependents, free: dict[Variable, Box]) -> Callable[..., Conjugate] | None:
    """Return what compiles the conjugate conditional of a variable, or None where none is proved.

    The result takes compiled-function maker, ranges and their reason.
    """
    if not dependents.tables or dependents.held or dependents.children or dependents.potentials:
        return None
    if prior.low is None or prior.high is None:
        return None
    pairs = [_pair(prior, table, boxes, free) for table, boxes in dependents.tables]
    known = [pair for pair in pairs if pair is not None]
    conditionals = {pair.conditional for pair in known}
    conditional = conditionals.pop() if len(conditionals) == 1 and len(known) == len(pairs) else None
    if conditional is None or not all(_fits(conditional, prior, pair) for pair in known):
        return None
    powers = {pair.power for pair in known}
    if conditional is GammaPower and len(powers) > 1:
        return None
    return partial(_made, conditional, prior, known, powers.pop())


def _pair(prior: Prior, table: TableLikelihood, boxes: Sequence[Box], free: dict[Variable, Box]) -> Pair | None:
    fed = [place for place, box in enumerate(boxes) if (box.owner(prior.name) != NONE).any()]
    if len(fed) != 1:
        return None
    places = places_of(table.parameters[fed[0]], prior, free)
    return None if places is None else Pair(table=table, slot=fed[0], places=places)


def _fits(conditional: type[Conjugate], prior: Prior, pair: Pair) -> bool:
    """Whether a prior is conjugate to one likelihood."""
    if conditional is not GammaPower:
        return (conditional, prior.distribution) in HYPER and pair.places.exponent == 1 and not pair.places.scaled
    assert prior.low is not None
    wanted = POWERS.get(prior.distribution, 0.0)
    return bool((prior.low >= 0).all()) and pair.power != 0 and (wanted is None or wanted == pair.power)


def _made(
    conditional: type[Conjugate],
    prior: Prior,
    pairs: Sequence[Pair],
    power: float,
    functions: Functions,
    ranges: tuple[float, ...],
    reason: str,
) -> Conjugate:
    assert prior.low is not None and prior.high is not None
    more: dict[str, Any] = {"power": power} if conditional is GammaPower else {}
    return conditional(
        name=prior.name,
        shape=prior.shape,
        ranges=ranges,
        reason=reason,
        prior=prior.distribution,
        hyper=hyper_of(conditional, prior, functions, power),
        low=np.asarray(prior.low, dtype=float),
        high=np.asarray(prior.high, dtype=float),
        links=[_link(prior, pair, functions) for pair in pairs],
        **more,
    )


def hyper_of(
    conditional: type[Conjugate], prior: Prior, functions: Functions, power: float = 1.0
) -> Callable[[Values], tuple[Array, ...]]:
    """Return the parameters that a conditional takes from a prior, as a function of the values of other variables."""
    uniform = conditional is GammaPower and prior.distribution == "uniform"
    return Hyper(
        (lambda: (1 / power, 0.0)) if uniform else HYPER[conditional, prior.distribution],
        prior.shape,
        prior.constants,
        None if prior.constants is not None else functions.function(prior.parameters),
    )


def _link(prior: Prior, pair: Pair, functions: Functions) -> Link:
    table = pair.table
    others = [parameter for slot, parameter in enumerate(table.parameters) if slot != pair.slot]
    return Link(
        table=table,
        slot=pair.slot,
        places=elements(prior, pair.places, (table.cells.count,), functions),
        given=_values_of(others, functions),
        exponent=pair.places.exponent,
        parameter=functions.function([table.parameters[pair.slot]]) if pair.places.scaled else None,
    )


def elements(prior: Prior, places: Places, shape: tuple[int, ...], functions: Functions) -> Callable[[Values], Array]:
    """Return the element (for simplexes: the row) of a variable that each of some entries has."""
    if prior.distribution != "dirichlet":
        return placed(places, shape, functions.function)
    levels = prior.shape[-1]
    whole = placed(places, (*shape, levels), functions.function)
    return lambda values: whole(values)[..., 0] // levels


def _values_of(graphs: Sequence[Variable], functions: Functions) -> Callable[[Values], Sequence[Array]]:
    """Return parameters as a function of the values of other variables; constants are evaluated once."""
    constants = constant_values(graphs, list(functions.symbols))
    if constants is None:
        return functions.function(graphs)
    return lambda values: constants


KINDS: dict[tuple[str, str], tuple[type[OfLatents], type[Conjugate]]] = {
    ("beta", "bernoulli"): (BetaOfLatents, BetaChance),
    ("uniform", "bernoulli"): (BetaOfLatents, BetaChance),
    ("dirichlet", "categorical"): (DirichletOfLatents, DirichletShares),
}
"""From the priors of probabilities and of discrete variables to the conditional, and where its parameters are found."""


def of_latents(
    prior: Prior, dependents: Dependents, free: dict[Variable, Box], shapes: Mapping[str, tuple[int, ...]]
) -> Callable[[Functions], OfLatents] | None:
    """Return what compiles the conditional of probabilities of discrete variables, or None where that is not proved."""
    if dependents.rows or dependents.potentials or not dependents.children or prior.low is None or prior.high is None:
        return None
    found: dict[str, Places] = {}
    kinds = set()
    for child in dependents.children:
        op: Any = child.owner.op
        kinds.add(KINDS.get((prior.distribution, str(getattr(op, "name", None)))))
        places = places_of(op.dist_params(child.owner)[0], prior, free) if kinds != {None} else None
        if None in kinds or places is None or places.exponent != 1 or places.scaled:
            return None
        found[str(child.name)] = places
    kind = kinds.pop()
    assert kind is not None
    return partial(_made_of_latents, kind, prior, found, {name: shapes[name] for name in found})


def _made_of_latents(
    kind: tuple[type[OfLatents], type[Conjugate]],
    prior: Prior,
    found: Mapping[str, Places],
    shapes: Mapping[str, tuple[int, ...]],
    functions: Functions,
) -> OfLatents:
    assert prior.low is not None and prior.high is not None
    return kind[0](
        name=prior.name,
        shape=prior.shape,
        ranges=(),
        reason="",
        hyper=hyper_of(kind[1], prior, functions),
        low=np.asarray(prior.low, dtype=float),
        high=np.asarray(prior.high, dtype=float),
        latents={name: elements(prior, places, shapes[name], functions) for name, places in found.items()},
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


__all__ = ["Dependents", "conjugate", "of_latents"]
