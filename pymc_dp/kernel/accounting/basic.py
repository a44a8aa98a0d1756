"""Basic composition: losses add, and so do failure probabilities; for mechanisms that are (epsilon, delta)-DP."""

from __future__ import annotations

import math
from fractions import Fraction

from pymc_dp.kernel.accounting.decimals import decimal, float_up
from pymc_dp.kernel.accounting.events import Event, leaves


def total(event: Event) -> tuple[Fraction, Fraction] | None:
    """Return the exact sums of losses and of failure probabilities (Dwork, Roth 2014, theorem 3.16).

    None where another kind of mechanism is within, or where all are pure, which the pure accountant reads.
    """
    loss, delta = Fraction(0), Fraction(0)
    for leaf, count in leaves(event).items():
        one = leaf.approximate_loss()
        if one is None:
            return None
        loss += count * one[0]
        delta += count * one[1]
    return (loss, delta) if delta else None


def epsilon_at(event: Event, delta: float) -> float:
    """Return the sum of losses where those of the failure probabilities is at most `delta`, else inf.

    Examples
    --------
    >>> from pymc_dp.accounting import ApproximateEvent, SelfComposedEvent
    >>> many = SelfComposedEvent(event=ApproximateEvent(epsilon=0.1, delta=1e-7), count=10)
    >>> epsilon_at(many, 1e-6), epsilon_at(many, 9e-7)
    (1.0, inf)
    """
    sums = total(event)
    return float_up(sums[0]) if sums is not None and sums[1] <= decimal(delta) else math.inf
