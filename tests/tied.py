"""Models of several observed variables that say that these have the same rows."""

from __future__ import annotations

import pymc as pm
from pytensor.compile import SharedVariable

from pymc_dp.inspection.rows import unwrap


def tied(model: pm.Model) -> pm.Model:
    """Give all observed variables of a model the same first dimension, as ``dims="row"`` would."""
    held = [unwrap(model.rvs_to_values[rv]) for rv in model.observed_RVs]
    arrays = [leaf.get_value() if isinstance(leaf, SharedVariable) else leaf.data for leaf in held]
    model.add_coord("row", range(len(arrays[0])))
    for rv in model.observed_RVs:
        model.named_vars_to_dims[rv.name] = ("row", *(None,) * (rv.type.ndim - 1))
    return model
