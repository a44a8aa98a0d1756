"""Draws of one posterior sample as a trace holds them, and what its record says about how they were made.

Free variables of a model on their own scale and on that of its value variables, many points at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pytensor.tensor as pt
import xarray as xr
from pymc import Model

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, TraceError
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.one_row import frozen_shared, parts_of
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.row_density import vectorized
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.simulation.prior import in_value_space
from pymc_dp.step_methods.numpy_functions import compiled
from pymc_dp.trace.chains import released_draws


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenDraws:
    """Released draws and their mechanism.

    Attributes
    ----------
    flat : (k, n_scalars) array
        All draws of all chains, each free variable raveled.
    power, prior_power : float
        Powers of the likelihood, 1 / T, and of the prior.
    n_rows : int
    """

    flat: Array
    power: float
    prior_power: float
    n_rows: int

    @property
    def count(self) -> int:
        """Number of draws."""
        return len(self.flat)


@dataclass(frozen=True, kw_only=True, eq=False)
class TemperedTrace:
    """A trace of ``dp.OPS``, read and checked.

    Attributes
    ----------
    posterior : xarray.Dataset
    record : dict
    mechanism : mapping
        ``power``, ``prior_power`` and ``n_rows``, which is None where that number is private.
    """

    posterior: xr.Dataset
    record: dict[str, Any]
    mechanism: Mapping[str, Any]

    @classmethod
    def of(cls, tree: object, name: str) -> Self:
        """Read a trace.

        Raises
        ------
        ArgumentError
            If it is no tree.
        TraceError
            If it is no trace of ``dp.OPS``, one of a version that did not write the temperature into it, or changed.
        """
        posterior, record = released_draws(tree, name)
        sampler = record.get("sampler") or {}
        if sampler.get("name") != "OPS":
            made = sampler.get("name") or "a release of statistics"
            raise TraceError(
                f"{name} must hold draws of dp.OPS(), whose distribution is known; these are of {made}. For released "
                "statistics, give dp.condition a dp.Release.of(idata)."
            )
        mechanism = sampler.get("mechanism")
        if not mechanism:
            raise TraceError(
                f"{name} was written by a version of pymc_dp that did not keep the temperature of draws as a number. "
                "Sample again; what was spent on it stays spent."
            )
        if not posterior.sizes["chain"] * posterior.sizes["draw"]:
            raise TraceError(f"{name} holds no draw. Give the trace as dp.sample returned it.")
        return cls(posterior=posterior, record=record, mechanism=mechanism)

    def rows(self, n_rows: int | None) -> int:
        """Return the number of rows: the public one, or what is given where it is private."""
        known = self.mechanism["n_rows"]
        if n_rows is not None:
            n_rows = _validate.many("n_rows", n_rows)
        if known is None and n_rows is None:
            raise ArgumentError(
                "n_rows must be given: the number of rows of this trace is private (add_remove), and the width of "
                "intervals depends on it. Give one that is known beforehand or that was released, rounded to at least "
                "1."
            )
        if known is not None and n_rows not in (None, known):
            raise ArgumentError(f"n_rows={n_rows} contradicts the trace, which is of {known} rows. Leave it out.")
        return int(known if n_rows is None else n_rows)

    def draws(self, priors: Sequence[Prior], n_rows: int) -> GivenDraws:
        """Return the draws of a model's free variables.

        Raises
        ------
        ArgumentError
            If the trace has others.
        """
        names = [prior.name for prior in priors]
        known = set(self.record["sampler"]["variables"])
        if set(names) != known:
            raise ArgumentError(
                f"model has the free variables {', '.join(sorted(names))}, the draws are of {', '.join(sorted(known))}."
                " Give the model that was sampled; its rows may be dummies."
            )
        parts = []
        for prior in priors:
            held = self.posterior[prior.name].to_numpy()
            if held.shape[2:] != prior.shape:
                raise ArgumentError(
                    f"model has {prior.name} of shape {prior.shape}, the draws are of shape {held.shape[2:]}. Give "
                    "the model that was sampled; its rows may be dummies."
                )
            parts.append(held.reshape(held.shape[0] * held.shape[1], -1).astype(np.float64))
        power, prior_power = (float(self.mechanism[name]) for name in ("power", "prior_power"))
        return GivenDraws(flat=np.concatenate(parts, axis=1), power=power, prior_power=prior_power, n_rows=n_rows)


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


__all__ = ["Coordinates", "GivenDraws", "TemperedTrace"]
