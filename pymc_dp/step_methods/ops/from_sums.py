"""Posteriors of models whose rows enter by sums: conjugate, or from a grid, at a cost independent of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pymc import Model
from pytensor.graph.traversal import ancestors

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.families import with_closed_form
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.closed_form_ranges import RowRange, total_range
from pymc_dp.step_methods.ops.conjugate import ConjugatePosterior
from pymc_dp.step_methods.ops.grid import NO_SUPPORT, GridPosterior
from pymc_dp.step_methods.table_rounding import rounding, rounding_problem, with_rounding
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood, sums_problems, table_likelihoods


@dataclass(frozen=True, kw_only=True, eq=False)
class TablePosterior:
    """A posterior given exact sums, with the range of a row."""

    form: ConjugatePosterior | GridPosterior
    tables: tuple[TableLikelihood, ...]
    range: RowRange
    exact = True

    @property
    def words(self) -> str:
        """How draws are made, for the trace."""
        return self.form.words

    def read(self) -> list[ExactSums]:
        """Add up the rows. Reads private data."""
        return [table.read() for table in self.tables]

    def draw(
        self, rng: np.random.Generator, held: Sequence[ExactSums], inverse: float, temper_prior: bool
    ) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""
        return self.form.draw(rng, held, inverse, temper_prior)


def table_posterior(
    prior_model: Model, tables: tuple[TableLikelihood, ...], cells: int | None, neighbours: str
) -> TablePosterior | list[Problem]:
    """Find the form of a posterior, or say why it has none or why a row can move it by any amount.

    Raises
    ------
    UnsupportedModelError
        If a row can move it by nothing, or there is no posterior.
    """
    priors = priors_of(prior_model)
    conjugate = ConjugatePosterior.of(prior_model, priors, tables)
    form: ConjugatePosterior | GridPosterior
    if isinstance(conjugate, list):
        if any(table.family.distribution not in with_closed_form(sizes=True) for table in tables):
            return conjugate
        grid = GridPosterior.of(prior_model, priors, tables, cells)
        if grid == NO_SUPPORT:
            raise UnsupportedModelError([Problem(where="model", what=grid.rstrip("."), remedy="Change its priors.")])
        if isinstance(grid, str):
            return [*conjugate, Problem(where="model", what=grid.rstrip("."), remedy="")]
        form = grid
    else:
        form = conjugate
    exact = isinstance(form, ConjugatePosterior)
    ranges = [table.row_range(form.boxes(table), neighbours, normalised=exact) for table in tables]
    if not exact:  # a density in floats
        offs = [rounding(table, form.boxes(table)) for table in tables]
        known = zip(tables, ranges, offs, strict=True)
        lost = [rounding_problem(found, off, table.name) for table, found, off in known]
        if problems := [problem for problem in lost if problem is not None]:
            return problems
        ranges = [with_rounding(found, off) for found, off in zip(ranges, offs, strict=True)]
    total = total_range(ranges)
    if not total.value > 0:
        what = "its likelihoods depend on no free variable that a row could tell anything about"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give it a free variable.")])
    if not math.isfinite(total.value):
        return _unbounded(tables, ranges, priors)
    return TablePosterior(form=form, tables=tables, range=total)


def has_conjugate_form(inspection: Inspection) -> bool:
    """Whether sums of the rows of a model are enough for exact draws of a finite range, with a conjugate prior."""
    if sums_problems(inspection, with_closed_form()):
        return False
    prior_model, tables = table_likelihoods(inspection)
    try:
        found = table_posterior(prior_model, tables, None, inspection.domain.neighbours)
    except UnsupportedModelError:
        return False
    return isinstance(found, TablePosterior)


def _unbounded(tables: Sequence[TableLikelihood], ranges: Sequence[RowRange], priors: Sequence[Prior]) -> list[Problem]:
    problems = []
    for table, found in zip(tables, ranges, strict=True):
        if math.isfinite(found.value):
            continue
        upstream = set(ancestors(table.parameters))
        behind = [prior for prior in priors if prior.variable in upstream]
        names = [prior.name for prior in behind if not prior.bounded or prior.distribution in ("beta", "dirichlet")]
        bounds = {"beta": "(0.01, 0.99)", "uniform": "(0.01, 0.99)", "dirichlet": "(0.01, None)"}
        truncations = ", ".join(
            f"{prior.name!r}: {bounds.get(prior.distribution, '(low, high)')}"
            for prior in behind
            if prior.name in names or not names
        )
        problems.append(
            Problem(
                where=table.name,
                what="one row can move its log-likelihood by any amount, because its parameters have no bounds that "
                "keep every value possible",
                remedy=f"Truncate the prior, by public bounds: dp.truncate(model, {{{truncations}}}).",
            )
        )
    return problems


__all__ = ["TablePosterior", "has_conjugate_form", "table_posterior"]
