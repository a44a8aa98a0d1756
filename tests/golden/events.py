"""What every event of the accounting zoo costs by every accountant, for a group, at a distance, with other noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from unittest.mock import patch

from pymc_dp.accounting import (
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    GDPEvent,
    at_distance,
    basic,
    calibrate,
    calibrated,
    deltas,
    event_from_dict,
    gdp,
    group_event,
    leaves,
    pld,
    pure,
    rdp,
    replace_event,
    sum_of_parts,
    total_delta,
    total_epsilon,
    zcdp,
)
from pymc_dp.accounting.calibrate import with_noise_times
from pymc_dp.kernel.accounting.events import base
from tests.accounting.oracle import EVENTS, UnknownEvent, poisson, times, without_replacement
from tests.golden.plain import Json
from tests.golden.topics import Topic, or_refusal

ACCOUNTANTS = {"pure": pure, "zcdp": zcdp, "gdp": gdp, "rdp": rdp, "pld": pld, "sum": sum_of_parts, "basic": basic}
COUNTS = (1, 12, 1000)
DELTAS = (1e-12, 1e-6, 1e-3)
EPSILONS = (0.01, 1.0, 5.0)
ORDERS = (1.1, 2.0, 3.5, 16.0, 111.0)
MORE = [
    BoundedRangeEvent(eta=12.0),
    DiscreteGaussianEvent(scale=6e9, l2_squared=10**18, coordinates=5),
    GDPEvent(mu=3.0),
    GaussianEvent(noise_multiplier=0.5),
    poisson(3.0, 1.0),
    poisson(8.0, 0.1, "add_remove"),
    without_replacement(6.0, 10, 10),
    times(poisson(6.0, 0.005), 30),
]
"""Beside the zoo of the contract: large ranges and scales, and batches of all rows."""
MULTIPLIERS: Mapping[str, Callable[[], float]] = {
    "rho_budget": partial(calibrate.rho_budget, 1.0, 1e-6),
    "mu_budget": partial(calibrate.mu_budget, 1.0, 1e-6, uses=100),
    "range_per_use": partial(calibrate.range_per_use, 1.0, uses=10),
    "range_per_use, delta": partial(calibrate.range_per_use, 1.0, 1e-6, uses=1000),
    "penalty_ratio": partial(calibrate.penalty_ratio, 1.0, 1e-6, uses=1000, most_noise=3.0),
    "gaussian_multiplier": partial(calibrate.gaussian_multiplier, 1.0, 1e-6, uses=3),
    "noise_multiplier, poisson": partial(
        calibrate.noise_multiplier, 1.0, 1e-5, 1000, sampling="poisson", sample_rate=0.01, neighbours="add_remove"
    ),
    "noise_multiplier, without replacement": partial(
        calibrate.noise_multiplier,
        *(1.0, 1e-5, 1000),
        sampling="without_replacement",
        population=1000,
        batch_size=10,
        beside=GDPEvent(mu=0.1),
    ),
}


def costs(event: Event) -> Json:
    """Totals by every accountant, each to its last digit; sums of fractions as fractions."""
    found = {
        "written": event.to_dict(),
        "again": event_from_dict(event.to_dict()) == event,
        "leaves": [[leaf.to_dict(), count] for leaf, count in leaves(event).items()],
        "pure": str(pure.total(event)),
        "zcdp": str(zcdp.total(event)),
        "basic": str(basic.total(event)),
        "mu": gdp.mu(event),
        "divergences": [rdp.divergence(event, order) for order in ORDERS],
    }
    return found | {f"{count} times": totals(times(event, count)) for count in COUNTS}


def totals(event: Event) -> Json:
    found = {
        f"{name}, {what}": [read(event, at) for at in places]
        for name, accountant in ACCOUNTANTS.items()
        for what, read, places in (
            ("epsilons", accountant.epsilon_at, (0.0, *DELTAS)),
            ("deltas", deltas.DELTAS[name], (0.0, *EPSILONS)),
        )
    }
    return found | {
        "total": [or_refusal(total, event, delta)() for delta in DELTAS],
        "total deltas": [total_delta(event, epsilon) for epsilon in EPSILONS],
    }


def total(event: Event, delta: float) -> Json:
    found = total_epsilon(event, delta)
    return [found.epsilon, found.delta, found.accountant]


def others(event: Event) -> Json:
    """The event for a group, under another relation, at a distance, and with other noise; or why there is none."""
    made: dict[str, Callable[[], Event]] = {
        "3 rows": partial(group_event, event, rows=3),
        "replace": partial(replace_event, event),
        "distance": partial(at_distance, event, 2.5),
        "more noise": partial(with_noise_times, event, 1.7),
        "less noise": partial(with_noise_times, event, 0.3),
        "least noise": partial(calibrated, event, 1.0, 1e-6),
        "least noise without delta": partial(calibrated, event, 1.0, uses=7),
    }
    return {name: or_refusal(lambda make: make().to_dict(), make)() for name, make in made.items()}


def refusals() -> Json:
    """The texts for an event that is none."""
    unknown = UnknownEvent()
    readers: dict[str, Callable[[], object]] = {
        **{f"{name}, epsilon": partial(one.epsilon_at, unknown, 1e-6) for name, one in ACCOUNTANTS.items()},
        **{f"{name}, delta": partial(one, unknown, 1.0) for name, one in deltas.DELTAS.items()},
        "leaves": partial(leaves, unknown),
        "group_event": partial(group_event, unknown, rows=2),
        "replace_event": partial(replace_event, unknown),
        "at_distance": partial(at_distance, unknown, 2.0),
        "with_noise_times": partial(with_noise_times, unknown, 2.0),
        "calibrated": partial(calibrated, unknown, 1.0),
        "no event": partial(times, "event", 2),
        "kind": partial(event_from_dict, {"kind": "pur", "epsilon": 1.0}),
        "no kind": partial(event_from_dict, {"epsilon": 1.0}),
        "fields": partial(event_from_dict, {"kind": "pure", "rho": 1.0}),
        "two relations": partial(leaves, times(poisson(1.0, 0.1), 2)),
    }
    own = {kind: known for kind, known in base.KINDS.items() if known.__module__.startswith("pymc_dp.")}
    with patch.dict(base.KINDS, own, clear=True):  # without those that other tests define
        return {name: or_refusal(lambda read: str(read()), read)() for name, read in readers.items()}


READINGS: Mapping[str, Callable[[Event], Json]] = {"costs": costs, "δ = 1e-6, others": others}
ENTRIES: dict[str, Callable[[], Json]] = {
    **{f"{what} of {event}": partial(read, event) for event in [*EVENTS, *MORE] for what, read in READINGS.items()},
    "budgets, δ = 1e-6": lambda: {"least noise": {name: compute() for name, compute in MULTIPLIERS.items()}},
    "refusals": refusals,
}
COSTS = Topic(name="events", entries=ENTRIES, quick={"refusals"})
