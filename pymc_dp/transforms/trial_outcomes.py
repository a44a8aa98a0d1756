"""Outcomes of the trial of a private model, and what a user reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor
from pymc import Model
from pymc.logprob.utils import ParameterValueError

from pymc_dp.errors import Problem
from pymc_dp.inspection.interpreted import NUMPY
from pymc_dp.simulation.prior import Point

FAILURES = (ArithmeticError, ValueError, np.linalg.LinAlgError, ParameterValueError)
"""What a density may raise in place of a number: a matrix without a root, an invalid parameter."""
REMEDY = (
    "Give a prior that stays where the likelihood is defined, a start value there (initval=), or other bounds or bins: "
    "Domain(bounds=...), Statistics(mechanism=dp.Histogram([...]))."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What a density came to at one point.

    Attributes
    ----------
    at_start : bool
        Whether the point is the start point of a chain.
    point : mapping of str to array
        Values of the value variables.
    finite : bool
        Whether the density and all of its gradient are.
    names : tuple of str
        Free variables whose derivatives are not; none where the density itself is not finite.
    """

    at_start: bool
    point: Point
    finite: bool
    names: tuple[str, ...] = ()


def problem_of(model: Model, outcomes: Sequence[Outcome]) -> Problem | None:
    """Return why a model is refused: it is not finite at the start of most releases, or at more than half of points."""
    for at_start in (True, False):
        tried = [outcome for outcome in outcomes if outcome.at_start is at_start]
        failed = [outcome for outcome in tried if not outcome.finite]
        if 2 * len(failed) > len(tried):
            names, what = _described(model, failed)
            where = "at the start point" if at_start else f"at {len(failed)} of {len(tried)} points of the prior"
            return Problem(
                where=names,
                what=f"on simulated releases {what} is not finite {where}, so that no sampler can follow it",
                remedy=REMEDY,
                kind="outcome",
            )
    return None


def summary_of(model: Model, outcomes: Sequence[Outcome]) -> str | None:
    """Return one line about the points where a density is not finite; None if there are none."""
    failed = [outcome for outcome in outcomes if not outcome.finite]
    if not failed:
        return None
    names, what = _described(model, failed)
    return (
        f"{names}: {what} is not finite at {len(failed)} of {len(outcomes)} points of the prior, where chains would "
        "diverge. A prior that keeps away from such values helps, or other bounds."
    )


def _described(model: Model, failed: Sequence[Outcome]) -> tuple[str, str]:
    """Name the variables of points that failed, and what is not finite there."""
    names = list(dict.fromkeys(name for outcome in failed for name in outcome.names))
    if names:
        return ", ".join(names), "the gradient of the private model's log density"
    return ", ".join(_terms(model, failed[0].point)), "the log density of the private model"


def _terms(model: Model, point: Point) -> list[str]:
    """Names of the variables whose log density is not finite at a point."""
    variables = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    try:
        with pytensor.config.change_flags(**NUMPY), np.errstate(all="ignore"):
            terms = model.logp(vars=variables, sum=False)
            found = model.compile_fn(terms, inputs=model.value_vars, on_unused_input="ignore")(point)
    except FAILURES:
        found = []
    names = [str(var.name) for var, term in zip(variables, found, strict=False) if not np.isfinite(term).all()]
    return names or [str(var.name) for var in model.observed_RVs]


__all__ = ["FAILURES", "Outcome", "problem_of", "summary_of"]
