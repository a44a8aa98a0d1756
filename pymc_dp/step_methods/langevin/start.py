"""Where chains begin: at the point that PyMC gives, or each at a posterior sample of its own, which is paid for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp.accounting import Budget, Event, total_epsilon
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.step_methods.base import Guarantee, Point
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.values import Values

HALF = 0.5
"""Share of the budget that starts get by default, as in the paper."""
EDGE = 18.0
"""Value in place of an infinite one, where a sample lies on the edge of its support: gradients are finite there."""
SHOWN = ("temperature", "one row moves", "draws")
"""What a start shows of the record of its posterior sample."""


@final
@dataclass(frozen=True)
class Asked:
    """What ``start=dp.OPS(...)`` asks for, compared by what it says, as a setting of a step must be."""

    options: tuple[tuple[str, Any], ...]

    def specification(self) -> OPS:
        """Return a new specification that asks for the same."""
        return OPS(**dict(self.options))

    def __repr__(self) -> str:
        return repr(self.specification())


def start_settings(start: object, share: float) -> dict[str, Any]:
    """Return what a step keeps of its arguments `start` and `start_share`; nothing where there is no start."""
    share = _validate.number("start_share", share)
    if start is None:
        if share != HALF:
            raise ArgumentError(f"start_share={share:g} means nothing without start=dp.OPS(). Give both, or neither.")
        return {}
    if not isinstance(start, OPS):
        raise ArgumentError(
            f"start={_validate.shown(start)} is not accepted: a chain begins where PyMC says, or at one posterior "
            "sample, start=dp.OPS(...). Leave it out, or write initval= in the model for a public point."
        )
    if start.is_bound:
        raise ArgumentError(
            f"start={start!r} has a budget of its own. Pass dp.OPS() without epsilon: it gets start_share of the "
            "budget of the chains."
        )
    if not 0 < share < 1:
        raise ArgumentError(f"start_share must lie strictly between 0 and 1, got {share:g}: both parts need a budget.")
    return {"start": Asked(tuple(start.settings.items())), "start_share": share}


@final
class GivenStart:
    """The point that PyMC gives, which is public and free."""

    event: Event | None = None
    facts: tuple[tuple[str, str], ...] = ()
    assumptions: tuple[str, ...] = ()

    def priced(self, funding: Funding) -> GivenStart:
        """Return the start for a budget."""
        return self

    def rest(self, budget: Budget) -> Budget:
        """Return the part of a budget that is set aside for the chains alone."""
        return budget

    def guarantee(self, of_chain: Guarantee) -> Guarantee:
        """Return the guarantee of chains that begin here."""
        return of_chain

    def load(self) -> None:
        """Read what the start needs; the budget was charged."""

    def begin(self) -> None:
        """Begin a chain."""

    def point(self, given: Point, rng: np.random.Generator) -> Point:
        """Return where a chain begins that was given a point."""
        return given

    def forget(self) -> None:
        """Let go of the rows."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SampledStart:
    """One posterior sample for every chain.

    Attributes
    ----------
    asked : Asked
    step : OPS
        Bound to the model of the chains, and priced for one draw of each; its own claims are not used, since a chain
        that has begun was claimed already, and draws once.
    share : float
        Of epsilon and delta, for the starts of all chains together.
    values : Values
        Of the prior model of the chains.

    Notes
    -----
    **Guarantee.** Chains and starts together are the composition of both events, all parameters fixed in advance: the
    gradients of a chain may be taken where its start lies (Dwork, Roth 2014, theorem 3.16, and for the accountants used
    Zhu, Dong, Wang 2022, theorem 10).

    References
    ----------
    Wang, Fienberg, Smola (2015), algorithm 3.
    """

    asked: Asked
    step: OPS
    share: float
    values: Values

    @property
    def event(self) -> Event:
        """Cost of the starts of all chains."""
        return self.step.event

    def priced(self, funding: Funding) -> SampledStart:
        """Return the start for a budget; this one where it is the same. Reads no private value."""
        wanted = Funding(budget=_part(self.step, funding.budget, self.share), chains=funding.chains, steps=1)
        if self.step.funding == wanted:
            return self
        with _reported_of(self.asked):
            return replace(self, step=self.step.at(wanted.budget, chains=wanted.chains))

    def rest(self, budget: Budget) -> Budget:
        """Return the part of a budget that is set aside for the chains alone."""
        return budget.split([self.share, 1 - self.share])[1]

    def guarantee(self, of_chain: Guarantee) -> Guarantee:
        """Return the guarantee of chains that begin here: asymptotic where the sample is one of a chain."""
        return of_chain if self.step.claimed == "exact" else self.step.claimed

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What the record says about the start."""
        budget = self.step.funding.budget
        cost = total_epsilon(self.event, budget.delta)
        said = dict(self.step.describe().facts)
        return (
            (
                "start",
                f"one posterior sample per chain; share {self.share:g} of the budget, {budget}: epsilon="
                f"{cost.epsilon:.6g} by itself",
            ),
            *((f"start, {name}", said[name]) for name in SHOWN),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the start takes as public."""
        return self.step.binding.assumptions

    def load(self) -> None:
        """Read the rows; the budget was charged."""
        self.step.load()

    def begin(self) -> None:
        """Begin a chain, which may take one posterior sample: what pays for it is made here, once."""
        self.step.start_chain()

    def forget(self) -> None:
        """Let go of the rows."""
        self.step.forget()

    def point(self, given: Point, rng: np.random.Generator) -> Point:
        """Return a posterior sample, in the coordinates of the chain, whatever point was given."""
        drawn = self.values.move(given, self.step.draw(rng))
        return {name: _inside(value) if name in self._names else value for name, value in drawn.items()}

    @property
    def _names(self) -> frozenset[str]:
        return frozenset(self.values.names.values())


Start = GivenStart | SampledStart


def planned_start(
    settings: Mapping[str, Any],
    inspection: Inspection,
    prior_model: Model,
    budget: Budget,
    *,
    chains: int,
    previewing: bool,
) -> Start:
    """Bind the start of a step to the model of its chains; reads no private value.

    Parameters
    ----------
    settings : mapping
        Of the step: what `start_settings` returned is among them.
    inspection : Inspection
        Of the chains' model.
    prior_model : pymc.Model
        Which the chains sample.
    budget : Budget
        For starts and chains together.
    chains : int
    previewing : bool
        Whether nothing will be sampled.

    Raises
    ------
    UnsupportedModelError, ArgumentError
        Of the posterior sample, as of ``start``.
    """
    asked = settings.get("start")
    if asked is None:
        return GivenStart()
    specification, share = asked.specification(), settings["start_share"]
    specification.previewing = previewing
    with _reported_of(asked):
        found = specification.of_inspected(inspection.inspected)
        step, _ = specification.bound(found, _part(specification, budget, share), chains=chains, steps=1)
    if [rv.name for rv in step.prior_model.free_RVs] != [rv.name for rv in prior_model.free_RVs]:
        raise PrivacyError("The start and the chain sample other variables; this is an error of pymc_dp.")
    return SampledStart(asked=asked, step=step, share=share, values=Values(prior_model))


def _part(step: OPS, budget: Budget, share: float) -> Budget:
    """Return the share of starts. The papers' rule has pure losses, and leaves all of delta to the chains."""
    part = budget.split([share, 1 - share])[0]
    return Budget(part.epsilon, 0.0) if step.settings["papers"] else part


def _inside(value: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(value), np.copysign(EDGE, value), value).astype(value.dtype)


@contextmanager
def _reported_of(asked: Asked) -> Iterator[None]:
    """Report what is in the way of a posterior sample as a problem of ``start``."""
    try:
        yield
    except UnsupportedModelError as error:
        raise UnsupportedModelError([_of_start(asked, problem) for problem in error.problems]) from None
    except ArgumentError as error:
        raise ArgumentError(f"start={asked!r}: {error}") from None


def _of_start(asked: Asked, problem: Problem) -> Problem:
    return Problem(
        where=f"start={asked!r}, {problem.where}",
        what=problem.what,
        remedy=f"{problem.remedy} Or leave start out: the chains need none.",
    )


__all__ = ["GivenStart", "SampledStart", "Start", "planned_start", "start_settings"]
