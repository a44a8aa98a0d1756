"""Counts of several levels that add up to a total: one level after the other, each given those before."""

from __future__ import annotations

import math

import numba
import numpy as np

from pymc_dp.inspection.rows import Array

MOST_TOTAL = 4096
"""Totals beyond are taken for this: what is expected of such rows is then off, and not what is enforced."""
FAR = 1e50
"""Odds beyond are taken for these."""
LARGE = 1e100
"""Masses beyond are counted in a larger unit, and no mass is more than so many times the one before."""
LOG_LARGE = math.log(LARGE)


def taken_counts(shares: Array, levels: Array, most: int, varied: bool) -> Array:
    """Return counts of rows, (n_rows, n_levels), at levels between 0 and 1.

    Parameters
    ----------
    shares : (n_rows, n_levels + 1) array
        Positive numbers that probabilities of levels are proportional to, and the total of a row.
    levels : (n_rows, >= n_levels - 1) array
        At which quantiles are taken.
    most : int
        Largest count that a column holds: steps go up to it.
    varied : bool
        Whether probabilities are drawn from a Dirichlet distribution first.

    Notes
    -----
    Counts of a multinomial distribution are binomial, one after the other, out of what is left of the total; those of
    a Dirichlet-multinomial one are beta-binomial. The number of steps depends on `most` alone.

    References
    ----------
    Johnson, Kotz, Balakrishnan (1997), Discrete Multivariate Distributions, 35.2 and 35.13.
    """
    own = np.nan_to_num(shares[:, :-1], nan=1.0, posinf=1e150).clip(1e-150, 1e150)
    totals = np.rint(np.nan_to_num(shares[:, -1]).clip(0, MOST_TOTAL))
    found = np.zeros(own.shape, dtype=np.int64)
    _take(np.ascontiguousarray(own), totals, np.ascontiguousarray(levels), most, varied, found)
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _take(own, totals, levels, most, varied, found):  # type: ignore[no-untyped-def]
    n_rows, n_levels = own.shape
    for row in range(n_rows):
        left, rest = totals[row], own[row].sum()
        for level in range(n_levels - 1):
            share = own[row, level]
            rest = rest - share if rest - share > 1e-150 else 1e-150
            if varied:
                odds = 1.0
                log_unit = (math.lgamma(rest + left) - math.lgamma(rest)) + (
                    math.lgamma(share + rest) - math.lgamma(share + rest + left)
                )
            else:
                odds = min(max(share / rest, 1 / FAR), FAR)
                log_unit = -left * math.log1p(odds)
            # Masses are multiples of `unit`: no exponential and no logarithm for each count.
            mass, below, count, unit = 1.0, 0.0, 0, math.exp(log_unit)
            for value in range(most):
                below += mass
                count += 1 if levels[row, level] >= below * unit else 0
                step = odds * (left - value) / (value + 1)
                if varied:
                    step *= (share + value) / (rest + left - value - 1)
                mass *= min(step, LARGE) if step > 0 else 0.0
                if mass > LARGE:
                    mass, below, log_unit = mass / LARGE, below / LARGE, log_unit + LOG_LARGE
                    unit = math.exp(log_unit)
            count = count if count < left else int(left)
            found[row, level] = count
            left -= count
        found[row, n_levels - 1] = int(left)


__all__ = ["taken_counts"]
