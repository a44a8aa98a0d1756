"""A mechanism of which nothing but its (epsilon, delta) is known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final, override

import numpy as np
import scipy  # its parts are imported when first used

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.accounting.events.base import Event
from pymc_dp.kernel.accounting.pairs import ContinuousPair, Floats, between
from pymc_dp.kernel.errors import ArgumentError


@final
@dataclass(frozen=True, kw_only=True)
class ApproximateEvent(Event, kind="approximate"):
    """Any mechanism that is (`epsilon`, `delta`)-DP, of which nothing else is known.

    Parameters
    ----------
    epsilon : float
        Privacy loss > 0 per use, read as the decimal number it prints.
    delta : float
        Failure probability in (0, 1) per use, likewise.

    Notes
    -----
    Losses and failure probabilities add (basic composition). It has no finite Rényi divergence. A mechanism with δ = 0
    is a `PureEvent`.

    Examples
    --------
    >>> ApproximateEvent(epsilon=0.5, delta=1e-6).to_dict()
    {'kind': 'approximate', 'epsilon': 0.5, 'delta': 1e-06}
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.epsilon(self.epsilon))
        delta = _validate.delta(self.delta)
        if delta == 0:
            raise ArgumentError("delta must be > 0 here. Use PureEvent for a mechanism without a failure probability.")
        object.__setattr__(self, "delta", delta)

    @override
    def approximate_loss(self) -> tuple[Fraction, Fraction]:
        return decimal(self.epsilon), decimal(self.delta)

    @override
    def loss_pairs(self) -> tuple[Failure]:
        return (Failure(self.epsilon, self.delta),)


@final
@dataclass(frozen=True)
class Failure(ContinuousPair):
    """What dominates all that is (`epsilon`, `delta`)-DP: a failure that tells all, else randomised response.

    Kairouz, Oh, Viswanath 2017, theorem 3.1. It is its own mirror image.
    """

    epsilon: float
    delta: float

    @property
    @override
    def unit(self) -> Fraction:
        return decimal(self.epsilon)

    @property
    @override
    def least(self) -> float:
        return -self.greatest

    @property
    @override
    def greatest(self) -> float:
        return self.epsilon * (1 + 1e-9)

    @property
    @override
    def variance(self) -> float:
        return self.epsilon**2

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        losses = np.array([-self.epsilon, self.epsilon])
        p = (1 - self.delta) * scipy.special.expit(losses)
        p, q = between(cuts, losses, 1e-14 * self.epsilon, p, p[::-1])
        p[-1] += self.delta
        q[0] += self.delta
        return p, q


__all__ = ["ApproximateEvent", "Failure"]
