"""Pure differential privacy: losses add."""

from __future__ import annotations

import math
from fractions import Fraction

from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.events import Event, leaves


def total(event: Event) -> Fraction | None:
    """Return the exact sum of pure losses (basic composition: Dwork, Roth 2014, corollary 3.15), or None."""
    result = Fraction(0)
    for leaf, count in leaves(event).items():
        one = leaf.pure_loss()
        if one is None:
            return None
        result += count * one
    return result


def pure_epsilon(event: Event) -> float:
    """Return the pure loss of `event`, rounded up; inf where it has none.

    Examples
    --------
    >>> from pymc_dp.accounting import PureEvent, SelfComposedEvent
    >>> pure_epsilon(SelfComposedEvent(event=PureEvent(epsilon=0.1), count=10))
    1.0
    """
    exact = total(event)
    return math.inf if exact is None else float_up(exact)


def epsilon_at(event: Event, delta: float) -> float:
    """Return an epsilon at which `event` is (epsilon, `delta`)-DP: its pure loss, whatever `delta` is."""
    return pure_epsilon(event)
