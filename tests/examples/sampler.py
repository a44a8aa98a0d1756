"""A private sampler of one's own."""

from __future__ import annotations

import math
from typing import ClassVar, final, override

import numpy as np
from pymc import Model
from pytensor.tensor import concatenate

from pymc_dp.accounting import BoundedRangeEvent, Event, SelfComposedEvent
from pymc_dp.accounting.calibrate import range_per_use
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.release.record import SamplerRecord
from pymc_dp.step_methods.base import Guarantee, Point, PrivateStep
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.registered import register
from pymc_dp.transforms.likelihood import sums_problems, table_likelihoods

INSIDE = 1 - 1e-9
"""Share of what is paid for that a step may use: room for the rounding of the operations between."""


@final
@register
class BernoulliWalk(PrivateStep):
    """Walk on one free variable, which is p of Bernoulli rows or moves it, by accept bits of bounded range."""

    name = "bernoulli_walk"
    guarantee: ClassVar[Guarantee] = "stepwise"
    default_draws: ClassVar[int] = 1000

    def __init__(self, vars: object = None, **funding: object) -> None:
        super().__init__(vars, settings={}, **funding)  # type: ignore[arg-type]

    @override
    def plan(self, inspection: Inspection) -> Model:
        problems = sums_problems(inspection)
        if not problems and not _fits(inspection):
            what = "it is not one free number and one Bernoulli likelihood without columns"
            problems = [Problem(where="model", what=what, remedy="Use dp.BarkerMetropolis().")]
        if problems:
            raise UnsupportedModelError(problems)
        prior_model, (self.table,) = table_likelihoods(inspection)
        (value,) = prior_model.value_vars
        (chance,) = prior_model.replace_rvs_by_values(list(self.table.parameters))
        self.key = str(value.name)
        self.public = plain_function([value], concatenate([prior_model.logp().reshape((1,)), chance]))
        return prior_model

    @override
    def price(self, funding: Funding) -> Event:
        eta = range_per_use(funding.budget.epsilon, funding.budget.delta, uses=funding.uses)
        self.reach = eta * INSIDE
        return SelfComposedEvent(event=BoundedRangeEvent(eta=eta), count=funding.uses)

    @override
    def load(self) -> None:
        misses, hits = self.table.read().sums[0]
        self.hits, self.misses = float(hits), float(misses)

    @override
    def forget(self) -> None:
        self.__dict__.pop("hits", None)
        self.__dict__.pop("misses", None)

    @override
    def advance(self, point: Point) -> Point:
        moved = np.asarray(point[self.key] + self.generator.uniform(-1, 1) * self.reach)
        proposed = {**point, self.key: moved}
        (before, p), (after, q) = self.public(point[self.key]), self.public(proposed[self.key])
        bit = self.generator.random()  # drawn whatever comes, as the rows must not show in the stream
        if not (0 < p < 1 and 0 < q < 1 and abs(_logit(q) - _logit(p)) <= self.reach):
            return point  # public: a row could show more than was paid for
        change = after - before + self.hits * math.log(q / p) + self.misses * (math.log1p(-q) - math.log1p(-p))
        return proposed if bit < 1 / (1 + math.exp(min(-change, 700.0))) else point

    @override
    def describe(self) -> SamplerRecord:
        return SamplerRecord(
            name=type(self).__name__,
            noise="accept bits (Barker)",
            variables=self.own,
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=(("one step", f"moves a row's log-likelihood by at most {self.reach:.4g}"),),
        )


def _fits(inspection: Inspection) -> bool:
    """Whether there is one number that moves, and one table of two counts that it moves."""
    free, observed = inspection.model.free_RVs, inspection.observed
    alone = len(free) == 1 and free[0].type.ndim == 0 and free[0].type.dtype == np.dtype(float)
    return alone and len(observed) == 1 and observed[0].distribution == "bernoulli" and not observed[0].columns


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)
