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
from pymc_dp.kernel.draw import slack
from pymc_dp.kernel.tallies import Rows
from pymc_dp.samplers.gibbs import NOTHING
from pymc_dp.samplers.gibbs_sums import ROUNDED, Choice, ConjugateDraw, GibbsSums, SumsAsked
from pymc_dp.samplers.near_rows import no_digits
from pymc_dp.step_methods.gibbs.by_rows import TABLES, simulated
from pymc_dp.step_methods.gibbs.conjugate_draws import Conjugate
from pymc_dp.step_methods.gibbs.grid import Conditional, Scores, Values, moved, spread
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

    def _drawn(self, element: int, asked: SumsAsked) -> Any:
        return self.payments[-1].drawn(self.first + element, asked)


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

    @override
    def draw(self, rng: np.random.Generator, values: Values) -> Array:
        asked = self.ready(values)
        return np.asarray(values[self.name] if asked is None else self._drawn(0, asked))


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
class SummedGrid(SumsUpdate):
    """Choice of a cell of a public grid, then a uniform draw within the cell, which is post-processing.

    Elements that are independent given the rest are chosen together, others one after the other. Levels of a discrete
    variable are a grid without widths.

    Attributes
    ----------
    points : (n_points, *shape) array
        Middles of the cells, or levels.
    widths : (*shape) array
        Width of the cells of each element; 0 for levels.
    together : bool
    scores : Scores
        Of what is public.
    slopes : Slopes
    owners : Owners
    """

    kind: ClassVar[str] = "exponential mechanism on a grid"
    points: Array
    widths: Array
    together: bool
    scores: Scores
    slopes: Slopes
    owners: Owners

    @property
    @override
    def draws(self) -> int:
        return 1 if self.together else self.scores.size

    @override
    def slack(self) -> float:
        moved = min(self.scores.size, 2 * len(self.of.sums.tables)) if self.together else 1
        return float(slack(len(self.points))) * moved + ROUNDED

    @override
    def asked(self, values: Values, element: int) -> Choice | None:
        candidates = self._candidates(values, element)
        slopes = [np.reshape(one, (len(candidates), -1)) for one in self.slopes(candidates, values)]
        coefficients = self.of.sums.whole(np.concatenate(slopes, axis=1))
        numbers = np.isfinite(coefficients)
        public, owners = self.scores.at(candidates, values), None
        if self.together and self.scores.size > 1:
            owners = self.of.sums.of_cells(self.owners(values))
            if (owners == MANY).any():
                return None
            kept = np.stack([numbers[:, owners == one].all(axis=1) for one in range(self.scores.size)])
            public = np.where(kept, public.T, -np.inf)
        else:
            public = np.where(numbers.all(axis=1), public[:, 0 if self.together else element], -np.inf)
        if not (public > -np.inf).any(axis=-1).all():
            return None
        return Choice(of=self.of, coefficients=np.where(numbers, coefficients, 0.0), public=public, owners=owners)

    @override
    def look(self, values: Values, element: int) -> tuple[float, Problem | None]:
        wide, problem = super().look(values, element)
        wide = wide if wide > NOTHING else 0.0
        ends = self.points[[0, -1]] + self.widths * np.array([-0.5, 0.5]).reshape(-1, *[1] * len(self.shape))
        if self.widths.any() and not all(np.isfinite(one).all() for one in self.slopes(ends, values)):
            problem = self.unbounded()
        asked = None if problem is not None or not wide else self.asked(values, element)
        if asked is None:
            return wide, problem
        return wide, no_digits(
            self.of.sums.most(asked.coefficients),
            self.of.most_rows,
            wide or np.inf,
            FAR,
        )

    def _candidates(self, values: Values, element: int) -> Array:
        if self.together:
            return self.points
        return moved(np.array(values[self.name], dtype=np.float64).reshape(self.shape), element, self.points)

    @override
    def draw(self, rng: np.random.Generator, values: Values) -> Array:
        size = self.scores.size
        flat, held = self.points.reshape(len(self.points), size), dict(values)
        current = np.array(values[self.name], dtype=np.float64).reshape(size)
        for element in range(self.draws):
            held[self.name] = current.reshape(self.shape)
            asked = self.ready(held, element)
            if not isinstance(asked, Choice):
                continue
            own: Any = slice(None) if self.together else element
            payment, place = self.payments[-1], self.first + element
            paid = payment.pays(place, asked.range(payment.beta) if payment.spending is not None else 0.0)
            drawn = payment.drawn(place, asked) if paid else choose(rng, asked.public)
            chosen = current.copy()
            chosen[own] = flat[drawn, np.arange(size)[own]]
            current[own] = spread(rng, chosen.reshape(self.shape), self.widths).reshape(size)[own]
        return current.reshape(self.shape)


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
