"""Between the parameters of a model and the values that PyMC records: its transforms, compiled once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pymc import Model

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array, rebuild

Point = dict[str, Array]


class Values:
    """Forward transforms of a prior model's free variables.

    Parameters
    ----------
    prior_model : pymc.Model
    quick : bool
        Compile for a look, not for states.
    """

    def __init__(self, prior_model: Model, *, quick: bool = False) -> None:
        self.names = {str(rv.name): str(prior_model.rvs_to_values[rv].name) for rv in prior_model.free_RVs}
        self._dtypes = {str(value.name): value.type.dtype for value in prior_model.value_vars}
        plain = {rv: rv.type(name=rv.name) for rv in prior_model.free_RVs}
        moved = []
        for rv in prior_model.free_RVs:
            transform = prior_model.rvs_to_transforms[rv]
            if transform is None:
                moved.append(plain[rv])
                continue
            inputs, _ = rebuild(rv.owner.inputs, plain)
            moved.append(transform.forward(plain[rv], *inputs))
        self._function = plain_function([plain[rv] for rv in prior_model.free_RVs], moved, few=quick)
        self._order = [(str(rv.name), rv.type.dtype) for rv in prior_model.free_RVs]

    def move(self, point: Point, parameters: Mapping[str, Array]) -> Point:
        """Return `point` with the values of all free variables replaced by those of `parameters`.

        A parameter on the edge of its support has an infinite value, whose parameter is that edge again.
        """
        with np.errstate(divide="ignore"):
            values = self._function(*[np.asarray(parameters[name], dtype=dtype) for name, dtype in self._order])
        new = dict(point)  # its order is PyMC's, who reads values by position
        for (name, _), value in zip(self._order, values, strict=True):
            key = self.names[name]
            new[key] = np.asarray(value, dtype=self._dtypes[key])
        return new
