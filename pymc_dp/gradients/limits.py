"""Public constants of a sum over rows: its coordinates, and how large one row may be in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp.gradients.levels import Levels
from pymc_dp.inspection.rows import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CLIP_NORM, CLIP_CURVATURE = 1.0, 1.5
"""C and C_F of a whitened sum: over the root mean square of the norms of scores, and the mean size of curvatures."""
UNLIMITED = 1e300


@dataclass(frozen=True, kw_only=True, eq=False)
class Limits:
    """Public constants of a sum over rows.

    Attributes
    ----------
    scale : (d,) array
        D: walks are in coordinates η / D.
    clip_norm, clip_curvature : float
        C and C_F, in the coordinates of the sum.
    basis : (d, d) array or None
        B: sums are of B D s, with s the score of a row. Symmetric and positive definite. None: the identity.
    levels : Levels or None
        Parameters that a row meets one at a time; where there are any, B does not mix them.
    """

    scale: Array
    clip_norm: float
    clip_curvature: float
    basis: Array | None = None
    levels: Levels | None = None

    @cached_property
    def _back(self) -> Array:
        return np.eye(len(self.scale)) if self.basis is None else np.linalg.inv(self.basis)

    @cached_property
    def sparse_basis(self) -> csr_array:
        """B, of which most entries are 0 where there are levels."""
        from scipy.sparse import csr_array  # a fifth of a second, for who releases gradients

        return csr_array(self.basis)

    def score(self, found: Array) -> Array:
        """Return a sum of scores in the coordinates of the walk."""
        return np.asarray(self._back @ found)

    def curvature(self, found: Array) -> Array:
        """Return a sum of curvatures, or a covariance of scores, in the coordinates of the walk."""
        turned = self._back @ found @ self._back
        return np.asarray((turned + turned.T) / 2)

    def whitened(self, curvature: Array, deviation: float, n_rows: int) -> Limits:
        """Return coordinates in which the curvature of a sum is about the same in all directions, and limits there.

        Parameters
        ----------
        curvature : (d, d) array
            Of the sum, in the coordinates of the walk: positive definite, and public.
        deviation : float
            Of the noise on its entries off the diagonal, in the coordinates of this sum: what is below that is not
            blown up.
        n_rows : int
            How many rows there are, or may be.

        Notes
        -----
        Noise of the same size in all directions wastes most of the budget where curvatures differ: a saturated logistic
        regression has a hundredth of the curvature along its coefficients. With B = √n M^-1/2, M the curvature and its
        noise, the mean of ‖B s‖² over the rows is t = tr(B H B) / n, about the number of parameters, in any units of
        the columns and whatever their bounds. So C = √t, and C_F = 1.5 t, for the curvature of a row with one predictor
        has the size of its mean squared score.

        With `levels`, M is in blocks of what is indexed alike, and the mean block stands for all: then rows that meet
        few parameters have few coordinates, and all rows of an array are of about the same size, whether their level is
        common or rare. Parameters that all rows meet are a small part of so many; they are raised (`Levels.raised`).
        """
        size, blocks = len(self.scale), np.array(float(len(self.scale)))
        if self.levels is not None:
            curvature, blocks = self.levels.averaged(curvature), self.levels.together.sum(axis=1)
        floor = self.curvature(np.diag(np.full(size, deviation) * np.sqrt(blocks)))
        if self.levels is not None:
            floor = self.levels.averaged(floor)
        values, vectors = np.linalg.eigh(curvature + floor)
        values = np.maximum(values, np.finfo(float).eps * values[-1])
        basis = (vectors * np.sqrt(n_rows / values)) @ vectors.T
        if self.levels is not None:
            basis = np.where(self.levels.together, basis, 0.0)
            factor = self.levels.raised(np.diag(basis @ curvature @ basis))
            basis *= factor  # alike within a block
        size_of_rows = float(np.trace(basis @ curvature @ basis)) / n_rows
        size_of_rows = max(size_of_rows, float(np.finfo(float).eps))  # what is nearly singular may round below 0
        return Limits(
            scale=self.scale,
            basis=basis,
            clip_norm=CLIP_NORM * math.sqrt(size_of_rows),
            clip_curvature=CLIP_CURVATURE * size_of_rows,
            levels=self.levels,
        )


__all__ = ["CLIP_CURVATURE", "CLIP_NORM", "UNLIMITED", "Limits"]
