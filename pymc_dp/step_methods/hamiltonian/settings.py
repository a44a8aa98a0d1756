"""Arguments of `PrivateHMC`: their checks, and units of values from what a user says about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.step_sizes import LARGEST, SMALLEST, positive
from pymc_dp.step_methods.metropolis.arguments import sizes_of, spread
from pymc_dp.step_methods.metropolis.coefficients import Coefficients


def hamiltonian_settings(
    *,
    clip_norm: float | None,
    clamp: float | None,
    n_leapfrog: int,
    step_size: float | None,
    scale: float | Mapping[str, Any] | None,
    gradient_share: float,
    steps_per_draw: int,
) -> dict[str, Any]:
    """Return checked settings; those that are None stay so."""
    share = _validate.number("gradient_share", gradient_share)
    if not 0 < share < 1:
        raise ArgumentError(f"gradient_share must lie in (0, 1), got {share}. 0.4 does well on most targets.")
    return {
        "clip_norm": _positive("clip_norm", clip_norm),
        "clamp": _positive("clamp", clamp),
        "n_leapfrog": _validate.many("n_leapfrog", n_leapfrog),
        "step_size": _positive("step_size", step_size),
        "scale": _scale(scale),
        "gradient_share": share,
        "steps_per_draw": _validate.many("steps_per_draw", steps_per_draw),
    }


def units_of(scale: float | Mapping[str, Array] | None, places: Coefficients) -> Array:
    """Return the unit of each value of a prior model, one after the other."""
    found = spread(scale, places.value_names, places)
    return np.ones(places.dimension) if found is None else found


def _positive(name: str, value: object) -> float | None:
    return None if value is None else positive(name, value)


def _scale(scale: object) -> float | dict[str, Array] | None:
    if not isinstance(scale, Mapping):
        return _positive("scale", scale)
    return sizes_of(scale, above=SMALLEST, below=LARGEST)


__all__ = ["hamiltonian_settings", "units_of"]
