"""Which values a sub-step moves together: all, those of a list of variables, or those of one variable each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
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


__all__ = ["Block", "Blocks", "blocks_of", "planned"]
