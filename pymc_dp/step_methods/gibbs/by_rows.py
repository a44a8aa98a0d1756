"""Updates by rows: each a choice that the kernel makes, whose range is found on public rows at the present state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final, override

import numpy as np

from pymc_dp.accounting import BoundedRangeEvent
from pymc_dp.draws.finite_choice import choose
from pymc_dp.errors import PrivacyError, Problem
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Pool, choice_event
from pymc_dp.kernel.draw import slack
from pymc_dp.samplers.gibbs import GibbsRows, Here, RowConditional
from pymc_dp.samplers.near_rows import REMEDY, no_digits
from pymc_dp.samplers.rows import OfPublicRows
from pymc_dp.simulation.rows import draw_rows
from pymc_dp.step_methods.gibbs.grid import GridUpdate, Values
from pymc_dp.step_methods.gibbs.paying import Payment

TABLES, ROWS = 12, 100
"""Simulated tables, and rows of each; they stand for as many rows as there are."""


@dataclass(frozen=True, kw_only=True)
class RowChoice:
    """A choice at a state."""

    given: RowConditional
    here: Here
    public: Array

    def event(self, beta: float) -> BoundedRangeEvent:
        """Return what it costs at β, of its range at this state."""
        return choice_event(beta * self.here.range, len(self.here.candidates), cells=self.given.cell is not None)

    def draw(self, beta: float, pay: Grant | Pool, most: float | None = None) -> Array | int:
        """Draw candidates; with a `most` that is enforced on the number of every row."""
        return self.given.choose(self.here, beta, self.public, pay, most)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowGrid(GridUpdate):
    """Choice of a cell of a public grid by rows. Elements are chosen together where a column says which a row sees.

    Attributes
    ----------
    given : RowConditional
    first : int
        Place of its first choice in the scan.
    payments : list of Payment
        The one of the chain, last.
    """

    kind: ClassVar[str] = "exponential mechanism on a grid, by rows"
    given: RowConditional
    first: int
    payments: list[Payment]

    def slack(self) -> float:
        """Return what whole weights add to the range of a choice."""
        return float(slack(len(self.points))) * (2 if self.together else 1)

    def look(self, values: Values, element: int) -> tuple[float, Problem | None]:
        """Return the range of one of its choices at a state, or why it is not known."""
        here = self._look(values, element)
        if not here.possible.all():
            what = "its log-likelihood is infinite or NaN for some rows that there may be, at some points"
            return here.range, Problem(where=self.name, what=what, remedy=REMEDY)
        return here.range, no_digits(here.size, self.given.most_rows, here.range or np.inf, REMEDY)

    def _look(self, values: Values, element: int) -> Here:
        return self.given.look(values, self.candidates(values, element))

    @override
    def chosen(self, rng: np.random.Generator, values: Values, element: int) -> Array | int | None:
        payment, place, here = self.payments[-1], self.first + element, self._look(values, element)
        if not here.possible.any():
            return None
        public = self.public(self.candidates(values, element), values, element)
        if not payment.pays(place, here.range):
            return choose(rng, np.where(here.possible, public, -np.inf))
        drawn: Array | int = payment.drawn(place, RowChoice(given=self.given, here=here, public=public))
        return drawn


def likelihoods_by_rows(inspection: RowInspection, rows: GibbsRows, states: Sequence[Mapping[str, Array]]) -> Array:
    """Return mean log-likelihoods of simulated rows: (n_tables, n_states); none where rows cannot be drawn."""
    rng, found = np.random.default_rng(1), []
    function = OfPublicRows(rows.rows, rows.rows.logp, several=True)
    every = np.array([rows.state(values) for values in states])
    for truth in states[:TABLES]:
        held = simulated(inspection, truth, rng)
        if held is None:
            return np.zeros((0, len(states)))
        own = {
            name: np.reshape(one, (len(one), *var.type.shape)).astype(var.type.dtype)
            for (name, var), one in zip(rows.rows.inputs.items(), held, strict=True)
        }
        logs = function.at(own, every)
        found.append(np.where(np.isfinite(logs), logs, -1e3).mean(axis=1))
    return np.array(found)


def simulated(
    inspection: RowInspection, truth: Mapping[str, Array], rng: np.random.Generator
) -> Sequence[Array] | None:
    """Return columns of simulated rows, clamped; None where they cannot be drawn."""
    try:
        return draw_rows(inspection, truth, {}, n_rows=ROWS, rng=rng)[1]
    except PrivacyError:
        raise
    except Exception:  # of any kind: distributions say in their own ways that they cannot be drawn
        return None


__all__ = ["TABLES", "RowGrid", "likelihoods_by_rows", "simulated"]
