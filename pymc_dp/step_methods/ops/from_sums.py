"""Posteriors of models whose rows enter by sums: conjugate, or from a grid, at a cost independent of the rows.

Posteriors that factorise into truncated conjugate distributions: found in the graph, drawn exactly.

What every way to draw from a tempered posterior can do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.families import with_closed_form
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import UnknownOperation
from pymc_dp.proofs.closed_form_ranges import RowRange, total_range
from pymc_dp.proofs.parameter_boxes import Box, somewhere
from pymc_dp.step_methods.gibbs.compiled import Functions
from pymc_dp.step_methods.gibbs.conjugacy import BoundedTable, Conjugacy, Dependents, TablePair, conjugate
from pymc_dp.step_methods.gibbs.conjugate_draws import CONDITIONALS, Conjugate
from pymc_dp.step_methods.gibbs.likelihoods import box_of, table_boxes
from pymc_dp.step_methods.ops.grid import NO_SUPPORT, GridPosterior
from pymc_dp.step_methods.table_rounding import rounding, rounding_problem, with_rounding
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood, sums_problems, table_likelihoods


@dataclass(frozen=True, kw_only=True, eq=False)
class ConjugatePosterior:
    """A posterior that is a product of truncated conjugate distributions, whatever the rows.

    Every likelihood is, in each of its cells, a function of one free variable, and no prior depends on another. So the
    posterior is a product over free variables, and the conditional of each, which `conjugate` proves, is its marginal.

    Attributes
    ----------
    updates : tuple of Conjugate
        One for each free variable.
    tables : tuple of (TableLikelihood, boxes of its parameters)
    anywhere : mapping of str to array
        A public point. Conditionals are the same wherever other variables are; factors of parameters are found there.
    """

    updates: tuple[Conjugate, ...]
    tables: tuple[BoundedTable, ...]
    anywhere: Mapping[str, Array]
    words = "independent and exact, from truncated conjugate distributions"

    @classmethod
    def of(cls, prior_model: Model, priors: Sequence[Prior], tables: Sequence[TableLikelihood]) -> Self | list[Problem]:
        """Prove the form on the graph, or say what is in the way."""
        problems = [
            Problem(where=str(var.name), what="a Potential has no conjugate form", remedy="")
            for var in prior_model.potentials
        ]
        free = {prior.variable: box_of(prior) for prior in priors}
        bounded = tuple(pair for table in tables if (pair := _bounded(table, free)) is not None)
        dependents = {prior.name: Dependents.of(prior, free, bounded) for prior in priors}
        proved = [item for prior in priors if (item := conjugate(prior, dependents[prior.name], free)) is not None]
        lost = {prior.name for prior in priors} - {item.prior.name for item in proved}
        for prior in priors:
            unknown = not any(prior.distribution in conditional.priors for conditional in CONDITIONALS)
            what = ""
            if prior.constants is None or prior.low is None or unknown:
                what = f"its prior ({prior.distribution}) is not a plain conjugate one with constant parameters"
            elif dependents[prior.name].children:
                what = "the prior of another variable depends on it"
            problems += [Problem(where=prior.name, what=what, remedy="")] if what else []
        known = {table.name: boxes for table, boxes in bounded}
        for table in tables:
            behind = [prior for prior in priors if prior.variable in set(ancestors(table.parameters))]
            lacking = table.name not in known or any(prior.name in lost for prior in behind)
            if lacking or _crowded(table, known[table.name], proved):
                problems.append(_problem(table, behind))
        if problems or lost:
            return problems
        functions = Functions(prior_model, {prior.name: prior.shape for prior in priors})
        rng = np.random.default_rng(0)
        return cls(
            updates=tuple(item.compile(functions) for item in proved),
            tables=bounded,
            anywhere={str(var.name): somewhere(rng, var, box) for var, box in free.items()},
        )

    def boxes(self, table: TableLikelihood) -> list[tuple[Array, Array]]:
        """Bounds of each parameter of a table in each of its cells."""
        return next([(box.low, box.high) for box in boxes] for other, boxes in self.tables if other is table)

    def draw(
        self, rng: np.random.Generator, sums: Sequence[ExactSums], inverse: float, temper_prior: bool
    ) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""
        held = {table.name: item for (table, _), item in zip(self.tables, sums, strict=True)}
        power = inverse if temper_prior else 1.0
        return {one.name: one.draw(rng, self.anywhere, held, inverse, power) for one in self.updates}


def _bounded(table: TableLikelihood, free: Mapping[Variable, Box]) -> BoundedTable | None:
    """Bound the parameters of a table, of which one is unknown where closed forms ask for that; None where they do not
    apply.
    """
    try:
        boxes = table_boxes(table, free)
    except UnknownOperation:
        return None
    form, ends = table.family.closed_form, [(box.low, box.high) for box in boxes]
    return (table, boxes) if form is None or form.applies(table.statistic, ends) else None


def _crowded(table: TableLikelihood, boxes: Sequence[Box], proved: Sequence[Conjugacy]) -> bool:
    """Whether some cell of a table may depend on several free variables, whose conditionals are proved."""
    held = np.zeros(table.n_cells, dtype=int)
    for item in proved:
        for pair in item.pairs:
            if isinstance(pair, TablePair) and pair.table is table:
                held += pair.cells(boxes[pair.slot], item.prior.name)
    return bool((held > 1).any())


def _problem(table: TableLikelihood, behind: Sequence[Prior]) -> Problem:
    """Say why free variables behind a table have no conjugate form with it."""
    forms = tuple(type(form) for form in table.family.conjugate)
    names = {name for conditional in CONDITIONALS if conditional.form in forms for name in conditional.priors}
    what = "its parameters depend on several free variables at once"
    if len(behind) == 1:
        what = f"its parameter is a function of {behind[0].name!r}, not one of its elements"
    for prior in behind:
        if prior.distribution not in names:
            what = f"a {prior.distribution} prior is not conjugate to a {table.family.distribution} likelihood"
            break
    return Problem(where=table.name, what=what, remedy="")


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
    offs = [rounding(table, form.boxes(table)) for table in tables]  # a sum in floats, or a density of it
    known = zip(tables, ranges, offs, strict=True)
    lost = [rounding_problem(found, off, table.name) for table, found, off in known]
    if not exact and (problems := [problem for problem in lost if problem is not None]):
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


class Posterior(Protocol):
    """A way to draw from a tempered posterior, in words for the trace."""

    @property
    def words(self) -> str:
        """How."""

    @property
    def exact(self) -> bool:
        """Whether draws are exact."""

    def read(self) -> Any:
        """Read the rows, once. Reads private data: the budget must have been charged."""

    def draw(self, rng: np.random.Generator, held: Any, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Draw all free variables with the likelihood to the power `inverse`."""


__all__ = ["Posterior", "TablePosterior", "has_conjugate_form", "table_posterior"]
