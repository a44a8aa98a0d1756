"""What a caller may give a Metropolis step: checked, and laid out over the unconstrained values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.metropolis.blocks import blocks_of
from pymc_dp.step_methods.metropolis.coefficients import Coefficients
from pymc_dp.step_methods.metropolis.covariance import covariance_of


def positive(name: str, value: object) -> float:
    """Return a number > 0."""
    result = _validate.number(name, value)
    if result <= 0:
        raise ArgumentError(f"{name} must be > 0, got {result}. Leave it out for the default.")
    return result


def scale_of(scale: object) -> float | dict[str, Any]:
    """Return a scale > 0, or scales by the names of variables."""
    if not isinstance(scale, Mapping):
        return positive("scale", scale)
    return sizes_of(scale)


def sizes_of(scale: Mapping[Any, Any], *, above: float = 0.0, below: float = math.inf) -> dict[str, Array]:
    """Return scales by the names of variables, each between two numbers everywhere."""
    sizes = {name: _sizes(name, size) for name, size in _validate.mapping("scale", scale).items()}
    for name, size in sizes.items():
        if not ((size > above) & (size < below)).all():
            raise ArgumentError(f"scale[{name!r}] must be > 0 everywhere, got {size.tolist()}.")
    return sizes


def _sizes(name: str, size: Any) -> Array:
    try:
        return np.asarray(size, dtype=float)
    except (OverflowError, TypeError, ValueError):
        raise ArgumentError(f"scale[{name!r}] must be a number or an array, got {_validate.shown(size)}.") from None


READERS: dict[str, Callable[[Any], Any]] = {
    "clamp": lambda clamp: positive("clamp", clamp),
    "scale": scale_of,
    "covariance": covariance_of,
    "blocks": blocks_of,
}


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not None, each checked as far as that needs no model."""
    found = {name: READERS[name](value) for name, value in given.items() if value is not None}
    if "covariance" in found and isinstance(found.get("scale"), Mapping):
        raise ArgumentError(
            "With covariance=, scale must be one number, which multiplies draws of this covariance, or be left out."
        )
    return found


def spread(scale: float | Mapping[str, Any] | None, names: Mapping[str, str], at: Coefficients) -> Array | None:
    """Return the standard deviation of each value; None where none is given.

    Parameters
    ----------
    scale : float or mapping of str to float or array, optional
    names : mapping of str to str
        Name of the value of each free variable that the step moves.
    at : Coefficients
    """
    if scale is None:
        return None
    if not isinstance(scale, Mapping):
        return np.full(at.dimension, scale)
    if set(scale) != set(names):
        raise ArgumentError(
            f"scale names {sorted(scale)}, but the free variables are {sorted(names)}. Give one number, or one each."
        )
    try:
        others = dict.fromkeys(at.names, np.ones(()))
        return at.spread({**others, **{names[name]: size for name, size in scale.items()}})
    except ValueError:
        raise ArgumentError(
            "scale has arrays that do not fit the variables on the unconstrained scale (a Dirichlet has one value less "
            "there). Give numbers."
        ) from None


__all__ = ["checked", "positive", "scale_of", "sizes_of", "spread"]
