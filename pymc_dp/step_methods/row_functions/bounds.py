"""Sums over rows of log-likelihoods that keep a bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dp.inspection.rows import Array

CHUNK = 2**20
"""Log-likelihoods held at once."""

Rows = Sequence[Array]
"""Rows, one (n_rows, ...) array per column."""
Each = Callable[[Any, Rows], Array]
"""From points and rows to (n_points, n_rows) log-likelihoods, as floats return them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class References:
    """What is subtracted from every row's log-likelihood: a mean of that of reference rows, a public function.

    Two rows differ by no more for it, and one row alone ranges over less: where the log-likelihood is linear in a
    statistic of the row, over half of what two rows differ by.

    Attributes
    ----------
    rows : tuple of tuple of (array or None)
        A (1, ...) array per column for each of them; None for a public column, which stays as it is in the row. Tables
        with public columns keep the order of their rows, so that what the references add up to is public.
    weights : tuple of float
        Weight of each in the mean, at least 0, 1 together. By default they are equal.
    """

    rows: tuple[tuple[Array | None, ...], ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def alike(self) -> bool:
        """Whether they are the same beside every row."""
        return not any(held is None for reference in self.rows for held in reference)

    def at(self, each: Each, points: Any, rows: Rows) -> Array:
        """Return their mean beside each row: (n_points, n_rows) array, or (n_points, 1) where it is always the same."""
        if not self.rows:
            return np.zeros((len(points), 1))
        if self.alike:
            table = [np.concatenate(column) for column in zip(*self.rows, strict=True)]
            return np.average(each(points, table), axis=1, weights=self.weights or None)[:, None]
        beside = [each(points, _beside(reference, rows)) for reference in self.rows]
        return np.asarray(np.average(beside, axis=0, weights=self.weights or None))


def _beside(reference: Sequence[Array | None], rows: Rows) -> list[Array]:
    count = len(rows[0])
    return [
        column if held is None else np.ascontiguousarray(np.broadcast_to(held, (count, *held.shape[1:])))
        for held, column in zip(reference, rows, strict=True)
    ]


class Bound(ABC):
    """A bound of what one row can move a sum of log-likelihoods by, enforced on what is summed.

    For a choice among points that are all at hand, made for each of several elements by its own rows.
    """

    references: References
    limit: Any

    @property
    @abstractmethod
    def charge(self) -> float:
        """Range over points of what one row moves the sum by: what has to be paid for, at inverse temperature 1."""

    def total(self, each: Each, points: Any, rows: Rows, weights: Array) -> Array:
        """Add up the rows at some points, up to a constant: (n_points,) array. **Private**.

        Parameters
        ----------
        each : callable
        points : sequence
        rows : sequence of (n_rows, ...) array
        weights : (n_rows,) array
            How often each row occurs, whole numbers.
        """
        return self.by_element(each, points, rows, weights)[:, 0]

    @abstractmethod
    def by_element(
        self, each: Each, points: Any, rows: Rows, weights: Array, owner: Array | None = None, elements: int = 1
    ) -> Array:
        """Add up the rows of each element by themselves: (n_points, n_elements) array. **Private**.

        Parameters
        ----------
        each, points, rows, weights
            As for `total`.
        owner : (n_rows,) array, optional
            To which element each row belongs; not needed where there is one element, or no row.
        elements : int
        """


__all__ = ["Bound", "Each", "References", "Rows"]
