"""Likelihoods with latents that are integrated out: what rows say at all points of a quadrature, weighed once."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from pymc_dp.gradients.function import Function
from pymc_dp.inspection.rows import Array

ENTRIES = 2**18
"""Numbers of some rows, values and points at a time: few enough for a cache."""
LEAST, NONE = -300.0, 1e-130
"""Logarithm of a share, over the largest, that counts as none, and a share less than which does: such take long."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ByPoints:
    """Scores and log-likelihoods of rows and values: (n, n_values, q) and (n, n_values).

    Attributes
    ----------
    logs : Function
        (predictors, *columns, values) to the log-likelihood with the weight of each point, (n, n_values, n_points).
    slopes : Function
        (predictors, *columns, values, shares) to the sum over points of their shares (n, n_values, n_points) times the
        derivatives of those, (n, n_values, q).
    points : int
        How many there are.

    Notes
    -----
    With log L = log Σ_k exp(l_k) the score is Σ_k c_k l_k', c_k = exp(l_k) / L. Exponentials take most of the time:
    here each is taken once, and many at a time.
    """

    logs: Function
    slopes: Function
    points: int

    @property
    def places(self) -> frozenset[int]:
        """Inputs that are needed."""
        return self.logs.places | self.slopes.places

    def __call__(self, predictors: Array, *given: Array) -> list[Array]:
        """Return scores and log-likelihoods; arguments are those of `logs`, values the same ones for all rows."""
        *columns, values = given
        size, found = max(1, ENTRIES // max(1, len(values) * self.points)), list[tuple[Array, Array]]()
        for start in range(0, max(1, len(predictors)), size):
            block = [one[start : start + size] for one in (predictors, *columns)]
            (logs,) = self.logs(*block, values)
            shares, total = weighed(logs)
            found.append((self.slopes(*block, values, shares)[0], total))
        return [np.concatenate(part) for part in zip(*found, strict=True)]


def weighed(logs: Array) -> tuple[Array, Array]:
    """Return shares that add up to 1 along the last axis, given their logarithms less a number, and that number."""
    flat = np.ascontiguousarray(logs, dtype=np.float64).reshape(-1, logs.shape[-1])
    shares, total = np.empty(flat.shape), np.empty(len(flat))
    _lowered(flat, shares, total)
    np.exp(shares, out=shares)  # many at a time, which Numba does not do
    _divided(shares, total)
    return shares.reshape(logs.shape), total.reshape(logs.shape[:-1])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _lowered(logs, found, total):  # type: ignore[no-untyped-def]
    """Write logarithms less the largest one, which is finite if any is; what is next to 0 is not written as less."""
    for row in range(len(logs)):
        top = logs[row, 0]
        for k in range(logs.shape[1]):
            top = top if top > logs[row, k] else logs[row, k]
        total[row] = top
        top = top if np.isfinite(top) else 0.0
        for k in range(logs.shape[1]):
            low = logs[row, k] - top
            found[row, k] = LEAST if low < LEAST else low  # NaN stays


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _divided(shares, total):  # type: ignore[no-untyped-def]
    for row in range(len(shares)):
        whole = 0.0
        for k in range(shares.shape[1]):
            whole += shares[row, k]
        total[row] += np.log(whole)
        for k in range(shares.shape[1]):
            share = shares[row, k]
            shares[row, k] = 0.0 if share < NONE else share / whole  # NaN stays


__all__ = ["ByPoints", "weighed"]
