"""Log probabilities of many noised counts, compiled; imported when a table is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from pymc_dp.transforms.count_kernels import LAPLACE, WIDE, gaussian_poisson, laplace_poisson_logp, noised_count
from pymc_dp.transforms.jit import kernel


@kernel
def noised_counts(x: Any, eta: Any, n: Any, noise: float, scale: float, log_zero: float) -> Any:
    """Return log probabilities of noised counts: all arrays (m,)."""
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = noised_count(x[i], eta[i], n[i], noise, scale, log_zero)[0]
    return found


@kernel
def laplace_counts(x: Any, eta: Any, scale: float, log_zero: float) -> Any:
    """Return log probabilities of Poisson counts under wide Laplace noise: all arrays (m,)."""
    found = np.empty(len(x))
    for i in range(len(x)):
        found[i] = log_zero + laplace_poisson_logp(x[i], eta[i], scale)
    return found


@kernel
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


__all__ = ["noised_counts", "poisson_counts"]
