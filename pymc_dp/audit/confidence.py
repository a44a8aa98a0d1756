"""Exact confidence bounds from counts: what has been seen, and nothing about what has not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def clopper_pearson(successes: npt.ArrayLike, runs: int, alpha: float) -> tuple[Floats, Floats]:
    """Return bounds of a probability, each of which fails with probability at most `alpha`.

    Parameters
    ----------
    successes : int or array of int
        How often the event occurred, in 0..runs.
    runs : int
        Number of independent runs, fixed in advance.
    alpha : float
        Failure probability of each of the two bounds.

    Returns
    -------
    low, high : arrays
        Each bound alone holds with probability 1 - alpha; both together with 1 - 2 alpha.

    References
    ----------
    Clopper, Pearson (1934), doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 10, 0.05)
    >>> float(low), round(float(high), 4)  # 1 - 0.05 ** (1 / 10)
    (0.0, 0.2589)
    """
    from scipy.special import betaincinv  # scipy.stats would double the time to import the package

    k = np.asarray(successes, dtype=float)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), runs - k + 1, alpha), 0.0)
    high = np.where(k < runs, betaincinv(k + 1, np.maximum(runs - k, 1), 1 - alpha), 1.0)
    return np.asarray(low), np.asarray(high)


def epsilon_bound(p_low: npt.ArrayLike, q_high: npt.ArrayLike, delta: float) -> Floats:
    """Return the least epsilon >= 0 that P(event) >= `p_low` and Q(event) <= `q_high` allow at `delta`.

    (epsilon, delta)-DP says P <= exp(epsilon) Q + delta, so epsilon >= log((P - delta) / Q).

    Examples
    --------
    >>> round(float(epsilon_bound(0.5, 0.2, 0.0)), 4)
    0.9163
    """
    excess = np.maximum(np.asarray(p_low, dtype=float) - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(excess) - np.log(np.asarray(q_high, dtype=float)), 0.0)
