"""Frozen events, accountants that read them, and the ledger that adds them up for one data set."""

from pymc_dp.accounting.budget import Budget
from pymc_dp.accounting.conversion import Total, group, replace_from_add_remove, total_delta, total_epsilon
from pymc_dp.accounting.events import (
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    PureEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    event_from_dict,
    leaves,
)
from pymc_dp.accounting.ledger import Entry, Ledger
from pymc_dp.accounting.pure import pure_epsilon

__all__ = [
    "BoundedRangeEvent",
    "Budget",
    "ComposedEvent",
    "DiscreteLaplaceEvent",
    "Entry",
    "Event",
    "GaussianEvent",
    "Ledger",
    "PureEvent",
    "SelfComposedEvent",
    "SubsampledGaussianEvent",
    "Total",
    "ZCDPEvent",
    "event_from_dict",
    "group",
    "leaves",
    "pure_epsilon",
    "replace_from_add_remove",
    "total_delta",
    "total_epsilon",
]
