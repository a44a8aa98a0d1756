"""Composition of events, their reading by accountants, and their written form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Never, final, override

from pymc_dp import _validate
from pymc_dp.accounting.chain_steps import ApproximateEvent, PenaltyBitEvent
from pymc_dp.accounting.elementary import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    GDPEvent,
    PureEvent,
    ZCDPEvent,
)
from pymc_dp.accounting.subsampled import SubsampledGaussianEvent
from pymc_dp.errors import ArgumentError

__all__ = [
    "ApproximateEvent",
    "BoundedRangeEvent",
    "ComposedEvent",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "GDPEvent",
    "GaussianEvent",
    "PenaltyBitEvent",
    "PureEvent",
    "SelfComposedEvent",
    "SubsampledGaussianEvent",
    "ZCDPEvent",
    "event_from_dict",
    "leaves",
    "refuse",
    "relations",
]


@final
@dataclass(frozen=True, kw_only=True)
class ComposedEvent(Event):
    """Several events on the same rows, one after the other, their order and parameters fixed in advance.

    Parameters
    ----------
    events : tuple of Event
        At least one. Each mechanism may use the results of those before it.

    Examples
    --------
    >>> ComposedEvent(events=(PureEvent(epsilon=0.5), ZCDPEvent(rho=0.1))).events[0]
    PureEvent(epsilon=0.5)
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.events, tuple | list) or not self.events:
            raise ArgumentError(f"events must be a tuple of one event or more, got {self.events!r}.")
        object.__setattr__(self, "events", tuple(_event(event) for event in self.events))

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "composed", "events": [event.to_dict() for event in self.events]}


@final
@dataclass(frozen=True, kw_only=True)
class SelfComposedEvent(Event):
    """The same event `count` times on the same rows; means exactly what `ComposedEvent` of so many copies means.

    Parameters
    ----------
    event : Event
        What is repeated.
    count : int
        How many times in all, >= 1.

    Examples
    --------
    >>> leaves(SelfComposedEvent(event=PureEvent(epsilon=0.5), count=3))
    {PureEvent(epsilon=0.5): 3}
    """

    event: Event
    count: int

    def __post_init__(self) -> None:
        _event(self.event)
        object.__setattr__(self, "count", _validate.integer("count", self.count))

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "self_composed", "event": self.event.to_dict(), "count": self.count}


def refuse(event: object, reader: str) -> Never:
    """Raise for an event without a rule: an event that an accountant does not know must never count as free."""
    raise ArgumentError(
        f"{reader} has no rule for an event of type {type(event).__name__}. "
        f"Use one of {', '.join(known.__name__ for known in _KINDS.values())}, or register a rule for it."
    )


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


def relations(events: Iterable[Event]) -> set[str]:
    """Return the neighbour relation that elementary `events` are bound to: one, or none; refuse two."""
    found = {event.neighbours for event in events if isinstance(event, SubsampledGaussianEvent)}
    if len(found) > 1:
        raise ArgumentError(
            "Events under replace and under add_remove cannot be composed. Use one relation for all, or convert totals "
            "with accounting.replace_from_add_remove."
        )
    return set(found)


@singledispatch
def _gather(event: object, times: int, counts: dict[Event, int]) -> None:
    refuse(event, "Composition")


@_gather.register(PureEvent)
@_gather.register(DiscreteLaplaceEvent)
@_gather.register(DiscreteGaussianEvent)
@_gather.register(ZCDPEvent)
@_gather.register(BoundedRangeEvent)
@_gather.register(GaussianEvent)
@_gather.register(GDPEvent)
@_gather.register(SubsampledGaussianEvent)
@_gather.register(PenaltyBitEvent)
@_gather.register(ApproximateEvent)
def _(event: Event, times: int, counts: dict[Event, int]) -> None:
    counts[event] = counts.get(event, 0) + times


@_gather.register
def _(event: ComposedEvent, times: int, counts: dict[Event, int]) -> None:
    for part in event.events:
        _gather(part, times, counts)


@_gather.register
def _(event: SelfComposedEvent, times: int, counts: dict[Event, int]) -> None:
    _gather(event.event, times * event.count, counts)


_KINDS: dict[str, Callable[..., Event]] = {
    "pure": PureEvent,
    "discrete_laplace": DiscreteLaplaceEvent,
    "discrete_gaussian": DiscreteGaussianEvent,
    "zcdp": ZCDPEvent,
    "bounded_range": BoundedRangeEvent,
    "gaussian": GaussianEvent,
    "gdp": GDPEvent,
    "subsampled_gaussian": SubsampledGaussianEvent,
    "penalty_bit": PenaltyBitEvent,
    "approximate": ApproximateEvent,
    "composed": ComposedEvent,
    "self_composed": SelfComposedEvent,
}


def event_from_dict(written: Mapping[str, Any]) -> Event:
    """Return the event that `Event.to_dict` wrote.

    Examples
    --------
    >>> event_from_dict({"kind": "pure", "epsilon": 0.5})
    PureEvent(epsilon=0.5)
    """
    fields = dict(written)
    kind = _validate.choice("kind of event", fields.pop("kind", None), _KINDS)
    if "event" in fields:
        fields["event"] = event_from_dict(fields["event"])
    if "events" in fields:
        fields["events"] = tuple(event_from_dict(part) for part in fields["events"])
    if fields.get("shifts") is not None:
        fields["shifts"] = tuple(fields["shifts"])
    try:
        return _KINDS[kind](**fields)
    except TypeError:
        raise ArgumentError(f"An event of kind {kind!r} cannot have the fields {sorted(fields)}.") from None
