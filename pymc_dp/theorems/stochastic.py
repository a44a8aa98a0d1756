"""What follows from a log-likelihood that is steep for few parameters: stochastic Lipschitz continuity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.theorems.statement import Statement, extended, positive, upwards

PAPER = "Dimitrakakis et al. 2017"


@final
@dataclass(frozen=True, kw_only=True)
class StochasticLipschitz:
    """A prior that puts little mass on parameters whose log-likelihood is steep in the data.

    Let Θ_L be the parameters whose log-likelihood is L-Lipschitz under ρ. Then ``prior(Θ_L) >= 1 - e^{-c (L - L0)}``
    for all L >= L0.

    Parameters
    ----------
    offset : float
        L0 >= 0, nats per unit of ρ.
    rate : float
        c > 0, units of ρ per nat. It changes with the unit of ρ, and the theorems need more than 1.
    ratio : float
        C >= 1: the largest ``p(x|θ) / φ(x)`` over data sets x and parameters, φ the marginal likelihood.

    References
    ----------
    Dimitrakakis et al. (2017), assumption 2 and equation 9.

    Examples
    --------
    >>> StochasticLipschitz(offset=0.5, rate=4.0, ratio=2.0).slope
    2.25
    """

    offset: float
    rate: float
    ratio: float

    def __post_init__(self) -> None:
        if _validate.number("offset", self.offset) < 0:
            raise ArgumentError(f"offset must be >= 0, got {self.offset}.")
        positive("rate", self.rate)
        if extended("ratio", self.ratio) < 1:
            raise ArgumentError(f"ratio must be >= 1, a largest over a mean, got {self.ratio}.")

    @property
    def slope(self) -> float:
        """``1 + 2 L0 + 1/c``: nats per unit of ρ, before it is multiplied by C."""
        return 1 + 2 * self.offset + 1 / self.rate

    def obstacle(self, step: float) -> str:
        """Say why the theorems do not hold in steps of this size; empty where they do."""
        if math.isinf(self.ratio):
            return "the ratio C is infinite, or its bound is larger than any float"
        if self.rate <= 1:
            return f"the theorem needs c > 1, and c = {self.rate:.6g} in this unit of ρ"
        if step > self.rate - 1:
            return f"the theorem goes in steps of ρ <= c - 1 = {self.rate - 1:.6g}, and data sets are {step:.6g} apart"
        return ""


def known(given: object) -> StochasticLipschitz:
    """Return constants, or refuse what holds none."""
    way_out = "Take it from dp.theorems.families, or write dp.theorems.StochasticLipschitz(offset=, rate=, ratio=)."
    return _validate.instance("given", given, StochasticLipschitz, way_out)


def stochastic_divergence(given: StochasticLipschitz, *, distance: float, step: float) -> Statement:
    """Bound the Kullback-Leibler divergence between two posteriors, in nats.

    Parameters
    ----------
    given : StochasticLipschitz
    distance : float
        ρ(x, y) > 0, in units of ρ.
    step : float
        Between any two data sets lie others, at most so far from one to the next, along which distances add up: 1 under
        the Hamming distance, 0 where data may move as little as one likes.

    Returns
    -------
    Statement
        ``C (1 + 2 L0 + 1/c) ρ`` nats; no proof of (ε, δ). Vacuous, and infinite, unless c > 1 and ``step <= c - 1``.

    References
    ----------
    Dimitrakakis et al. (2017), theorem 7, claim 2. Its proof goes from ``φ(x)/φ(y) <= C e^a`` to ``log φ(x)/φ(y) <= C
    a``, which does not follow; that ``φ(x)/φ(y) <= 1 + C (e^a - 1)`` does, and leads to the same bound.

    Examples
    --------
    >>> given = StochasticLipschitz(offset=0.1, rate=3.0, ratio=2.0)
    >>> round(stochastic_divergence(given, distance=0.5, step=0.0).value, 6)
    1.533333
    """
    value, reason = _divergence(given, distance, step)
    claim = "KL(posterior of x ‖ posterior of y)"
    return Statement(value=value, unit="nats", claim=claim, source=f"{PAPER}, theorem 7.2", reason=reason)


def _divergence(given: StochasticLipschitz, distance: float, step: float) -> tuple[float, str]:
    given, distance = known(given), positive("distance", distance)
    if _validate.number("step", step) < 0:
        raise ArgumentError(f"step must be >= 0, got {step}. Give 1 under the Hamming distance.")
    reason = given.obstacle(step)
    return (math.inf if reason else upwards(given.ratio * given.slope * distance)), reason


def stochastic_total_variation(given: StochasticLipschitz, *, distance: float, step: float) -> Statement:
    """Bound the total variation distance between two posteriors.

    Parameters
    ----------
    given, distance, step
        As for `stochastic_divergence`.

    Returns
    -------
    Statement
        ``√(C (1 + 2 L0 + 1/c) ρ / 2)``, a probability. The paper calls it (0, δ)-privacy under √ρ: a mechanism that
        shows one row in a thousand as it is has that with δ = 0.001, and it is never a proof for a budget here. Vacuous
        from 1 on, which it often is.

    References
    ----------
    Dimitrakakis et al. (2017), theorem 8, claim 2, by Pinsker's inequality. Lemmas 19 to 22 apply it under ρ where √ρ
    is meant.

    Examples
    --------
    >>> given = StochasticLipschitz(offset=0.1, rate=3.0, ratio=2.0)
    >>> print(stochastic_total_variation(given, distance=1.0, step=0.0))
    VACUOUS (probabilities never differ by more than 1): total variation between posteriors <= 1.23828 probability ...
    """
    divergence, reason = _divergence(given, distance, step)
    value = upwards(math.sqrt(divergence / 2))
    if value >= 1 and not reason:
        reason = "probabilities never differ by more than 1"
    claim = "total variation between posteriors"
    return Statement(value=value, unit="probability", claim=claim, source=f"{PAPER}, theorem 8.2", reason=reason)


def random_privacy(given: StochasticLipschitz, *, lipschitz: float) -> Statement:
    """Bound the prior mass of parameters that stand in the way of a pure loss.

    Parameters
    ----------
    given : StochasticLipschitz
    lipschitz : float
        L >= L0, nats per unit of ρ.

    Returns
    -------
    Statement
        ``e^{-c (L - L0)}``, prior probability of parameters that are not L-Lipschitz. A posterior of the prior
        *restricted* to the others is (2 L, 0)-private per unit of ρ: `posterior_privacy` of L. Nothing follows for the
        posterior of the full prior: the probability is over the prior, not over what is released, and no δ. Vacuous at
        L = L0, where it is 1.

    References
    ----------
    Dimitrakakis et al. (2017), corollary 9, which speaks of the posterior itself: as printed it is the probability of
    an event that depends on nothing random. Random differential privacy: Hall, Rinaldo, Wasserman (2011).

    Examples
    --------
    >>> given = StochasticLipschitz(offset=0.1, rate=3.0, ratio=2.0)
    >>> round(random_privacy(given, lipschitz=2.1).value, 6)
    0.002479
    """
    given, lipschitz = known(given), positive("lipschitz", lipschitz)
    if lipschitz < given.offset:
        raise ArgumentError(f"lipschitz must be >= offset, {given.offset}, got {lipschitz}.")
    nats = given.rate * (lipschitz - given.offset)
    # Relative to its size an exponential is off by as much as its exponent is; below all floats it is not 0.
    value = max(math.ulp(0.0), min(1.0, upwards(math.exp(-nats), 16 + math.ceil(4 * min(nats, 1e6)))))
    return Statement(
        value=value,
        unit="prior probability",
        claim=f"mass of parameters that are not {lipschitz:g}-Lipschitz",
        source=f"{PAPER}, corollary 9",
        reason="" if value < 1 else "a probability is never above 1",
    )


__all__ = ["StochasticLipschitz", "random_privacy", "stochastic_divergence", "stochastic_total_variation"]
