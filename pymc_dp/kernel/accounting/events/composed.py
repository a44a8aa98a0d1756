"""Several events together, and what every accountant reads them as: elementary events, each with its count."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final, override

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.events.base import Event, known, refuse
from pymc_dp.kernel.errors import ArgumentError


@final
@dataclass(frozen=True, kw_only=True)
class ComposedEvent(Event, kind="composed"):
    """Several events on the same rows, one after the other, their order and parameters fixed in advance.

    Parameters
    ----------
    events : tuple of Event
        At least one. Each mechanism may use the results of those before it.

    Examples
    --------
    >>> from pymc_dp.accounting import PureEvent, ZCDPEvent
    >>> ComposedEvent(events=(PureEvent(epsilon=0.5), ZCDPEvent(rho=0.1))).events[0]
    PureEvent(epsilon=0.5)
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.events, tuple | list) or not self.events:
            raise ArgumentError(f"events must be a tuple of one event or more, got {self.events!r}.")
        object.__setattr__(self, "events", tuple(_event(event) for event in self.events))

    @override
    def parts(self) -> tuple[tuple[Event, int], ...]:
        return tuple((event, 1) for event in self.events)


@final
@dataclass(frozen=True, kw_only=True)
class SelfComposedEvent(Event, kind="self_composed"):
    """The same event `count` times on the same rows; means exactly what `ComposedEvent` of so many copies means.

    Parameters
    ----------
    event : Event
        What is repeated.
    count : int
        How many times in all, >= 1.

    Examples
    --------
    >>> from pymc_dp.accounting import PureEvent
    >>> leaves(SelfComposedEvent(event=PureEvent(epsilon=0.5), count=3))
    {PureEvent(epsilon=0.5): 3}
    """

    event: Event
    count: int

    def __post_init__(self) -> None:
        _event(self.event)
        object.__setattr__(self, "count", _validate.integer("count", self.count))

    @override
    def parts(self) -> tuple[tuple[Event, int], ...]:
        return ((self.event, self.count),)


def _event(event: object) -> Event:
    if not isinstance(event, Event):
        refuse(event, "Composition")
    return event


def leaves(event: Event) -> dict[Event, int]:
    """Return how often each elementary event occurs, in an order that depends only on what occurs.

    Every accountant reads an event through this, so that nesting, order and self-composition cannot change a total.
    """
    counts: dict[Event, int] = {}
    _gather(event, 1, counts)
    relations(counts)
    return {leaf: counts[leaf] for leaf in sorted(counts, key=lambda leaf: json.dumps(leaf.to_dict(), sort_keys=True))}


def _gather(event: Event, times: int, counts: dict[Event, int]) -> None:
    parts = known(event, "Composition").parts()
    if not parts:
        counts[event] = counts.get(event, 0) + times
    for part, count in parts:
        _gather(part, times * count, counts)


def relations(events: Iterable[Event]) -> set[str]:
    """Return the neighbour relation that elementary `events` are bound to: one, or none; refuse two."""
    found = {event.relation for event in events if event.relation is not None}
    if len(found) > 1:
        raise ArgumentError(
            "Events under replace and under add_remove cannot be composed. Use one relation for all, or convert totals "
            "with accounting.replace_from_add_remove."
        )
    return found


__all__ = ["ComposedEvent", "SelfComposedEvent", "leaves", "relations"]
