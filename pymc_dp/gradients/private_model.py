"""The private model: the model's own priors, and one normal that stands for its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.gradients.walk import Found
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.observed import held

NAME = "gradients"
PARAMETER = "gradients_parameter"
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
        covariance = found.curvature * np.outer(factor, factor) + found.noise * np.eye(len(scale))
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


def observe_gradients(model: Model, parameters: Variable, quadratic: Quadratic, labels: Sequence[str]) -> None:
    """Make what was released the observed variable of a model that has the priors of the parameters.

    Parameters
    ----------
    model : pymc.Model
    parameters : Variable
        (d,) graph over the free variables of `model`.
    quadratic : Quadratic
    labels : sequence of str
        Names of the parameters.

    Notes
    -----
    All numbers are held inputs of the density, none is a constant: another release of the same model compiles nothing.
    """
    model.add_coords({PARAMETER: tuple(labels)})
    with model:
        slope = held(quadratic.curvature) @ (parameters / held(quadratic.scale))
        chol = held(np.linalg.cholesky((quadratic.covariance + quadratic.covariance.T) / 2))
        pm.MvNormal(NAME, mu=pt.as_tensor(slope), chol=chol, dims=PARAMETER, observed=held(quadratic.slope))


__all__ = ["NAME", "PARAMETER", "Quadratic", "observe_gradients"]
