"""Log density of noised counts of three or more levels, cell by cell: compiled, see `noise_aware.counts_logp`."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np

from pymc_dp.families.normal_sums import LOG_2PI, SMALL
from pymc_dp.transforms.count_kernels import noised_count
from pymc_dp.transforms.jit import kernel, part
from pymc_dp.transforms.noised_count import LEAST, MOST
from pymc_dp.transforms.panel_kernels import look_up

NEGLIGIBLE = 34.0
"""Logarithm of what is left out of a sum over sizes, whose terms fall off on both sides of the largest one."""


@kernel
def levels_of_public_size(p, value, bound, at_mean, noise):  # type: ignore[no-untyped-def]
    """Return the log density of every cell, and its slopes in the probabilities.

    Parameters
    ----------
    p, value : (n_cells, n_levels) arrays
        Probabilities and released counts.
    bound, at_mean : (n_cells,) arrays
        Public sizes, and the log probability of a Poisson count with such a mean at it.
    noise : (3,) array
        Kind, scale and log probability at zero.
    """
    found, slopes = np.empty(len(p)), np.zeros(p.shape)
    parts = np.empty((p.shape[1], 4))
    least, most = exp(LEAST), exp(MOST)
    for c in range(len(p)):
        total, spread, away = 0.0, SMALL, bound[c]
        for k in range(p.shape[1]):
            eta = log(min(max(bound[c] * p[c, k], least), most))
            single = noised_count(value[c, k], eta, -1.0, noise[0], noise[1], noise[2])
            for i in range(4):
                parts[k, i] = single[i]
            total, away, spread = total + single[0], away - single[1], spread + single[2]
        found[c] = total - 0.5 * (LOG_2PI + log(spread) + away * away / spread) - at_mean[c]
        by_spread = 0.5 * (away * away / spread - 1) / spread
        for k in range(p.shape[1]):
            rate = bound[c] * p[c, k]
            if least < rate < most:
                by_eta = parts[k, 1] - rate + away / spread * parts[k, 2] + by_spread * parts[k, 3]
                slopes[c, k] = by_eta / p[c, k]
    return found, slopes


@kernel
def levels_of_private_size(p, value, release, roots, log_weights, starts, ends, numbers):  # type: ignore[no-untyped-def]
    """Return the log density of every cell, and its slopes in the probabilities.

    Parameters
    ----------
    p, value, release : (n_cells, n_levels) arrays
        Probabilities; released counts, and those that tables are of: the log density of others is NaN.
    roots, log_weights : (n_cells, n_nodes) arrays
        Roots of the rates of all counts of a cell, over the largest rate, and logarithms of their weights.
    starts, ends, numbers : arrays
        Tables of all counts of every cell, in the root of the rate over that of the largest.
    """
    found, slopes = np.empty(len(p)), np.zeros(p.shape)
    n_nodes, n_levels = roots.shape[1], p.shape[1]
    root, own = np.empty(n_levels), np.empty(n_levels)
    for c in range(len(p)):
        same = True
        for k in range(n_levels):
            same = same and value[c, k] == release[c, k]
            root[k] = sqrt(max(p[c, k], 0.0))
        top, total = -np.inf, 0.0
        for side in range(2):
            for step in range(n_nodes // 2):
                j = n_nodes // 2 + step if side == 0 else n_nodes // 2 - 1 - step
                term = log_weights[c, j] + _at_rate(c * n_levels, roots[c, j], root, starts, ends, numbers, own)
                if term < top - NEGLIGIBLE:
                    break
                if term > top:  # weights are in units of the largest so far
                    shrink = exp(top - term)
                    top, total = term, total * shrink
                    for k in range(n_levels):
                        slopes[c, k] *= shrink
                weight = exp(term - top)
                total += weight
                for k in range(n_levels):
                    slopes[c, k] += weight * own[k]
        found[c] = top + log(total) if same else np.nan
        for k in range(n_levels):
            slopes[c, k] /= total * max(p[c, k], 1e-300)
    return found, slopes


@part
def _at_rate(first, scale, root, starts, ends, numbers, own):  # type: ignore[no-untyped-def]
    """Log probability of all counts of a cell at one rate of all; write its slopes in the logarithms of shares."""
    total = 0.0
    for k in range(len(root)):
        u = scale * root[k]
        value, own[k], least = look_up(first + k, u, starts, ends, numbers)
        total += value
        if u < 0.99 * least:
            total += 2 * own[k] * log(max(u, 1e-150) / least)
    return total


__all__ = ["levels_of_private_size", "levels_of_public_size"]
