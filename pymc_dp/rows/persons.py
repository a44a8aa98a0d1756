"""Rows of persons: which of them are kept, and the same rows with those of each person side by side.

A column says whose row it is. What becomes of the rows of one person is a function of these rows alone, and of random
numbers of their own: neither who else is in the table, nor the numbers that persons have, makes a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from pymc_dp.before_kernel import secure_keys
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.rows.asked import Asked
from pymc_dp.rows.sums import LENGTHS

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
DIGEST = "S16"
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
        hashes = _mixed((hashes + GOLDEN) ^ bits)
    order = _settled(np.lexsort((hashes, codes)), codes, hashes, values)
    starts = np.searchsorted(codes[order], np.arange(len(who)))
    every = columns if beside is None else [*columns, beside]
    edges = np.append(starts, len(order))
    return Grouped([column[rows[order]] for column in every], edges, counts - np.diff(edges))


def kept_rows(owners: Array, most: int) -> Array:
    """Return which rows are kept, (n_rows,) of bool: at most `most` of each person, chosen at random.

    Parameters
    ----------
    owners : (n_rows,) array
        As for `grouped`.
    most : int

    Notes
    -----
    **Which ones.** Every row gets a fresh key, 64 bits from the operating system, which nobody sees and nothing keeps.
    Those rows of a person are kept whose keys are smallest; the first ones of the table where keys are equal.

    **Guarantee.** Take a table and the same with one more person. The keys are independent of the rows and all alike,
    so that every row of the others may be thought of as having the same key in both tables. Given the keys, which rows
    of a person are kept depends on the keys of that person's rows and on their order among themselves: the same rows of
    all others are kept in both, and at most `most` of the one person. So for each value of the keys the release is of
    two tables that differ by at most `most` rows, which its noise is made for; a mixture over keys, whose distribution
    is the same for both, is as private. It holds whatever numbers stand for persons: those of all others may change
    with one more person, as those of `pandas.factorize` do. A hash in place of the keys would see these numbers, and
    rows of everybody would move.
    """
    who, codes = np.unique(identified(owners), return_inverse=True)
    codes = codes.ravel()
    order = np.lexsort((secure_keys(len(codes)), codes))
    starts = np.searchsorted(codes[order], np.arange(len(who)))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    kept = np.zeros(len(owners), dtype=bool)
    kept[order[rank < most]] = True
    return kept & somebody(owners)


def somebody(owners: Array) -> Array:
    """Return which rows are somebody's, (n_rows,) of bool: a number below 0 is nobody's, as of `pandas.factorize`."""
    return owners >= 0 if owners.dtype.kind == "i" else np.ones(len(owners), dtype=bool)


def summed(
    asked: Sequence[Asked],
    owners: Array,
    values: Callable[[Column], Array],
    most: int,
) -> list[Array]:
    """Return exact sums of the rows that are kept, at most `most` of each person: the last step before the sums.

    Parameters
    ----------
    asked : sequence of Asked
        All sums of one release: of all of them the same rows are kept.
    owners : (n_rows,) array
        As for `grouped`.
    values : callable
        From a column to its values, of one length for all.
    most : int

    Notes
    -----
    **Guarantee.** One person more or fewer, with any number of rows, is at most `most` rows more or fewer in what is
    added up, and changes no other row there, given the random numbers that choose rows; see `kept_rows`.
    """
    arrays = {column.leaf: values(column) for one in asked for column in one.columns}
    if any(len(array) != len(owners) for array in arrays.values()):
        raise PrivacyError(LENGTHS)
    kept = kept_rows(owners, most)
    arrays = {leaf: array[kept] for leaf, array in arrays.items()}
    return [one.of(lambda column: arrays[column.leaf]) for one in asked]


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


def identified(owners: Array) -> Array:
    """Return whole numbers, one to one, or digests of texts: equal ones are of equal texts (BLAKE2, 128 bits).

    Whatever a text holds it has a digest: an error would tell of it.
    """
    if owners.dtype.kind in "iuS":
        return owners if owners.dtype.kind == "S" else _whole(owners)
    texts, codes = np.unique(owners, return_inverse=True)
    written = (text if isinstance(text, bytes) else str(text).encode(errors="surrogatepass") for text in texts)
    digests = [blake2b(text, digest_size=16).digest() for text in written]
    return np.array(digests, dtype=DIGEST)[codes.ravel()]


def hashes_of(who: Array) -> Array:
    """Return a hash of each person, a function of its number or digest alone."""
    whole = _whole(who) if who.dtype.kind != "S" else np.ascontiguousarray(who).view(np.uint64)[::2]
    return _mixed(whole + GOLDEN)


def _bits(column: Array) -> Iterator[Array]:
    """Yield one number of 64 bits per entry of a row: the same for all that are no numbers."""
    flat = column.reshape(len(column), int(np.prod(column.shape[1:])))
    for place in range(flat.shape[1]):
        values = flat[:, place]
        if values.dtype.kind != "f":
            yield _whole(values)
            continue
        values = values.astype(np.float64)
        bits = values.view(np.uint64)
        bits[np.isnan(values)] = NAN_BITS
        yield bits


def _whole(values: Array) -> Array:
    return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)


def _mixed(values: Array) -> Array:
    """Mix 64 bits: the last step of splitmix64 (Steele, Lea, Flood 2014, doi 10.1145/2714064.2660195), one to one."""
    values = (values ^ (values >> np.uint64(30))) * FIRST
    values = (values ^ (values >> np.uint64(27))) * SECOND
    return values ^ (values >> np.uint64(31))


__all__ = ["Grouped", "grouped", "hashes_of", "identified", "kept_rows", "somebody", "spans", "summed"]
