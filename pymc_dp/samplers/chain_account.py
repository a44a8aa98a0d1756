"""The account of one chain, whose cost was charged with that of all chains before rows were read."""

from __future__ import annotations

from typing import final

from pymc_dp.accounting import Event
from pymc_dp.errors import BudgetExceeded
from pymc_dp.kernel import Grant, Kernel, Table
from pymc_dp.kernel.account import Once, covers, repeated


@final
class ChainAccount(Once):
    """What a chain may charge: each part that was paid for it once, and no more.

    Chains run in processes of their own, where no ledger can be asked. Each takes a token before it begins (`Claims`),
    and with it one of these. It cannot be copied, and pays in the process that made it.

    Parameters
    ----------
    relation : str
        Under which neighbours it was paid.
    *paid : Event
        What was paid for the chain, part by part.

    Raises
    ------
    BudgetExceeded
        From `charge`, for what no part that is left covers.
    """

    def __init__(self, relation: str, *paid: Event) -> None:
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


__all__ = ["NOT_BEGUN", "ChainAccount", "granted"]
