"""The table of interval rules: one for each scalar operation of PyTensor that is followed."""

from __future__ import annotations

import pytensor.scalar.basic as ops

from pymc_dp.sensitivity import interval_elementary, interval_logic, interval_power, interval_special
from pymc_dp.sensitivity.interval_axes import (
    all_true,
    any_true,
    log_softmax,
    logsumexp,
    maximum,
    minimum,
    product,
    softmax,
    total,
)
from pymc_dp.sensitivity.interval_periodic import PERIODIC
from pymc_dp.sensitivity.intervals import INFINITE, NAN, Interval, Rule, quiet, unknown

__all__ = [
    "INFINITE",
    "LOG1MEXP",
    "LOG_NDTR",
    "LOG_POWER",
    "LOG_SIGMOID",
    "NAN",
    "RULES",
    "SOFTPLUS",
    "TO_BOOLEAN",
    "TO_INTEGER",
    "XLOGX",
    "Interval",
    "Rule",
    "all_true",
    "any_true",
    "log_softmax",
    "logsumexp",
    "maximum",
    "minimum",
    "product",
    "softmax",
    "total",
    "unknown",
]


def _quiet(rule: Rule) -> Rule:
    return Rule(quiet(rule.value), quiet(rule.partials))


RULES: dict[type, Rule] = {
    op: _quiet(rule)
    for table in (
        interval_elementary.ARITHMETIC,
        interval_elementary.ELEMENTARY,
        interval_logic.LOGIC,
        interval_special.GAMMA_FAMILY,
        PERIODIC,
        {ops.Pow: interval_power.POWER},
    )
    for op, rule in table.items()
}
"""Rules by the class of the scalar operation. A Cast is taken to be to float64."""

SOFTPLUS = _quiet(interval_elementary.SOFTPLUS)
LOG_SIGMOID = _quiet(interval_elementary.LOG_SIGMOID)
LOG1MEXP = _quiet(interval_elementary.LOG1MEXP)
XLOGX = _quiet(interval_elementary.XLOGX)
LOG_NDTR = _quiet(interval_special.LOG_NDTR)
LOG_POWER = _quiet(interval_power.LOG_POWER)
TO_INTEGER = _quiet(interval_logic.TO_INTEGER)
TO_BOOLEAN = _quiet(interval_logic.TO_BOOLEAN)
