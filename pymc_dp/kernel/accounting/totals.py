"""From events to (epsilon, delta), by whichever accountant is best."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting import basic, gdp, pld, pure, rdp, sum_of_parts, zcdp
from pymc_dp.kernel.accounting.events import Event
from pymc_dp.kernel.errors import ArgumentError

# Earlier ones win ties: a pure loss says more than the same loss at some delta.
EPSILONS: dict[str, Callable[[Event, float], float]] = {
    "pure": pure.epsilon_at,
    "zcdp": zcdp.epsilon_at,
    "gdp": gdp.epsilon_at,
    "rdp": rdp.epsilon_at,
    "pld": pld.epsilon_at,
    "sum": sum_of_parts.epsilon_at,
    "basic": basic.epsilon_at,
}


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


def total_epsilon(event: Event, delta: float = 0.0) -> Total:
    """Return the least epsilon that any accountant proves for `event` at `delta`.

    Parameters
    ----------
    event : Event
        One use of the data, or a composition of several.
    delta : float
        Failure probability in [0, 1) per row. At 0 only pure losses count.

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
    """
    return _total(event, _validate.delta(delta))


@lru_cache(maxsize=512)
def _total(event: Event, delta: float) -> Total:
    found = {name: epsilon_at(event, delta) for name, epsilon_at in EPSILONS.items()}
    best = min(found, key=lambda name: found[name])
    if not math.isfinite(found[best]):
        raise ArgumentError(
            f"No finite epsilon is known for this event at delta={delta}: it holds a mechanism without a pure guarantee"
            " (zCDP, Gaussian noise). Allow a delta > 0, far below 1 / number of rows, or use discrete Laplace noise."
        )
    return Total(epsilon=found[best], delta=0.0 if best == "pure" else delta, accountant=best)
