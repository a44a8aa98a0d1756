"""What noise on the counts of a Bayesian network does to its posterior and to its tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.theorems.statement import Statement, counted, positive, probability, upwards

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


__all__ = ["fourier_updates_error", "laplace_updates_divergence"]
