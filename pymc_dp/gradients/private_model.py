"""The private model: the model's own priors, and one normal that stands for its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.gradients.walk import Found
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import TableRecord
from pymc_dp.transforms.observed import add_release, held

WIDE = 64
"""Columns of a matrix above which a product with a vector is left to a library, which takes seconds to compile in."""
LEAST_VARIANCE = 0.05
"""Of the scores, as a share of their curvature: what simulated rows say below that is not used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Quadratic:
    """What is known of a log-likelihood: ``slope | η ~ N(curvature η / scale, covariance)``.

    Attributes
    ----------
    slope : (d,) array
    curvature, covariance : (d, d) array
    scale : (d,) array
        D: the walk went in coordinates η / D.
    """

    slope: Array
    curvature: Array
    covariance: Array
    scale: Array

    @classmethod
    def of(cls, found: Found, scale: Array, shares: Array | None = None) -> Quadratic:
        """Return what a walk has found.

        Parameters
        ----------
        found : Found
        scale : (d,) array
        shares : (d,) array, optional
            Variance of the clipped scores over their curvature, by parameter, from public made-up rows. None: 1, which
            it never exceeds, so that intervals are wider.
        """
        factor = np.ones_like(scale) if shares is None else np.sqrt(np.clip(shares, LEAST_VARIANCE, 1.0))
        covariance = found.curvature * np.outer(factor, factor) + found.noise
        return cls(slope=found.slope, curvature=found.curvature, covariance=covariance, scale=scale)

    @property
    def table(self) -> Array:
        """Everything in one array, (d, 2 d + 2), for a trace and a file."""
        return np.column_stack([self.slope, self.scale, self.curvature, self.covariance])

    @classmethod
    def from_table(cls, table: Array) -> Quadratic:
        """Return what `table` was made of."""
        size = len(table)
        return cls(
            slope=table[:, 0], scale=table[:, 1], curvature=table[:, 2 : size + 2], covariance=table[:, size + 2 :]
        )

    def posterior(self, mean: Array, precision: Array) -> tuple[Array, Array]:
        """Return mean and covariance of the parameters under a normal prior.

        Parameters
        ----------
        mean : (d,) array
        precision : (d, d) array
        """
        bent = self.curvature / self.scale
        weight = np.linalg.solve(self.covariance, bent)
        covariance = np.linalg.inv(precision + bent.T @ weight)
        return covariance @ (precision @ mean + weight.T @ self.slope), covariance

    def around(self, centre: Array, precision: Array) -> Quadratic:
        """Return it times a normal distribution of η / D: what holds near a position is not relied on farther away.

        Parameters
        ----------
        centre : (d,) array
        precision : (d, d) array
            Positive definite.
        """
        weight = np.linalg.solve(self.covariance, self.curvature)
        known = self.curvature.T @ weight + precision
        known = (known + known.T) / 2
        slope = weight.T @ self.slope + precision @ centre
        return Quadratic(slope=slope, curvature=known, covariance=known, scale=self.scale)

    @property
    def root(self) -> Array:
        """Lower triangular Cholesky factor of the covariance."""
        return np.asarray(np.linalg.cholesky((self.covariance + self.covariance.T) / 2))


def columns_of(labels: Sequence[str]) -> tuple[str, ...]:
    """Name the columns of `Quadratic.table`."""
    return ("slope", "scale", *(f"curvature {one}" for one in labels), *(f"covariance {one}" for one in labels))


class SlopeDensity:
    """Density of a released table given the parameters: normal in its first column, whose noise the others describe."""

    signature = "(d),(d,d),(d,d),(d,d),(),(d,k)->(d,k)"

    @staticmethod
    def logp(
        value: Variable,
        parameters: Variable,
        bent: Variable,
        white: Variable,
        root: Variable,
        constant: Variable,
        _: Variable,
    ) -> Variable:
        """Return the log density of the slope; `bent` is W H / D, `white` W: Wᵀ W is the inverse of the covariance."""
        residual = product(white, value[:, 0]) - product(bent, parameters)
        return constant - 0.5 * (residual**2).sum()

    @staticmethod
    def random(
        parameters: Array,
        bent: Array,
        white: Array,
        root: Array,
        constant: Array,
        table: Array,
        rng: np.random.Generator,
        size: Any = None,
    ) -> Array:
        """Draw slopes; what else is in the table stays as it is."""
        shape = () if size is None else tuple(np.atleast_1d(size).astype(int))
        mean = np.einsum("...ij,...jk,...k->...i", root, bent, parameters)
        noise = np.einsum("...ij,...j->...i", root, rng.normal(size=(*shape, root.shape[-1])))
        found = np.array(np.broadcast_to(table, (*shape, *table.shape[-2:])))
        found[..., 0] = mean + noise
        return found


def product(matrix: Any, vector: Any) -> Variable:
    """Multiply a matrix by a vector, written out where there are few columns."""
    width = matrix.type.shape[-1]
    return matrix @ vector if width is None or width > WIDE else (matrix * vector).sum(axis=-1)


def observe_gradients(model: Model, record: TableRecord, parameters: Variable, quadratic: Quadratic) -> None:
    """Make what was released the observed variable of a model that has the priors of the parameters.

    Parameters
    ----------
    model : pymc.Model
        With the coordinates of the table.
    record : TableRecord
    parameters : Variable
        (d,) graph over the free variables of `model`.
    quadratic : Quadratic

    Notes
    -----
    All numbers are held inputs of the density, none is a constant: another release of the same model compiles nothing.
    """
    root = quadratic.root
    white = np.linalg.inv(root)
    bent = white @ quadratic.curvature / quadratic.scale
    constant = np.log(np.diag(white)).sum() - len(white) / 2 * np.log(2 * np.pi)
    given = [parameters, *map(held, (bent, white, root, constant, quadratic.table))]
    with model:
        add_release(record, given, SlopeDensity(), quadratic.table)


__all__ = ["Quadratic", "SlopeDensity", "columns_of", "observe_gradients"]
