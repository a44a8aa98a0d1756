"""Which private samplers take a model, and their temperature or noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pymc_dp.accounting import Budget
from pymc_dp.inspection.findings import Inspected
from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.langevin import SGLD
from pymc_dp.step_methods.metropolis import BarkerMetropolis, PenaltyMetropolis
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.preview import Preview, previewed
from pymc_dp.step_methods.registered import SAMPLERS


def previews(found: Inspected, budget: Budget) -> tuple[Preview, ...]:
    """Look at every private sampler with its default settings; reads no private value, spends nothing.

    Not at `TemperedMetropolis`, which nobody should be advised to use. At those registered from outside, too.
    """
    own = (TemperedGibbs(), BarkerMetropolis(), PenaltyMetropolis(), SGLD(), PrivateHMC())
    others = (*own, *(sampler() for sampler in SAMPLERS))
    return (*_one_sample(found, budget), *(previewed(step, found, budget) for step in others))


def _one_sample(found: Inspected, budget: Budget) -> tuple[Preview, ...]:
    """Look at exact draws; only where there are none, at a chain that is taken to have converged.

    A step that may fall back on a chain plans as the exact one does, so that one look is enough where no chain is
    needed, and where not even a chain would do.
    """
    lenient = previewed(OPS(assume_converged=True), found, budget)
    if lenient.fits and lenient.guarantee == "asymptotic":
        return previewed(OPS(), found, budget), lenient
    exact = lenient.bound
    if exact is not None:
        exact.settings.pop("assume_converged")
    return (replace(lenient, call=call_of(OPS())),)


def call_of(step: PrivateStep) -> str:
    """Return how a specification is passed to ``dp.sample``."""
    return f"dp.sample(step={step.written})"


def short(call: str) -> str:
    """Return the step method of a call alone."""
    return call.removeprefix("dp.sample(step=").removesuffix(")")


def listed(calls: Sequence[str], word: str = "or") -> str:
    """Join step methods as a sentence does."""
    names = [short(call) for call in calls]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


__all__ = ["call_of", "listed", "previews", "short"]
