"""The same composition of other events, each elementary one changed by a rule for its kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pymc_dp.accounting.events import ComposedEvent, Event, SelfComposedEvent
from pymc_dp.kernel.accounting.events.base import known, refuse


def changed(event: object, change: Callable[[Event], Event | None], reader: str) -> Event:
    """Return an event whose elementary ones are all changed; refuse where `change` says None, for want of a rule."""
    whole = known(event, reader)
    if isinstance(whole, ComposedEvent):
        return ComposedEvent(events=tuple(changed(part, change, reader) for part in whole.events))
    if isinstance(whole, SelfComposedEvent):
        return replace(whole, event=changed(whole.event, change, reader))
    found = None if whole.parts() else change(whole)
    if found is None:
        refuse(event, reader)
    return found
