"""How rows are evaluated several at a time, so that what a row gives does not depend on the rows beside it."""

from __future__ import annotations

from pytensor.compile.mode import Mode, get_mode

ALIKE = 32
"""Rows are evaluated in multiples of this many."""
UNDIVIDED = 8192
"""Most entries of rows at a time."""
ROWS_AT_ONCE = ("batched_vector_b_solve_to_matrix_b_solve",)
"""Rewrites that hand all rows to one call of a library of linear algebra, which may treat a row by its neighbours."""


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


def row_by_row(mode: str | None = None) -> Mode:
    """Return a mode of PyTensor, by default the configured one, without `ROWS_AT_ONCE`: for functions over rows."""
    return get_mode(mode).excluding(*ROWS_AT_ONCE)


__all__ = ["ALIKE", "ROWS_AT_ONCE", "filled", "row_by_row", "whole_chunk"]
