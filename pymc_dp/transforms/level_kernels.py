"""Log density of noised counts of all levels, cell by cell: compiled, see `noise_aware.counts_logp`."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np

from pymc_dp.families.normal_sums import LOG_2PI, SMALL
from pymc_dp.transforms.count_kernels import noised_count
from pymc_dp.transforms.elementary_kernels import exponential
from pymc_dp.transforms.jit import inlined, kernel, sums
from pymc_dp.transforms.noised_count import LEAST, MOST
from pymc_dp.transforms.panel_kernels import at_panel


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
def levels_of_private_size(p, value, cells, release, roots, log_weights, starts, ends, numbers):  # type: ignore[no-untyped-def]
    """Return the log density of some cells, and its slopes in the probabilities.

    Parameters
    ----------
    p, value : (m, n_levels) arrays
        Probabilities and released counts.
    cells : (m,) array
        Their numbers.
    release : (n_cells, n_levels) array
        Counts that tables are of: the log density of others is NaN.
    roots, log_weights : (n_cells, n_nodes) arrays
        Roots of the rates of all counts of a cell, over the largest rate and rising; logarithms of their weights.
    starts, ends, numbers : arrays
        Tables of all counts of every cell, in the root of the rate over that of the largest.
    """
    found, slopes = np.empty(len(p)), np.empty(p.shape)
    n_nodes, n_levels = roots.shape[1], p.shape[1]
    terms, own = np.empty(n_nodes), np.empty((n_levels, n_nodes))
    for i in range(len(p)):
        c, same = int(cells[i]), True
        level, held, first = log_weights[c], release[c], c * n_levels
        for j in range(n_nodes):
            terms[j] = level[j]
        for k in range(n_levels):
            same = same and value[i, k] == held[k]
            _add_level(first + k, sqrt(max(p[i, k], 0.0)), roots[c], starts, ends, numbers, terms, own[k])
        top, total = _weigh(terms)
        found[i] = top + log(total) if same else np.nan
        for k in range(n_levels):
            slopes[i, k] = _dot(terms, own[k]) / (total * max(p[i, k], 1e-300))
    return found, slopes


@inlined
def _add_level(row, root, roots, starts, ends, numbers, terms, own):  # type: ignore[no-untyped-def]
    """Add the log probability of a count at all rates of its cell; write its slopes in the logarithm of its share."""
    panel, last = int(starts[row]), int(starts[row + 1]) - 1
    for j in range(len(terms)):
        u = roots[j] * root  # larger ones follow
        while panel < last and ends[panel] < u:
            panel += 1
        value, own[j], least = at_panel(panel, u, numbers)
        terms[j] += value
        if u < 0.99 * least:
            terms[j] += 2 * own[j] * log(max(u, 1e-150) / least)


@sums
def _weigh(terms):  # type: ignore[no-untyped-def]
    """Replace logarithms of weights by weights in units of the largest; return its logarithm, and their sum."""
    top, total = terms[0], 0.0
    for j in range(len(terms)):
        top = max(top, terms[j])
    for j in range(len(terms)):
        terms[j] = exponential(terms[j] - top)
        total += terms[j]
    return top, total


@sums
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


__all__ = ["levels_of_private_size", "levels_of_public_size"]
