"""The likelihood as a linear function of exact sums: its public coefficients at any state, compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.interpreted import kept_while_shared, plain_function, start_of
from pymc_dp.inspection.rows import Array, reached
from pymc_dp.samplers.sums import slopes_of
from pymc_dp.transforms.likelihood import TableLikelihood

Point = dict[str, Array]


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """One state of a chain and everything public there.

    Attributes
    ----------
    values : (n_values,) array
        All free variables on the unconstrained scale, one after the other.
    prior : float
        Log density of the prior, Jacobian included.
    coefficients : (n_coefficients,) array
        η(θ) of all observed variables; not a number where a parameter is outside of its support.
    """

    values: Array
    prior: float
    coefficients: Array

    @property
    def possible(self) -> bool:
        """Whether a chain may be here."""
        return bool(np.isfinite(self.prior)) and bool(np.isfinite(self.coefficients).all())


class Coefficients:
    """Compiled map from values to prior density and coefficients; holds no row.

    Parameters
    ----------
    prior_model : pymc.Model
    tables : sequence of TableLikelihood
    quick : bool
        Compile for a look, not for a chain.
    """

    def __init__(self, prior_model: Model, tables: Sequence[TableLikelihood], *, quick: bool = False) -> None:
        start = start_of(prior_model)
        self.names = tuple(str(var.name) for var in prior_model.value_vars)
        self.value_names = {str(var.name): str(prior_model.rvs_to_values[var].name) for var in prior_model.free_RVs}
        self._shapes = [np.shape(start[name]) for name in self.names]
        self._edges = np.cumsum([0, *(int(np.prod(shape)) for shape in self._shapes)])
        parts = [slopes_of(table, prior_model.replace_rvs_by_values) for table in tables]
        outputs = [prior_model.logp().reshape((1,)), *parts]
        (joined,), values = pm.pytensorf.join_nonshared_inputs(
            point=start, outputs=[pt.concatenate(outputs)], inputs=prior_model.value_vars
        )
        if any(var.owner is not None and isinstance(var.owner.op, RandomVariable) for var in reached([joined])):
            raise PrivacyError(
                "A prior or likelihood would be evaluated at a random place; this is an error of pymc_dp."
            )
        made = partial(plain_function, few=True) if quick else partial(pytensor.function, on_unused_input="ignore")
        self._function = made([values], joined)
        self._function.trust_input = True
        self.start = self.at(self.flatten(start))

    @property
    def dimension(self) -> int:
        """Number of unconstrained values."""
        return int(self._edges[-1])

    def at(self, values: Array) -> Place:
        """Evaluate at one state."""
        found = self._function(values)
        return Place(values=values, prior=float(found[0]), coefficients=found[1:])

    def flatten(self, point: Mapping[str, Array]) -> Array:
        """Put the values of a point one after the other."""
        return np.concatenate([np.zeros(0), *(np.ravel(point[name]) for name in self.names)])

    def point(self, values: Array, like: Point) -> Point:
        """Return a point with the keys of `like`, in its order: PyMC reads values by position."""
        new = dict(like)
        for name, shape, begin, end in zip(self.names, self._shapes, self._edges[:-1], self._edges[1:], strict=True):
            new[name] = np.array(values[begin:end].reshape(shape), dtype=like[name].dtype)
        return new

    def spread(self, sizes: Mapping[str, Array]) -> Array:
        """Put one number per value, given by the name of the value, one after the other."""
        parts = zip(self.names, self._shapes, strict=True)
        return np.concatenate(
            [
                np.zeros(0),
                *(np.ravel(np.broadcast_to(np.asarray(sizes[name], dtype=float), shape)) for name, shape in parts),
            ]
        )


coefficients_of = kept_while_shared(Coefficients)


__all__ = ["Coefficients", "Place", "coefficients_of"]
