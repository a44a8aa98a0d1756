"""What a step may spend, on how many steps, and how much of it is spent after so many.

How many chains of one funded step have begun, counted across processes.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dp.accounting import Budget, Event
from pymc_dp.errors import BudgetExceeded, PrivacyError
from pymc_dp.kernel.accounting.totals import total_epsilon
from pymc_dp.samplers.chain_account import Token

MOST_STEPS = 10**9
"""Of a chain, up to which it is looked for how many a budget would allow."""


@dataclass(frozen=True, kw_only=True)
class Funding:
    """What a step may spend, and on how many steps.

    Attributes
    ----------
    budget : Budget
        For all chains together.
    chains : int
    steps : int
        Steps of one chain, tuning included.
    """

    budget: Budget
    chains: int
    steps: int

    @property
    def uses(self) -> int:
        """Steps of all chains."""
        return self.chains * self.steps


@dataclass(frozen=True, kw_only=True, eq=False)
class Priced:
    """What the steps of all chains cost.

    Attributes
    ----------
    funding : Funding
    event : Event
        Of everything: never above the budget.
    on_the_way : tuple of (int, Event)
        What everything costs that all chains have done once each has made so many steps, fewer than all.
    """

    funding: Funding
    event: Event
    on_the_way: tuple[tuple[int, Event], ...] = ()

    @cached_property
    def epsilon(self) -> float:
        """The loss of all steps of all chains, at the δ of their budget."""
        return total_epsilon(self.event, self.funding.budget.delta).epsilon

    @cached_property
    def curve(self) -> tuple[Any, Any]:
        """Steps of one chain, and the loss of all chains once each has made so many; to be interpolated."""
        delta = self.funding.budget.delta
        losses = [total_epsilon(event, delta).epsilon for _, event in self.on_the_way]
        # Other accountants may be best for shorter chains, by a hair: what was spent never falls.
        rising = np.maximum.accumulate(np.minimum([*losses, self.epsilon], self.epsilon))
        return np.array([*(steps for steps, _ in self.on_the_way), self.funding.steps]), rising

    def check(self) -> None:
        """Raise if the steps would cost more than their budget."""
        budget = self.funding.budget
        if self.epsilon > budget.epsilon:
            raise PrivacyError(
                f"The planned steps would cost {self.epsilon}, not {budget}; this is an error of pymc_dp."
            )


def steps_within(cost_of: Callable[[int], float | None], epsilon: float, steps: int) -> tuple[int, float] | None:
    """Return how many steps a budget would allow, and what they cost; None where that is no more than there are.

    Parameters
    ----------
    cost_of : callable
        Loss of so many steps; None where it is not known.
    epsilon : float
        What they may cost.
    steps : int
        That there are.
    """
    best = steps
    while (loss := cost_of(2 * best)) is not None and loss <= epsilon:
        best *= 2
        if best > MOST_STEPS:
            return None
    high = 2 * best
    while loss is not None and high - best > max(1, best // 200):
        middle = (best + high) // 2
        loss = cost_of(middle)
        best, high = (middle, high) if loss is not None and loss <= epsilon else (best, middle)
    found = cost_of(best)
    return None if found is None or best == steps else (best, found)


def some_of(steps: int, points: int = 32) -> list[int]:
    """Return numbers of steps below `steps`, in proportion, at which to look at what was spent.

    Examples
    --------
    >>> some_of(3), some_of(1)
    ([1, 2], [])
    """
    counts = np.unique(np.rint(np.geomspace(1, steps, points + 1)).astype(int))
    return [int(count) for count in counts if count < steps]


class Claims:
    """A folder of tokens, one per chain that was paid for; a chain takes its token before it sees a row.

    A step method learns neither how many chains there are nor which one it runs, is copied into worker processes whose
    state never comes back, and may be handed to ``pm.sample`` twice. Files made exclusively are seen by all of them.

    Parameters
    ----------
    chains : int
        Number of chains paid for.

    Attributes
    ----------
    identity : int
        A number of 52 random bits, public, that every state of these chains carries.
    """

    def __init__(self, chains: int) -> None:
        self.chains = chains
        self.identity = int.from_bytes(os.urandom(8)) >> 12
        self.folder = tempfile.mkdtemp(prefix="pymc_dp_")
        self._owner = os.getpid()
        weakref.finalize(self, _remove, self.folder, self._owner)

    def __getstate__(self) -> dict[str, object]:
        return {"chains": self.chains, "folder": self.folder, "identity": self.identity}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def take(self, tune: int, draws: int, *, secure: bool = True) -> Token:
        """Take the token of one chain of `tune` + `draws` states, whose randomness is `secure` or seeded.

        Raises
        ------
        BudgetExceeded
            If all chains that were paid for have begun, or earlier ones had another length.
        """
        wanted = {"tune": tune, "draws": draws, "secure": secure}
        for number in range(self.chains):
            path = Path(self.folder) / str(number)
            try:
                with path.open("x", encoding="utf-8") as file:
                    json.dump(wanted, file)
            except FileExistsError:
                begun = _read(path)
                if (begun["tune"], begun["draws"]) != (tune, draws):
                    raise BudgetExceeded(
                        f"This step pays for {self.chains} chains of one length; one has begun already with other "
                        f"numbers than tune={tune}, draws={draws}. Make a new step, with a budget of its own."
                    ) from None
                continue
            except FileNotFoundError:
                break
            return Token(number)
        raise BudgetExceeded(
            f"This step was funded for {self.chains} chain{'s' * (self.chains != 1)}, and all of them have begun: "
            "another one would be another release. Pass chains= to the step and the same chains= to pm.sample, or "
            "make a new step with a budget of its own."
        )

    def taken(self) -> list[dict[str, int]]:
        """Length and kind of randomness of the chains that have begun."""
        paths = [Path(self.folder) / str(token) for token in range(self.chains)]
        return [_read(path) for path in paths if path.exists()]


def _read(path: Path) -> dict[str, int]:
    for _ in range(1000):  # another process may have made the file and not yet written it
        text = path.read_text(encoding="utf-8")
        if text.endswith("}"):
            break
    result: dict[str, int] = json.loads(text)
    return result


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["Claims", "Funding", "Priced", "some_of", "steps_within"]
