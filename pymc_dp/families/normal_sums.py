"""Density of sums that are normal by the central limit theorem, by a Cholesky factor per cell."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

LOG_2PI = float(np.log(2 * np.pi))
SMALL = 1e-10
"""Least variance of an exact sum."""


def normal_logp(z: TensorVariable, covariance: TensorVariable, variances: TensorVariable) -> TensorVariable:
    """Log density at `z` (..., n) of a normal vector with mean 0 and this covariance plus independent variances."""
    count = z.type.shape[-1]
    diagonal = (variances + SMALL)[..., None] * np.eye(count)
    root = pt.linalg.cholesky(covariance + diagonal, lower=True)
    solved = pt.linalg.solve_triangular(root, z, lower=True, b_ndim=1)
    log_root = pt.log(pt.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    return -0.5 * (solved**2).sum(axis=-1) - log_root - 0.5 * count * LOG_2PI


__all__ = ["LOG_2PI", "SMALL", "normal_logp"]
