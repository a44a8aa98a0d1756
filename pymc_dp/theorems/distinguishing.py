"""How far apart data sets must be before somebody can tell them apart by posterior samples."""

from __future__ import annotations

import math

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.theorems.statement import Statement, counted, positive, probability
from pymc_dp.theorems.stochastic import PAPER, StochasticLipschitz, known

CLAIM = "ρ(x, y) at which somebody distinguishes x from y with an error probability of {:g} at most, whichever it is,"


def distinguishing_distance(lipschitz: float, *, samples: int, delta: float, papers: bool = False) -> Statement:
    """Return a distance below which nobody can tell two data sets apart by posterior samples.

    Parameters
    ----------
    lipschitz : float
        L > 0, nats per unit of ρ, uniform over the parameters, as for `posterior_divergence`.
    samples : int
        N >= 1 exact draws.
    delta : float
        How often a guess may be wrong, whichever data set is the true one: in (0, 1/2). (No privacy parameter.)
    papers : bool
        The paper's ``3 / (4 L N) log(1/δ)`` instead. It holds for δ <= 0.27 only, where it is less.

    Returns
    -------
    Statement
        ``log(1/δ - 1) / (L N)``, in units of ρ. Not a proof of (ε, δ), but a consequence of one.

    Notes
    -----
    The logarithm of the ratio of the densities of N samples under x and y lies in an interval ``[t - 2LNρ, t]``. An
    event that says x, of probability ``p >= 1 - δ`` under x and ``q <= δ`` under y, has ``p <= e^t q`` and ``1 - q <=
    e^{2LNρ
    - t} (1 - p)``; multiplied, ``(1/δ - 1)² <= e^{2LNρ}``. It can be so: with one sample, two parameters and
    log-likelihoods that differ by Lρ one way and the other. The paper argues with empirical distributions instead.

    References
    ----------
    Dimitrakakis et al. (2017), theorem 13, first claim.

    Examples
    --------
    >>> round(distinguishing_distance(1.0, samples=10, delta=0.05).value, 4)
    0.2944
    >>> round(distinguishing_distance(1.0, samples=10, delta=0.05, papers=True).value, 4)
    0.2247
    """
    count, wrong = positive("lipschitz", lipschitz) * counted("samples", samples), _wrong(delta)
    sharp = math.log(1 / wrong - 1) / count
    printed = 0.75 * math.log(1 / wrong) / count
    if _validate.flag("papers", papers) and printed > sharp:
        raise ArgumentError(
            f"delta must be <= 0.27 for the paper's form, got {wrong}: one sample can distinguish data sets that are "
            "nearer to each other than it says. Use papers=False."
        )
    claim, source = CLAIM.format(wrong), f"{PAPER}, theorem 13" + ("" if papers else ", by the range")
    return Statement(value=printed if papers else sharp, unit="units of ρ", claim=claim, source=source, relation=">=")


def stochastic_distinguishing_distance(
    given: StochasticLipschitz, *, samples: int, delta: float, step: float
) -> Statement:
    """Return such a distance where only few parameters are steep.

    Parameters
    ----------
    given : StochasticLipschitz
    samples, delta
        As for `distinguishing_distance`.
    step : float
        As for `stochastic_divergence`.

    Returns
    -------
    Statement
        ``log(1 / (4 δ (1 - δ))) / (N C (1 + 2 L0 + 1/c))``, in units of ρ. Vacuous, and 0, where theorem 7.2 does not
        hold.

    Notes
    -----
    From the divergence D of one sample: two distributions with divergence N D have a total variation of at most ``√(1 -
    e^{-ND})`` (Bretagnolle, Huber 1979), and whoever is wrong with probability δ at most needs 1 - 2 δ of it. The
    paper's constant here, ``C/c + log C``, belongs to no bound of its theorem 7.

    References
    ----------
    Dimitrakakis et al. (2017), theorem 13, second claim; Bretagnolle, Huber (1979).

    Examples
    --------
    >>> given = StochasticLipschitz(offset=0.1, rate=3.0, ratio=2.0)
    >>> round(stochastic_distinguishing_distance(given, samples=10, delta=0.05, step=0.0).value, 4)
    0.0542
    """
    count, wrong = counted("samples", samples), _wrong(delta)
    if _validate.number("step", step) < 0:
        raise ArgumentError(f"step must be >= 0, got {step}. Give 1 under the Hamming distance.")
    reason = known(given).obstacle(step)
    value = 0.0 if reason else -math.log(4 * wrong * (1 - wrong)) / (count * given.ratio * given.slope)
    return Statement(
        value=value,
        unit="units of ρ",
        claim=CLAIM.format(wrong),
        source=f"{PAPER}, theorem 13",
        reason=reason,
        relation=">=",
    )


def _wrong(delta: float) -> float:
    wrong = probability("delta", delta)
    if wrong >= 0.5:
        raise ArgumentError(
            f"delta must lie in (0, 1/2), got {wrong}: a guess by tossing a coin is wrong with probability 1/2."
        )
    return wrong


__all__ = ["distinguishing_distance", "stochastic_distinguishing_distance"]
