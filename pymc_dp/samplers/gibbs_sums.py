"""Draws of one free variable given the others by exact sums: the kernel computes what each costs, and makes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, final, override

import numpy as np

from pymc_dp.accounting import BoundedRangeEvent, Event
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Pool
from pymc_dp.kernel.conjugates import Conjugate, drawing
from pymc_dp.kernel.draw import slack
from pymc_dp.kernel.totals import ByTotals
from pymc_dp.samplers.sums import KernelSums, ModelSums
from pymc_dp.transforms.likelihood import TableLikelihood

ROOM, ROUNDED = 1 + 1e-9, 2.0**-22
"""By how much a range is widened; and in nats, for what rounding of coefficients adds to it at another power."""
LEAST_BETA = 2.0**-64
"""At which what a row adds is tried."""


class GibbsSums(KernelSums):
    """Exact sums of a model as the kernel takes them. Holds no row.

    Parameters
    ----------
    tables : sequence of TableLikelihood
    inspection : Inspection
    released : collection of str
        Columns that are latents of the rows, which are released: like public ones they keep rows in their cells.
    """

    def __init__(
        self, tables: Sequence[TableLikelihood], inspection: Inspection, released: Collection[str] = ()
    ) -> None:
        super().__init__(ModelSums(tables, inspection, released))
        self.most_rows = inspection.most_rows

    def begin(self, paid: Sequence[Event]) -> ByTotals:
        """Begin a chain, for which the parts `paid` were charged; return what draws in it."""
        return self.opened(*paid)

    def regroup(self) -> None:
        """Add up the rows again, after released latents moved them to other cells."""
        self.kernel.exchange(self.sums.read())


def slack_of(of: GibbsSums, candidates: int, elements: int = 1) -> float:
    """Return what the event of choices adds to their range at most: a row moves two elements of each table."""
    return float(slack(candidates)) * min(elements, 2 * len(of.sums.tables)) + ROUNDED


@dataclass(frozen=True, kw_only=True, eq=False)
class SumsAsked(ABC):
    """A draw by exact sums at a state. What it costs there, the kernel computes from what is public."""

    of: GibbsSums
    _priced: dict[float, BoundedRangeEvent] = field(default_factory=dict, repr=False)

    def event(self, beta: float) -> BoundedRangeEvent:
        """Return what it costs at β: what the kernel charges."""
        if beta not in self._priced:
            self._priced[beta] = self._event(beta)
        return self._priced[beta]

    @abstractmethod
    def _event(self, beta: float) -> BoundedRangeEvent:
        """Ask the kernel for it."""

    @property
    def slack(self) -> float:
        """What its event adds to the range; and room for another power."""
        return ROUNDED

    def range(self, beta: float = 1.0) -> float:
        """Return how far a row moves the log-likelihood over the variable here; infinite where there are no numbers."""
        try:
            return max(float(self.event(beta).eta) - self.slack + ROUNDED, 0.0) / beta * ROOM
        except ArgumentError:  # boxes that are open, or numbers beyond floats
            return np.inf

    def draw(self, beta: float, pay: Grant | Pool, most: float | None = None) -> Any:
        """Make it; where the range here is above `most`, at a power of the likelihood that is so much lower."""
        if most is not None and (wide := self.range(beta)) > most:
            beta *= most / wide
        return self._make(beta, pay)

    @abstractmethod
    def _make(self, beta: float, pay: Grant | Pool) -> Any:
        """Let the kernel charge and draw."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ConjugateDraw(SumsAsked):
    """A draw from a family of the kernel's.

    Attributes
    ----------
    family : Conjugate
    back : callable, optional
        Makes the variable of what is drawn.
    """

    family: Conjugate
    back: Callable[[Array], Array] = np.asarray

    @override
    def _event(self, beta: float) -> BoundedRangeEvent:
        layout = self.of.sums.layout
        return drawing(layout, [self.family], [layout.exponents(self.family.linear, beta)])

    @override
    def _make(self, beta: float, pay: Grant | Pool) -> Array:
        return self.back(self.of.kernel.draw([self.family], beta=beta, pay=pay)[0])


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(SumsAsked):
    """A choice among K candidates; or one for each of n elements, by the sums of cells that are its own.

    Attributes
    ----------
    coefficients : (K, size) array
    public : (K,) or (n, K) array
        Log weights; -inf excludes.
    owners : (size,) array or None
        The element that each sum is of; -1 for none.
    """

    coefficients: Array
    public: Array
    owners: Array | None = None

    @property
    @override
    def slack(self) -> float:
        return slack_of(self.of, self.public.shape[-1], 1 if self.owners is None else len(self.public))

    @override
    def _event(self, beta: float) -> BoundedRangeEvent:
        layout, possible = self.of.sums.layout, self.public > -np.inf
        if self.owners is not None:
            owners = layout.owners(self.owners, len(possible))
            return layout.choices(layout.exponents(self.coefficients, beta), owners, possible)
        return layout.choice(layout.exponents(self.coefficients[possible], beta), len(possible))

    @override
    def _make(self, beta: float, pay: Grant | Pool) -> Array | int:
        kernel = self.of.kernel
        if self.owners is not None:
            return kernel.choose_each(self.coefficients, self.owners, beta=beta, public=self.public, pay=pay)
        return kernel.choose(self.coefficients, beta=beta, public=self.public, pay=pay)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ChoiceOfRows(SumsAsked):
    """A choice for each row, by what it adds to the sums of cells that do not know of the choice.

    The kernel holds what a row adds below 2^13 nats. Ranges of more are those at less of β.

    Attributes
    ----------
    rows : ModelSums
        Of these cells.
    coefficients : (K, rows.layout.size) array
    public : (K,) array
    """

    rows: ModelSums
    coefficients: Array
    public: Array

    @property
    @override
    def slack(self) -> float:
        return slack_of(self.of, len(self.coefficients))

    @override
    def _event(self, beta: float) -> BoundedRangeEvent:
        return self.rows.layout.choice_for_each(self.coefficients, beta=beta, public=self.public)

    @override
    def range(self, beta: float = 1.0) -> float:
        found = super().range(beta)
        return found if np.isfinite(found) or not self.most_beta else super().range(self.most_beta)

    @property
    def most_beta(self) -> float:
        """About the largest β <= 1 at which the kernel holds what a row adds to a choice of its own; 0 for none."""
        beta = 1.0
        while beta > LEAST_BETA:
            try:
                self.event(beta)
            except ArgumentError:
                beta /= 2
            else:
                return beta
        return 0.0

    @override
    def _make(self, beta: float, pay: Grant | Pool) -> Array:
        kernel, held = self.of.kernel, self.rows.read_rows()
        return kernel.choose_for_each(held, self.coefficients, beta=beta, public=self.public, pay=pay)


__all__ = ["ROUNDED", "Choice", "ChoiceOfRows", "ConjugateDraw", "GibbsSums", "SumsAsked", "slack_of"]
