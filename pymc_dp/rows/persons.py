"""Rows of persons: which of them are kept, and the same rows with those of each person side by side.

A column says whose row it is. What becomes of the rows of one person is a function of these rows alone, and of random
numbers of their own: neither who else is in the table, nor the numbers that persons have, makes a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.persons import DIGEST, GOLDEN, bits_of, identified, kept_rows, mixed, somebody
from pymc_dp.kernel.tallies import LENGTHS

NAN_BITS = np.uint64(0x7FF8000000000000)


class Grouped(NamedTuple):
    """Rows of whole persons, side by side. **Private**.

    Attributes
    ----------
    columns : list of (n_rows, ...) arrays
    edges : (n_persons + 1,) int64 array
        Rows from one of them to the next are of one person.
    left_out : (n_persons,) int64 array or None
        How many other rows each person has. None: none.
    """

    columns: list[Array]
    edges: Array
    left_out: Array | None = None

    def chunks(self, size: int) -> Iterator[Grouped]:
        """Yield the rows of whole persons, about `size` at a time; more where one person has more."""
        for first, last in spans(self.edges, size):
            start, stop = self.edges[first], self.edges[last]
            left = None if self.left_out is None else self.left_out[first:last]
            yield Grouped([column[start:stop] for column in self.columns], self.edges[first : last + 1] - start, left)


def spans(edges: Array, size: int) -> Iterator[tuple[int, int]]:
    """Yield from which to which edge there are about `size` rows, or those of one person."""
    first, last = 0, len(edges) - 1
    while first < last:
        end = int(np.searchsorted(edges, edges[first] + size, side="right")) - 1
        end = min(max(end, first + 1), last)
        yield first, end
        first = end


def grouped(owners: Array, columns: Sequence[Array], most: int, *, beside: Array | None = None) -> Grouped:
    """Return the rows of each person that are kept side by side, in an order that is a function of these rows alone.

    Parameters
    ----------
    owners : (n_rows,) array
        Whose row it is: whole numbers, or texts. Rows that are nobody's are left out, see `somebody`.
    columns : sequence of (n_rows, ...) arrays
        Of numbers or booleans.
    most : int
        At most so many rows of each person are kept, see `kept_rows`.
    beside : (n_rows,) array, optional
        Another column, which comes last, and by which nothing is ordered.

    Notes
    -----
    Rows of a person are ordered by their values, by a hash of them first: a sum of floats over them does not depend on
    the number that the person has.

    **Guarantee.** That of `kept_rows`, also for how many rows are left out: that is a number of each person.
    """
    if any(len(column) != len(owners) for column in columns):
        raise PrivacyError(LENGTHS)
    rows = np.flatnonzero(kept_rows(owners, most))
    _, counts = np.unique(identified(owners[somebody(owners)]), return_counts=True)
    who, codes = np.unique(identified(owners[rows]), return_inverse=True)
    codes = codes.ravel()
    values = [bits for column in columns for bits in _bits(column[rows])]
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for bits in values:
        hashes = mixed((hashes + GOLDEN) ^ bits)
    order = _settled(np.lexsort((hashes, codes)), codes, hashes, values)
    starts = np.searchsorted(codes[order], np.arange(len(who)))
    every = columns if beside is None else [*columns, beside]
    edges = np.append(starts, len(order))
    return Grouped([column[rows[order]] for column in every], edges, counts - np.diff(edges))


def _settled(order: Array, codes: Array, hashes: Array, values: Sequence[Array]) -> Array:
    """Order rows of one person with the same hash by their values, where these differ."""
    same = (codes[order[1:]] == codes[order[:-1]]) & (hashes[order[1:]] == hashes[order[:-1]])
    pairs = np.flatnonzero(same)
    if not any((bits[order[pairs + 1]] != bits[order[pairs]]).any() for bits in values):
        return order
    tied = np.zeros(len(order), dtype=bool)
    tied[pairs] = tied[pairs + 1] = True
    rows, order = order[tied], order.copy()
    order[tied] = rows[np.lexsort((*[bits[rows] for bits in values], hashes[rows], codes[rows]))]
    return order


def hashes_of(who: Array) -> Array:
    """Return a hash of each person, a function of its number or digest alone."""
    whole = bits_of(who) if who.dtype.kind != "S" else np.ascontiguousarray(who).view(np.uint64)[::2]
    return mixed(whole + GOLDEN)


def _bits(column: Array) -> Iterator[Array]:
    """Yield one number of 64 bits per entry of a row: the same for all that are no numbers."""
    flat = column.reshape(len(column), int(np.prod(column.shape[1:])))
    for place in range(flat.shape[1]):
        values = flat[:, place]
        if values.dtype.kind != "f":
            yield bits_of(values)
            continue
        values = values.astype(np.float64)
        bits = values.view(np.uint64)
        bits[np.isnan(values)] = NAN_BITS
        yield bits


__all__ = ["DIGEST", "Grouped", "grouped", "hashes_of", "identified", "kept_rows", "somebody", "spans"]
