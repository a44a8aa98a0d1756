"""Which points of the parameter space PyMC can hold: those that its transforms lead back to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pymc import Model

from pymc_dp.inspection.batched import vectorized
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.ops.grid import over_flat

TOLERANCE = 1e-6
"""How far a point may be from what its transform leads back to, next to its size and to the spread of all points."""


def kept(prior_model: Model, priors: Sequence[Prior], points: Array) -> Array:
    """Return which of (n, n_scalars) points are what the values that PyMC records for them say: (n,) booleans."""
    ends, moved = [], False
    for rv in prior_model.free_RVs:
        transform = prior_model.rvs_to_transforms[rv]
        moved = moved or transform is not None
        inputs = rv.owner.inputs
        ends.append(rv if transform is None else transform.backward(transform.forward(rv, *inputs), *inputs))
    if not moved:
        return np.ones(len(points), dtype=bool)
    flat, back = over_flat(prior_model, priors, ends)
    batch = pt.matrix("places", shape=(None, points.shape[1]), dtype="float64")
    whole = pt.concatenate([item.ravel().astype("float64") for item in back])
    with np.errstate(all="ignore"):  # an edge has an infinite value, which leads back to it
        found = plain_function([batch], vectorized(whole, {flat: batch}))(points)
        return np.asarray((abs(found - points) <= TOLERANCE * (abs(points) + np.ptp(points, axis=0))).all(axis=1))


__all__ = ["kept"]
