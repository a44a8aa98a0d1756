"""What pays: an account that refuses before anything is read, grants of fixed uses, and pools for costs chosen in turn.

An account is a *filter*: its charges may be chosen by looking at earlier results. `LedgerAccount` has the proof of the
package's ledger behind it (three facts, and shares of δ that are fixed at the opening: `accounting.adaptive_account`).
Distributions of losses and bounded-range curves count within one charge alone: that of a grant, whose events are all
fixed before its first result.
"""

from __future__ import annotations

import math
import threading
from dataclasses import fields, replace
from fractions import Fraction
from types import NoneType
from typing import Never, Protocol, SupportsIndex, final

from pymc_dp.kernel.accounting.decimals import decimal, float_down, float_up
from pymc_dp.kernel.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    PenaltyBitEvent,
    PureEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
)
from pymc_dp.kernel.errors import ArgumentError, BudgetExceeded, PrivacyError
from pymc_dp.kernel.process import Birthplace


class Account(Protocol):
    """The budget of the data: what the kernel asks of whoever keeps it."""

    @property
    def relation(self) -> str:
        """Under which neighbours it counts: that of the table, of persons, or per unit of a metric."""

    def charge(self, event: Event, label: str) -> None:
        """Spend, or raise and spend nothing."""


class Ledger(Protocol):
    """What keeps charges: `pymc_dp.Ledger`, in memory or stored. It decides by `accounting.adaptive_account`."""

    @property
    def neighbours(self) -> str:
        """The relation of all that is spent."""

    def spend(self, event: Event, *, label: str, neighbours: str) -> object:
        """Keep a charge, or raise and change nothing."""


@final
class LedgerAccount:
    """A ledger as an account.

    Raises
    ------
    BudgetExceeded
        From `charge`, where the event does not fit; nothing is spent then.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @property
    def ledger(self) -> Ledger:
        """What it spends from."""
        return self._ledger

    @property
    def relation(self) -> str:
        """That of the ledger."""
        return self._ledger.neighbours

    def charge(self, event: Event, label: str) -> None:
        """Spend from the ledger."""
        self._ledger.spend(event, label=label, neighbours=self.relation)


@final
class Rehearsal:
    """What would be charged, for operations on public rows: nothing is spent, and nothing is refused."""

    def __init__(self, relation: str) -> None:
        self.relation = relation
        self.events: list[tuple[str, Event]] = []

    def charge(self, event: Event, label: str) -> None:
        """Note the event."""
        self.events.append((label, event))


class Once:
    """What may be spent once: it cannot be copied or pickled, and pays in the process that made it alone."""

    def __init__(self) -> None:
        self._lock, self._birthplace = threading.Lock(), Birthplace()

    def _require_here(self) -> None:
        if not self._birthplace.here:
            raise PrivacyError("This is a copy, in another process, of what pays there. Nothing was read.")

    def __reduce__(self) -> Never:
        raise PrivacyError("What pays once cannot be copied or pickled: the copies could spend it twice.")

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        self.__reduce__()


@final
class Grant(Once):
    """So many uses of one event, charged at once; `take` allows a use that costs no more than the event.

    **Guarantee.** All uses together are dominated by `count` times `event`, whatever each use is chosen by: a use has
    fixed parameters of the same kind, each at least as private (`covers`), and fewer uses cost less. Uses may come
    between other charges: such mechanisms compose as if one followed the other (Haney et al. 2023, on concurrent
    composition with filters).
    """

    def __init__(self, event: Event, count: int) -> None:
        super().__init__()
        self._event, self._left = event, count

    @property
    def event(self) -> Event:
        """What a use may cost at most."""
        return self._event

    @property
    def left(self) -> int:
        """Uses that are left; public."""
        return self._left

    def take(self, event: Event) -> None:
        """Use it once, or raise BudgetExceeded and use nothing."""
        self._require_here()
        if not covers(self._event, event):
            raise BudgetExceeded(f"{event} costs more than the grant of {self._event} covers. Nothing was read.")
        with self._lock:
            if self._left < 1:
                raise BudgetExceeded(f"No use of the grant of {self._event} is left. Nothing was read.")
            self._left -= 1


@final
class Pool(Once):
    """A filter that was charged at once: steps of any cost, chosen by what was released, until it is used up.

    In pure ε, which adds (Rogers et al. 2016), or in ρ of zCDP (Feldman, Zrnic 2021).
    """

    def __init__(self, *, rho: float | None = None, epsilon: float | None = None) -> None:
        super().__init__()
        self._pure = epsilon is not None
        self._event: PureEvent | ZCDPEvent
        self._event = PureEvent(epsilon=epsilon) if epsilon is not None else ZCDPEvent(rho=rho or 0.0)
        self._left = self._cost(self._event) or Fraction(0)

    @property
    def event(self) -> Event:
        """What the whole pool costs."""
        return self._event

    @property
    def remaining(self) -> float:
        """ε or ρ that is left, rounded down; public."""
        return float_down(self._left)

    def fits(self, event: Event) -> bool:
        """Whether a step could be paid for; public."""
        cost = self._cost(event)
        return cost is not None and cost <= self._left

    def take(self, event: Event) -> None:
        """Pay for one step, or raise BudgetExceeded and pay nothing."""
        self._require_here()
        cost = self._cost(event)
        with self._lock:
            if cost is None or cost > self._left:
                raise BudgetExceeded(f"{event} costs more than is left of the pool. Nothing was read; stop here.")
            self._left -= cost

    def _cost(self, event: Event) -> Fraction | None:
        """Return what a step takes, rounded up to a decimal, so that sums have few digits; None for what it may not."""
        if isinstance(event, SubsampledGaussianEvent) and not self._pure:
            return None  # what sampling saves is no zCDP: batches go with grants
        cost = event.pure_loss() if self._pure else event.zcdp_rho()
        rounded = math.inf if cost is None else float_up(cost)
        return decimal(rounded) if math.isfinite(rounded) else None


EVENTS = (
    *(ApproximateEvent, BoundedRangeEvent, DiscreteGaussianEvent, DiscreteLaplaceEvent, PenaltyBitEvent, PureEvent),
    *(SubsampledGaussianEvent, ZCDPEvent),
)
"""Classes of events that a grant is of, exactly these: a derived one could cost less than it covers."""


def own_event(event: Event) -> Event:
    """Return a copy that nobody else holds; refuse a class that is not known, and fields that are not Python's own."""
    if type(event) not in EVENTS:
        raise ArgumentError(f"A grant is of an event that an operation may have, got a {type(event).__name__}.")
    given = {field.name: getattr(event, field.name) for field in fields(event)}  # type: ignore[arg-type]
    for name, value in given.items():
        parts = value if type(value) is tuple else (value,)
        if any(type(part) not in (int, float, str, Fraction, NoneType) for part in parts):
            raise ArgumentError(f"{name} of an event must be of Python's own numbers, got a {type(value).__name__}.")
    return type(event)(**given)


def covers(most: Event, event: Event) -> bool:
    """Whether `event` is at least as private as `most`, for every reading that an accountant may take of `most`.

    An event of which only a pure loss or only a ρ is read is covered by that number. Of the others every parameter has
    to be at least as private: more noise, a smaller range, a smaller rate.
    """
    if isinstance(most, PureEvent):
        return _at_most(event.pure_loss(), most.pure_loss())
    if isinstance(most, ZCDPEvent):
        return not isinstance(event, SubsampledGaussianEvent) and _at_most(event.zcdp_rho(), most.zcdp_rho())
    if isinstance(most, BoundedRangeEvent):
        return isinstance(event, BoundedRangeEvent) and event.eta <= most.eta
    if isinstance(most, ApproximateEvent):
        loss = event.approximate_loss()
        bound = most.approximate_loss()
        return loss is not None and loss[0] <= bound[0] and loss[1] <= bound[1]
    if isinstance(most, DiscreteLaplaceEvent):
        if not isinstance(event, DiscreteLaplaceEvent):
            return False
        if most.shifts is None:
            return _at_most(event.pure_loss(), most.pure_loss())
        return event.shifts == most.shifts and event.scale >= most.scale
    if isinstance(most, DiscreteGaussianEvent):
        if not isinstance(event, DiscreteGaussianEvent):
            return False
        if most.shifts is None and most.coordinates is None:
            return _at_most(event.rho, most.rho)
        return event == most  # of discrete Gaussian noise nobody has proved that more of it tells less
    if isinstance(most, SelfComposedEvent):
        return isinstance(event, SelfComposedEvent) and event.count <= most.count and covers(most.event, event.event)
    if isinstance(most, PenaltyBitEvent):  # neighbours move by the ratio at most; more noise tells more of the bit
        return isinstance(event, PenaltyBitEvent) and event.ratio <= most.ratio and event.most_noise <= most.most_noise
    if isinstance(most, SubsampledGaussianEvent) and isinstance(event, SubsampledGaussianEvent):
        like = replace(event, noise_multiplier=most.noise_multiplier)
        if most.sampling == "poisson" and event.sampling == "poisson" and event.rate <= most.rate:
            like = replace(like, sample_rate=most.sample_rate)
        return like == most and event.noise_multiplier >= most.noise_multiplier
    return False


def _at_most(loss: object, bound: object) -> bool:
    return loss is not None and bound is not None and loss <= bound  # type: ignore[operator]


def repeated(event: Event, count: int) -> Event:
    """Return an event that happens `count` times, all fixed beforehand."""
    return event if count == 1 else SelfComposedEvent(event=event, count=count)


def check_relation(account: Account, relation: str) -> str:
    """Return the relation of some rows; refuse an account that counts under another."""
    if account.relation != relation:
        raise PrivacyError(f"The account counts under {account.relation!r}, the rows under {relation!r}.")
    return relation


def check_pays(pay: object, own: list[Grant | Pool]) -> None:
    """Refuse what pays for another kernel's rows: it was charged to another account, or under other neighbours."""
    if not any(pay is one for one in own):
        raise PrivacyError("This grant or pool is of another kernel, and pays for no rows here. Nothing was read.")
