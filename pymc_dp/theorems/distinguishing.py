"""How far apart data sets must be before somebody can tell them apart by posterior samples.

What is lost by answering from a few posterior samples, and from a prior that leaves out steep parameters.

What noise on the counts of a Bayesian network does to its posterior and to its tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.theorems.lipschitz import PAPER, StochasticLipschitz, known
from pymc_dp.theorems.statement import Statement, counted, positive, probability, upwards

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


VACUOUS = "two tables with this many rows cannot differ by more"
SOURCE = "Zhang, Rubinstein, Dimitrakakis 2016, theorem {}"


def laplace_updates_divergence(
    *, n_rows: int, epsilon: float, nodes: int, alpha: Sequence[float], beta: Sequence[float], delta: float
) -> Statement:
    """Bound the divergence between the exact posterior of a network and that of noised counts, in nats.

    Parameters
    ----------
    n_rows : int
        n >= 1.
    epsilon : float
        What the noise on all counts pays for: Laplace of scale ``2 nodes / ε`` on each, results cut to 0..n.
    nodes : int
        Number of binary variables.
    alpha, beta : sequences of float
        Parameters > 0 of the beta priors, one of each per node and combination of its parents' values: m of each.
    delta : float
        Probability in (0, 1) that the bound fails, over the noise. (No privacy parameter.)

    Returns
    -------
    Statement
        Nats, for any table of n rows: ``Σ b (1 - e^{-n/b}) (K_α + K_β) + √(n² Σ (K_α² + K_β²) log(1/δ) / 2)`` with
        ``b = 2 nodes / ε`` and ``K_α = ψ(α + β + 2n) - ψ(α)``. Vacuous from ``n Σ (K_α + K_β)`` on, which holds
        whatever the noise.

    Notes
    -----
    The divergence of beta distributions moves by K at most per unit of one parameter, so that a count that is off by z
    moves it by ``K |z|``, of mean ``b (1 - e^{-n/b})`` after the cut, and by n K at most: the second term is
    McDiarmid's inequality. The paper puts ``(2n + 1) log(α + β + 2n + 2)`` in place of ``n (K_α + K_β)``, which is
    too little for α or β far below 1, and writes the sum under the root without squares, which is no bound.

    References
    ----------
    Zhang, Rubinstein, Dimitrakakis (2016), theorem 1 and algorithm 1; McDiarmid (1989).

    Examples
    --------
    >>> found = laplace_updates_divergence(n_rows=1000, epsilon=1.0, nodes=1, alpha=[1.0], beta=[1.0], delta=0.05)
    >>> round(found.value)  # hardly less than 16,355 nats, which no noise exceeds
    14189
    """
    n, nodes = counted("n_rows", n_rows), counted("nodes", nodes)
    first, second = (_parameters(name, item) for name, item in (("alpha", alpha), ("beta", beta)))
    if first.shape != second.shape:
        raise ArgumentError(f"alpha and beta must be of one length, got {first.size} and {second.size}.")
    scale, wrong = 2 * nodes / _validate.epsilon(epsilon), probability("delta", delta)
    top = scipy.special.digamma(first + second + 2 * n)
    slopes = np.concatenate([top - scipy.special.digamma(item) for item in (first, second)]) * (1 + 1e-12)
    mean = -scale * math.expm1(-n / scale) * float(slopes.sum())
    spread = n * math.sqrt(float((slopes**2).sum()) * math.log(1 / wrong) / 2)
    value, most = upwards(mean + spread), n * float(slopes.sum())
    return Statement(
        value=value,
        unit="nats",
        claim="KL(exact posterior ‖ posterior of noised counts)",
        source=SOURCE.format(1),
        reason="" if value < most else "counts are cut to 0..n, so it cannot be more than this, whatever the noise",
    )


def _parameters(name: str, values: Sequence[float]) -> np.ndarray:
    found = [positive(f"each entry of {name}", value) for value in _validate.several(name, values)]
    if not found:
        raise ArgumentError(f"{name} must hold one number or more, got none.")
    return np.array(found)


def fourier_updates_error(
    *, epsilon: float, closure: int, parents: int, delta: float, increment: float, n_rows: int | None = None
) -> Statement:
    """Bound how far the noised marginal tables of a network are off, in rows.

    Parameters
    ----------
    epsilon : float
        What the noise on all Fourier coefficients pays for.
    closure : int
        ``|N_I|`` >= 1: coefficients released, those of all subsets of a node with its parents.
    parents : int
        Parents of the node whose table is looked at, >= 0.
    delta : float
        Probability in (0, 1) that the bound fails, over the noise, for any of the tables. (No privacy parameter.)
    increment : float
        t >= 0 of the algorithm, which lifts all cells.
    n_rows : int, optional
        Rows of the table: the bound is vacuous from 2 n on, by how much two tables of n rows may differ.

    Returns
    -------
    Statement
        ``(4 |N_I| / ε) (2^parents log(|N_I| / δ) + t |N_I|)`` rows: the sum of absolute errors over the ``2^(parents +
        1)`` cells.

    References
    ----------
    Zhang, Rubinstein, Dimitrakakis (2016), theorem 3 and algorithm 2; Barak et al. (2007).

    Examples
    --------
    >>> round(fourier_updates_error(epsilon=1.0, closure=4, parents=1, delta=0.05, increment=1.0).value, 2)
    204.22
    """
    closure, parents = counted("closure", closure), _validate.integer("parents", parents, 0, 500)
    if _validate.number("increment", increment) < 0:
        raise ArgumentError(f"increment must be >= 0, got {increment}.")
    if closure < 2 ** (parents + 1):
        raise ArgumentError(
            f"closure must be >= 2^(parents + 1) = {2 ** (parents + 1)}, the subsets of the node with its {parents} "
            f"parents, got {closure}."
        )
    noise = 2.0**parents * math.log(closure / probability("delta", delta))
    value = upwards(4 * closure / _validate.epsilon(epsilon) * (noise + increment * closure))
    most = math.inf if n_rows is None else 2.0 * counted("n_rows", n_rows)
    return Statement(
        value=value,
        unit="rows",
        claim="L1 error of a noised marginal table",
        source=SOURCE.format(3),
        reason=""
        if value < most
        else VACUOUS
        if n_rows is not None
        else ("every error is finite, so an infinite bound says nothing"),
    )


__all__ = [
    "distinguishing_distance",
    "fourier_updates_error",
    "laplace_updates_divergence",
    "query_loss",
    "restricted_prior_loss",
    "stochastic_distinguishing_distance",
]
