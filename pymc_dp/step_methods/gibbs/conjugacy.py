"""Conjugate pairs, proved on the graph: a parameter is the variable itself (or a power of it), and nothing else depends
on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.families import FAMILIES, CountFamily
from pymc_dp.families.conjugate_form import Chance, ConjugateForm, Rate
from pymc_dp.inspection.priors import Prior, constant_values
from pymc_dp.inspection.rows import Array, reached
from pymc_dp.step_methods.gibbs.compiled import Functions, Values
from pymc_dp.step_methods.gibbs.conjugate_draws import (
    CONDITIONALS,
    Conjugate,
    Elements,
    GammaPower,
    LatentLink,
    Link,
    TableLink,
)
from pymc_dp.step_methods.gibbs.grid import Ends
from pymc_dp.step_methods.gibbs.owners import moving
from pymc_dp.step_methods.gibbs.selected_elements import Places, placed, places_of
from pymc_dp.transforms.likelihood import TableLikelihood


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependents:
    """What depends on one free variable directly.

    Attributes
    ----------
    tables : tuple of TableLikelihood
    by_rows : bool
        Whether rows depend on it that are gone through one by one.
    children : tuple of Variable
        Free variables whose priors it feeds.
    potentials : tuple of Variable
    """

    tables: tuple[TableLikelihood, ...] = ()
    by_rows: bool = False
    children: tuple[Variable, ...] = ()
    potentials: tuple[Variable, ...] = ()

    @classmethod
    def of(
        cls,
        prior: Prior,
        free: Mapping[Variable, Ends],
        tables: Sequence[TableLikelihood],
        potentials: Sequence[Variable] = (),
        *,
        by_rows: bool = False,
    ) -> Dependents:
        """Find everything whose density depends on a variable directly."""
        others = [other for other in free if other is not prior.variable]
        return cls(
            tables=tuple(table for table in tables if fed(table.parameters, prior, list(free))),
            by_rows=by_rows,
            children=tuple(other for other in others if prior.variable in reached(other.owner.inputs, others)),
            potentials=tuple(item for item in potentials if prior.variable in reached([item], others)),
        )

    @property
    def rows(self) -> bool:
        """Whether rows depend on it."""
        return bool(self.tables) or self.by_rows


def fed(parameters: Sequence[Variable], prior: Prior, free: Sequence[Variable]) -> list[int]:
    """Return which of some parameters a free variable feeds."""
    found = moving(parameters, prior.variable, free)
    return [place for place, parameter in enumerate(parameters) if parameter in found]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair(ABC):
    """One likelihood of a conjugate variable: which of its parameters it feeds, and where.

    Attributes
    ----------
    form : ConjugateForm
        What the likelihood says of the parameter.
    places : Places
    """

    form: ConjugateForm
    places: Places

    @property
    def power(self) -> float:
        """Power of the variable that is the rate or precision of the likelihood; 0 where that is not known."""
        return self.form.power * self.places.exponent if isinstance(self.form, Rate) else 0.0

    @abstractmethod
    def link(self, prior: Prior, functions: Functions) -> Link:
        """Compile it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TablePair(Pair):
    """Of a table of rows."""

    table: TableLikelihood
    slot: int

    @classmethod
    def of(cls, prior: Prior, table: TableLikelihood, free: Mapping[Variable, Ends]) -> TablePair | None:
        """Find which one parameter a variable feeds; None where it is not conjugate."""
        slots = fed(table.parameters, prior, list(free))
        form = table.family.conjugate_in(slots[0]) if len(slots) == 1 else None
        places = None if form is None else places_of(table.parameters[slots[0]], prior, free)
        if form is None or places is None:
            return None
        return cls(form=form, places=places, table=table, slot=slots[0])

    @property
    def power(self) -> float:
        """Power of the variable that is the rate or precision of the likelihood; 0 where that is not known."""
        times = self.form.times if isinstance(self.form, Rate) else None
        values = [np.ones(1)] if times is None else constant_values([self.table.parameters[times]])
        return super().power * (float(values[0].item()) if values is not None and values[0].size == 1 else 0.0)

    def link(self, prior: Prior, functions: Functions) -> Link:
        """Compile it."""
        table = self.table
        others = [parameter for slot, parameter in enumerate(table.parameters) if slot != self.slot]
        return TableLink(
            form=self.form,
            exponent=self.places.exponent,
            table=table,
            elements=elements(prior, self.places, (table.n_cells,), functions),
            given=_values_of(others, functions),
            parameter=functions.function([table.parameters[self.slot]]) if self.places.scaled else None,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentPair(Pair):
    """Of a discrete free variable, whose values are counted."""

    name: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, prior: Prior, child: Variable, free: Mapping[Variable, Ends]) -> LatentPair | None:
        """Find how the probabilities of a discrete variable depend on another; None where it is not conjugate."""
        op: Any = child.owner.op
        family = FAMILIES.get(str(getattr(op, "name", None)))
        if not isinstance(family, CountFamily) or not family.conjugate or op.ndim_supp != 0:
            return None
        form = family.conjugate[0]
        places = places_of(op.dist_params(child.owner)[form.slot], prior, free)
        if places is None:
            return None
        return cls(form=form, places=places, name=str(child.name), shape=np.shape(free[child][0]))

    def link(self, prior: Prior, functions: Functions) -> Link:
        """Compile it."""
        levels = 2 if isinstance(self.form, Chance) else prior.shape[-1]
        return LatentLink(
            form=self.form,
            name=self.name,
            elements=elements(prior, self.places, self.shape, functions),
            size=prior.size if isinstance(self.form, Chance) else prior.size // levels,
            levels=levels,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Conjugacy:
    """What is proved of a variable whose conditional is conjugate, before anything is compiled."""

    prior: Prior
    conditional: type[Conjugate]
    pairs: Sequence[Pair]
    power: float

    def compile(self, functions: Functions) -> Conjugate:
        """Return how it is drawn."""
        prior = self.prior
        assert prior.low is not None and prior.high is not None
        more: dict[str, Any] = {"power": self.power} if self.conditional is GammaPower else {}
        return self.conditional(
            name=prior.name,
            shape=prior.shape,
            hyper=Hyper(
                self.conditional.priors[prior.distribution],
                prior.shape,
                prior.constants,
                None if prior.constants is not None else functions.function(prior.parameters),
            ),
            low=np.asarray(prior.low, dtype=float),
            high=np.asarray(prior.high, dtype=float),
            links=[pair.link(prior, functions) for pair in self.pairs],
            **more,
        )


def conjugate(prior: Prior, dependents: Dependents, free: Mapping[Variable, Ends]) -> Conjugacy | None:
    """Prove that the conditional of a variable is conjugate, given all that depends on it; None where it is not.

    Parameters
    ----------
    prior : Prior
    dependents : Dependents
    free : mapping of Variable to Ends
        Of every free variable.
    """
    if dependents.by_rows or dependents.potentials or prior.low is None or prior.high is None:
        return None
    pairs: list[Pair | None] = [TablePair.of(prior, table, free) for table in dependents.tables]
    pairs += [LatentPair.of(prior, child, free) for child in dependents.children]
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs):
        return None
    forms, powers = {type(pair.form) for pair in known}, {pair.power for pair in known}
    for conditional in CONDITIONALS:
        if not known and prior.distribution in conditional.priors:
            power = GammaPower.powers.get(prior.distribution) or 1.0
            return Conjugacy(prior=prior, conditional=conditional, pairs=(), power=power)
        if forms == {conditional.form} and len(powers) == 1:
            (power,) = powers
            fits = (
                conditional.fits(prior, pair.places.exponent, scaled=pair.places.scaled, power=power) for pair in known
            )
            return Conjugacy(prior=prior, conditional=conditional, pairs=known, power=power) if all(fits) else None
    return None


def elements(prior: Prior, places: Places, shape: tuple[int, ...], functions: Functions) -> Elements:
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


__all__ = ["Conjugacy", "Dependents", "TablePair", "conjugate", "fed"]
