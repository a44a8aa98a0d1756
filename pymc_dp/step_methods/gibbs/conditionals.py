"""What every update of a scan is: a draw of one free variable given the rest, at a known range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

Values = Mapping[str, Array]
Sums = Mapping[str, ExactSums]


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """How one observed variable's cells hang on a free variable that is their parameter.

    Attributes
    ----------
    table : TableLikelihood
    places : (n_cells,) integer array
        Element (for a simplex: the row) of the free variable in each cell.
    """

    table: TableLikelihood
    places: Array

    def gather(self, per_cell: Array, size: int) -> Array:
        """Add up a number per cell to one per element."""
        return np.bincount(self.places, weights=np.broadcast_to(per_cell, self.places.shape), minlength=size)


@dataclass(frozen=True, kw_only=True, eq=False)
class Conditional(ABC):
    """The update of one free variable given the rest.

    Attributes
    ----------
    name : str
        Free variable.
    shape : tuple of int
    ranges : tuple of float
        What each mechanism of the update pays at temperature 1: bound of the range over this variable alone of the
        difference of two rows' log-likelihoods. Empty where the update sees no row.
    reason : str
        Where the ranges come from.
    """

    kind: ClassVar[str]
    name: str
    shape: tuple[int, ...]
    ranges: tuple[float, ...]
    reason: str

    @abstractmethod
    def draw(self, rng: np.random.Generator, values: Values, sums: Sums, beta: float) -> Array:
        """Draw this variable given the values of the others (constrained) and the exact sums, tempered by `beta`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Conjugate(Conditional):
    """Exact draws from a truncated conjugate law; all elements at once, for they are independent given the rest.

    Attributes
    ----------
    hyper : callable
        Parameters of the prior as arrays of `shape`, given the values of the other variables.
    low, high : arrays of `shape`
    links : sequence of Link
    """

    hyper: Callable[[Values], tuple[Array, ...]]
    low: Array
    high: Array
    links: Sequence[Link]

    @property
    def size(self) -> int:
        """Number of scalars."""
        return int(np.prod(self.shape))


__all__ = ["Conditional", "Conjugate", "Link", "Sums", "Values"]
