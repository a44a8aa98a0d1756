"""Walks: fixed lists of noised sums over units, charged at once; what each is of may depend on earlier outcomes.

What a unit adds comes from a *block function*, which maps the rows of a block to floats, one array for each unit. That
it maps each unit alone is not checked here: block functions are trusted beside the kernel. What their floats can do is
checked: whole numbers of each unit are held within a limit, whatever the floats are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain, islice
from threading import Lock
from typing import Any, Literal, Protocol, final

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel import draw
from pymc_dp.kernel.account import Account, Grant, Rehearsal, check_relation
from pymc_dp.kernel.arguments import whole
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.limits import MOST_ROWS
from pymc_dp.kernel.payer import read_rows
from pymc_dp.kernel.randomness import insecure
from pymc_dp.kernel.relations import PER_PERSON
from pymc_dp.kernel.walk_kinds import WalkSum, checked, walk_event, walk_events
from pymc_dp.kernel.walk_limits import joined

Array = npt.NDArray[Any]
Rows = Any
Block = Callable[[Rows], Array]
"""From the rows of some units to floats, one array a unit: a function of its rows and of public numbers."""
Asked = tuple[WalkSum, Block]

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
        relation = check_relation(account, source.relation)
        neighbours = "add_remove" if relation.startswith(PER_PERSON) else relation
        if neighbours not in ("replace", "add_remove"):
            raise ArgumentError(f"A walk counts rows or persons, and its account counts under {relation!r}.")
        self._threads = whole("threads", threads)
        self._sums = checked(sums)
        if not self._sums:
            raise ArgumentError("A walk needs sums to make.")
        for kind, scale in dict.fromkeys(
            (one.kind.noise, own) for one in self._sums for own in one.kind.scales(one.scale)
        ):
            draw.check_noise(kind, scale)
        events = walk_events(self._sums, neighbours)
        self._source: Source | None = source
        self._rehearsed = type(account) is Rehearsal
        self._rows: Callable[[], Iterable[Rows]] | None = None
        account.charge(walk_event(self._sums, neighbours), label)
        self._grants = [Grant(one, 1) for one in events]

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
            self._rows = read_rows(lambda: held.enter_context(source.opened()), PrivacyError)
            yield
        finally:
            self._rows = None
            read_rows(held.close, PrivacyError)

    def made(self, place: int, block: Block) -> Array:
        """Return the sum at a place of the list, in whole units, of what a block function says; once for each place."""
        return self.together({place: block})[0]

    def together(self, blocks: Mapping[int, Block]) -> list[Array]:
        """Return sums at some places of the list, as `made` does, by one pass over the rows."""
        asked = [(whole("place", place, 0, len(self._sums) - 1), block) for place, block in blocks.items()]
        if self._rows is None:
            raise PrivacyError("The rows of this walk are not open. Nothing was read.")
        rows, made = self._rows, [(self._sums[place], block) for place, block in asked]
        for place, _ in asked:
            self._grants[place].take(self._grants[place].event)

        def work() -> list[Array]:
            totals = self._summed(made, rows())
            return [one.kind._noised(total, one.scale) for (one, _), total in zip(made, totals, strict=True)]

        return read_rows(work, PrivacyError)

    def _summed(self, asked: Sequence[Asked], blocks: Iterable[Rows]) -> list[Array]:
        """Sum over all rows, in one pass. **Private**."""
        rest, found = _Shared(blocks), list[list[Array]]()
        first = rest.take(2)
        room = max(1, MOST_ENTRIES // sum(one.kind._empty().size for one, _ in asked))
        threads = min(self._threads, room) if len(first) > 1 else 1
        with ThreadPoolExecutor(threads) as pool:
            work = [pool.submit(self._added, asked, first[k::threads], rest) for k in range(threads)]
            try:
                for each in as_completed(work):
                    found += each.result()
            except BaseException:
                rest.stop()
                raise
        return [joined(parts) for parts in zip(*found, strict=True)]

    def _added(self, asked: Sequence[Asked], first: Sequence[Rows], rest: _Shared) -> list[list[Array]]:
        """Sum over some blocks, and over as many more as are left when it is done with these."""
        found, left = [[one.kind._empty() for one, _ in asked]], MOST_ROWS
        with np.errstate(all="ignore"):  # a warning could depend on a row
            for each in chain(first, rest):
                rows = each() if callable(each) else each
                count = self._count(rows)
                if count > left:
                    found.append([one.kind._empty() for one, _ in asked])
                    left = MOST_ROWS
                left -= count
                for (one, block), total in zip(asked, found[-1], strict=True):
                    one.kind._add(_floats(block(rows), count, one.kind.shape), total)
        return found


def _floats(found: Any, count: int, shape: tuple[int, ...]) -> Array:
    """Return what a block function said, if it is of so many units, and of a shape that was paid for."""
    own = np.ascontiguousarray(found, dtype=np.float64)
    if own.ndim != 1 + len(shape) or len(own) != count or own.shape[-1] != shape[-1]:
        raise PrivacyError(SHAPES)
    if own.ndim == 3 and own.shape[1] > shape[0]:
        raise PrivacyError(SHAPES)
    return own


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
