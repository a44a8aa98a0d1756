"""Noised counts of the labels that occur among rows: one charge, one pass over a source, then noise and a threshold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel import draw
from pymc_dp.kernel.account import Account, Once, check_relation, covers, own_event
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.events import ApproximateEvent
from pymc_dp.kernel.arguments import flag, positive, whole, word
from pymc_dp.kernel.errors import ArgumentError, PrivacyError
from pymc_dp.kernel.noise import tail
from pymc_dp.kernel.payer import read_rows

Label = int | str


class Coded(NamedTuple):
    """Labels of some rows, each written once. **Private**.

    Attributes
    ----------
    labels : sequence of int or str
    places : (n_rows,) array of int
        Of the label of each row; one that is no place is that of a missing label.
    """

    labels: Sequence[Label]
    places: npt.NDArray[Any]


Block = Sequence[Label | None] | Coded
"""Labels of some rows: of each row one, or anything else where it is missing."""


class Source(Protocol):
    """Where labels are: it moves them, and counts nothing."""

    @property
    def relation(self) -> str:
        """Under which neighbours its rows are counted."""

    def opened(self) -> AbstractContextManager[Callable[[], Iterable[Block]]]:
        """Make rows ready, and return what goes through all of them once.

        Only the kernel calls it, once, after the charge. Each row is in one block.
        """


def label_event(scale: float, least: int, neighbours: str) -> ApproximateEvent:
    """Return what noised counts of rows cost, of which those from `least` on are shown. Public."""
    (scale,), least = positive(scale=scale), whole("least", least, 2)
    sense = 2 if word("neighbours", neighbours, ("replace", "add_remove")) == "replace" else 1
    loss, chance = sense / Fraction(scale), tail(scale, least - 1)
    return ApproximateEvent(epsilon=float_up(loss), delta=float_up(chance) or math.ulp(0.0))


@final
class LabelCounts(Once):
    """Noised counts of the labels of rows, as far as they reach a threshold: charged when made, read and drawn once.

    Parameters
    ----------
    source : Source
    account : Account
        Of the relation of the source.
    scale : float
        Of Laplace noise.
    least : int
        Noised count from which a label is shown, >= 2.
    integers : bool
        Whether labels are whole numbers rather than texts. A value of another type counts as missing.
    charged : ApproximateEvent, optional
        Charged in place of what the counts cost, which it must cover.
    label : str
        What the charge is for, public.

    Raises
    ------
    BudgetExceeded, ArgumentError, PrivacyError
        Before anything is read; nothing is spent.

    Notes
    -----
    **Guarantee.** That of `label_event`, for rows: each adds 1 to the count of one label, or to none. Labels are
    exactly `str` or exactly `int`, noise is drawn in the order of labels. Class exact, arithmetic hardened.
    """

    def __init__(
        self,
        source: Source,
        account: Account,
        *,
        scale: float,
        least: int,
        integers: bool = False,
        charged: ApproximateEvent | None = None,
        label: str = "kernel",
    ) -> None:
        super().__init__()
        relation = check_relation(account, source.relation)
        cost = label_event(scale, least, relation)
        (self._scale,), self._least = positive(scale=scale), whole("least", least, 2)
        self._kind: type = int if flag("integers", integers) else str
        event = cost if charged is None else own_event(charged)
        if type(event) is not ApproximateEvent or not covers(event, cost):
            raise ArgumentError(f"charged must be an ApproximateEvent that covers {cost}, got {event}.")
        draw.check_noise("laplace", self._scale)
        account.charge(event, label)
        self._left = [source]

    def shown(self) -> dict[Label, int]:
        """Read the rows, count labels, and return those whose noised counts reach the threshold, in their own order."""
        self._require_here()
        with self._lock:
            if not self._left:
                raise PrivacyError("These labels were counted already. Nothing was read.")
            source = self._left.pop()
        return read_rows(lambda: self._shown(source), PrivacyError)

    def _shown(self, source: Source) -> dict[Label, int]:
        found: Counter[Any] = Counter()
        with source.opened() as rows:
            for block in rows():
                self._add(block, found)
        labels = sorted(found)  # noise is drawn in the order of labels, never of rows
        counts = np.array([found[label] for label in labels], dtype=np.int64)
        noised = draw.noised(counts, "laplace", self._scale).tolist()
        return {label: count for label, count in zip(labels, noised, strict=True) if count >= self._least}

    def _add(self, block: Block, found: Counter[Any]) -> None:
        """Count the labels of some rows, each row once. **Private**."""
        if type(block) is not Coded:
            found.update(each for each in block if type(each) is self._kind)
            return
        places = block.places[(block.places >= 0) & (block.places < len(block.labels))]
        for label, count in zip(block.labels, np.bincount(places, minlength=len(block.labels)).tolist(), strict=True):
            if count and type(label) is self._kind:
                found[label] += count
