"""Polynomials of the linear predictor that stand in for the log-likelihood of a row, and how far they are off.

A Bernoulli or Poisson response has the log-likelihood A(η) + y B(η): A is approximated by a quadratic and B by a line,
in Chebyshev polynomials on [-R, R], so that sums of products are all that it needs to know of the rows.

References
----------
Huggins, Adams, Broderick (2017), PASS-GLM: polynomial approximate sufficient statistics for scalable Bayesian GLM
inference, Advances in Neural Information Processing Systems 30, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.gram import Source
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array

LIKELIHOODS = Literal["normal", "bernoulli", "poisson"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Response:
    """Likelihood of the response.

    Attributes
    ----------
    likelihood : {"normal", "bernoulli", "poisson"}
    mean : callable
        Linear predictor to probability or rate: an elementwise function of tensors. Not used for a normal response,
        whose mean is the linear predictor.
    """

    likelihood: LIKELIHOODS
    mean: Callable[[Any], Any] = lambda eta: eta


CHEBYSHEV_NODES = 64
GRID = 2001


def row_terms(response: Response, eta: Array) -> tuple[Array, Array]:
    """A and B of the log-likelihood ``A(η) + y B(η)`` of a row, without what is free of η."""
    argument = pt.vector("eta")
    mean = plain_function([argument], response.mean(argument))(eta)
    if response.likelihood == "bernoulli":
        p = np.clip(mean, 1e-15, 1 - 1e-15)
        return np.log1p(-p), np.log(p) - np.log1p(-p)
    rate = np.clip(mean, 1e-300, None)
    return -rate, np.log(rate)


def quadratic(response: Response, reach: float) -> tuple[Array, Array]:
    """Coefficients, constant first, of the quadratic for A and of the line for B on ``|η| <= reach``."""
    x = np.cos(np.pi * (np.arange(CHEBYSHEV_NODES) + 0.5) / CHEBYSHEV_NODES)
    found = []
    for values, degree in zip(row_terms(response, reach * x), (2, 1), strict=True):
        basis = np.cos(np.outer(np.arange(degree + 1), np.arccos(x)))
        series = 2 * basis @ values / CHEBYSHEV_NODES
        series[0] /= 2
        power = np.polynomial.chebyshev.cheb2poly(series)
        found.append(power / reach ** np.arange(len(power)))
    return found[0], found[1]


def quadratic_error(response: Response, source: Source, reach: float) -> float:
    """Worst error in nats of the quadratic for one row whose linear predictor is within `reach`; 0 for a normal one.

    The error is linear in y: it is worst at an end of the bounds.
    """
    if response.likelihood == "normal":
        return 0.0
    eta = np.linspace(-reach, reach, GRID)
    errors = [
        np.polynomial.polynomial.polyval(eta, fitted) - values
        for fitted, values in zip(quadratic(response, reach), row_terms(response, eta), strict=True)
    ]
    (centre,), (half,) = source.centres, source.halves
    return max(float(np.abs(errors[0] + y * errors[1]).max()) for y in (centre - half, centre + half))


__all__ = ["Response", "quadratic", "quadratic_error"]
