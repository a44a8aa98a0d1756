"""What the density of a release needs to know of a kind of noise."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_dp.inspection.rows import Array

Tensors = list[TensorVariable]


class SumNoise(ABC):
    """One kind of independent noise on sums, integrated against the distribution of the exact sum."""

    @abstractmethod
    def log_density(self, distance: TensorVariable, scale: TensorVariable) -> TensorVariable:
        """Log density of the noise alone."""

    @abstractmethod
    def reach(self, scale: TensorVariable) -> TensorVariable:
        """Distance beyond which the noise is of no account."""

    @abstractmethod
    def sums(
        self, value: Tensors, mean: Tensors, covariance: list[Tensors], scales: Tensors, n: TensorVariable
    ) -> TensorVariable:
        """Log density of noised sums over `n` rows whose statistics have this mean and covariance.

        Normal by the central limit theorem, with independent noise on every sum.
        """


def legendre(count: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes on [0, 1], and their weights."""
    x, w = np.polynomial.legendre.leggauss(count)
    return 0.5 * (x + 1), 0.5 * w


__all__ = ["SumNoise", "Tensors", "legendre"]
