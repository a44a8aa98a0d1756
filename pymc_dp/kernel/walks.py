"""Walks: fixed lists of noised sums over units, charged at once; what each is of may depend on earlier outcomes.

What a unit adds comes from a *block function*, which maps the rows of a block to floats, one array for each unit. That
it maps each unit alone is not checked here: block functions are trusted beside the kernel. What their floats can do is
checked: whole numbers of each unit are held within a limit, whatever the floats are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain, islice
from threading import Lock
from typing import Any, Literal, Protocol, final

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel import draw
from pymc_dp.kernel._outside import PER_PERSON, ArgumentError, PrivacyError, insecure
from pymc_dp.kernel.account import Account, Grant, Rehearsal
from pymc_dp.kernel.arguments import whole
from pymc_dp.kernel.holder import read_rows
from pymc_dp.kernel.limits import MOST_ROWS
from pymc_dp.kernel.walk_kinds import Kind, WalkSum, checked, walk_event
from pymc_dp.kernel.walk_limits import joined

Array = npt.NDArray[Any]
Rows = Any
Block = Callable[[Rows], Array]
"""From the rows of some units to floats, one array a unit: a function of its rows and of public numbers."""

MOST_ENTRIES = 2**26
"""Of the sums of all threads together, unless one has more."""
SHAPES = "A block function returned another shape than was paid for; this is an error of pymc_dp."


class Source(Protocol):
    """Where rows are: it moves them, and computes nothing with them."""

    @property
    def relation(self) -> str:
        """Under which neighbours its units are counted: rows, or persons of some column, who are whole in a block."""

    def opened(self) -> AbstractContextManager[Callable[[], Iterable[Rows]]]:
        """Make rows ready, and return what goes through all of them once: blocks, or functions that return them.

        Only the kernel calls it, once, after the charge. Each unit is in one block, whenever it is gone through.
        """

    def count(self, block: Rows) -> int:
        """Return how many units a block has."""


@final
class Walk:
    """Noised sums over the rows of a source, of a list that is fixed: composed, charged in one charge, each made once.

    Parameters
    ----------
    source : Source
    account : Account
        Of the relation of the source.
    sums : sequence of WalkSum
    label : str
        What the charge is for, public.
    threads : int
        That go through blocks side by side.

    Raises
    ------
    BudgetExceeded, ArgumentError, PrivacyError
        Before anything is read; nothing is spent.

    Notes
    -----
    **Guarantee.** All sums together have the privacy of `walk_event`, whatever block functions return, and however each
    is chosen by the outcomes of others: of each sum neighbours differ by no more than its kind says, which is enforced
    on the whole numbers that are added; its noise is fixed before the first outcome. Arithmetic hardened. It needs that
    a block function maps each unit alone. Sums depend neither on blocks nor on which thread was first.
    """

    def __init__(
        self,
        source: Source,
        account: Account,
        sums: Sequence[WalkSum],
        *,
        label: str = "kernel",
        threads: int = 1,
    ) -> None:
        relation = source.relation
        if account.relation != relation:
            raise PrivacyError(f"The account counts under {account.relation!r}, the rows under {relation!r}.")
        neighbours = "add_remove" if relation.startswith(PER_PERSON) else relation
        if neighbours not in ("replace", "add_remove"):
            raise ArgumentError(f"A walk counts rows or persons, and its account counts under {relation!r}.")
        self._threads = whole("threads", threads)
        self._sums = checked(sums)
        for scale in dict.fromkeys(scale for one in self._sums for scale in one.kind.scales(one.scale)):
            draw.check_noise("gaussian", scale)
        event = walk_event(self._sums, neighbours)
        self._source: Source | None = source
        self._rehearsed = type(account) is Rehearsal
        self._blocks: Callable[[], Iterable[Rows]] | None = None
        account.charge(event, label)
        self._grants = [Grant(one, 1) for one in event.events]

    @property
    def guarantee(self) -> Literal["exact", "none"]:
        """Class of what comes out: "exact", or "none" on public rows and where a test replaces the noise."""
        return "none" if self._rehearsed or insecure() is not None else "exact"

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Have the rows ready, once. Reads them: they were paid for."""
        source, self._source = self._source, None
        if source is None:
            raise PrivacyError("The rows of a walk are opened once. Nothing was read.")
        self._count, held = source.count, ExitStack()
        try:
            self._blocks = read_rows(lambda: held.enter_context(source.opened()), PrivacyError)
            yield
        finally:
            self._blocks = None
            read_rows(held.close, PrivacyError)

    def made(self, place: int, block: Block) -> Array:
        """Return the sum at a place of the list, in whole units, of what a block function says; once for each place."""
        place = whole("place", place, 0, len(self._sums) - 1)
        if self._blocks is None:
            raise PrivacyError("The rows of this walk are not open. Nothing was read.")
        one, grant, blocks = self._sums[place], self._grants[place], self._blocks
        grant.take(grant.event)
        return read_rows(lambda: one.kind._noised(self._summed(one.kind, block, blocks()), one.scale), PrivacyError)

    def _summed(self, kind: Kind, block: Block, blocks: Iterable[Rows]) -> Array:
        """Sum over all rows, in one pass. **Private**."""
        rest, found = _Shared(blocks), list[Array]()
        first = rest.take(2)
        room = max(1, MOST_ENTRIES // kind._empty().size)
        threads = min(self._threads, room) if len(first) > 1 else 1
        with ThreadPoolExecutor(threads) as pool:
            work = [pool.submit(self._added, kind, block, first[k::threads], rest) for k in range(threads)]
            try:
                for one in as_completed(work):
                    found += one.result()
            except BaseException:
                rest.stop()
                raise
        return joined(found)

    def _added(self, kind: Kind, block: Block, first: Sequence[Rows], rest: _Shared) -> list[Array]:
        """Sum over some blocks, and over as many more as are left when it is done with these."""
        found, left, (*_, width) = [kind._empty()], MOST_ROWS, kind.shape
        with np.errstate(all="ignore"):  # a warning could depend on a row
            for each in chain(first, rest):
                rows = each() if callable(each) else each
                own = np.ascontiguousarray(block(rows), dtype=np.float64)
                if own.ndim != 1 + len(kind.shape) or len(own) != self._count(rows) or own.shape[-1] != width:
                    raise PrivacyError(SHAPES)
                if own.ndim == 3 and own.shape[1] > kind.shape[0]:
                    raise PrivacyError(SHAPES)
                if len(own) > left:
                    found.append(kind._empty())
                    left = MOST_ROWS
                left -= len(own)
                kind._add(own, found[-1])
        return found


class _Shared:
    """Blocks that several threads take, each one once."""

    def __init__(self, blocks: Iterable[Rows]) -> None:
        self._blocks, self._lock = iter(blocks), Lock()

    def take(self, count: int) -> list[Rows]:
        """Return the next ones, as far as there are any."""
        with self._lock:
            return list(islice(self._blocks, count))

    def stop(self) -> None:
        """Leave the rest where it is."""
        with self._lock:
            self._blocks = iter(())

    def __iter__(self) -> Iterator[Rows]:
        while found := self.take(1):
            yield found[0]
