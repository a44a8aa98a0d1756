"""The only holder of rows, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from pymc_dp.kernel.account import Account
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.payer import Array, Payer
from pymc_dp.kernel.relations import PER_UNIT
from pymc_dp.kernel.rowmap import Columns, RowMap
from pymc_dp.kernel.table import WEIGHT, ByKind, Table

Add = Callable[[Array, Array, Array, list[Array], Array], None]
"""Takes numbers of rows, where units start, how often each counts, columns of the rows, and their weights."""

AT_ONCE = 2**20
"""Numbers of rows that are held at once, as long as these are more than one unit's."""
MOST_HELD = 2**24
"""Numbers of one unit's rows."""
ROW_MAPS: set[type] = {RowMap, Columns}
NONE = np.zeros(0, dtype=np.int64)


class Holder(Payer):
    """A table and the account of its budget.

    Every operation checks its arguments, computes what it costs from them, is paid for, and only then reads: units'
    numbers are held within a limit as whole numbers, summed exactly, and a draw is made. Under "replace" a neighbour
    moves a sum by `sense` = 2 times what a unit may add, under "add_remove" by `sense` = 1.

    Parameters
    ----------
    table : Table
    account : Account
        Of the table's relation, or per unit of a metric (then `choose_per_unit` alone is possible).
    """

    def __init__(self, table: Table, account: Account) -> None:
        if type(table) not in (Table, ByKind):
            raise ArgumentError("table must be a Table, and of no class derived from it.")
        if account.relation != table.relation and not account.relation.startswith(PER_UNIT):
            raise PrivacyError(f"The account counts under {account.relation!r}, the table under {table.relation!r}.")
        super().__init__(account, table.relation)
        self._table = table
        self._known: dict[tuple[Any, ...], Array] = {}

    @property
    def neighbours(self) -> str:
        """Relation of neighbours of the table: "replace" or "add_remove"."""
        return self._table.neighbours

    @property
    def sense(self) -> int:
        """By how many times what a unit adds neighbours differ: 2 under replace, else 1."""
        return 2 if self.neighbours == "replace" else 1

    @property
    def n_rows(self) -> int:
        """Number of rows; public under replace alone."""
        return self._table.n_rows

    # The same rows otherwise.

    def by_kind(self, nodes: int = 257) -> Self:
        """Return the same rows counted by kind, on the same account: a pass is then one over public kinds."""
        return self._with(ByKind(self._table, nodes))

    def _with(self, table: Table) -> Self:
        other = type(self)(table, self._account)
        other._own, other._made = self._own, self._made
        return other

    # Reading.

    def _scan(
        self,
        rowmap: RowMap,
        parameters: Sequence[Any],
        width: int,
        add: Add,
        *,
        wide: int = 0,
        before: list[Any] | None = None,
    ) -> None:
        """Hand the numbers of all rows to `add`, which makes `wide` of each. **Private**; after it was paid for.

        Of a row's one number, that at the parameters `before` is taken off.
        """
        table, blocks, done = self._table, self.neighbours == "replace", 0  # where rows stand is public then
        places = [list(table.columns).index(name) for name, _, _ in rowmap._types]
        moved = None if before is None else np.subtract(*self._at(rowmap, [parameters, before]))
        for rows, first, times in table._blocks(max(1, AT_ONCE // max(width, wide))):
            found = np.empty((len(rows[0]), width))
            if moved is None:
                rowmap([rows[place] for place in places], parameters, found, by_blocks=blocks)
            else:
                found[:, 0] = moved[done : done + len(found)]
            shares = NONE if table._weights is None else table._weights[done : done + len(found)]
            add(found, first, times, rows, shares)
            done += len(found)

    def _at(self, rowmap: RowMap, states: Sequence[Sequence[Any]]) -> list[Array]:
        """Return one number of each row at each of some states: those of the last call are remembered. **Private**.

        What is looked up is public: the row map, and its parameters.
        """
        before, self._known = self._known, {}
        keys = [(rowmap, *((held.shape, held.tobytes()) for held in given)) for given in states]
        for key, given in zip(keys, states, strict=True):
            found = before.get(key, self._known.get(key))
            if found is None:
                parts = [np.zeros(0)]
                self._scan(rowmap, given, 1, lambda numbers, *_, parts=parts: parts.append(numbers[:, 0]))
                found = np.concatenate(parts)
            self._known[key] = found
        return [self._known[key] for key in keys]

    def _prepared(self, rowmap: RowMap, parameters: Sequence[Any], width: int) -> list[Any]:
        """Check a row map against the table, and return its parameters; before anything is paid.

        `width` is how many numbers of a row are held at once: where they do not fit, it fails for some tables alone.
        """
        if width * self._table.max_rows > MOST_HELD:
            raise ArgumentError(
                f"A unit has up to {width} numbers for each of {self._table.max_rows} rows; {MOST_HELD} are possible."
            )
        if type(rowmap) not in ROW_MAPS:
            raise ArgumentError("rowmap must be a RowMap, and of no class derived from it: that could keep rows.")
        rowmap.check_columns(self._table.columns)
        return rowmap.arguments(parameters)


def weighted(found: Array, shares: Array) -> Array:
    """Return numbers of rows times their weights, in place; limits come after."""
    if shares.size:
        found *= (shares / WEIGHT)[:, None]
    return found
