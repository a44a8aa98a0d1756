"""The distribution of released draws given the parameters of the table, as graphs: for a private model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable
from pytensor.tensor.linalg import cholesky, solve_triangular

from pymc_dp.from_draws.mechanism import Mechanism
from pymc_dp.from_draws.public_rows import RIDGE
from pymc_dp.inspection.batched import vectorized
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.observed import held

NEGLIGIBLE = 1e-11
"""Singular values, as a share of the largest, that are left out of the table of log-likelihoods."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawsDensity:
    """Density and random draws of what one posterior sample released.

    Attributes
    ----------
    mechanism : Mechanism
    left, right : (n_points, r), (r, n_rows) arrays
        Their product is the mechanism's table: log-likelihoods are smooth, so that r is small.
    """

    mechanism: Mechanism
    left: Array
    right: Array

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """Find the directions in which log-likelihoods vary over points."""
        left, size, right = np.linalg.svd(mechanism.table, full_matrices=False)
        kept = max(1, int((size > NEGLIGIBLE * size[0]).sum()))
        return cls(mechanism=mechanism, left=left[:, :kept] * size[:kept], right=right[:kept])

    @property
    def signature(self) -> str:
        """Gufunc signature: all free variables, the score of the table, and temperatures, to the released draws."""
        return "(p),(z),(k,p)->(k,p)"

    def logp(
        self, value: TensorVariable, flat: TensorVariable, latent: TensorVariable, temperatures: TensorVariable
    ) -> TensorVariable:
        """Log density of the released draws, up to a constant: () tensor.

        Parameters
        ----------
        value : (k, n_scalars) tensor
            Released draws, on the scale of the free variables.
        flat : (n_scalars,) tensor
            The free variables.
        latent : (d,) tensor
            Standard normal: the score of the table, in units of its standard deviation.
        temperatures : (k, n_scalars) tensor
            They tell PyMC the shape of the release; their value is that of the mechanism.
        """
        found, given = self.mechanism, self.mechanism.given
        scores, (drawn, rows) = held(found.rows.scores), self._rows
        logs = found.model.density.each_row(flat, drawn) + held(found.rows.base)
        weights = pt.exp(logs - pt.logsumexp(logs))
        centred = scores - weights @ scores
        information = centred.T @ (centred * weights[:, None])
        root = cholesky(information + RIDGE * pt.max(pt.abs(information)) * pt.eye(len(found.points[0])))
        turned = solve_triangular(root, (centred * weights[:, None]).T, lower=True).T @ latent
        shares = given.power * (given.n_rows * weights + np.sqrt(given.n_rows) * turned)
        at_points = held(self.left) @ (held(self.right) @ shares)
        one: Any = pt.vector("one", shape=(len(given.flat[0]),), dtype="float64")
        each = vectorized(found.model.density.each_row(one, rows), {one: value}) - held(found.origin)
        normalizer = pt.logsumexp(at_points + held(found.volumes))
        return (each @ shares).sum() - given.count * normalizer

    def random(self, *parameters: Array, rng: np.random.Generator, size: Any = None) -> Array:
        """Draw what might have been released: points of the grid. Never a release of data."""
        found, count = self.mechanism, self.mechanism.given.count
        batch = np.broadcast_shapes(
            () if size is None else tuple(np.atleast_1d(size)), *(np.shape(item)[:-1] for item in parameters[:2])
        )
        flat, latent = (np.broadcast_to(item, (*batch, np.shape(item)[-1])) for item in parameters[:2])
        drawn = np.empty((*batch, count, flat.shape[-1]))
        for place in np.ndindex(*batch):
            level, slopes = found.scores(found.rows.weights(found.model.density, flat[place][None]))
            logs = (level[0] + slopes[0] @ latent[place])[: len(found.points)] + found.volumes
            chosen = np.argmax(logs + rng.gumbel(size=(count, len(logs))), axis=1)
            drawn[place] = found.flat[chosen]
        return drawn

    @cached_property
    def _rows(self) -> tuple[list[Any], list[Any]]:
        """Rows as drawn and as held, which a private model keeps: they are simulated."""
        rows = self.mechanism.rows
        return _shared(rows.drawn), _shared(rows.held)


def _shared(rows: Sequence[Array]) -> list[Any]:
    return [pytensor.shared(row, shape=(None, *row.shape[1:])) for row in rows]


__all__ = ["DrawsDensity"]
