"""Updates by exact sums: the kernel draws, and computes from what is public how far one row can move the draw here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final, override

import numpy as np

from pymc_dp.draws.finite_choice import choose
from pymc_dp.errors import ArgumentError, Problem
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.tallies import Rows
from pymc_dp.samplers.gibbs import NOTHING
from pymc_dp.samplers.gibbs_sums import ROUNDED, Choice, ConjugateDraw, GibbsSums, SumsAsked, slack_of
from pymc_dp.samplers.near_rows import no_digits
from pymc_dp.step_methods.gibbs.by_rows import TABLES, simulated
from pymc_dp.step_methods.gibbs.conjugate_draws import Conjugate
from pymc_dp.step_methods.gibbs.grid import Conditional, GridUpdate, Values
from pymc_dp.step_methods.gibbs.owners import MANY
from pymc_dp.step_methods.gibbs.paying import Payment
from pymc_dp.transforms.likelihood import TableLikelihood

Slopes = Callable[[Array, Values], Sequence[Array]]
"""From (K, *shape) values of a variable and the values of the others to the derivatives of each table's log-likelihood
in its sums: (K, n_cells * n_sums)."""
Owners = Callable[[Values], Sequence[Array]]
"""From the values of all variables to the element that each cell of each table depends on."""
LEAST = 1e-12
"""Of a range: a draw by a grant is paid for, even where a row tells nothing."""
FAR = (
    "Subtract a public number from its values and from their mean, so that both lie near 0, or give its parameters "
    "bounds nearer to those of its values."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SumsUpdate(Conditional):
    """What is drawn by exact sums.

    Attributes
    ----------
    of : GibbsSums
    first : int
        Place of its first draw in the scan.
    payments : list of Payment
        The one of the chain, last.
    unbounded : callable
        Makes the problem of a range without a bound.
    """

    of: GibbsSums
    first: int
    payments: list[Payment]
    unbounded: Callable[[], Problem]

    @property
    def draws(self) -> int:
        """How many there are in a scan."""
        return 1

    @abstractmethod
    def asked(self, values: Values, element: int) -> SumsAsked | None:
        """Return one of its draws at a state; None where no value of the variable is possible."""

    def slack(self) -> float:
        """Return what is added to the range of a draw."""
        return ROUNDED

    def look(self, values: Values, element: int) -> tuple[float, Problem | None]:
        """Return the range of one of its draws at a state, or why it is not known."""
        try:
            with np.errstate(all="ignore"):
                asked = self.asked(values, element)
        except ArgumentError:  # of a family of the kernel: boxes that are open
            return np.inf, self.unbounded()
        wide = 0.0 if asked is None else max(asked.range(), LEAST)
        return wide, None if np.isfinite(wide) else self.unbounded()

    def ready(self, values: Values, element: int = 0) -> SumsAsked | None:
        """Return a draw at a state; None where numbers are beyond floats: its variable then stays, which is public."""
        try:
            with np.errstate(all="ignore"):
                asked = self.asked(values, element)
                if asked is not None:
                    asked.event(self.payments[-1].beta)
        except ArgumentError:
            return None
        return asked

    @override
    def draw(self, rng: np.random.Generator, values: Values) -> Array:
        asked = self.ready(values)
        return np.asarray(values[self.name] if asked is None else self.payments[-1].drawn(self.first, asked))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SummedConjugate(SumsUpdate):
    """An exact draw from a truncated conjugate distribution, of all elements at once."""

    given: Conjugate

    @property
    def kind(self) -> str:  # type: ignore[override]
        """In words."""
        return self.given.kind

    @override
    def asked(self, values: Values, element: int) -> SumsAsked:
        family, back = self.given.by_sums(self.of.sums, values)
        return ConjugateDraw(of=self.of, family=family, back=back)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PublicConjugate(Conditional):
    """The same given released variables alone."""

    given: Conjugate

    @property
    def kind(self) -> str:  # type: ignore[override]
        """In words."""
        return self.given.kind

    @override
    def draw(self, rng: np.random.Generator, values: Values) -> Array:
        return self.given.draw(rng, values, {}, 1.0)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SummedGrid(GridUpdate, SumsUpdate):
    """Choice of a cell of a public grid by exact sums.

    Attributes
    ----------
    slopes : Slopes
    owners : Owners
    """

    kind: ClassVar[str] = "exponential mechanism on a grid"
    slopes: Slopes
    owners: Owners

    @override
    def slack(self) -> float:
        return slack_of(self.of, len(self.points), self.scores.size if self.together else 1)

    @override
    def asked(self, values: Values, element: int) -> Choice | None:
        candidates = self.candidates(values, element)
        slopes = [np.reshape(one, (len(candidates), -1)) for one in self.slopes(candidates, values)]
        coefficients = self.of.sums.whole(np.concatenate(slopes, axis=1))
        numbers = np.isfinite(coefficients)
        public, owners = self.public(candidates, values, element), None
        if self.together and self.scores.size > 1:
            owners = self.of.sums.of_cells(self.owners(values))
            if (owners == MANY).any():
                return None
            kept = np.stack([numbers[:, owners == one].all(axis=1) for one in range(self.scores.size)])
            public = np.where(kept, public, -np.inf)
        else:
            public = np.where(numbers.all(axis=1), public.reshape(-1), -np.inf)
        if not (public > -np.inf).any(axis=-1).all():
            return None
        return Choice(of=self.of, coefficients=np.where(numbers, coefficients, 0.0), public=public, owners=owners)

    @override
    def look(self, values: Values, element: int) -> tuple[float, Problem | None]:
        wide, problem = SumsUpdate.look(self, values, element)
        wide = wide if wide > NOTHING else 0.0
        ends = self.points[[0, -1]] + self.widths * np.array([-0.5, 0.5]).reshape(-1, *[1] * len(self.shape))
        if self.widths.any() and not all(np.isfinite(one).all() for one in self.slopes(ends, values)):
            problem = self.unbounded()
        asked = None if problem is not None or not wide else self.asked(values, element)
        if asked is None:
            return wide, problem
        return wide, no_digits(self.of.sums.most(asked.coefficients), self.of.most_rows, wide, FAR)

    @override
    def chosen(self, rng: np.random.Generator, values: Values, element: int) -> Array | int | None:
        asked, payment, place = self.ready(values, element), self.payments[-1], self.first + element
        if not isinstance(asked, Choice):
            return None
        paid = payment.pays(place, asked.range(payment.beta) if payment.spending is not None else 0.0)
        drawn: Array | int = payment.drawn(place, asked) if paid else choose(rng, asked.public)
        return drawn


def likelihoods_by_sums(
    inspection: Inspection, of: GibbsSums, slopes: Callable[[Values], Array], states: Sequence[Mapping[str, Array]]
) -> Array:
    """Return mean log-likelihoods of simulated rows, up to what is the same at all states: (n_tables, n_states).

    None where rows cannot be drawn.
    """
    rows, rng, found = inspection.inspected.rows, np.random.default_rng(1), []
    every = of.sums.whole(np.stack([slopes(values) for values in states]))
    for truth in [] if rows.problems else states[:TABLES]:
        held = simulated(rows, truth, rng)
        if held is None:
            return np.zeros((0, len(states)))
        own = {column.leaf: one for column, one in zip(rows.columns, held, strict=True)}
        sums = of.sums.added([Rows(*_taken(table, own)) for table in of.sums.tables])
        logs = every @ sums / len(next(iter(own.values())))
        found.append(np.where(np.isfinite(logs), logs, -1e3))
    return np.array(found).reshape(-1, len(states))


def _taken(table: TableLikelihood, own: Mapping[Any, Array]) -> tuple[list[Array], list[Array]]:
    return [own[table.observed.leaf]], [column.of(lambda one: own[one.leaf]) for column in table.cells.columns]


__all__ = ["PublicConjugate", "SummedConjugate", "SummedGrid", "SumsUpdate", "likelihoods_by_sums"]
