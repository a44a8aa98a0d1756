"""What a person with several rows adds to a gradient and to a curvature: within what is charged, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pymc_dp.gradients.integers import Integers
from pymc_dp.gradients.row_parts import ROOM, RowParts
from pymc_dp.gradients.schedule import Limits
from pymc_dp.inspection.rows import Array
from pymc_dp.rows.persons import Grouped

SLACK = 1 - 1e-4
"""Rounding of factors never takes a person beyond what is charged: there it would add nothing."""
ROUNDING = 1 - 1e-8
"""Room for the rounding of a sum of up to 10^8 squares of whole numbers in floats, all of the same sign."""
Add = Callable[[Array, Integers], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighed:
    """Rows of whole persons, weighed: scores (n_rows, d) or factors (n_rows, q, d).

    Attributes
    ----------
    rows : array
    edges : (n_persons + 1,) array
        Rows from one of them to the next are of one person.
    """

    rows: Array
    edges: Array

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonParts:
    """Scores and factors of rows that come person by person, as `RowParts` has them, times a weight of the person.

    Attributes
    ----------
    parts : RowParts
    most : int
        m, the number of rows of a person that count in full.

    Notes
    -----
    Each row is clipped to C as ever, and stays centred given its covariates. Of a person whose rows could add up to
    more than m C all are multiplied by w = min(1, m C / Σ sup ‖ψ‖, m C_F / Σ ‖f‖), with sup over the values that
    responses may have. That sees covariates only: the sum of w ψ has mean 0 at the truth whatever w is, where clipping
    a person's sum as it was observed would have a bias. Its slope is the sum of w f, for w multiplies both. No row is
    thrown away, and of a person with at most m rows w is 1. Where some values stand for all of a response, and an
    observed score is larger than at any of them, w is less, by the observed norms.

    The variance of w ψ is w times less than w f says, which is on the safe side. Rows of one person are taken for
    independent given the parameters, as the model says.

    **Guarantee.** What a person gives is a function of that person's rows, the position and public constants. That it
    is within m C and m C_F is enforced by `add_persons` on whole numbers.
    """

    parts: RowParts
    most: int

    def scores(self, rows: Grouped, at: Array, limits: Limits) -> Weighed:
        """Return weighed scores in units of C."""
        unit, found = ROOM / limits.clip_norm, _Blocks(limits)
        for part, block in self.parts.clipped(rows.columns, at, limits):
            found.add(block.combined(part.scores[:, None], unit)[:, 0], part.reach, part.sizes)
        values = self.parts.joined(found.values, at)
        weights = self._weights(rows.edges, *found.bounds, np.sqrt((values**2).sum(axis=1)))
        return Weighed(rows=values * weights[:, None], edges=rows.edges)

    def factors(self, rows: Grouped, at: Array, limits: Limits) -> Weighed:
        """Return factors in units of √C_F, times the root of the weight."""
        unit, found = ROOM / np.sqrt(limits.clip_curvature), _Blocks(limits)
        for part, block in self.parts.clipped(rows.columns, at, limits):
            found.add(block.combined(part.factors.transpose(0, 2, 1), unit), part.reach, part.sizes)
        values = self.parts.joined(found.values, at, self.parts.rows.count)
        weights = self._weights(rows.edges, *found.bounds)
        return Weighed(rows=values * np.sqrt(weights)[:, None, None], edges=rows.edges)

    def _weights(self, edges: Array, *bounds: Array) -> Array:
        """Return the weight of the person of each row, given bounds on what each row adds, in units of the limits."""
        lengths = np.diff(edges)
        weights = np.ones(len(lengths))
        if not (lengths > self.most).any():  # no row is longer than its limit
            return np.ones(int(lengths.sum()))
        for bound in bounds:
            known = np.where(bound <= 1, bound, 1.0)  # NaN too: such a row adds nothing
            total = np.add.reduceat(known, edges[:-1])
            weights = np.minimum(weights, self.most * SLACK / np.maximum(total, np.finfo(float).tiny))
        weights[lengths <= self.most] = 1.0
        return np.repeat(weights, lengths)


class _Blocks:
    """Values of some blocks of rows, and bounds on them."""

    def __init__(self, limits: Limits) -> None:
        self.values, self._reach, self._sizes = list[Array](), list[Array](), list[Array]()
        self._limits = limits

    def add(self, values: Array, reach: Array, sizes: Array) -> None:
        self.values.append(values)
        self._reach.append(reach / self._limits.clip_norm)
        self._sizes.append(sizes / self._limits.clip_curvature)

    @property
    def bounds(self) -> tuple[Array, Array]:
        none = [np.zeros(0)]
        return np.concatenate(self._reach or none), np.concatenate(self._sizes or none)


def add_persons(persons: Weighed, total: Integers, *, add: Add, most: int, limit: int, side: int) -> None:
    """Add what persons add to a sum: each of them within what `most` rows at their limit would.

    Parameters
    ----------
    persons : Weighed
        Anything may stand there.
    total : array of int64
        Changed in place.
    add : callable
        Adds rows of whole numbers to a sum, of each of which the norm is at most `limit`.
    most, limit : int
    side : int
        The sum begins with the upper triangle of a matrix of that side, whose entries off the diagonal count twice;
        0 where it is a vector.

    Notes
    -----
    **Guarantee.** Every person adds whole numbers whose norm is at most ``most * limit``. Of one with at most `most`
    rows that is the triangle inequality, for each row is held by `add`; the rows of any other are summed apart,
    exactly, and add nothing where that sum is longer. It holds for any contents.
    """
    lengths = np.diff(persons.edges)
    few = lengths <= most
    if few.all():
        add(persons.rows, total)
        return
    add(persons.rows[np.repeat(few, lengths)], total)
    for place in np.flatnonzero(~few):
        own = np.zeros_like(total)
        add(persons.rows[persons.edges[place] : persons.edges[place + 1]], own)
        if _square(own, side) <= float(most * limit) ** 2 * ROUNDING:
            total += own


def _square(own: Integers, side: int) -> float:
    """Return the sum of squares, twice of those off the diagonal of the matrix that it begins with."""
    flat = own.ravel().astype(np.float64)
    inside, rest = flat[: side**2], flat[side**2 :]
    diagonal = inside[:: side + 1]
    return float(2 * (inside @ inside) - diagonal @ diagonal + rest @ rest)


__all__ = ["Add", "PersonParts", "Weighed", "add_persons"]
