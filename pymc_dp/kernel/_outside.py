"""Every name that the kernel still takes from the rest of the package, in one place: they are to move into it.

Events and their exact readings, the ledger with its proof for spends chosen in turn, the two filters, the discrete
noise, and the secure randomness behind it.
"""

from __future__ import annotations

from pymc_dp._random import insecure, secure_generator, secure_keys
from pymc_dp.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    Ledger,
    PureEvent,
    PureFilter,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    ZCDPFilter,
    total_epsilon,
)
from pymc_dp.accounting._process import Birthplace
from pymc_dp.accounting.budget import decimal, float_up
from pymc_dp.draws.truncated import truncated_beta, truncated_dirichlet, truncated_gamma, truncated_normal
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError, ReleaseError
from pymc_dp.metrics import L1, PER_UNIT
from pymc_dp.release.level_threshold import tail
from pymc_dp.release.noise import NOISES, mechanism
from pymc_dp.release.regression_sensitivity import _Blocks as RegressionBlocks
from pymc_dp.unit import PER_PERSON

__all__ = [
    "L1",
    "NOISES",
    "PER_PERSON",
    "PER_UNIT",
    "ApproximateEvent",
    "ArgumentError",
    "Birthplace",
    "BoundedRangeEvent",
    "BudgetExceeded",
    "ComposedEvent",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "Ledger",
    "PrivacyError",
    "PureEvent",
    "PureFilter",
    "RegressionBlocks",
    "ReleaseError",
    "SelfComposedEvent",
    "SubsampledGaussianEvent",
    "ZCDPEvent",
    "ZCDPFilter",
    "decimal",
    "float_up",
    "insecure",
    "mechanism",
    "secure_generator",
    "secure_keys",
    "tail",
    "total_epsilon",
    "truncated_beta",
    "truncated_dirichlet",
    "truncated_gamma",
    "truncated_normal",
]
