"""What a caller may give a Metropolis step: checked, and laid out over the unconstrained values.

Which values a sub-step moves together: all, those of a list of variables, or those of one variable each.

A public covariance for the shape of proposals: given as an array, or computed from released draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import xarray as xr
from pymc import Model
from pymc.step_methods.state import equal_dataclass_values
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.interpreted import shapes_of
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.randomness import insecure
from pymc_dp.step_methods.metropolis.coefficients import Coefficients

Blocks = str | tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Values that one sub-step moves, the others being where they are.

    Attributes
    ----------
    names : tuple of str
        Free variables.
    places : (n_values,) int array
        Where their values are among all values.
    """

    names: tuple[str, ...]
    places: Array

    @property
    def dimension(self) -> int:
        """Number of values."""
        return len(self.places)

    def moved(self, values: Array, own: Array) -> Array:
        """Return all values, those of the block replaced."""
        result = values.copy()
        result[self.places] = own
        return result


def blocks_of(blocks: object) -> Blocks:
    """Check what was given: "each", or lists of names."""
    if isinstance(blocks, str):
        if blocks != "each":
            raise ArgumentError(
                f'blocks must be None, "each" or a list of lists of names, got {_validate.shown(blocks)}.'
            )
        return "each"
    found = tuple(tuple(_validate.names("each of blocks", block)) for block in _validate.several("blocks", blocks))
    if not found or not all(found):
        raise ArgumentError('blocks is empty, or one of them. Give lists of names such as ["mu", "sigma"], or None.')
    return found


def planned(blocks: Blocks | None, names: Mapping[str, str], at: Coefficients) -> tuple[Block, ...]:
    """Return the blocks of a model.

    Parameters
    ----------
    blocks : "each" or tuple of tuple of str, optional
        None: all of them together.
    names : mapping of str to str
        Name of the value of each free variable that the step moves.
    at : Coefficients

    Raises
    ------
    ArgumentError
        If a variable is unknown, missing or named twice.
    """
    if blocks is None:
        return (Block(names=tuple(names), places=_places(tuple(names), names, at)),)
    lists: Sequence[tuple[str, ...]] = [(name,) for name in names] if isinstance(blocks, str) else blocks
    given = [name for block in lists for name in block]
    if sorted(given) != sorted(names):
        raise ArgumentError(
            f"blocks names {given}, but must name each of the free variables {sorted(names)} once. A variable that is "
            'left out would never move. Use blocks="each" for one block per variable.'
        )
    found = [Block(names=block, places=_places(block, names, at)) for block in lists]
    return tuple(block for block in found if block.dimension)


def _places(block: Sequence[str], names: Mapping[str, str], at: Coefficients) -> Array:
    own = {names[name] for name in block}
    inside: dict[str, Any] = {name: float(name in own) for name in at.names}
    return np.flatnonzero(at.spread(inside))


MOST_DRAWS = 2000
"""Draws that a covariance is computed from; more are thinned."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicCovariance:
    """What was given, before the model is known: a matrix, or draws of variables by name, one per row."""

    matrix: Array | None = None
    draws: Mapping[str, Array] | None = None

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        """Compare numbers: PyMC restores a sampling state only where the settings are those it was saved with."""
        if not isinstance(other, PublicCovariance):
            return NotImplemented
        return bool(equal_dataclass_values([self.matrix, self.draws], [other.matrix, other.draws]))

    def __repr__(self) -> str:
        return "a trace" if self.matrix is None else f"a {self.matrix.shape} array"


def covariance_of(covariance: object) -> PublicCovariance:
    """Check what was given, as far as that needs no model.

    Raises
    ------
    ArgumentError
        If a matrix is not symmetric and positive definite, or a trace is not one that pymc_dp paid for.
    """
    if isinstance(covariance, xr.DataTree):
        return PublicCovariance(draws=_released(covariance))
    try:
        matrix = np.array(covariance, dtype=float)
    except (OverflowError, TypeError, ValueError):
        raise ArgumentError(
            "covariance must be a (d, d) array of public numbers or a released trace, got "
            f"{_validate.shown(covariance)}."
        ) from None
    _factor(matrix)
    return PublicCovariance(matrix=matrix)


def _released(tree: xr.DataTree) -> dict[str, Array]:
    if "privacy" not in tree.children or "posterior" not in tree.children:
        raise ArgumentError(
            "covariance is a trace without a /privacy or a /posterior group. Draws that nothing paid for would break "
            "the guarantee: give a trace of dp.sample or dp.scrub, or a (d, d) array of public numbers."
        )
    if tree["privacy"].attrs.get("guarantee") == "none" and insecure() is None:
        raise ArgumentError(
            "covariance is a trace whose noise was seeded or left out by pymc_dp.testing, so that it is not private "
            "and would break the guarantee. Sample it again without."
        )
    held = tree["posterior"].to_dataset()
    return {
        str(name): np.asarray(draws.transpose("chain", "draw", ...).values).reshape(-1, *draws.shape[2:])
        for name, draws in held.data_vars.items()
        if {"chain", "draw"} <= set(draws.dims)
    }


def laid_out(given: PublicCovariance, prior_model: Model, at: Coefficients) -> Array:
    """Return the (d, d) matrix over all unconstrained values of a model, in the order of its value variables."""
    matrix = given.matrix if given.matrix is not None else _of_draws(given.draws or {}, prior_model)
    if matrix.shape != (at.dimension, at.dimension):
        raise ArgumentError(
            f"covariance has shape {matrix.shape}, but the unconstrained values ({', '.join(at.names)}, in this order) "
            f"are {at.dimension}. Give a ({at.dimension}, {at.dimension}) array."
        )
    _factor(matrix)
    return matrix


def shape_of_block(matrix: Array, block: Block) -> Array:
    """Return a factor L, L L' the covariance of a block's values given all others."""
    inside = np.linalg.inv(matrix)[np.ix_(block.places, block.places)]
    return _factor(np.linalg.inv((inside + inside.T) / 2))


def _factor(matrix: Array) -> Array:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ArgumentError(f"covariance must be a (d, d) array of finite numbers, got shape {matrix.shape}.")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=0.0):
        raise ArgumentError("covariance is not symmetric. Give (covariance + covariance.T) / 2.")
    try:
        return np.asarray(np.linalg.cholesky((matrix + matrix.T) / 2))
    except np.linalg.LinAlgError:
        raise ArgumentError(
            "covariance is not positive definite. Add a small multiple of the identity, or give more draws."
        ) from None


def _of_draws(draws: Mapping[str, Array], prior_model: Model) -> Array:
    """Return the covariance of released draws on the unconstrained scale."""
    names = [str(rv.name) for rv in prior_model.free_RVs]
    missing = sorted(set(names) - set(draws))
    if missing:
        raise ArgumentError(f"covariance is a trace without the free variables {missing}. Give one of this model.")
    forward, shapes = _forward(prior_model)
    wrong = [name for name, shape in zip(names, shapes, strict=True) if draws[name].shape[1:] != shape]
    if wrong:
        raise ArgumentError(f"covariance is a trace in which {wrong} have other shapes than in this model.")
    count = len(draws[names[0]])
    kept = np.unique(np.linspace(0, count - 1, min(count, MOST_DRAWS)).astype(int))
    if len(kept) < 2:
        raise ArgumentError("covariance is a trace of fewer than two draws. Give more.")
    values = np.stack([forward(*(draws[name][place] for name in names)) for place in kept])
    return np.atleast_2d(np.cov(values, rowvar=False))


def _forward(prior_model: Model) -> tuple[Any, list[tuple[int, ...]]]:
    """Compile the map from the free variables to all unconstrained values, in the order of the value variables."""
    stand_ins: dict[Variable, Variable] = {
        rv: pt.TensorType(rv.type.dtype, rv.type.shape)() for rv in prior_model.free_RVs
    }
    values = [
        _transformed(prior_model, prior_model.values_to_rvs[value], stand_ins) for value in prior_model.value_vars
    ]
    outputs = clone_replace([pt.concatenate([value.flatten() for value in values])], stand_ins, rebuild_strict=False)
    function = pytensor.function(
        list(stand_ins.values()), outputs[0], on_unused_input="ignore", allow_input_downcast=True, mode="FAST_COMPILE"
    )
    return function, list(shapes_of(prior_model).values())


def _transformed(prior_model: Model, rv: Variable, stand_ins: Mapping[Variable, Variable]) -> Variable:
    transform = prior_model.rvs_to_transforms[rv]
    own = stand_ins[rv]
    return own if transform is None else transform.forward(own, *rv.owner.inputs)


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


__all__ = [
    "Block",
    "Blocks",
    "PublicCovariance",
    "blocks_of",
    "checked",
    "covariance_of",
    "laid_out",
    "planned",
    "positive",
    "scale_of",
    "shape_of_block",
    "sizes_of",
    "spread",
]
