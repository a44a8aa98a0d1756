"""How many rows are evaluated at a time, so that what a row gives does not depend on the rows beside it."""

from __future__ import annotations

ALIKE = 32
"""Rows are evaluated in multiples of this many."""
UNDIVIDED = 8192
"""Most entries of rows at a time."""


def whole_chunk(entries: int, most: int) -> int:
    """Return how many rows to evaluate at a time, given the entries of one row; a multiple of `ALIKE`.

    Notes
    -----
    Compiled code works off rows in groups, and the few that are left over by other instructions, whose results may
    differ in the last digit; a library of linear algebra does so within the share of each of its threads. A row that is
    added would then change what the rows behind it give. So rows come in whole groups, filled up with others of no
    account, and few enough to be left to one thread: a product of a matrix of less than 9216 entries with a vector is
    not divided by OpenBLAS.
    """
    return max(ALIKE, min(most, UNDIVIDED // max(1, entries)) // ALIKE * ALIKE)


def filled(count: int) -> int:
    """Return the number of rows that so many are filled up to."""
    return -(-count // ALIKE) * ALIKE


__all__ = ["ALIKE", "filled", "whole_chunk"]
