"""Free variables of a model on their own scale and on that of its value variables, many points at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model

from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.batched import vectorized
from pymc_dp.inspection.flat_vector import parts_of
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.one_row import frozen_shared
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.simulation.prior import in_value_space
from pymc_dp.step_methods.numpy_functions import compiled

EDGE = 20.0
"""Where a point on the edge of a support lies on the scale of value variables: at infinity in truth."""


class Coordinates:
    """Both scales of the free variables of a model without rows, each as one flat vector.

    Parameters
    ----------
    prior_model : pymc.Model
    priors : sequence of Prior
        Of the prior model, in its order.
    """

    def __init__(self, prior_model: Model, priors: Sequence[Prior]) -> None:
        self.prior_model, self.priors = prior_model, tuple(priors)
        self._sizes = [value.size for value in self._starts]

    @property
    def _starts(self) -> list[Array]:
        start = self.prior_model.initial_point(0)
        return [np.asarray(start[self.prior_model.rvs_to_values[rv].name]) for rv in self.prior_model.free_RVs]

    @property
    def dimension(self) -> int:
        """Number of scalars of all value variables."""
        return int(sum(self._sizes))

    def own(self, points: Array) -> tuple[Array, Array]:
        """Return points of value variables on the scale of the free variables, and the log Jacobian there.

        Parameters
        ----------
        points : (n, dimension) array

        Returns
        -------
        (n, n_scalars), (n,) arrays
        """
        with np.errstate(all="ignore"):
            flat, jacobian = self._own(points)
        return flat, jacobian

    def values(self, flat: Array) -> Array:
        """Return points of free variables, (n, n_scalars), on the scale of value variables: (n, dimension)."""
        with np.errstate(all="ignore"):
            found = np.stack([np.concatenate([np.ravel(part) for part in self._values(*self.split(one))])
                              for one in flat])  # fmt: skip
        return np.clip(np.nan_to_num(found, nan=0.0, posinf=EDGE, neginf=-EDGE), -1e300, 1e300)

    def split(self, flat: Array) -> list[Array]:
        """Return the free variables that a flat vector holds."""
        ends = np.cumsum([prior.size for prior in self.priors])[:-1]
        parts = zip(np.split(np.asarray(flat), ends), self.priors, strict=True)
        return [part.reshape(prior.shape).astype(prior.variable.type.dtype) for part, prior in parts]

    def named(self, flat: Array) -> dict[str, Array]:
        """Return the free variables that a flat vector holds, by name."""
        return {prior.name: part for prior, part in zip(self.priors, self.split(flat), strict=True)}

    @cached_property
    def _own(self) -> Any:
        flat: Any = pt.vector("flat", shape=(self.dimension,), dtype="float64")
        values = [self.prior_model.rvs_to_values[rv] for rv in self.prior_model.free_RVs]
        parts = parts_of(flat, values, [start.shape for start in self._starts])
        own = self.prior_model.replace_rvs_by_values(self.prior_model.free_RVs)
        jacobian = self.prior_model.varlogp - self.prior_model.varlogp_nojac
        graph = pt.concatenate([pt.flatten(one).astype("float64") for one in own])
        found = [frozen_shared(one, ()) for one in rebuild([graph, jacobian], parts)[0]]
        points = pt.matrix("points", shape=(None, self.dimension), dtype="float64")
        many = vectorized(found, {flat: points})
        return compiled([points], [_with_rows(one, ndim, points) for one, ndim in zip(many, (2, 1), strict=True)])

    @cached_property
    def _values(self) -> Any:
        inputs = {
            rv: pt.TensorType(rv.type.dtype, prior.shape)(rv.name)
            for rv, prior in zip(self.prior_model.free_RVs, self.priors, strict=True)
        }
        graphs = rebuild([in_value_space(self.prior_model, rv) for rv in self.prior_model.free_RVs], inputs)[0]
        return plain_function(list(inputs.values()), graphs)


def _with_rows(graph: Any, ndim: int, points: Any) -> Any:
    """Repeat for every point what no point enters."""
    return graph if graph.type.ndim == ndim else pt.broadcast_to(graph, (points.shape[0], *graph.shape))


__all__ = ["Coordinates"]
