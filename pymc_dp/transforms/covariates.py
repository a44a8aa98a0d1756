"""A model of private predictors: their sizes, means and covariance within cells, as unknown numbers of the model.

The unknown numbers are those of the rows at hand (their number, mean and covariance), not of a population: given them,
exact sums of predictors and of their products are known, and a release of these differs by noise alone. Their prior is
weakly informative in units of the public bounds: means are normal and standard deviations half-normal, with a scale of
half of what bounds allow; correlations are uniform over correlation matrices.

References
----------
Lewandowski, Kurowicka, Joe (2009), Generating random correlation matrices based on vines and extended onion method,
J. Multivariate Anal. 100(9), section 2.4; Bernstein, Sheldon (2019), doi 10.48550/arXiv.1910.13879, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.rows import Array

PRIOR_SCALE = 0.5
"""Of means and standard deviations, in units of what the bounds allow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Of the predictors of the rows of every cell, in scaled units; tensors or arrays.

    Attributes
    ----------
    sizes : (n_cells,)
    means : (n_cells, d)
        Zeros where a statistic has no `constant`.
    within : (n_cells or 1, d, d)
        Covariance within a cell, divided by the size; second moments where there is no `constant`.
    """

    sizes: Any
    means: Any
    within: Any

    @classmethod
    def of_gram(cls, gram: Array) -> Moments:
        """Take known sums of products of (1, t), a (n_cells, 1 + d, 1 + d) array."""
        sizes = gram[:, 0, 0]
        share = 1 / np.maximum(sizes, 1)
        means = gram[:, 0, 1:] * share[:, None]
        within = gram[:, 1:, 1:] * share[:, None, None] - means[:, :, None] * means[:, None, :]
        return cls(sizes=sizes, means=means, within=within)


@dataclass(frozen=True, kw_only=True, eq=False)
class CovariateModel:
    """Prior of the moments of private predictors.

    Attributes
    ----------
    statistic : GramSums
    sizes : (n_cells,) array, or (1,) array
        Public sizes; else the number of rows of all cells together, or a bound on it.
    at_most : bool
        Whether `sizes` is a bound. A split of the rows into cells (and into rows beyond those at hand) is uniform.
    """

    statistic: GramSums
    sizes: Array
    at_most: bool = False

    @property
    def blocks(self) -> int:
        """Number of covariance matrices."""
        return len(self.statistic.cells) if self.statistic.apart else 1

    @property
    def parts(self) -> int:
        """Number of parts that rows are split into; 0 where sizes are public."""
        return 0 if self.statistic.sizes_known else len(self.statistic.cells) + self.at_most

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the unknown numbers, in the order in which they are passed on."""
        n_cells, d = len(self.statistic.cells), self.statistic.width
        found: dict[str, tuple[int, ...]] = {"shares": (self.parts,)} if self.parts > 1 else {}
        if self.statistic.constant:
            found["means"] = (n_cells, d)
        found["sds"] = (self.blocks, d)
        if d > 1:
            found["partial"] = (self.blocks, d * (d - 1) // 2)
        return found

    @property
    def scales(self) -> Array:
        """(d,) array: scale of the prior of each predictor. In a ball squares of all add up to 1 at most."""
        found = [
            PRIOR_SCALE / np.sqrt(source.width) if source.ball else PRIOR_SCALE
            for source in self.statistic.sources
            for _ in range(source.width)
        ]
        return np.array(found)

    def latents(self, name: str) -> dict[str, TensorVariable]:
        """Add the unknown numbers to the model of the context, as free variables called ``<name>_...``."""
        scales = self.scales
        alpha = _vine(self.statistic.width)
        make = {
            "shares": lambda label, shape: pm.Dirichlet(label, np.ones(shape)),
            "means": lambda label, shape: pm.Normal(label, 0.0, scales, shape=shape),
            "sds": lambda label, shape: pm.HalfNormal(label, scales, shape=shape),
            "partial": lambda label, shape: pm.Beta(label, alpha, alpha, shape=shape),
        }
        return {key: make[key](f"{name}_{key}", shape) for key, shape in self.shapes.items()}

    def moments(self, latents: dict[str, TensorVariable]) -> Moments:
        """Return the moments that the unknown numbers stand for."""
        n_cells, d = len(self.statistic.cells), self.statistic.width
        if self.statistic.sizes_known:
            sizes = pt.as_tensor(self.sizes.astype(float))
        elif "shares" in latents:
            sizes = float(self.sizes[0]) * latents["shares"][:n_cells]
        else:
            sizes = pt.as_tensor(self.sizes.astype(float))
        root = latents["sds"][:, :, None] * correlation_root(latents.get("partial"), self.blocks, d)
        return Moments(
            sizes=sizes,
            means=latents["means"] if self.statistic.constant else pt.zeros((n_cells, d)),
            within=root @ root.mT,
        )


def correlation_root(partial: TensorVariable | None, blocks: int, d: int) -> TensorVariable:
    """Cholesky factors of correlation matrices, (blocks, d, d), from partial correlations (1 + r) / 2 by rows.

    Entry j of row i is ``r_ij prod_{k<j} sqrt(1 - r_ik^2)``; the diagonal is what is left of the row's length.
    """
    if partial is None:
        return pt.ones((blocks, 1, 1))
    row, column = np.tril_indices(d, -1)
    square = pt.full((blocks, d, d), 0.5)
    square = square[:, row, column].set(partial)
    below = np.tril(np.ones((d, d)), -1)
    # An entry on or above the diagonal has r = 0; on the diagonal 1 takes its place.
    left = pt.sqrt(4 * square * (1 - square) + 1e-14)
    before = pt.concatenate([pt.ones((blocks, d, 1)), pt.cumprod(left, axis=2)[:, :, :-1]], axis=2)
    return before * ((2 * square - 1) * below + np.eye(d))


def _vine(d: int) -> Array:
    """Beta shapes of partial correlations, by rows of the lower triangle: of a uniform correlation matrix."""
    _, column = np.tril_indices(d, -1)
    return (d - column) / 2


__all__ = ["CovariateModel", "Moments", "correlation_root"]
