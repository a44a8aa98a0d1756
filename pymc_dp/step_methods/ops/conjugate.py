"""Posteriors that factorise into truncated conjugate distributions: found in the graph, drawn exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.errors import Problem
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import UnknownOperation
from pymc_dp.proofs.parameter_boxes import Box, somewhere
from pymc_dp.step_methods.gibbs.compiled import Functions
from pymc_dp.step_methods.gibbs.conjugacy import BoundedTable, Conjugacy, Dependents, TablePair, conjugate
from pymc_dp.step_methods.gibbs.conjugate_draws import CONDITIONALS, Conjugate
from pymc_dp.step_methods.gibbs.supports import box_of, table_boxes
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood


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
