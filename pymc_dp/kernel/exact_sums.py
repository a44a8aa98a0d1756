"""Exact sums of rows, and what each row adds to them: rows are read when these are made, and nothing is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.layout import Layout
from pymc_dp.kernel.limbs import DIGIT, LOW, added, digits_of, digits_of_sums
from pymc_dp.kernel.payer import Array, read_rows
from pymc_dp.kernel.readings import Places
from pymc_dp.kernel.tallies import LENGTHS, Rows

EXACT = 2**10
"""Products of digits, each below 2^43, of which floats hold the sum."""
AT_ONCE = 2**20
"""Exponents of rows that are held at once."""


@final
class Totals:
    """Exact sums of a layout: rows are read when it is made, and nothing of them is shown.

    Parameters
    ----------
    layout : Layout
    rows : sequence of Rows
        For each tally; private.

    Raises
    ------
    PrivacyError
        If rows do not fit the layout; no text shows a value.
    """

    def __init__(self, layout: Layout, rows: Sequence[Rows]) -> None:
        def work() -> list[int]:
            _check_lengths(layout, rows)
            parts = [tally.exact(own) for tally, own in zip(layout.tallies, rows, strict=True)]
            return [int(number) for part in parts for number in part.ravel()]

        self._layout, self._sums = _checked(layout), read_rows(work, PrivacyError)


@final
class RowSums:
    """What each row adds to the sums of a layout, kept row by row: rows are read when it is made, and nothing is shown.

    Parameters
    ----------
    layout : Layout
        Of neighbours that replace a row: only then is the number of rows public.
    rows : sequence of Rows
        For each tally; private.

    Raises
    ------
    PrivacyError
        If rows do not fit the layout; no text shows a value.
    """

    def __init__(self, layout: Layout, rows: Sequence[Rows]) -> None:
        if _checked(layout).neighbours != "replace":
            raise PrivacyError("A choice for each row would show how many there are. Use neighbours='replace'.")

        def work() -> list[tuple[Array, Array]]:
            _check_lengths(layout, rows)
            return [tally.each(own) for tally, own in zip(layout.tallies, rows, strict=True)]

        self._layout, self._rows = layout, read_rows(work, PrivacyError)

    def _added(self, exponents: Array) -> Iterator[Array]:
        """Yield what rows add to (K, size) exponents below 2^61: (n, K) whole numbers of some rows. **Private**."""
        tables = [self._table(place, own) for place, (_, own) in enumerate(self._layout.parts(exponents))]
        n_rows, step = self._layout.n_rows or 0, max(1, AT_ONCE // len(exponents))
        for start in range(0, n_rows, step):
            total = np.zeros((min(step, n_rows - start), len(exponents)), dtype=np.int64)
            for (code, whole), table in zip(self._rows, tables, strict=True):
                here = slice(start, start + len(total))
                for number, each in enumerate(table):
                    held = each[code[here]]
                    total += held if number == 0 else held * whole[here, number - 1, None]
            yield total

    def _table(self, place: int, exponents: Array) -> list[Array]:
        """Return what a row adds by being in its cell, and for each number: (n_codes + 1, K), 0 for a row in none."""
        tally = self._layout.tallies[place]
        first, count = int(tally.sized), tally.cells.count
        held = exponents.astype(np.int64).reshape(len(exponents), count, -1)
        own, sizes = held[:, :, first:], held[:, :, 0] if first else np.zeros(held.shape[:2], dtype=np.int64)
        if type(tally.reading) is Places:
            left = np.zeros((*sizes.shape, tally.reading.count - own.shape[2]), dtype=np.int64)
            own = np.concatenate([left, own], axis=2) + sizes[:, :, None]
            tables = [own.reshape(len(own), -1).T]
        else:
            tables = [sizes.T, *(own[:, :, number].T for number in range(own.shape[2]))]
        return [np.concatenate([each, np.zeros((1, len(held)), dtype=np.int64)]) for each in tables]


def _checked(layout: Layout) -> Layout:
    if type(layout) is not Layout:
        raise ArgumentError("layout must be a Layout, and of no class derived from it.")
    return layout


def _check_lengths(layout: Layout, rows: Sequence[Rows]) -> None:
    if len(rows) != len(layout.tallies):
        raise PrivacyError(LENGTHS)
    counts = {len(held) for one in rows for held in one.values}
    if len(counts) != 1 or (layout.n_rows is not None and counts != {layout.n_rows}):
        raise PrivacyError(LENGTHS)


def exact(exponents: Array, sums: Sequence[int]) -> list[int]:
    """Return exact whole numbers Σ_j E_kj S_j, of sums of 64 bits. **Private**."""
    found = [0] * len(exponents)
    for place, digits in enumerate(products(exponents, sums, np.zeros(exponents.shape[1], dtype=np.int64), 1)):
        found = [one + (digit << DIGIT * place) for one, digit in zip(found, digits[0].tolist(), strict=True)]
    return found


def products(exponents: Array, sums: Sequence[int], owners: Array, n: int) -> list[Array]:
    """Return Σ_j E_kj S_j over the sums of each element, as digits of (n, K) numbers. **Private**.

    Products of digits of 21 bits are added in 64 bits, 2^20 of them at most; 2^10 of them in floats, which are exact.
    """
    order = np.argsort(owners, kind="stable")[np.count_nonzero(owners < 0) :]
    order = order[(exponents != 0).any(axis=0)[order]]
    elements, starts = np.unique(owners[order], return_index=True)
    others = digits_of_sums(np.array(sums, dtype=np.int64)[order])
    parts = []
    for k, part in enumerate(digits_of(exponents[:, order])):
        for j, other in enumerate(others):
            total = np.zeros((n, len(exponents)), dtype=np.int64)
            if len(elements) == 1:
                for here in (slice(start, start + EXACT) for start in range(0, len(order), EXACT)):
                    total[elements[0]] += (part[:, here].astype(float) @ other[here].astype(float)).astype(np.int64)
            elif len(elements):
                total[elements] = np.add.reduceat(part * other, starts, axis=1).T
            parts += [(k + j, total & LOW), (k + j + 1, total >> DIGIT)]
    return added(parts)
