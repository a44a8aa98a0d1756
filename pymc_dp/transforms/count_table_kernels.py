"""Log densities of noised counts of two levels at many probabilities, compiled; imported when a table is made."""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any

import numba
import numpy as np

from pymc_dp.transforms.count_kernels import LAPLACE, WIDE, noised_count
from pymc_dp.transforms.panel_kernels import look_up
from pymc_dp.transforms.wide_noise import gaussian_poisson, laplace_poisson_logp


def _jit(function: Any) -> Any:
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


@_jit
def noised_counts(x: Any, eta: Any, n: Any, noise: float, scale: float, log_zero: float) -> Any:
    """Return log probabilities of noised counts: all arrays (m,)."""
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = noised_count(x[i], eta[i], n[i], noise, scale, log_zero)[0]
    return found


@_jit
def laplace_counts(x: Any, eta: Any, scale: float, log_zero: float) -> Any:
    """Return log probabilities of Poisson counts under wide Laplace noise: all arrays (m,)."""
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = log_zero + laplace_poisson_logp(x[i], eta[i], scale)
    return found


@_jit
def gaussian_counts(x: Any, eta: Any, scale: float, log_zero: float) -> Any:
    """Return log probabilities of Poisson counts under wide Gaussian noise: all arrays (m,)."""
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = log_zero + gaussian_poisson(x[i], eta[i], scale)[0]
    return found


def poisson_counts(x: Any, eta: Any, noise: float, scale: float, log_zero: float) -> Any:
    """Return log probabilities of noised Poisson counts, by what is compiled soonest: all arrays (m,)."""
    if scale < WIDE[int(noise)]:
        return noised_counts(x, eta, np.full(len(x), -1.0), noise, scale, log_zero)
    wide = laplace_counts if noise == LAPLACE else gaussian_counts
    return wide(x, eta, scale, log_zero)


@_jit
def counts_of_private_size(
    cells: Any, p: Any, q: Any, rates: Any, log_weights: Any, most: Any, starts: Any, ends: Any, numbers: Any
) -> Any:
    """Return log densities of two noised counts, integrated over the rate of their sum.

    Parameters
    ----------
    cells, p, q : (m,) arrays
        Number of the cell, and probabilities of the first and the second level.
    rates, log_weights : (n_cells, n_nodes) arrays
    most : (n_cells,) array
        Largest rate.
    starts, ends, numbers : arrays
        Tables of both counts of every cell, in the root of the rate over `most`.
    """
    found, terms = np.empty(len(cells)), np.empty(rates.shape[1])
    for i in range(len(cells)):
        cell, top = cells[i], -np.inf
        for node in range(len(terms)):
            rate = rates[cell, node] / most[cell]
            one = look_up(2 * cell, sqrt(rate * p[i]), starts, ends, numbers)[0]
            two = look_up(2 * cell + 1, sqrt(rate * q[i]), starts, ends, numbers)[0]
            terms[node] = one + two + log_weights[cell, node]
            top = max(top, terms[node])
        total = 0.0
        for node in range(len(terms)):
            total += exp(terms[node] - top)
        found[i] = top + log(total)
    return found


__all__ = ["counts_of_private_size", "noised_counts", "poisson_counts"]
