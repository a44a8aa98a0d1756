"""The account of one chain, whose cost was charged with that of all chains before rows were read."""

from __future__ import annotations

from typing import final

from pymc_dp.accounting import Event
from pymc_dp.errors import BudgetExceeded
from pymc_dp.kernel.account import Once, covers


@final
class ChainAccount(Once):
    """What a chain may charge: once, and no more than was paid for it.

    Chains run in processes of their own, where no ledger can be asked. Each takes a token before it begins (`Claims`),
    and with it one of these. It cannot be copied, and pays in the process that made it.

    Parameters
    ----------
    relation : str
        Under which neighbours it was paid.
    event : Event
        What was paid for the chain.

    Raises
    ------
    BudgetExceeded
        From `charge`, where it was charged before, or for more.
    """

    def __init__(self, relation: str, event: Event) -> None:
        super().__init__()
        self.relation = relation
        self._left: list[Event] = [event]

    def charge(self, event: Event, label: str) -> None:
        """Use what was paid for the chain."""
        self._require_here()
        with self._lock:
            if not self._left or not (event == self._left[0] or covers(self._left[0], event)):
                raise BudgetExceeded(f"{label} costs more than was paid for this chain. Nothing was read.")
            self._left.clear()


__all__ = ["ChainAccount"]
