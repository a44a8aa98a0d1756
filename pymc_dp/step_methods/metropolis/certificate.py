"""What one step of tempered Metropolis may cost at most, and the account of such steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ROUNDING = 1e-14
"""Of a log density of the prior, relative: of the difference of two of them nothing smaller is certain."""
UP = 1 + 1e-12


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Public numbers that prove one step (`epsilon`, 1 - e^-`fall`)-DP.

    Attributes
    ----------
    epsilon : float
        How far one row can move the log of the acceptance ratio.
    fall : float
        The log of the acceptance ratio is at least minus this, on every data set.
    """

    epsilon: float
    fall: float

    @property
    def delta(self) -> float:
        """Bound on the probability that the step is refused."""
        return -math.expm1(-self.fall)


def certified(*, beta: float, reach: float, largest: float, rows: int, priors: tuple[float, float]) -> Certificate:
    """Certify a step by what rows could be.

    Parameters
    ----------
    beta : float
    reach : float
        Range of a row's log-likelihood ratio g under the neighbour relation.
    largest : float
        Largest |g| of any row.
    rows : int
        Most rows that a data set may have.
    priors : (float, float)
        Log densities of the prior at the two states.
    """
    one, other = priors
    apart = abs(one - other) + ROUNDING * (1 + (abs(one) + abs(other)))
    return Certificate(epsilon=beta * reach * UP, fall=(beta * rows * largest + apart) * UP)


class Allowance:
    """Steps of which each may cost an equal share of (ε, δ); what one does not use is lost to the others.

    Attributes
    ----------
    epsilon, delta : float
        Of one step.
    chains : int
    """

    power = 1
    most = math.inf

    def __init__(self, epsilon: float, delta: float, chains: int = 1) -> None:
        self.each, self.delta, self.chains = epsilon, delta, chains
        self.restart()

    @property
    def most_fall(self) -> float:
        """Largest `Certificate.fall` of a step."""
        return -math.log1p(-self.delta)

    def covers(self, step: Certificate) -> bool:
        """Whether a step is certified to cost no more than its share. Public."""
        return step.epsilon <= self.each and step.fall <= self.most_fall

    def restart(self) -> None:
        """Begin the account of one chain."""
        self.epsilon = 0.0

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take it up where `state` stood."""
        self.epsilon = state["epsilon"]

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs to go on from here."""
        return {"epsilon": self.epsilon}

    def loss(self, reach: float) -> float:
        """Return the loss itself."""
        return reach

    def range_of(self, loss: float) -> float:
        """Return the loss itself."""
        return loss

    def allowed(self, left: int, demands: Sequence[float]) -> float:
        """Return the share of one step."""
        return self.each

    def share(self, left: int) -> float:
        """Return the whole."""
        return 1.0

    def affords(self, reach: float) -> bool:
        """Note the loss of a step whose certificate was covered."""
        self.epsilon += self.chains * reach
        return True


__all__ = ["Allowance", "Certificate", "certified"]
