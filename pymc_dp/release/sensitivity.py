"""How far one row can move released sums, as the kernel says, and why in a line."""

from __future__ import annotations

from dataclasses import dataclass

from pymc_dp.domain import Neighbours
from pymc_dp.kernel.shapes import Move, OneHot


@dataclass(frozen=True, kw_only=True)
class SumSensitivity:
    """The largest sensitivity of an integer vector between neighbours.

    Attributes
    ----------
    l1 : int
        Sensitivity in the L1 norm, in grid steps.
    l2_squared : int
        Square of the sensitivity in the L2 norm, in squared grid steps.
    shifts : tuple of int or None
        The exact worst case coordinate by coordinate, where every worst case is a permutation of one; accountants
        may use it for tighter composition.
    reason : str
        The proof in a line.
    """

    l1: int
    l2_squared: int
    shifts: tuple[int, ...] | None
    reason: str

    @classmethod
    def of(cls, move: Move, reason: str) -> SumSensitivity:
        """Return how far the kernel says that a sum moves, and why."""
        return cls(l1=move.l1, l2_squared=move.l2_squared, shifts=move.shifts, reason=reason)


def sizes_move(neighbours: Neighbours) -> Move:
    """Return by how much a row moves the numbers of rows per cell, where these are private."""
    return OneHot(1).move(neighbours, moves=True)
