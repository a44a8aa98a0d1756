"""Frozen events, accountants that add them up, and the ledger of one data set.

Everything that is known of a kind of event is in its own file of `events`.

Each accountant is a module with `epsilon_at(event, delta)`: `pure`, `zcdp`, `gdp`, `rdp`, `pld`, `basic`, and
`sum_of_parts`, which adds two of them; `total_epsilon` takes the best, and `total_delta` the best of what each says in
`deltas`. Their curves are `pure.pure_epsilon`, `zcdp.rho`, `gdp.mu` and `rdp.divergence(event, order)`; conversions of
a number alone are `zcdp.epsilon_of_rho`, `gdp.epsilon_of_mu` and `rdp.epsilon_of(divergence, order, delta)`, and
`deltas.delta_of_rho`, `gdp.delta_of_mu` and `deltas.delta_of_divergence`.
"""

from pymc_dp.accounting import deltas as deltas
from pymc_dp.accounting import events as events
from pymc_dp.accounting.budget import Budget
from pymc_dp.accounting.calibrate import (
    calibrated,
    gaussian_multiplier,
    mu_budget,
    noise_multiplier,
    penalty_ratio,
    range_per_use,
    rho_budget,
)
from pymc_dp.accounting.charging import charge, check_ledger
from pymc_dp.accounting.deltas import proved_within, total_delta
from pymc_dp.accounting.entry import Entry
from pymc_dp.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    GDPEvent,
    PenaltyBitEvent,
    PureEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    leaves,
)
from pymc_dp.accounting.filters import Filter, PureFilter, ZCDPFilter
from pymc_dp.accounting.groups import group, group_event, replace_event, replace_from_add_remove
from pymc_dp.accounting.ledger import Ledger
from pymc_dp.accounting.ledger_texts import require_ledger_delta
from pymc_dp.accounting.per_unit import at_distance, loss_at
from pymc_dp.accounting.written import event_from_dict
from pymc_dp.kernel.accounting import basic as basic
from pymc_dp.kernel.accounting import gdp as gdp
from pymc_dp.kernel.accounting import pld as pld
from pymc_dp.kernel.accounting import pure as pure
from pymc_dp.kernel.accounting import rdp as rdp
from pymc_dp.kernel.accounting import sum_of_parts as sum_of_parts
from pymc_dp.kernel.accounting import zcdp as zcdp
from pymc_dp.kernel.accounting.pure import pure_epsilon
from pymc_dp.kernel.accounting.totals import Total, total_epsilon

__all__ = [
    "ApproximateEvent",
    "BoundedRangeEvent",
    "Budget",
    "ComposedEvent",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "Entry",
    "Event",
    "Filter",
    "GDPEvent",
    "GaussianEvent",
    "Ledger",
    "PenaltyBitEvent",
    "PureEvent",
    "PureFilter",
    "SelfComposedEvent",
    "SubsampledGaussianEvent",
    "Total",
    "ZCDPEvent",
    "ZCDPFilter",
    "at_distance",
    "calibrated",
    "charge",
    "check_ledger",
    "event_from_dict",
    "gaussian_multiplier",
    "group",
    "group_event",
    "leaves",
    "loss_at",
    "mu_budget",
    "noise_multiplier",
    "penalty_ratio",
    "proved_within",
    "pure_epsilon",
    "range_per_use",
    "replace_event",
    "replace_from_add_remove",
    "require_ledger_delta",
    "rho_budget",
    "total_delta",
    "total_epsilon",
]
