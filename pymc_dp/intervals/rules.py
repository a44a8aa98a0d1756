"""The table of interval rules: one for each scalar operation of PyTensor that is followed."""

from __future__ import annotations

import numpy as np
import pytensor.scalar.basic as ops

from pymc_dp.intervals import elementary, logic, special
from pymc_dp.intervals import elementary as power
from pymc_dp.intervals.axes import (
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
from pymc_dp.intervals.integrals import INTEGRALS
from pymc_dp.intervals.interval import INFINITE, NAN, Interval, Rule, quiet, unknown
from pymc_dp.intervals.periodic import PERIODIC

__all__ = [
    "INFINITE",
    "LOG1MEXP",
    "LOG_NDTR",
    "LOG_POWER",
    "LOG_SHARE",
    "LOG_SIGMOID",
    "NAN",
    "RULES",
    "SOFTPLUS",
    "TO_BOOLEAN",
    "TO_INTEGER",
    "XLOG1PY",
    "XLOGX",
    "XLOGY",
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


def _checked(rule: Rule) -> Rule:
    """The rule without NumPy's warnings, whose slopes are unknown where the value may be undefined."""

    def partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
        slopes = rule.partials(inputs, output)
        lost = output.flags & NAN
        if not lost.any():
            return slopes
        return tuple(Interval(one.low, one.high, np.asarray(one.flags | lost)) for one in slopes)

    return Rule(quiet(rule.value), quiet(partials))


RULES: dict[type, Rule] = {
    op: _checked(rule)
    for table in (
        elementary.ARITHMETIC,
        elementary.ELEMENTARY,
        logic.LOGIC,
        special.GAMMA_FAMILY,
        special.ERROR_FUNCTIONS,
        special.BESSEL,
        INTEGRALS,
        PERIODIC,
        {ops.Pow: power.POWER},
    )
    for op, rule in table.items()
}
"""Rules by the class of the scalar operation. A Cast is taken to be to float64."""

SOFTPLUS = _checked(elementary.SOFTPLUS)
LOG_SIGMOID = _checked(elementary.LOG_SIGMOID)
LOG_SHARE = _checked(elementary.LOG_SHARE)
LOG1MEXP = _checked(elementary.LOG1MEXP)
XLOGX = _checked(elementary.XLOGX)
XLOGY = _checked(power.XLOGY)
XLOG1PY = _checked(power.XLOG1PY)
LOG_NDTR = _checked(special.LOG_NDTR)
LOG_POWER = _checked(power.LOG_POWER)
TO_INTEGER = _checked(logic.TO_INTEGER)
TO_BOOLEAN = _checked(logic.TO_BOOLEAN)
