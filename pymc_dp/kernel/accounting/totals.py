"""From events to (epsilon, delta), by whichever accountant is best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Self, final

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting import basic, gdp, pld, pure, rdp, sum_of_parts, zcdp
from pymc_dp.kernel.accounting.events import Event
from pymc_dp.kernel.errors import ArgumentError

# Earlier ones win ties: a pure loss says more than the same loss at some delta.
_EPSILONS: dict[str, Callable[[Event, float], float]] = {
    "pure": pure.epsilon_at,
    "zcdp": zcdp.epsilon_at,
    "gdp": gdp.epsilon_at,
    "rdp": rdp.epsilon_at,
    "pld": pld.epsilon_at,
    "sum": sum_of_parts.epsilon_at,
    "basic": basic.epsilon_at,
}
_DELTAS: dict[str, Callable[[Event, float], float]] = {
    "pure": pure.delta_at,
    "zcdp": zcdp.delta_at,
    "gdp": gdp.delta_at,
    "rdp": rdp.delta_at,
    "pld": pld.delta_at,
    "sum": sum_of_parts.delta_at,
    "basic": basic.delta_at,
}
# Those that stay valid as filters, when what is done next is chosen by looking at what came out before. Beside them one
# Renyi order fixed in advance, see `total_epsilon`. Gaussian differential privacy has a filter too, for a run that is
# bound to Gaussian noise from its start (`filters.GaussianFilter`); here anything may follow.
_ADAPTIVE = ("pure", "zcdp")


@final
@dataclass(frozen=True, kw_only=True)
class Total:
    """What composed events cost: `epsilon` at `delta`, and the accountant that proved it.

    One of "pure", "zcdp", "gdp" (Gaussian noise and mu-GDP only), "rdp", "pld", "basic" (losses and failure
    probabilities add), and "sum", where totals of parts, or of single spends of a ledger, were added.
    """

    epsilon: float
    delta: float
    accountant: str

    def to_dict(self) -> dict[str, str]:
        """Return the total in JSON types, floats as they print."""
        return {"epsilon": repr(self.epsilon), "delta": repr(self.delta), "accountant": self.accountant}

    @classmethod
    def from_dict(cls, written: Mapping[str, str]) -> Self:
        """Return the total that `to_dict` wrote."""
        return cls(epsilon=float(written["epsilon"]), delta=float(written["delta"]), accountant=written["accountant"])


def total_epsilon(event: Event, delta: float = 0.0, *, adaptive: bool = False, order: float | None = None) -> Total:
    """Return the least epsilon that any accountant proves for `event` at `delta`.

    Parameters
    ----------
    event : Event
        One use of the data, or a composition of several.
    delta : float
        Failure probability in [0, 1) per row. At 0 only pure losses count.
    adaptive : bool
        True where the parameters of later events may have been chosen after seeing earlier results. Then the bound
        serves as a filter, and the PLD accountant is left out: it needs all parameters fixed in advance.
    order : float, optional
        With `adaptive`, the one Renyi order > 1 that counts: ``zcdp.order_for(budget)``, chosen before anything was
        released. Without it, only pure losses and zCDP count.

    Returns
    -------
    Total
        Its `delta` is 0 where the pure loss is the least, else the one given.

    Raises
    ------
    ArgumentError
        If no accountant bounds the event, as for zCDP at ``delta=0``; if an event is unknown.

    Examples
    --------
    >>> from pymc_dp.accounting import DiscreteLaplaceEvent, SelfComposedEvent
    >>> many = SelfComposedEvent(event=DiscreteLaplaceEvent(scale=20.0, shifts=(1,)), count=100)
    >>> total_epsilon(many)
    Total(epsilon=5.0, delta=0.0, accountant='pure')
    >>> total_epsilon(many, 1e-6).accountant
    'pld'

    References
    ----------
    Adaptive: Rogers, Roth, Ullman, Vadhan 2016 (pure filter); Feldman, Zrnic 2021 (Renyi filter). Taking the better of
    the two at the end is sound: stop the run where it first exceeds the rho of the budget, and what is left is zCDP.
    The full run goes on only where the pure losses sum to at most epsilon, and such results add nothing to the
    hockey-stick divergence at epsilon. The same for one Renyi order, the one at which the rho of the budget converts to
    the budget: what zCDP lets through, it lets through too, so that the two together are the one.
    """
    return _total(event, _validate.delta(delta), adaptive, order)


@lru_cache(maxsize=512)
def _total(event: Event, delta: float, adaptive: bool, order: float | None) -> Total:
    names = _ADAPTIVE if adaptive else tuple(_EPSILONS)
    found = {name: _EPSILONS[name](event, delta) for name in names}
    if adaptive and order is not None:
        found["rdp"] = rdp.epsilon_at_order(event, order, delta)
    best = min(found, key=lambda name: found[name])
    if not math.isfinite(found[best]):
        raise ArgumentError(
            f"No finite epsilon is known for this event at delta={delta}: it holds a mechanism without a pure guarantee"
            " (zCDP, Gaussian noise). Allow a delta > 0, far below 1 / number of rows, or use discrete Laplace noise."
        )
    return Total(epsilon=found[best], delta=0.0 if best == "pure" else delta, accountant=best)


def proved_within(event: Event, epsilon: float, delta: float = 0.0) -> bool:
    """Return whether any accountant proves that `event` is (`epsilon`, `delta`)-DP; the quickest are asked first.

    Examples
    --------
    >>> from pymc_dp.accounting import PureEvent
    >>> proved_within(PureEvent(epsilon=1.0), 1.0), proved_within(PureEvent(epsilon=1.0), 0.5)
    (True, False)
    """
    delta = _validate.delta(delta)
    return any(epsilon_at(event, delta) <= epsilon for epsilon_at in _EPSILONS.values())


def total_delta(event: Event, epsilon: float) -> float:
    """Return the least delta in [0, 1] that any accountant proves for `event` at `epsilon` > 0.

    Examples
    --------
    >>> from pymc_dp.accounting import PureEvent
    >>> total_delta(PureEvent(epsilon=1.0), 1.0)
    0.0
    """
    epsilon = _validate.epsilon(epsilon)
    return min(delta_at(event, epsilon) for delta_at in _DELTAS.values())
