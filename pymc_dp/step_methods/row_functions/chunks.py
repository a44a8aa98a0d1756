"""How rows are evaluated several at a time, so that what a row gives does not depend on the rows beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytensor
from pytensor.compile.mode import Mode, get_mode
from pytensor.link.numba.linker import NumbaLinker

from pymc_dp.inspection.whole_numbers import total_arithmetic
from pymc_dp.step_methods.row_functions.row_products import BEFORE_FUSION, row_products

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


def compiled_rows(inputs: Sequence[Any], outputs: Any, mode: Mode | str | None = None, **options: Any) -> Any:
    """Compile a function over rows: what it gives for a row depends neither on other rows nor on its place.

    Parameters are those of ``pytensor.function``; the mode is the configured one unless it is given.

    Notes
    -----
    `ROWS_AT_ONCE` are left out, and so is Numba's fast arithmetic, which may add up the terms of every fourth row in
    another order than those of the others: a row that goes would then change the last digits of all rows behind it,
    and of two million rows that such a difference was searched for a sum moved by ten times what one row may.
    Arithmetic on whole numbers is total (`total_arithmetic`): no value of a row makes the function raise. Products of
    rows with a vector are one operation for Numba (`RowProducts`).
    """
    chosen = get_mode(mode).excluding(*ROWS_AT_ONCE).register((total_arithmetic, BEFORE_FUSION))
    if isinstance(chosen.linker, NumbaLinker):
        chosen = chosen.register((row_products, BEFORE_FUSION))
    with pytensor.config.change_flags(numba__fastmath=False):
        return pytensor.function(inputs, outputs, mode=chosen, on_unused_input="ignore", **options)


__all__ = ["ALIKE", "ROWS_AT_ONCE", "compiled_rows", "filled", "whole_chunk"]
