"""What ``dp.sample`` releases where nobody says so: exact sums or noised gradients, and why."""

from __future__ import annotations

from dataclasses import dataclass

from pymc import Model

from pymc_dp.accounting import Budget
from pymc_dp.advice.releases import EXAMPLE_DELTA, noise_ratio, noise_sds
from pymc_dp.domain import Domain
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.gradients.choice import Gradients
from pymc_dp.gradients.outlook import Outlook
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.layout import table_problems
from pymc_dp.release.statistics import Statistics
from pymc_dp.transforms.privatize import record_of


@dataclass(frozen=True, kw_only=True)
class Default:
    """A kind of release, chosen without a look at a row.

    Attributes
    ----------
    statistics : Statistics or Gradients
    delta : float
        What of the δ is spent: none by Laplace noise.
    why : str
        In words that follow "dp.sample releases".
    """

    statistics: Statistics | Gradients
    delta: float
    why: str

    @property
    def by_gradients(self) -> bool:
        """Whether gradients are released."""
        return isinstance(self.statistics, Gradients)


AT_ZERO = Default(statistics=Statistics(), delta=0.0, why="exact sums, because nothing else can be released at δ = 0")

PER_UNIT = Default(statistics=Statistics(), delta=0.0, why="exact sums with Laplace noise, which a metric asks for")


def of_stored(budget: Budget) -> Default:
    """Return what a table beside the model is released by: nothing else goes through one."""
    why = "noised gradients, because the table is beside the model (rows=)"
    return Default(statistics=Gradients(), delta=budget.delta, why=why)


def default_release(model: Model, domain: Domain | None, budget: Budget) -> Default:
    """Choose for a model: exact sums where they serve it best or δ is 0, else noised gradients.

    Parameters
    ----------
    model : pymc.Model
    domain : Domain or None
    budget : Budget

    Raises
    ------
    UnsupportedModelError
        Where, with a δ, neither can be released: with the problems of both.

    Notes
    -----
    **Guarantee.** Depends on the model without its rows, their number and `domain`: reads no private value.
    """
    if budget.delta == 0 or record_of(model) is not None:
        return AT_ZERO
    found = inspect(model, domain, per_unit=True)
    inspection, outlook = found.sums, Outlook.of(found, found.sums.n_rows)
    problems = sums_problems(inspection)
    if problems and not outlook.fits:
        raise UnsupportedModelError(list(dict.fromkeys([*problems, *outlook.problems])))
    return chosen(inspection, outlook, budget)


def chosen(inspection: Inspection, outlook: Outlook, budget: Budget) -> Default:
    """Choose between two kinds of release, one of which should fit. Reads no private value."""
    reason = poor_sums(inspection) if outlook.fits else ""
    if budget.delta == 0:
        later = f"; with a δ > 0 it would be noised gradients, because {reason}" * bool(reason)
        return Default(statistics=Statistics(), delta=0.0, why=f"{AT_ZERO.why}{later}")
    if reason:
        return Default(statistics=Gradients(), delta=budget.delta, why=f"noised gradients, because {reason}")
    if inspection.domain.metric is not None:
        return PER_UNIT
    if sums_problems(inspection):
        return AT_ZERO
    return _of_sums(inspection, budget)


def _of_sums(inspection: Inspection, budget: Budget) -> Default:
    """Choose the noise of exact sums: where Laplace noise is not the larger one, δ is left."""
    if any(one.by_polynomial for one in inspection.observed):
        return Default(statistics=Statistics(), delta=0.0, why="exact sums, because noised gradients do not fit")
    ratio = noise_ratio(noise_sds(inspection, budget.epsilon, budget.delta))
    few = "exact sums, because a few of them are sufficient statistics"
    if ratio > 1:
        why = f"{few}, with Gaussian noise, {ratio:.3g} times smaller than Laplace noise"
        return Default(statistics=Statistics("gaussian"), delta=budget.delta, why=why)
    why = f"{few}, with Laplace noise, which needs no δ (Gaussian noise would be {1 / ratio:.3g} times larger)"
    return Default(statistics=Statistics(), delta=0.0, why=why)


def sums_problems(inspection: Inspection) -> tuple[Problem, ...]:
    """Return what is in the way of a release of exact sums."""
    return (*inspection.problems, *table_problems(inspection))


def poor_sums(inspection: Inspection) -> str:
    """Say why noised gradients would serve a model better than exact sums; empty where they would not."""
    if problems := sums_problems(inspection):
        return f"there are no exact sums to release ({problems[0].where}: {problems[0].what})"
    poor = [one.name for one in inspection.observed if one.by_polynomial]
    return f"exact sums would need a polynomial in place of the likelihood of {poor[0]}" if poor else ""


def with_gradients(error: UnsupportedModelError, model: Model, domain: Domain | None) -> UnsupportedModelError:
    """Return an error of exact sums at δ = 0 that names noised gradients as a way out, where these fit."""
    if not Outlook.of(inspect(model, domain), 0).fits:
        return error
    remedy = (
        f"Give a delta > 0, far below 1 / number of rows, for example delta={EXAMPLE_DELTA:g}: without statistics= and "
        "step=, dp.sample then releases these."
    )
    what = "noised gradients fit it as it is, but have no guarantee at delta=0"
    return UnsupportedModelError([*error.problems, Problem(where="model", what=what, remedy=remedy)])


__all__ = [
    "AT_ZERO",
    "Default",
    "chosen",
    "default_release",
    "of_stored",
    "poor_sums",
    "sums_problems",
    "with_gradients",
]
