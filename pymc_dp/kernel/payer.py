"""What pays for reading rows: an account, and what was granted of it. What fails then says nothing of a row."""

from __future__ import annotations

import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.account import Account, Grant, Pool, Rehearsal, check_pays, own_event, repeated
from pymc_dp.kernel.accounting.events import Event
from pymc_dp.kernel.arguments import positive, whole
from pymc_dp.kernel.errors import ArgumentError, PrivacyError, ReleaseError
from pymc_dp.kernel.randomness import insecure

Array = npt.NDArray[Any]
Pay = Grant | Pool | None

HARDENED, FLOAT64 = "hardened", "float64"
"""Arithmetic of an operation: exact whole numbers and discrete draws, or floats whose last bits are not covered."""


class Made(NamedTuple):
    """An operation that was paid for."""

    name: str
    event: Event
    arithmetic: str


class Payer(ABC):
    """The account of some rows: every operation on them is charged to it, or taken from what was, before it reads.

    Parameters
    ----------
    account : Account
    relation : str
        Under which these rows are counted.
    """

    def __init__(self, account: Account, relation: str) -> None:
        self._account, self._relation = account, relation
        self._own: list[Grant | Pool] = []
        self._made: list[Made] = []

    @property
    def account(self) -> Account:
        """What pays."""
        return self._account

    @property
    @abstractmethod
    def neighbours(self) -> str:
        """Relation of neighbours: "replace" or "add_remove"."""

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
        if self._account.relation != (relation or self._relation):
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
