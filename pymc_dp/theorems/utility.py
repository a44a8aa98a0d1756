"""What is lost by answering from a few posterior samples, and from a prior that leaves out steep parameters."""

from __future__ import annotations

import math

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.theorems.statement import Statement, counted, probability, upwards
from pymc_dp.theorems.stochastic import PAPER

TRIVIAL = "utilities lie in [0, 1], so that no loss is above 1"


def query_loss(*, samples: int, delta: float, responses: int = 1) -> Statement:
    """Bound what is lost by choosing responses with posterior samples instead of the posterior.

    Parameters
    ----------
    samples : int
        N >= 1 independent draws, by whose mean utility a response is chosen.
    delta : float
        Probability in (0, 1) that the bound fails, over the draws. (No privacy parameter.)
    responses : int
        R >= 1: responses that are compared, over all queries together, the queries fixed before the draws are made. For
        queries that depend on earlier answers, all that could be asked.

    Returns
    -------
    Statement
        ``2 √(log(2R/δ) / (2N))``, in utility (between 0 and 1): the expected utility of every chosen response is so
        near to that of the best one. Vacuous from 1 on.

    Notes
    -----
    Hoeffding's inequality holds for one response; whichever the samples like best is one of R. The paper writes "for
    all r, q" without R, which fails: of a million responses, some look better than they are.

    References
    ----------
    Dimitrakakis et al. (2017), lemma 11 and algorithm 2.

    Examples
    --------
    >>> round(query_loss(samples=1000, delta=0.05, responses=10).value, 4)
    0.1095
    """
    value = _hoeffding(samples, delta, responses)
    reason = TRIVIAL if value >= 1 else ""
    claim = "utility lost by answering from samples"
    return Statement(value=value, unit="utility", claim=claim, source=f"{PAPER}, lemma 11", reason=reason)


def restricted_prior_loss(outside: float, *, samples: int, delta: float, responses: int = 1) -> Statement:
    """Bound what is lost by samples from a prior that is restricted to smooth parameters, as seen by the full one.

    Parameters
    ----------
    outside : float
        Mass in [0, 1] that the full prior's **posterior** has outside of Θ_L. Over tables drawn from the full model its
        mean is the prior mass outside, which the paper puts in its place for every table.
    samples, delta, responses
        As for `query_loss`.

    Returns
    -------
    Statement
        ``2 outside + 2 √(log(2R/δ) / (2N))``, in utility. Vacuous from 1 on. What the samples cost is
        `posterior_privacy` of L and N.

    Notes
    -----
    Two posteriors that differ by `outside` in total variation differ by so much in the expectation of a utility in [0,
    1], for the response chosen and for the best one.

    References
    ----------
    Dimitrakakis et al. (2017), theorem 17 (b), lemmas 11 and 14.

    Examples
    --------
    >>> round(restricted_prior_loss(0.01, samples=1000, delta=0.05, responses=10).value, 4)
    0.1295
    """
    outside = _validate.number("outside", outside)
    if not 0 <= outside <= 1:
        raise ArgumentError(f"outside must be a probability, in [0, 1], got {outside}.")
    value = upwards(2 * outside + _hoeffding(samples, delta, responses))
    reason = TRIVIAL if value >= 1 else ""
    claim = "utility lost by samples from a restricted prior"
    return Statement(value=value, unit="utility", claim=claim, source=f"{PAPER}, theorem 17", reason=reason)


def _hoeffding(samples: int, delta: float, responses: int) -> float:
    count, compared = counted("samples", samples), counted("responses", responses)
    return upwards(2 * math.sqrt(math.log(2 * compared / probability("delta", delta)) / (2 * count)))


__all__ = ["query_loss", "restricted_prior_loss"]
