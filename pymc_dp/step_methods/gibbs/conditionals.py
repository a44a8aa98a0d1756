"""What every update of a scan is: a draw of one free variable given the rest, at a known range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pymc_dp.families.conjugate_form import ConjugateForm
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

Values = Mapping[str, Array]
Sums = Mapping[str, ExactSums]


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """How cells of an observed variable depend on a free variable v: a parameter is ``factor * v[place] ** exponent``.

    Attributes
    ----------
    table : TableLikelihood
    slot : int
        Which of its parameters.
    places : callable
        From the values of other variables to the element (for a simplex: the row) of v in each cell, -1 for none.
    given : callable
        From the values to all other parameters of the likelihood, in order: arrays that broadcast to the cells.
    exponent : float
    parameter : callable or None
        From the values to the parameter itself, where the factor is not 1.
    """

    table: TableLikelihood
    slot: int
    places: Callable[[Values], Array]
    given: Callable[[Values], Sequence[Array]]
    exponent: float = 1.0
    parameter: Callable[[Values], Sequence[Array]] | None = None

    @property
    def form(self) -> ConjugateForm | None:
        """What the likelihood says of the parameter."""
        return self.table.family.conjugate_in(self.slot)

    def factor(self, values: Values, name: str) -> Array | float:
        """Factor of each cell; 1 where v has no part."""
        if self.parameter is None:
            return 1.0
        places = self.places(values)
        own = np.ravel(values[name])[np.maximum(places, 0)] ** self.exponent
        return np.where(places >= 0, np.broadcast_to(self.parameter(values)[0], places.shape) / own, 1.0)


def gather(places: Array, per_cell: Array, shape: tuple[int, ...]) -> Array:
    """Add up a number per cell to one per element."""
    held = places >= 0
    weights = np.broadcast_to(per_cell, places.shape)[held]
    return np.bincount(places[held], weights=weights, minlength=int(np.prod(shape))).reshape(shape)


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
    """Exact draws from a truncated conjugate distribution, of all elements at once: they are independent given the
    rest.

    Attributes
    ----------
    prior : str
        Name of its distribution.
    hyper : callable
        Parameters of the prior as arrays of `shape`, given the values of the other variables.
    low, high : arrays of `shape`
    links : sequence of Link
    """

    prior: str
    hyper: Callable[[Values], tuple[Array, ...]]
    low: Array
    high: Array
    links: Sequence[Link]

    @property
    def size(self) -> int:
        """Number of scalars."""
        return int(np.prod(self.shape))


__all__ = ["Conditional", "Conjugate", "Link", "Sums", "Values", "gather"]
