"""Updates by rows: each a choice that the kernel makes, whose range is found on public rows at the present state.

What a scan of them costs is planned before rows are read. A chain pays from a pool, each choice for its range here; or
by a grant of choices with the largest ranges that were found, where ranges hardly depend on the state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final, override

import numpy as np
from pymc import Model

from pymc_dp.accounting import Budget, Event, PureEvent, ZCDPEvent
from pymc_dp.draws.finite_choice import choose
from pymc_dp.errors import BudgetExceeded, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Kernel, Pool, choice_event
from pymc_dp.kernel.account import repeated
from pymc_dp.kernel.draw import slack
from pymc_dp.proofs.parameter_boxes import Box
from pymc_dp.samplers.gibbs import GibbsRows, Here, RowConditional
from pymc_dp.samplers.near_rows import REMEDY, no_digits
from pymc_dp.samplers.row_paths import RowPaths
from pymc_dp.samplers.rows import OfPublicRows
from pymc_dp.simulation.rows import draw_rows
from pymc_dp.step_methods.gibbs.grid import Conditional, Scores, Sums, Values, moved, spread
from pymc_dp.step_methods.metropolis.spending import Spending

STATES, FEWEST, LOOKS = 32, 12, 240
"""Draws from the prior at which ranges are looked at; fewer where there are many choices in a scan."""
TABLES, ROWS = 12, 100
"""Simulated tables, and rows of each; they stand for as many rows as there are."""
LEVEL = 0.9
"""Share of simulated tables whose chains a plan has enough for."""
MARGIN = 1.1
"""What a pool has over what a plan expects of these."""
GAIN = 1.1
"""By how much β has to be greater for a pool: it may end early, and its losses compose less well."""
FAR = 20.0
"""How far from 0 variables without ends are tried."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One choice of a scan.

    Attributes
    ----------
    candidates : int
    cells : bool
        Whether all elements of a variable are chosen at once.
    most : float
        The largest range that was found; 0 where no row tells anything.
    """

    candidates: int
    cells: bool
    most: float = 0.0

    def event(self, beta: float, range_: float | None = None) -> Event:
        """Return what it costs at β and a range."""
        return choice_event(beta * (self.most if range_ is None else range_), self.candidates, cells=self.cells)

    @property
    def slack(self) -> float:
        """What whole weights add to its range."""
        return float(slack(self.candidates)) * (2 if self.cells else 1)


class Payment:
    """What pays for the choices of one chain: a pool, or grants of fixed ranges.

    Attributes
    ----------
    spending : Spending or None
        The account of a chain that pays from a pool.
    """

    def __init__(self, choices: Sequence[Choice], beta: float, steps: int, spending: Spending | None) -> None:
        self.choices, self.beta, self.steps, self.spending = choices, beta, steps, spending
        self.used = [0] * len(choices)
        self._pool: Pool | None = None
        self._grants: list[Grant | None] = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave what pays behind: a copy in another process begins its own chain."""
        return {**vars(self), "_pool": None, "_grants": []}

    @property
    def paid(self) -> list[Event]:
        """What was paid for the chain, part by part."""
        if self.spending is None:
            return [repeated(one.event(self.beta), self.steps) for one in self.choices if one.most]
        left = self.spending.reserved
        return [PureEvent(epsilon=left) if self.spending.pure else ZCDPEvent(rho=left)]

    def begin(self, kernel: Kernel) -> None:
        """Begin a chain, for which the parts were charged."""
        self.used = [0] * len(self.choices)
        if self.spending is None:
            self._grants = [
                kernel.grant(one.event(self.beta), self.steps) if one.most else None for one in self.choices
            ]
            return
        self.spending.restart()
        left = self.spending.reserved
        self._pool = kernel.pool(epsilon=left) if self.spending.pure else kernel.pool(rho=left)

    def pays(self, place: int, here: Here) -> bool:
        """Whether a choice is made by rows: with a pool where a row was found to tell anything here."""
        return here.range > 0 if self.spending is not None else self.choices[place].most > 0

    def drawn(self, place: int, given: RowConditional, here: Here, public: Array) -> Array | int:
        """Draw a choice by its place in the scan; it tells something, and is paid for.

        Raises
        ------
        BudgetExceeded
            Where the pool has not enough left. Nothing was read.
        """
        one = self.choices[place]
        if self.spending is None:
            pay, most = self._grants[place], one.most
            assert pay is not None
            self.used[place] += 1
            return given.choose(here, self.beta, public, pay, most)
        event = one.event(self.beta, here.range)
        if self._pool is None or not (self._pool.fits(event) and self.spending.affords(event.eta)):  # type: ignore[attr-defined]
            raise BudgetExceeded("The pool of this chain has not enough left for the next choice. Nothing was read.")
        return given.choose(here, self.beta, public, self._pool)

    @property
    def words(self) -> str:
        """What pays, for the trace."""
        if self.spending is None:
            return "a grant: every choice pays for the largest range that was found of it"
        unit = "ε" if self.spending.pure else "ρ"
        return (
            f"a pool of {unit} = {self.spending.reserved:.6g} for each chain: every choice pays for its range at the "
            "present state, and a chain ends before the pool is exceeded"
        )

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs to go on from here."""
        return {"used": list(self.used), "spending": None if self.spending is None else self.spending.state()}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take from what pays for this chain what it had used where its state was saved."""
        self.used = list(state["used"])
        for grant, count in zip(self._grants, self.used, strict=False):
            for _ in range(count if grant is not None else 0):
                grant.take(grant.event)  # type: ignore[union-attr]
        if self.spending is not None:
            self.spending.resume(state["spending"])
            spent = state["spending"]["spent"]
            if spent and self._pool is not None:
                self._pool.take(PureEvent(epsilon=spent) if self.spending.pure else ZCDPEvent(rho=spent))


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowGrid(Conditional):
    """Choice of a cell of a public grid by the kernel, then a uniform draw within the cell, which is post-processing.

    Elements that are independent given the rest, and one of which each row chooses by a column, are chosen together;
    others one after the other. Levels of a discrete variable are a grid without widths.

    Attributes
    ----------
    points : (n_points, *shape) array
        Middles of the cells, or levels.
    widths : (*shape) array
        Width of the cells of each element; 0 for levels.
    scores : Scores
        Of what is public.
    given : RowConditional
    first : int
        Place of its first choice in the scan.
    payments : list of Payment
        The one of the chain, last.
    """

    kind: ClassVar[str] = "exponential mechanism on a grid, by rows"
    points: Array
    widths: Array
    scores: Scores
    given: RowConditional
    first: int
    payments: list[Payment]

    @property
    def together(self) -> bool:
        """Whether all elements are one choice."""
        return self.given.cell is not None

    @property
    def choices(self) -> int:
        """How many there are in a scan."""
        return 1 if self.together else int(np.prod(self.shape))

    def look(self, values: Values, element: int) -> Here:
        """Look at one of its choices at a state."""
        return self.given.look(values, self._candidates(values, element))

    def _candidates(self, values: Values, element: int) -> Array:
        if self.together:
            return self.points
        return moved(np.array(values[self.name], dtype=np.float64).reshape(self.shape), element, self.points)

    @override
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        size = int(np.prod(self.shape))
        flat, held = self.points.reshape(len(self.points), size), dict(values)
        current = np.array(values[self.name], dtype=np.float64).reshape(size)
        for element in range(self.choices):
            held[self.name] = current.reshape(self.shape)
            candidates = self._candidates(held, element)
            own: Any = slice(None) if self.together else element
            public = self.scores.at(candidates, held, sums, beta, size)[:, own].T
            place = self._place(rng, self.look(held, element), public, self.first + element)
            if place is not None:
                chosen = current.copy()
                chosen[own] = flat[place, np.arange(size)[own]]
                current[own] = spread(rng, chosen.reshape(self.shape), self.widths).reshape(size)[own]
        return current.reshape(self.shape)

    def _place(self, rng: np.random.Generator, here: Here, public: Array, place: int) -> Any:
        """Draw a candidate, or one for each element; None where there is none at which rows have a density."""
        payment = self.payments[-1]
        if not here.possible.any():
            return None
        if not payment.pays(place, here):
            return choose(rng, np.where(here.possible, public, -np.inf))
        return payment.drawn(place, self.given, here, public)


class RowPlan:
    """Ranges of the choices of a scan, along states that are simulated: public, and looked at once.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
    rows : GibbsRows
    updates : sequence of RowGrid
    boxes : mapping of str to Box
        Of every free variable.

    Attributes
    ----------
    choices : tuple of Choice
        Of a scan, in their order.
    """

    def __init__(
        self,
        inspection: RowInspection,
        prior_model: Model,
        rows: GibbsRows,
        updates: Sequence[RowGrid],
        boxes: Mapping[str, Box],
        anywhere: Callable[[int], dict[str, Array]],
    ) -> None:
        self.rows, self._boxes = rows, boxes
        self._updates = updates
        count = sum(update.choices for update in updates)
        drawn = _from_prior(prior_model, boxes, min(STATES, max(FEWEST, LOOKS // max(count, 1))))
        states = drawn or [anywhere(turn) for turn in range(FEWEST)]
        ends = [anywhere(turn) for turn in range(4)]
        found = np.array([self._ranges(values) for values in [*states, *ends]]).reshape(len(states) + len(ends), count)
        self._found = found[: len(states)]
        self._likelihoods = _likelihoods(inspection, rows, states) if drawn else np.zeros((0, len(states)))
        most = self._farther([*states, *ends], found)
        self._states = [*states, *ends]
        self.looked = len(states) + len(ends)
        self.choices = tuple(
            Choice(candidates=len(update.points), cells=update.together, most=float(most[update.first + element]))
            for update in updates
            for element in range(update.choices)
        )
        self.reason = (
            f"the largest at {self.looked} states, of {len(rows.public)} public rows that are moved on to where it is "
            "larger; enforced on the number of every row, and rows beyond it are cut"
        )

    def _ranges(self, values: Values) -> list[float]:
        found = []
        for update in self._updates:
            for element in range(update.choices):
                here = update.look(values, element)
                if not here.possible.all():
                    what = "its log-likelihood is infinite or NaN for some rows that there may be, at some points"
                    raise UnsupportedModelError([Problem(where=update.name, what=what, remedy=REMEDY)])
                if (problem := no_digits(here.size, self.rows.most_rows, here.range or np.inf, REMEDY)) is not None:
                    raise UnsupportedModelError([problem])
                found.append(here.range)
        return found

    def _farther(self, states: Sequence[Mapping[str, Array]], found: Array) -> Array:
        """Return the largest ranges, where other variables are moved to their ends one after the other."""
        most = found.max(axis=0) if found.size else np.zeros(0)
        if found.shape[1] * len(self._boxes) > LOOKS // 4:
            return most
        for update in self._updates:
            for element in range(update.choices):
                place = update.first + element
                held, best = dict(states[int(found[:, place].argmax())]), most[place]
                for name, box in self._boxes.items():
                    for end in () if name == update.name and update.choices == 1 else (box.low, box.high):
                        tried = {**held, name: np.clip(end, -FAR, FAR).astype(np.asarray(held[name]).dtype)}
                        here = update.look(tried, element)
                        if here.possible.all() and here.range > best:
                            held, best = tried, here.range
                most[place] = best
        return most

    def paths(self) -> RowPaths:
        """Return the log-likelihood at all variables at once, looked at where ranges were."""
        return RowPaths(self.rows, np.array([self.rows.state(values) for values in self._states]))

    # --- what it costs ------------------------------------------------------------------------------------------------

    def pooled(self, budget: Budget, chains: int, steps: int) -> tuple[float, Spending]:
        """Return the greatest β at which a pool is planned to last, and the account of a chain."""
        spending = Spending(budget, chains)
        slacks, power = np.array([one.slack for one in self.choices]), spending.power
        each = spending.reserved / MARGIN / steps

        def lasts(beta: float) -> bool:
            etas = beta * self._found + slacks
            costs = (etas if power == 1 else etas**2 / 8).sum(axis=1)
            return self._level(beta, costs) <= each

        low, high = 0.0, 1.0
        if lasts(high):
            return high, spending
        low = high
        while not lasts(low) and low > 1e-300:
            low /= 2
        high = 2 * low
        while high > low * (1 + 1e-4):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if lasts(middle) else (low, middle)
        return low, spending

    def _level(self, beta: float, costs: Array) -> float:
        """Return what a scan costs on average, of nearly all tables: over their tempered posteriors."""
        if not len(self._likelihoods):
            return float(np.quantile(costs, LEVEL))
        logs = beta * self.rows.most_rows * self._likelihoods
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return float(np.quantile(weights @ costs / weights.sum(axis=1), LEVEL))


def _from_prior(prior_model: Model, boxes: Mapping[str, Box], count: int) -> list[dict[str, Array]]:
    """Return draws of all free variables from the prior, within their bounds; none where it cannot be drawn from."""
    free = list(prior_model.free_RVs)
    try:
        drawn = [np.asarray(one) for one in plain_draw(free, 0, count)]
    except Exception:  # of any kind: distributions say in their own ways that they cannot be drawn
        return []
    names = [str(rv.name) for rv in free]
    held = {
        name: np.clip(one, boxes[name].low, boxes[name].high).astype(one.dtype)
        for name, one in zip(names, drawn, strict=True)
    }
    if not all(np.isfinite(one).all() for one in held.values()):
        return []
    return [{name: one[place] for name, one in held.items()} for place in range(count)]


def _likelihoods(inspection: RowInspection, rows: GibbsRows, states: Sequence[Mapping[str, Array]]) -> Array:
    """Return mean log-likelihoods of simulated rows: (n_tables, n_states); none where rows cannot be drawn."""
    rng, found = np.random.default_rng(1), []
    function = OfPublicRows(rows.rows, rows.rows.logp, several=True)
    every = np.array([rows.state(values) for values in states])
    for truth in states[:TABLES]:
        try:
            _, held = draw_rows(inspection, truth, {}, n_rows=ROWS, rng=rng)
        except PrivacyError:
            raise
        except Exception:  # of any kind: distributions say in their own ways that they cannot be drawn
            return np.zeros((0, len(states)))
        own = {
            name: np.reshape(one, (len(one), *var.type.shape)).astype(var.type.dtype)
            for (name, var), one in zip(rows.rows.inputs.items(), held, strict=True)
        }
        logs = function.at(own, every)
        found.append(np.where(np.isfinite(logs), logs, -1e3).mean(axis=1))
    return np.array(found)


__all__ = ["Choice", "Payment", "RowGrid", "RowPlan"]
