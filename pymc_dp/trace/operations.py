"""Which operations made a release, how often, and what they cost: in their own terms, and as ε at its δ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pymc_dp.accounting import ComposedEvent, Event, SelfComposedEvent, event_from_dict, total_epsilon

COLUMNS = ("operation", "uses", "exact cost", "ε, δ")
NAMES = {
    "discrete_laplace": "sum with discrete Laplace noise",
    "discrete_gaussian": "sum with discrete Gaussian noise",
    "gaussian": "sum with Gaussian noise",
    "subsampled_gaussian": "sum of a secret batch with Gaussian noise",
    "bounded_range": "choice, or exact draw",
    "approximate": "accept bit, labels, or batches together",
    "penalty_bit": "penalty bit",
    "gdp": "draw by its shape",
    "zcdp": "reserve in ρ",
    "pure": "mechanism of pure ε",
}
"""By the kind of event; kinds that share a name add up."""


def operations(record: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each kind of operation in the events that were charged; none where there are no events.

    The exact cost is the sum over all uses: of pure losses ε, of ρ, of ranges η; of μ the root of the sum of squares.
    ε is what all uses together cost at δ. Different kinds together cost what the report says of the release.
    """
    if not record.get("event"):
        return []
    groups: dict[str, dict[Event, int]] = {}
    for event, count in _flat(event_from_dict(record["event"]), 1):
        group = groups.setdefault(NAMES.get(str(event.kind), str(event.kind)), {})
        group[event] = group.get(event, 0) + count
    delta = float(record["delta"])
    return [(name, str(sum(group.values())), _exact(group), _at(group, delta)) for name, group in groups.items()]


def _flat(event: Event, times: int) -> Iterator[tuple[Event, int]]:
    if isinstance(event, ComposedEvent):
        for part in event.events:
            yield from _flat(part, times)
    elif isinstance(event, SelfComposedEvent):
        yield from _flat(event.event, times * event.count)
    else:
        yield event, times


def _exact(group: Mapping[Event, int]) -> str:
    (kind, *others) = {event.kind for event in group}
    if others:
        return ""
    if kind in ("discrete_laplace", "pure"):
        return f"ε = {_sum(group, lambda event: event.pure_loss()):.9g}"
    if kind in ("discrete_gaussian", "gaussian", "zcdp", "penalty_bit"):
        return f"ρ = {_sum(group, lambda event: event.zcdp_rho()):.9g}"
    if kind == "bounded_range":
        return f"range η = {_sum(group, lambda event: event.eta):.9g}"
    if kind == "gdp":
        return f"μ = {math.sqrt(_sum(group, lambda event: event.mu**2)):.9g}"
    if kind == "approximate":
        epsilon, delta = (_sum(group, lambda event, k=k: event.approximate_loss()[k]) for k in (0, 1))
        return f"ε = {epsilon:.9g}, δ = {delta:.3g}"
    return "; ".join(dict.fromkeys(map(_batch, group)))


def _batch(event: Any) -> str:
    if event.sampling == "poisson":
        return f"noise {event.noise_multiplier:.6g} clip norms, rate {event.sample_rate:.6g}"
    return f"noise {event.noise_multiplier:.6g} clip norms, {event.batch_size} of {event.population} rows"


def _sum(group: Mapping[Event, int], of: Any) -> float:
    return math.fsum(float(of(event)) * count for event, count in group.items())


def _at(group: Mapping[Event, int], delta: float) -> str:
    uses = tuple(SelfComposedEvent(event=event, count=count) for event, count in group.items())
    loss = total_epsilon(ComposedEvent(events=uses), delta).epsilon
    return f"{loss:.6g}, {delta:g}" if math.isfinite(loss) else f"not finite, {delta:g}"


__all__ = ["COLUMNS", "operations"]
