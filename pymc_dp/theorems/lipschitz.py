"""What follows from a log-likelihood that is Lipschitz in the data, whatever the parameters.

The largest likelihood over the marginal one: the constant C of stochastic Lipschitz continuity, by quadrature.

What follows from a log-likelihood that is steep for few parameters: stochastic Lipschitz continuity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.theorems.statement import Privacy, Statement, counted, extended, positive, product_up, upwards

THEOREM_7, THEOREM_8, THEOREM_17 = (f"Dimitrakakis et al. 2017, theorem {number}" for number in ("7.1", "8.1", "17"))
PROPOSITION_10 = "Wang, Fienberg, Smola 2015, proposition 10"


def posterior_divergence(lipschitz: float, *, distance: float) -> Statement:
    """Bound the Kullback-Leibler divergence between two posteriors, in nats.

    Parameters
    ----------
    lipschitz : float
        L > 0, nats per unit of ρ: ``|log p(x|θ) - log p(y|θ)| <= L ρ(x, y)`` for all data sets x, y and all θ of the
        prior's support. For a posterior tempered by β it is β L.
    distance : float
        ρ(x, y) > 0 between the data sets, in units of ρ.

    Returns
    -------
    Statement
        ``2 L ρ`` nats. It bounds a mean, not a largest loss: no proof of (ε, δ).

    References
    ----------
    Dimitrakakis, Nelson, Zhang, Mitrokotsa, Rubinstein (2017), theorem 7, claim 1.

    Examples
    --------
    >>> posterior_divergence(2.0, distance=0.25).value
    1.0
    """
    value = product_up(2, positive("lipschitz", lipschitz), positive("distance", distance))
    return Statement(value=value, unit="nats", claim="KL(posterior of x ‖ posterior of y)", source=THEOREM_7)


def posterior_privacy(lipschitz: float, *, distance: float, samples: int = 1) -> Statement:
    """Bound the loss of exact posterior samples, as a proof of (ε, 0).

    Parameters
    ----------
    lipschitz : float
        L > 0, as for `posterior_divergence`.
    distance : float
        Largest ρ between neighbours, in units of ρ: 1 for one row under the Hamming distance, and 1 for a number per
        unit of ρ.
    samples : int
        N >= 1 exact draws, all of them released.

    Returns
    -------
    Statement
        ``2 L N ρ`` nats, with its proof; none, and vacuous, where no float is as large.

    Notes
    -----
    **Guarantee.** Pure: every event has under x at most e^ε times its probability under y, for data sets at that
    distance or nearer. Ideal real numbers and exact draws are assumed. Corollary 10 of the paper leaves out N, for a
    mechanism that shows all N draws: that is not so. ``dp.OPS`` accounts the range of the likelihood instead, which is
    never more.

    References
    ----------
    Dimitrakakis et al. (2017), theorem 8, claim 1, and theorem 17 (a).

    Examples
    --------
    >>> posterior_privacy(0.5, distance=1.0, samples=3).proof
    Privacy(epsilon=3.0, delta=0.0, distance=1.0)
    """
    count, distance = counted("samples", samples), positive("distance", distance)
    epsilon = product_up(2, positive("lipschitz", lipschitz), count, distance)
    holds = math.isfinite(epsilon)
    return Statement(
        value=epsilon,
        unit="nats",
        claim=f"loss of {count} posterior sample{'s' * (count != 1)}",
        source=THEOREM_8 if count == 1 else THEOREM_17,
        reason="" if holds else "an infinite bound says nothing",
        proof=Privacy(epsilon=epsilon, delta=0.0, distance=distance) if holds else None,
    )


def approximate_sampling(epsilon: float, *, l1_distance: float, distance: float = 1.0) -> Statement:
    """Bound the loss of a sampler that is nearly exact, as Markov chains are after enough steps.

    Parameters
    ----------
    epsilon : float
        The loss > 0 of exact draws, pure.
    l1_distance : float
        Bound > 0 on the L1 distance between the distribution of draws and the exact one, **for every data set**. R-hat
        and other diagnostics are no such bound.
    distance : float
        Largest distance of the data sets for which `epsilon` holds; 1 for one row.

    Returns
    -------
    Statement
        ``(1 + e^ε) δ'``, a probability; where it is below 1, the proof of ``(ε, (1 + e^ε) δ')``.

    Notes
    -----
    **Guarantee.** (ε, δ) as in the proof, if `l1_distance` holds for every data set.

    References
    ----------
    Wang, Fienberg, Smola (2015), Privacy for free, proposition 10.

    Examples
    --------
    >>> approximate_sampling(1.0, l1_distance=1e-6).proof.delta < 3.72e-6
    True
    >>> approximate_sampling(5.0, l1_distance=0.01).reason
    'every mechanism has a δ of 1 or more'
    """
    epsilon = _validate.epsilon(epsilon)
    positive("distance", distance)
    delta = upwards((1 + math.exp(epsilon)) * positive("l1_distance", l1_distance)) if epsilon < 700 else math.inf
    holds = delta < 1
    return Statement(
        value=delta,
        unit="probability",
        claim="δ of nearly exact draws",
        source=PROPOSITION_10,
        reason="" if holds else "every mechanism has a δ of 1 or more",
        proof=Privacy(epsilon=epsilon, delta=delta, distance=distance) if holds else None,
    )


MOST_POINTS = 2**17
NODES = 96
FAR = 40.0
"""Nats below its largest value at which an integrand is cut."""
ROUNDING = 1 + 1e-9
MOST_NATS = 700.0
PER_NAT = 500
"""Points of the grid per nat that the logarithm of the ratio can change."""


def largest_ratio(low: float, high: float, prior: float, *, power: float, exponents: tuple[float, float]) -> float:
    """Bound the largest ``p / φ`` of densities ``p = θ^power e^{-θ s}``, over s and over θ in [low, high].

    By the logarithm of a ratio of s: its largest value on a grid of s, and its slope, at most high - low, times half of
    a step of the grid. φ, the mean of p under the prior, is computed without its tail beyond `FAR` nats. The bound is
    inf where it is above what floats hold, which a grid of `MOST_POINTS` makes of exponents in too wide a range.
    """
    first, last = exponents
    count = min(MOST_POINTS, max(2, math.ceil((last - first) * (high - low) * PER_NAT) + 1))
    grid, step = np.linspace(first, last, count, retstep=True)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    constant = math.log(prior) - math.log(-math.expm1(-prior * (high - low)))
    largest = -math.inf
    for s in np.array_split(grid, math.ceil(count / 2**13)):
        # θ = v², for roots of θ are not smooth at 0; relative to e^{-low (prior + s)}.
        top = np.sqrt(np.minimum(high, low + FAR / (prior + s)))[:, None]
        half = (top - math.sqrt(low)) / 2
        v = math.sqrt(low) + half * (nodes + 1)
        inside = v ** (2 * power + 1) * np.exp(-(v**2 - low) * (prior + s[:, None]))
        mean = np.log((2 * half * weights * inside).sum(axis=1)) + constant - low * s
        with np.errstate(divide="ignore"):
            at = np.clip(power / s, low, high)
        largest = max(largest, float((power * np.log(at) - at * s - mean).max()))
    return exponential_up(largest + (high - low) * float(step) / 2)


def exponential_up(nats: float) -> float:
    """Return ``e^nats``, 1 at least, with room for rounding; inf where that is above what floats hold."""
    return max(1.0, math.exp(nats) * ROUNDING) if nats < MOST_NATS else math.inf


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


__all__ = [
    "ROUNDING",
    "StochasticLipschitz",
    "approximate_sampling",
    "exponential_up",
    "largest_ratio",
    "posterior_divergence",
    "posterior_privacy",
    "random_privacy",
    "stochastic_divergence",
    "stochastic_total_variation",
]
