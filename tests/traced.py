"""Traces of private models whose draws are known: nothing is sampled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

import pymc_dp as dp


def traced(private: pm.Model, posterior: Mapping[str, Any], dims: Mapping[str, tuple[str, ...]] | None = None) -> Any:
    """Return what ``dp.scrub`` makes of (n_draws, ...) arrays of one chain."""
    named, draws, seen = dims or {}, {}, {}
    for name, one in posterior.items():
        axes = named.get(name, [f"{name}_{axis}" for axis in range(np.ndim(one) - 1)])
        draws[name] = ("chain", "draw", *axes), np.asarray(one)[None]
    for rv in private.observed_RVs:
        held = private.rvs_to_values[rv].eval()
        seen[rv.name] = [f"{rv.name}_seen_{axis}" for axis in range(held.ndim)], held
    tree = xr.DataTree.from_dict({"/posterior": xr.Dataset(draws), "/observed_data": xr.Dataset(seen)})
    return dp.scrub(tree, private)
