"""What a step method would do for a model and a budget."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pymc_dp.accounting import Budget
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.inspection.findings import Inspected

if TYPE_CHECKING:
    from pymc_dp.step_methods.base import PrivateStep


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What a step method would do for a model and a budget, found without reading a row.

    Attributes
    ----------
    call : str
    guarantee : str
    noise : str
        Temperature or noise; empty where the method does not fit.
    problem : str
        What is in the way and what would make the method possible; empty where it fits.
    facts : tuple of (str, str)
    arithmetic : str
        Whether the last bits of what is drawn are covered: "hardened", or "float64".
    bound : PrivateStep, optional
        The step itself, bound to the model and priced; None where it does not fit.
    """

    call: str
    guarantee: str
    noise: str = ""
    problem: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    arithmetic: str = "float64"
    bound: PrivateStep | None = field(default=None, repr=False, compare=False)

    @property
    def fits(self) -> bool:
        """Whether ``dp.sample(step=...)`` would accept the model."""
        return not self.problem


def previewed(specification: PrivateStep, found: Inspected, budget: Budget, chains: int = 1) -> Preview:
    """Say what a specification would do with its default numbers of draws; reads no private value, spends nothing."""
    call, guarantee = f"dp.sample(step={specification.written})", specification.guarantee
    draws, tune = specification.lengths()
    steps = (draws + tune) * specification.steps_per_draw
    looking = copy.copy(specification)
    looking.previewing = True
    try:
        looking.refuse_metric(found.domain)
        step, _ = looking.bound(looking.of_inspected(found), budget, chains=chains, steps=steps)
    except UnsupportedModelError as error:
        return Preview(call=call, guarantee=guarantee, problem=" ".join(map(str, error.problems)))
    except ArgumentError as error:
        return Preview(call=call, guarantee=guarantee, problem=str(error))
    record = step.describe()
    noise = f"{record.noise}, for {draws} draw{'s' * (draws != 1)}"
    return Preview(
        call=call,
        guarantee=step.claimed,
        noise=noise,
        facts=record.facts,
        arithmetic=step.arithmetic,
        bound=step,
    )


__all__ = ["Preview", "previewed"]
