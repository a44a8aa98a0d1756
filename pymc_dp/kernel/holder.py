"""The only holder of rows: what pays for reading them, and how they are read."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.account import Account, Grant, Pool, Rehearsal, check_pays, own_event, repeated
from pymc_dp.kernel.accounting.events import Event
from pymc_dp.kernel.arguments import positive, whole
from pymc_dp.kernel.errors import ArgumentError, PrivacyError, ReleaseError
from pymc_dp.kernel.randomness import insecure
from pymc_dp.kernel.relations import PER_UNIT
from pymc_dp.kernel.rowmap import Columns, RowMap
from pymc_dp.kernel.table import WEIGHT, ByKind, Table

Array = npt.NDArray[Any]
Pay = Grant | Pool | None
Add = Callable[[Array, Array, Array, list[Array], Array], None]
"""Takes numbers of rows, where units start, how often each counts, columns of the rows, and their weights."""

AT_ONCE = 2**20
"""Numbers of rows that are held at once, as long as these are more than one unit's."""
MOST_HELD = 2**24
"""Numbers of one unit's rows."""
ROW_MAPS: set[type] = {RowMap, Columns}
NONE = np.zeros(0, dtype=np.int64)

HARDENED, FLOAT64 = "hardened", "float64"
"""Arithmetic of an operation: exact whole numbers and discrete draws, or floats whose last bits are not covered."""


class Made(NamedTuple):
    """An operation that was paid for."""

    name: str
    event: Event
    arithmetic: str


class Holder:
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
        self._table, self._account = table, account
        self._own: list[Grant | Pool] = []
        self._made: list[Made] = []
        self._known: dict[tuple[Any, ...], Array] = {}

    @property
    def account(self) -> Account:
        """What pays."""
        return self._account

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

    @property
    def made(self) -> tuple[Made, ...]:
        """Operations that were paid for, with their exact costs and their arithmetic."""
        return tuple(self._made)

    @property
    def guarantee(self) -> str:
        """Class of what comes out: "exact", or "none" on public rows and where a test replaces the noise.

        It is that of ideal arithmetic; `arithmetic` says which there was.
        """
        return "none" if isinstance(self._account, Rehearsal) or insecure() is not None else "exact"

    @property
    def arithmetic(self) -> str:
        """Of all operations made: "hardened" where whole numbers were, "float64" where the last bits may tell more."""
        return FLOAT64 if any(one.arithmetic == FLOAT64 for one in self._made) else HARDENED

    # What pays.

    def grant(self, event: Event, count: int = 1, *, label: str = "kernel") -> Grant:
        """Pay for so many uses of an event that is fixed now; BudgetExceeded where they do not fit."""
        count = whole("count", count)
        event = own_event(event)
        self._charge(repeated(event, count), label)
        return self._kept(Grant(event, count))

    def pool(self, *, rho: float | None = None, epsilon: float | None = None, label: str = "kernel") -> Pool:
        """Reserve ρ of zCDP, or pure ε, for steps whose costs depend on what they release."""
        if (rho is None) == (epsilon is None):
            raise ArgumentError("A pool is of rho or of epsilon. Give one of them.")
        if rho is not None:
            (rho,) = positive(rho=rho)
        else:
            (epsilon,) = positive(epsilon=epsilon)
        pool = Pool(rho=rho, epsilon=epsilon)
        self._charge(pool.event, label)
        return self._kept(pool)

    def _kept[P: (Grant, Pool)](self, pay: P) -> P:
        self._own.append(pay)
        return pay

    def _charge(self, event: Event, label: str, relation: str | None = None) -> None:
        if self._account.relation != (relation or self._table.relation):
            raise PrivacyError(f"The account counts under {self._account.relation!r}, which this does not.")
        self._account.charge(event, label)

    def _pay(self, pay: Pay, event: Event, name: str, arithmetic: str = HARDENED) -> None:
        """Charge an operation, or take it from what was charged; before anything is read."""
        if pay is None:
            self._charge(event, name)
        else:
            check_pays(pay, self._own)
            pay.take(event)
        self._made.append(Made(name, event, arithmetic))

    # The same rows otherwise.

    def by_kind(self, nodes: int = 257) -> Self:
        """Return the same rows counted by kind, on the same account: a pass is then one over public kinds."""
        return self._with(ByKind(self._table, nodes))

    def beside(self, **released: Any) -> Self:
        """Return the same rows with more public columns, one value a row, on the same account; replace alone."""
        return self._with(self._table.beside(released))

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

    def _read[T](self, work: Callable[[], T]) -> T:
        """Return what `work` makes of the rows; of what it raises nothing is passed on, see `read_rows`."""
        return read_rows(work)


def read_rows[T](work: Callable[[], T], *shown: type[Exception]) -> T:
    """Return what `work` makes of the rows. What it raises could show one of them, and is not passed on.

    Parameters
    ----------
    work : callable
    *shown : classes of errors
        Whose texts are passed on: readers of sources are trusted to raise these with nothing of a row.

    Raises
    ------
    ReleaseError
        If anything else fails: with one text, without a cause, and with the frames that it went through emptied.
    KeyboardInterrupt, SystemExit
        Likewise, where they end it.
    """
    failure: BaseException
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return work()
    except BaseException as error:  # panics of compiled libraries too
        linked: list[BaseException | None] = [error]
        for found in linked:  # which grows: causes and contexts
            if found is not None:
                traceback.clear_frames(found.__traceback__)
                linked += [
                    each for each in (found.__cause__, found.__context__) if all(each is not one for one in linked)
                ]
        del linked, found
        if isinstance(error, shown):
            failure = error.with_traceback(None)
            failure.__cause__ = failure.__context__ = None
        else:
            failure = type(error)() if type(error) in (KeyboardInterrupt, SystemExit) else ReleaseError()
    raise failure  # out here, where it has no context


def weighted(found: Array, shares: Array) -> Array:
    """Return numbers of rows times their weights, in place; limits come after."""
    if shares.size:
        found *= (shares / WEIGHT)[:, None]
    return found
