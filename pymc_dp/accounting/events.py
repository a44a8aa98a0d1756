"""Frozen events: what was done to the data, in the terms accountants need. They hold no data and no result."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any, Never, Self, final, override

from pymc_dp import _validate
from pymc_dp.accounting._exact import decimal, float_up
from pymc_dp.errors import ArgumentError


class Event(ABC):
    """One use of the data, or several; a value. Accountants know its meaning, it knows how to be written down."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the event as a dict of JSON types; `event_from_dict` reads it back."""


@final
@dataclass(frozen=True, kw_only=True)
class PureEvent(Event):
    """Any mechanism that is `epsilon`-DP with delta = 0, of which nothing else is known.

    Parameters
    ----------
    epsilon : float
        Pure privacy loss > 0 per use, read as the decimal number it prints.

    Examples
    --------
    >>> PureEvent(epsilon=0.5).to_dict()
    {'kind': 'pure', 'epsilon': 0.5}
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.epsilon(self.epsilon))

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "pure", "epsilon": self.epsilon}


@final
@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceEvent(Event):
    """An integer vector released with independent discrete Laplace noise, P(k) proportional to exp(-|k| / scale).

    Parameters
    ----------
    scale : float
        Noise scale in integer units; the sampler uses this float's exact binary value.
    sensitivity : int, optional
        Largest L1 movement of the vector between neighbours. Needed where `shifts` is None, else their sum.
    shifts : tuple of int, optional
        Absolute movements of the coordinates in the worst case: for **every** pair of neighbours there must be an order
        of the coordinates in which each moves by at most the shift of that place, and coordinates beyond them not at
        all. (1,) for one count, (1, 1) for a table under replace. It must be the whole truth: (2,) may not stand for
        (1, 1), nor the other way round. None where only the L1 sensitivity is known; then only its pure loss is used.

    Examples
    --------
    >>> DiscreteLaplaceEvent(scale=4.0, shifts=(1, 1)).epsilon
    0.5
    """

    scale: float
    sensitivity: int = 0
    shifts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        scale = _validate.number("scale", self.scale)
        if scale <= 0:
            raise ArgumentError(f"scale must be > 0, got {scale}. Use sensitivity / epsilon, rounded up.")
        shifts, sensitivity = self.shifts, self.sensitivity
        if shifts is not None:
            if isinstance(shifts, str) or not isinstance(shifts, tuple | list) or not shifts:
                raise ArgumentError(f"shifts must be a tuple of whole numbers such as (1, 1), or None, got {shifts!r}.")
            # A canonical order: the loss does not depend on it, and equal events must compare equal.
            shifts = tuple(sorted((_validate.integer("each of shifts", shift) for shift in shifts), reverse=True))
            sensitivity = sensitivity or sum(shifts)
        elif not sensitivity:
            raise ArgumentError("Give sensitivity (the L1 sensitivity, in integer units), or shifts.")
        sensitivity = _validate.integer("sensitivity", sensitivity)
        if shifts is not None and sum(shifts) != sensitivity:
            raise ArgumentError(
                f"shifts {shifts} sum to {sum(shifts)}, but sensitivity is {sensitivity}. Leave sensitivity out."
            )
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "shifts", shifts)
        object.__setattr__(self, "sensitivity", sensitivity)
        _validate.epsilon(self.epsilon, "sensitivity / scale")

    @property
    def unit(self) -> Fraction:
        """Loss per unit of movement, 1 / scale, exactly."""
        return 1 / Fraction(self.scale)

    @property
    def epsilon(self) -> float:
        """Pure loss of the whole vector, sensitivity / scale rounded up."""
        return float_up(self.sensitivity * self.unit)

    @classmethod
    def calibrated(cls, *, epsilon: float, sensitivity: int = 0, shifts: tuple[int, ...] | None = None) -> Self:
        """Return the event of least noise whose `epsilon` is not above the one asked for.

        Examples
        --------
        >>> DiscreteLaplaceEvent.calibrated(epsilon=0.1, shifts=(1,)).scale
        10.0
        """
        least = cls(scale=1.0, sensitivity=sensitivity, shifts=shifts)
        exact = least.sensitivity / decimal(_validate.epsilon(epsilon))
        try:
            scale = float(exact)
        except OverflowError:
            raise ArgumentError(f"epsilon {epsilon} is too small for sensitivity {least.sensitivity}.") from None
        while Fraction(scale) < exact:  # a scale rounded down would spend more than was asked for
            scale = math.nextafter(scale, math.inf)
        return cls(scale=scale, sensitivity=least.sensitivity, shifts=least.shifts)

    @override
    def to_dict(self) -> dict[str, Any]:
        shifts = None if self.shifts is None else list(self.shifts)
        return {"kind": "discrete_laplace", "scale": self.scale, "sensitivity": self.sensitivity, "shifts": shifts}


@final
@dataclass(frozen=True, kw_only=True)
class ZCDPEvent(Event):
    """Any mechanism that is `rho`-zCDP (Bun, Steinke 2016, definition 1.1), of which nothing else is known.

    Parameters
    ----------
    rho : float
        Bound > 0 on every Renyi divergence of order a divided by a, between neighbours.

    Examples
    --------
    >>> ZCDPEvent(rho=0.125).rho
    0.125
    """

    rho: float

    def __post_init__(self) -> None:
        rho = _validate.number("rho", self.rho)
        if rho <= 0:
            raise ArgumentError(f"rho must be > 0, got {rho}. Use zcdp.rho_for(epsilon, delta) for a budget's rho.")
        object.__setattr__(self, "rho", rho)

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "zcdp", "rho": self.rho}


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
    return {leaf: counts[leaf] for leaf in sorted(counts, key=lambda leaf: json.dumps(leaf.to_dict(), sort_keys=True))}


@singledispatch
def _gather(event: object, times: int, counts: dict[Event, int]) -> None:
    refuse(event, "Composition")


@_gather.register(PureEvent)
@_gather.register(DiscreteLaplaceEvent)
@_gather.register(ZCDPEvent)
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
    "zcdp": ZCDPEvent,
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
