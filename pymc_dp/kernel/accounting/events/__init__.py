"""Events that operations have: one file for each kind, with what is known of it; `base` says what that can be.

Others may be derived outside of the kernel, as those of `pymc_dp.accounting.events` are. No operation has them.
"""

# In the order in which texts name them, the simplest first: that of their registration.
# ruff: noqa: I001
from pymc_dp.kernel.accounting.events.base import Event
from pymc_dp.kernel.accounting.events.pure import PureEvent
from pymc_dp.kernel.accounting.events.discrete_laplace import DiscreteLaplaceEvent
from pymc_dp.kernel.accounting.events.discrete_gaussian import DiscreteGaussianEvent
from pymc_dp.kernel.accounting.events.zcdp import ZCDPEvent
from pymc_dp.kernel.accounting.events.bounded_range import BoundedRangeEvent
from pymc_dp.kernel.accounting.events.subsampled_gaussian import SubsampledGaussianEvent
from pymc_dp.kernel.accounting.events.penalty_bit import PenaltyBitEvent
from pymc_dp.kernel.accounting.events.approximate import ApproximateEvent
from pymc_dp.kernel.accounting.events.composed import ComposedEvent, SelfComposedEvent, leaves

__all__ = [
    "ApproximateEvent",
    "BoundedRangeEvent",
    "ComposedEvent",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "PenaltyBitEvent",
    "PureEvent",
    "SelfComposedEvent",
    "SubsampledGaussianEvent",
    "ZCDPEvent",
    "leaves",
]
