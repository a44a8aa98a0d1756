"""The account of one chain, whose cost was charged with that of all chains before rows were read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import final

from pymc_dp.accounting import Event
from pymc_dp.errors import BudgetExceeded, PrivacyError
from pymc_dp.kernel import Grant, Kernel, Table
from pymc_dp.kernel.account import Once, covers, repeated


@final
class Token(Once):
    """Of one chain that was paid for: accounts of a chain can be made while it `begins`, which it does once.

    Parameters
    ----------
    number : int
        Which of the tokens of a step it is, from 0.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self._used, self._open = number, False, False

    @property
    def open(self) -> bool:
        """Whether its chain begins now, here: not in a fork, nor later, in a copy of the context that it began in."""
        return self._open and self._birthplace.here

    @contextmanager
    def begins(self) -> Iterator[None]:
        """Let a chain begin.

        Raises
        ------
        BudgetExceeded
            If one has begun by this token.
        """
        self._require_here()
        with self._lock:
            if self._used:
                raise BudgetExceeded("A chain has begun by this token: another one would be another release.")
            self._used = self._open = True
        before = _BEGINS.set(self)
        try:
            yield
        finally:
            self._open = False
            _BEGINS.reset(before)


_BEGINS: ContextVar[Token | None] = ContextVar("_BEGINS", default=None)


def require_token() -> None:
    """Raise where no chain begins that has taken its token."""
    token = _BEGINS.get()
    if token is None or not token.open:
        raise PrivacyError("A chain begins by setup_chain alone, which takes the token of one that was paid for.")


def by_token[**P, R](begin: Callable[P, R]) -> Callable[P, R]:
    """Let a method that begins a chain do nothing but raise where no token was taken."""

    @wraps(begin)
    def guarded(*args: P.args, **given: P.kwargs) -> R:
        require_token()
        return begin(*args, **given)

    return guarded


@final
class ChainAccount(Once):
    """What a chain may charge: each part that was paid for it once, and no more.

    Chains run in processes of their own, where no ledger can be asked. Each takes a token before it begins (`Claims`),
    and only then can one of these be made. It cannot be copied, and pays in the process that made it.

    Parameters
    ----------
    relation : str
        Under which neighbours it was paid.
    *paid : Event
        What was paid for the chain, part by part.

    Raises
    ------
    PrivacyError
        Where no chain begins by a token.
    BudgetExceeded
        From `charge`, for what no part that is left covers.
    """

    def __init__(self, relation: str, *paid: Event) -> None:
        require_token()
        super().__init__()
        self.relation = relation
        self._left = list(paid)

    def charge(self, event: Event, label: str) -> None:
        """Use up a part of what was paid for the chain."""
        self._require_here()
        with self._lock:
            part = next((k for k, own in enumerate(self._left) if event == own or covers(own, event)), None)
            if part is None:
                raise BudgetExceeded(f"{label} costs more than was paid for this chain. Nothing was read.")
            del self._left[part]


NOT_BEGUN = "No chain has begun here: call setup_chain first. A copy of a step begins its own."


def granted(table: Table, relation: str, event: Event, uses: int) -> tuple[Kernel, Grant]:
    """Begin a chain of so many uses of one event, which was charged with those of all chains."""
    kernel = Kernel(table, ChainAccount(relation, repeated(event, uses)))
    return kernel, kernel.grant(event, uses)


__all__ = ["NOT_BEGUN", "ChainAccount", "Token", "by_token", "granted", "require_token"]
