"""What follows from a log-likelihood that is Lipschitz in the data, whatever the parameters."""

from __future__ import annotations

import math

from pymc_dp import _validate
from pymc_dp.theorems.statement import Privacy, Statement, counted, positive, product_up, upwards

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


__all__ = ["approximate_sampling", "posterior_divergence", "posterior_privacy"]
