"""Every kind of event: those of the kernel, and those that no operation of it has."""

from pymc_dp.accounting.events.gaussian import GaussianEvent
from pymc_dp.accounting.events.gdp import GDPEvent
from pymc_dp.kernel.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    PenaltyBitEvent,
    PureEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    leaves,
)

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
    "leaves",
]
