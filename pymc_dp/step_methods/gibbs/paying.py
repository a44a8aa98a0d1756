"""What pays for the draws of a scan, planned before rows are read from ranges at states that are simulated.

A chain pays from a pool, each draw for its range at the present state; or by a grant of draws with the largest ranges
that were found, where ranges hardly depend on the state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from pymc import Model

from pymc_dp.accounting import BoundedRangeEvent, Budget, Event, PureEvent, ZCDPEvent
from pymc_dp.errors import BudgetExceeded, Problem, UnsupportedModelError
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Pool
from pymc_dp.kernel.account import repeated
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.step_methods.gibbs.grid import Ends, Values
from pymc_dp.step_methods.metropolis.spending import Spending

STATES, FEWEST, LOOKS = 32, 12, 240
"""Draws from the prior at which ranges are looked at; fewer where there are many draws in a scan."""
LEVEL = 0.9
"""Share of simulated tables whose chains a plan has enough for."""
MARGIN = 1.1
"""What a pool has over what a plan expects of these."""
GAIN = 1.1
"""By how much β has to be greater for a pool: it may end early, and its losses compose less well."""
SCATTER, TIME = 2.0, 10
"""Standard deviations that the cost of a chain may lie above its mean, where scans are alike over so many of them."""
FAR = 20.0
"""How far from 0 variables without ends are tried."""


@dataclass(frozen=True, kw_only=True)
class PricedDraw:
    """One draw of a scan by the kernel.

    Attributes
    ----------
    slack : float
        What is added to its range: by whole weights, and by rounding.
    most : float
        The largest range that was found; 0 where no row tells anything.
    """

    slack: float
    most: float = 0.0

    def event(self, beta: float, range_: float | None = None) -> BoundedRangeEvent:
        """Return what it costs at β and a range, no less than the kernel charges."""
        wide = Fraction(beta * (self.most if range_ is None else range_)) + Fraction(self.slack)
        return BoundedRangeEvent(eta=float_up(wide * (1 + Fraction(1, 2**50))))


class Asked(Protocol):
    """A draw at a state, which the kernel prices and makes."""

    def event(self, beta: float) -> BoundedRangeEvent:
        """Return what it costs at β, of its range at this state; public."""

    def draw(self, beta: float, pay: Grant | Pool, most: float | None = None) -> Any:
        """Make it; for no more than a range of `most` costs, where that is given."""


class Chain(Protocol):
    """What draws in a chain that has begun."""

    def grant(self, event: Event, count: int = 1) -> Grant:
        """Pay for so many uses of an event."""

    def pool(self, *, rho: float | None = None, epsilon: float | None = None) -> Pool:
        """Reserve ρ, or ε."""


class Payment:
    """What pays for the draws of one chain: a pool, or grants of fixed ranges.

    Attributes
    ----------
    spending : Spending or None
        The account of a chain that pays from a pool.
    """

    def __init__(self, priced: Sequence[PricedDraw], beta: float, steps: int, spending: Spending | None) -> None:
        self.priced, self.beta, self.steps, self.spending = priced, beta, steps, spending
        self.used = [0] * len(priced)
        self._pool: Pool | None = None
        self._grants: list[Grant | None] = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave what pays behind: a copy in another process begins its own chain."""
        return {**vars(self), "_pool": None, "_grants": []}

    @property
    def paid(self) -> list[Event]:
        """What was paid for the chain, part by part."""
        if self.spending is None:
            return [repeated(one.event(self.beta), self.steps) for one in self.priced if one.most]
        left = self.spending.reserved
        return [PureEvent(epsilon=left) if self.spending.pure else ZCDPEvent(rho=left)]

    def begin(self, kernel: Chain) -> None:
        """Begin a chain, for which the parts were charged."""
        self.used = [0] * len(self.priced)
        if self.spending is None:
            self._grants = [kernel.grant(one.event(self.beta), self.steps) if one.most else None for one in self.priced]
            return
        self.spending.restart()
        left = self.spending.reserved
        self._pool = kernel.pool(epsilon=left) if self.spending.pure else kernel.pool(rho=left)

    def pays(self, place: int, range_: float) -> bool:
        """Whether a draw is made by rows: with a pool where a row tells anything here."""
        return range_ > 0 if self.spending is not None else self.priced[place].most > 0

    def drawn(self, place: int, asked: Asked) -> Any:
        """Make a draw by its place in the scan; rows tell something, and it is paid for.

        Raises
        ------
        BudgetExceeded
            Where the pool has not enough left. Nothing was read.
        """
        if self.spending is None:
            pay = self._grants[place]
            assert pay is not None
            self.used[place] += 1
            return asked.draw(self.beta, pay, self.priced[place].most)
        event = asked.event(self.beta)
        if self._pool is None or not (self._pool.fits(event) and self.spending.affords(float(event.eta))):
            raise BudgetExceeded("The pool of this chain has not enough left for the next draw. Nothing was read.")
        return asked.draw(self.beta, self._pool)

    @property
    def words(self) -> str:
        """What pays, for the trace."""
        if self.spending is None:
            return "a grant: every draw pays for the largest range that was found of it"
        unit = "ε" if self.spending.pure else "ρ"
        return (
            f"a pool of {unit} = {self.spending.reserved:.6g} for each chain: every draw pays for its range at the "
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


class Update(Protocol):
    """An update by the kernel, of one draw or of several one after the other."""

    @property
    def name(self) -> str:
        """Variable."""

    @property
    def draws(self) -> int:
        """How many there are in a scan."""

    def slack(self) -> float:
        """Return what is added to the range of a draw."""

    def look(self, values: Values, element: int) -> tuple[float, Problem | None]:
        """Return the range of one of its draws at a state, or why it is not known."""


class RangePlan:
    """Ranges of the draws of a scan, along states that are simulated: public, and looked at once.

    Parameters
    ----------
    prior_model : pymc.Model
    updates : sequence of Update
    ends : mapping of str to Ends
        Of every free variable.
    extremes : mapping of str to sequence of array
        Values of every free variable that are as far apart as they may be.
    anywhere : callable
        From a turn to a state: the least, the greatest, the middle, or any.
    n_rows : int
        How many rows there are, or may be.
    likelihoods : callable
        From states to mean log-likelihoods of rows of simulated tables: (n_tables, n_states).

    Attributes
    ----------
    priced : tuple of PricedDraw
        Draws of a scan, in their order.
    states : list of states
        At which ranges were looked at.
    """

    def __init__(
        self,
        prior_model: Model,
        updates: Sequence[Update],
        ends: Mapping[str, Ends],
        extremes: Mapping[str, Sequence[Array]],
        anywhere: Callable[[int], dict[str, Array]],
        n_rows: int,
        likelihoods: Callable[[Sequence[Mapping[str, Array]]], Array],
    ) -> None:
        self._extremes, self._n_rows = extremes, n_rows
        self._order = [(update, element) for update in updates for element in range(update.draws)]
        drawn = _from_prior(prior_model, ends, min(STATES, max(FEWEST, LOOKS // max(len(self._order), 1))))
        states = drawn or [anywhere(turn) for turn in range(FEWEST)]
        self.states = [*states, *(anywhere(turn) for turn in range(4))]
        problems: dict[str, Problem] = {}
        found = np.array([[self._looked(*one, values, problems) for one in self._order] for values in self.states])
        if problems:
            raise UnsupportedModelError(list(dict.fromkeys(problems.values())))
        self._found = found.reshape(len(self.states), len(self._order))[: len(states)]
        self._likelihoods = likelihoods(states) if drawn else np.zeros((0, len(states)))
        most = self._farther(found)
        self.priced = tuple(
            PricedDraw(slack=update.slack(), most=float(one))
            for (update, _), one in zip(self._order, most, strict=True)
        )

    @staticmethod
    def _looked(update: Update, element: int, values: Values, problems: dict[str, Problem]) -> float:
        if update.name in problems:
            return 0.0
        wide, problem = update.look(values, element)
        if problem is not None:
            problems[update.name] = problem
        return wide

    def _farther(self, found: Array) -> Array:
        """Return the largest ranges, where other variables are moved to extremes one after the other."""
        most = found.max(axis=0) if found.size else np.zeros(0)
        if len(self._order) * sum(map(len, self._extremes.values())) > LOOKS // 2:
            return most
        for place, (update, element) in enumerate(self._order):
            held = dict(self.states[int(found[:, place].argmax())])
            for name, extremes in self._extremes.items():
                for end in () if name == update.name and update.draws == 1 else extremes:
                    tried = {**held, name: end}
                    wide, problem = update.look(tried, element)
                    if problem is None and wide > most[place]:
                        held, most[place] = tried, wide
        return most

    # --- what it costs ------------------------------------------------------------------------------------------------

    def pooled(self, budget: Budget, chains: int, steps: int) -> tuple[float, Spending]:
        """Return the greatest β at which a pool is planned to last, and the account of a chain."""
        spending = Spending(budget, chains)
        slacks, power = np.array([one.slack for one in self.priced]), spending.power
        each = spending.reserved / MARGIN / steps

        def lasts(beta: float) -> bool:
            etas = beta * self._found + slacks
            costs = (etas if power == 1 else etas**2 / 8).sum(axis=1)
            return self._level(beta, costs, steps) <= each

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

    def _level(self, beta: float, costs: Array, steps: int) -> float:
        """Return what a scan costs on average, of nearly all chains on nearly all tables: over tempered posteriors."""
        if not len(self._likelihoods):
            return float(np.quantile(costs, LEVEL))
        logs = beta * self._n_rows * self._likelihoods
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        mean = weights @ costs
        variance = np.maximum(weights @ costs**2 - mean**2, 0.0)
        return float(np.quantile(mean + SCATTER * np.sqrt(variance * min(TIME / steps, 1.0)), LEVEL))


def _from_prior(prior_model: Model, ends: Mapping[str, Ends], count: int) -> list[dict[str, Array]]:
    """Return draws of all free variables from the prior, within their bounds; none where it cannot be drawn from."""
    free = list(prior_model.free_RVs)
    try:
        drawn = [np.asarray(one) for one in plain_draw(free, 0, count)]
    except Exception:  # of any kind: distributions say in their own ways that they cannot be drawn
        return []
    names = [str(rv.name) for rv in free]
    held = {name: np.clip(one, *ends[name]).astype(one.dtype) for name, one in zip(names, drawn, strict=True)}
    if not all(np.isfinite(one).all() for one in held.values()):
        return []
    return [{name: one[place] for name, one in held.items()} for place in range(count)]


__all__ = ["FAR", "GAIN", "Asked", "Payment", "PricedDraw", "RangePlan", "Update"]
