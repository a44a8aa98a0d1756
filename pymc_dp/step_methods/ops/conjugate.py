"""Posteriors that factorise into truncated conjugate distributions: found in the graph, drawn exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.gibbs.boxes import Box, UnknownOperationError
from pymc_dp.step_methods.gibbs.compiled import Functions
from pymc_dp.step_methods.gibbs.conjugacy import BoundedTable, Conjugacy, Dependents, TablePair, conjugate
from pymc_dp.step_methods.gibbs.conjugate_draws import Conjugate
from pymc_dp.step_methods.gibbs.ranges import separate
from pymc_dp.step_methods.gibbs.selected_elements import somewhere
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
        bounded = [_bounded(table, free) for table in tables]
        problems += [item for item in bounded if isinstance(item, Problem)]
        known = tuple(item for item in bounded if not isinstance(item, Problem))
        found = [_alone(prior, Dependents.of(prior, free, known), free) for prior in priors]
        problems += [item for item in found if isinstance(item, Problem)]
        proved = [item for item in found if not isinstance(item, Problem)]
        what = "its parameters depend on several free variables at once"
        problems += [Problem(where=item[0].name, what=what, remedy="") for item in known if _crowded(item, proved)]
        if problems:
            return problems
        functions = Functions(prior_model, {prior.name: prior.shape for prior in priors})
        rng = np.random.default_rng(0)
        return cls(
            updates=tuple(item.compile(functions) for item in proved),
            tables=known,
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


def _bounded(table: TableLikelihood, free: Mapping[Variable, Box]) -> BoundedTable | Problem:
    """Bound the parameters of a table, of which one is unknown where closed forms ask for that."""
    try:
        boxes = table_boxes(table, free)
    except UnknownOperationError as error:
        what = f"its parameters are computed by an operation without proved bounds: {error}"
        return Problem(where=table.name, what=what, remedy="")
    if not separate(table, boxes):
        return Problem(where=table.name, what="more than one of its parameters is unknown", remedy="")
    return table, boxes


def _crowded(bounded: BoundedTable, found: Sequence[Conjugacy]) -> bool:
    """Whether some cell of a table may depend on several of the variables whose conditionals were found."""
    table, boxes = bounded
    held = np.zeros(table.cells.count, dtype=int)
    for item in found:
        for pair in item.pairs:
            if isinstance(pair, TablePair) and pair.table is table:
                held += pair.cells(boxes[pair.slot], item.prior.name)
    return bool((held > 1).any())


def _alone(prior: Prior, dependents: Dependents, free: Mapping[Variable, Box]) -> Conjugacy | Problem:
    """Prove that the conditional of a variable is conjugate, of a prior that depends on no other variable."""
    found = conjugate(prior, dependents, free) if prior.constants is not None else None
    if found is not None and not dependents.children:
        return found
    what = f"its prior ({prior.distribution}) is not a plain conjugate one with constant parameters"
    if dependents.tables and prior.constants is not None:
        kinds = " and ".join(sorted({table.observed.distribution for table, _ in dependents.tables}))
        what = f"its prior ({prior.distribution}) is not conjugate to a parameter of {kinds} rows that it is"
    return Problem(where=prior.name, what=what, remedy="")
