"""Which conditional each free variable has, found in the model graph, and how far one row can move it.

Which element of a free variable a log-density belongs to that depends on it: elements that share none are free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.domain import Neighbours
from pymc_dp.draws.finite_choice import cells
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.columns import WITHOUT, levels_of
from pymc_dp.inspection.hidden_markov import MARKOV, Chain, chains_of
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import UnknownOperation
from pymc_dp.intervals.feeds import MANY, joined
from pymc_dp.proofs.parameter_boxes import Box, boxes_of
from pymc_dp.samplers.gibbs import RowConditional
from pymc_dp.simulation.columns import mixed
from pymc_dp.step_methods.gibbs.by_rows import FAR, Payment, RowGrid, RowPlan
from pymc_dp.step_methods.gibbs.compiled import Functions, Points
from pymc_dp.step_methods.gibbs.conjugacy import Dependents, conjugate
from pymc_dp.step_methods.gibbs.grid import Conditional, Free, Grid, Scores
from pymc_dp.step_methods.gibbs.likelihoods import Likelihoods, box_of
from pymc_dp.step_methods.gibbs.ranges import (
    MARGINALISE,
    Ranges,
    joint,
    unbounded,
    update_range,
)
from pymc_dp.step_methods.gibbs.row_latents import depends_on, latent_range, latent_update
from pymc_dp.step_methods.gibbs.states import moves_update, paths_update
from pymc_dp.step_methods.table_rounding import rounding, rounding_problem, with_rounding
from pymc_dp.transforms.likelihood import TableLikelihood


def terms_of(prior: Prior, dependents: Dependents) -> list[Variable]:
    """Log-densities of a variable, of its children, and Potentials."""
    rvs = [prior.variable, *dependents.children]
    # A random variable stands in place of its own value: both become the symbol of the value.
    terms = [pm.logp(rv, rv, warn_rvs=False) for rv in rvs]
    return [*terms, *(item.sum() for item in dependents.potentials)]


def owners_of(
    prior: Prior, dependents: Dependents, free: Mapping[Variable, Box], shapes: Mapping[str, tuple[int, ...]]
) -> list[Array]:
    """Element of a variable that feeds each entry of its terms and of its tables.

    Parameters
    ----------
    prior : Prior
    dependents : Dependents
    free : mapping of Variable to Box
        Of every free variable.
    shapes : mapping of str to tuple of int
        Likewise, by name.
    """
    owners = [np.arange(prior.size).reshape(prior.shape)]
    owners += [_of_child(prior.name, child, free, shapes[str(child.name)]) for child in dependents.children]
    owners += [np.full((), MANY) for _ in dependents.potentials]
    for _, boxes in dependents.tables:
        parts = [box.owner(prior.name).reshape(len(box.low), -1) for box in boxes]
        owners.append(joined(np.concatenate(parts, axis=1), 1))
    return owners


def _of_child(name: str, child: Variable, free: Mapping[Variable, Box], shape: tuple[int, ...]) -> Array:
    op: Any = child.owner.op
    if isinstance(op, TruncatedRV) and op.ndim_supp == 0:
        parameters = list(child.owner.inputs[2:])
    elif isinstance(op, RandomVariable) and op.ndim_supp == 0:
        parameters = list(op.dist_params(child.owner))
    else:
        return np.full(shape[: pm.logp(child, child, warn_rvs=False).type.ndim], MANY)
    try:
        boxes = boxes_of(parameters, free)
    except UnknownOperation:
        return np.full(shape, MANY)
    return joined(np.stack([np.broadcast_to(box.owner(name), shape) for box in boxes]), 0)


CELLS = 4096
"""Cells of a grid where exact sums are enough."""
BY_ROWS = 256
"""The same of rows that are gone through one by one, for every cell."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scan:
    """One full scan: an update of every variable that it moves, in the model's order."""

    updates: tuple[Conditional, ...]
    points: Points
    functions: Functions
    by_rows: RowPlan | None = None
    payments: list[Payment] = field(default_factory=list)

    def compile(self) -> None:
        """Compile now, in the process that workers are copied from."""
        self.functions.compile()

    @property
    def ranges(self) -> tuple[float, ...]:
        """What each mechanism of one scan pays at temperature 1."""
        return tuple(item for update in self.updates for item in update.ranges if item > 0)

    @property
    def slacks(self) -> tuple[float, ...]:
        """What whole weights of the kernel add to what these cost; none where there is no kernel."""
        return () if self.by_rows is None else tuple(one.slack for one in self.by_rows.choices if one.most > 0)


def plan_scan(
    likelihoods: Likelihoods, *, neighbours: Neighbours, grid: int | None, own: Collection[str] | None = None
) -> Scan:
    """Find a conditional for free variables of a prior model; reads nothing private.

    Parameters
    ----------
    likelihoods : Likelihoods
    neighbours : {"replace", "add_remove"}
    grid : int or None
        Cells of every grid.
    own : collection of str, optional
        Variables that are updated; all by default. The others may be anywhere in their supports.

    Raises
    ------
    UnsupportedModelError
        With every variable that has none, and what to do.
    """
    return _Planner(likelihoods, neighbours, grid).scan(own)


class _Planner:
    def __init__(self, likelihoods: Likelihoods, neighbours: Neighbours, grid: int | None) -> None:
        self.prior_model, self.tables = likelihoods.prior_model, likelihoods.tables
        self.rows, self.inspection = likelihoods.rows, likelihoods.inspection
        self.neighbours, self.grid = neighbours, grid
        self.latents = {latent.name: latent for latent in likelihoods.latents}
        self.priors = {prior.name: prior for prior in priors_of(self.prior_model)}
        self.levels = {name: levels_of(prior) for name, prior in self.priors.items()}
        self.free = {prior.variable: box_of(prior) for prior in self.priors.values()}
        self.chains = chains_of(self.prior_model, tuple(self.priors.values())) if MARKOV in self._kinds() else ()
        self.problems: list[Problem] = []
        self.roundings: dict[str, float] = {}
        self.payments: list[Payment] = []
        self.choices = 0

    def _kinds(self) -> set[str]:
        return {prior.distribution for prior in self.priors.values()}

    def scan(self, own: Collection[str] | None) -> Scan:
        functions = Functions(self.prior_model, {name: prior.shape for name, prior in self.priors.items()})
        moved = [prior for name, prior in self.priors.items() if own is None or name in own]
        updates = [self._update(prior, functions) for prior in moved]
        if self.problems:
            raise UnsupportedModelError(list(dict.fromkeys(self.problems)))
        points = Points(
            functions,
            {str(rv.name): box.low for rv, box in self.free.items()},
            {str(rv.name): box.high for rv, box in self.free.items()},
        )
        compiled = tuple(update() for update in updates if update is not None)
        compiled, plan = self._planned(compiled)
        scan = Scan(updates=compiled, points=points, functions=functions, by_rows=plan, payments=self.payments)
        if not scan.ranges:
            what = "its likelihoods depend on no free variable that a row could tell anything about"
            problem = Problem(where="model", what=what, remedy="Give it a free variable.")
            if own is not None:
                what = "no row tells anything about them, given the other variables"
                problem = Problem(where=", ".join(own), what=what, remedy="Name a variable of a likelihood with them.")
            raise UnsupportedModelError([problem])
        return scan

    def _planned(self, updates: tuple[Conditional, ...]) -> tuple[tuple[Conditional, ...], RowPlan | None]:
        """Look at the ranges of updates by rows, and return updates that know them."""
        if self.rows is None:
            return updates, None
        assert self.inspection is not None
        own = [update for update in updates if isinstance(update, RowGrid)]
        boxes = {str(rv.name): box for rv, box in self.free.items()}
        plan = RowPlan(self.inspection, self.prior_model, self.rows, own, boxes, self._anywhere)
        found: list[Conditional] = []
        for update in updates:
            if isinstance(update, RowGrid):
                choices = plan.choices[update.first : update.first + update.choices]
                update = replace(update, ranges=tuple(one.most for one in choices), reason=plan.reason)
            found.append(update)
        return tuple(found), plan

    def _anywhere(self, turn: int) -> dict[str, Array]:
        rng = np.random.default_rng(turn)
        return {
            name: anywhere(other, self.free[other.variable], self.levels[name], turn, rng).astype(
                other.variable.type.dtype
            )
            for name, other in self.priors.items()
        }

    # --- one variable -------------------------------------------------------------------------------------------------

    def _update(self, prior: Prior, functions: Functions) -> Callable[[], Conditional] | None:
        """Plan the update of one variable; what it returns compiles it. None where a problem was noted."""
        if prior.name in self.latents:
            return self._latent(prior, functions)
        by_rows = self.rows is not None and self.rows.depends_on(prior.name)
        dependents = Dependents.of(prior, self.free, self.tables, self.prior_model.potentials, by_rows=by_rows)
        for chain in self.chains:
            if prior.variable is chain.states.variable:
                return self._states(chain, dependents, functions)
            if prior in chain.free and (moves := moves_update(chain, prior, dependents)) is not None:
                return moves
        found = conjugate(prior, dependents, self.free)
        if found is not None:
            whole = self._ranges(prior, dependents, functions, together=True)
            return None if whole is None else partial(found.compile, functions, *whole)
        if not dependents.rows and self.levels[prior.name] is None:
            if prior.variable.type.dtype.startswith("float"):
                return partial(self._free, prior, dependents, functions)
            self._refuse(prior, WITHOUT)
            return None
        return self._on_a_grid(prior, dependents, functions) if self._may_have_a_grid(prior, dependents) else None

    def _may_have_a_grid(self, prior: Prior, dependents: Dependents) -> bool:
        if getattr(prior.variable.owner.op, "ndim_supp", 1) != 0:
            self.problems.append(joint(prior))
        elif self.levels[prior.name] is None and not prior.variable.type.dtype.startswith("float"):
            self._refuse(prior, WITHOUT)
        elif self.levels[prior.name] is None and not prior.bounded:
            self.problems.append(unbounded(prior, dependents, self.free, self.priors))
        else:
            return True
        return False

    def _on_a_grid(
        self, prior: Prior, dependents: Dependents, functions: Functions
    ) -> Callable[[], Conditional] | None:
        owners = owners_of(prior, dependents, self.free, {name: other.shape for name, other in self.priors.items()})
        apart = not any((owner == MANY).any() for owner in owners)
        if dependents.by_rows:
            return self._by_rows(prior, dependents, functions, owners, apart=apart)
        together = prior.size == 1 or apart
        ranges = self._ranges(prior, dependents, functions, together=together)
        return None if ranges is None else partial(self._grid, prior, dependents, functions, owners, ranges, together)

    def _ranges(self, prior: Prior, dependents: Dependents, functions: Functions, *, together: bool) -> Ranges | None:
        """Bound each mechanism of an update: all elements at once, or one after the other."""
        elements: list[int | None] = [None] if together else list(range(prior.size))
        parts = [self._of_table(prior, table, boxes, elements) for table, boxes in dependents.tables]
        totals = tuple(sum(values) for values in zip(*(part[0] for part in parts), strict=True))
        if not np.isfinite(totals).all():
            self.problems.append(unbounded(prior, dependents, self.free, self.priors))
            return None
        return totals, "; ".join(dict.fromkeys(part[1] for part in parts))

    def _of_table(
        self, prior: Prior, table: TableLikelihood, boxes: Sequence[Box], elements: Sequence[int | None]
    ) -> Ranges:
        # Not by its latents: neighbours share them once they are released.
        moves = any(column.name not in self.latents for column in table.observed.private_columns)
        off = self._rounding(table, boxes)
        found = [
            update_range(table, boxes, prior.name, element, neighbours=self.neighbours, moves=moves)
            for element in elements
        ]
        self.problems += [problem for part in found if (problem := rounding_problem(part, off, table.name)) is not None]
        found = [with_rounding(part, off) for part in found]
        return tuple(part.value for part in found), "; ".join(dict.fromkeys(part.reason for part in found))

    def _rounding(self, table: TableLikelihood, boxes: Sequence[Box]) -> float:
        """Return how far the log-likelihood of sums may be off in floats, found once for each table."""
        if table.name not in self.roundings:
            self.roundings[table.name] = rounding(table, [(box.low, box.high) for box in boxes])
        return self.roundings[table.name]

    def _latent(self, prior: Prior, functions: Functions) -> Callable[[], Conditional] | None:
        latent = self.latents[prior.name]
        held = [pair for pair in self.tables if depends_on(pair[0], latent)]
        found = latent_range(held, latent.name, self.latents)
        if not np.isfinite(found.value):
            self.problems.append(unbounded(prior, Dependents(tables=tuple(held)), self.free, self.priors))
            return None
        return partial(latent_update, latent, prior.variable, functions, held, found)

    def _states(self, chain: Chain, dependents: Dependents, functions: Functions) -> Callable[[], Conditional] | None:
        """Plan the update of all states of a Markov chain at once."""
        if dependents.by_rows or dependents.children or dependents.potentials:
            self._refuse(chain.states, "is needed for more than parameters of sums over the rows of its cells")
            return None
        ranges = self._ranges(chain.states, dependents, functions, together=True)
        if ranges is None:
            return None
        found = paths_update(chain, dependents, ranges, functions)
        if found is None:
            self._refuse(chain.states, "feeds parameters that depend on several of its states, or on none")
        return found

    # --- what has no conjugate form -----------------------------------------------------------------------------------

    def _grid(
        self,
        prior: Prior,
        dependents: Dependents,
        functions: Functions,
        owners: Sequence[Array],
        ranges: Ranges,
        together: bool,
    ) -> Conditional:
        points, widths = self._cells(prior, self.grid or CELLS)
        terms = terms_of(prior, dependents)
        tables = [table for table, _ in dependents.tables]
        return Grid(
            name=prior.name,
            shape=prior.shape,
            ranges=ranges[0],
            reason=ranges[1],
            points=points,
            widths=widths,
            together=together,
            scores=Scores(
                function=functions.scores(prior.variable, terms, tables),
                owners=owners,
                rows=[False] * len(terms) + [True] * len(tables),
            ),
        )

    def _by_rows(
        self, prior: Prior, dependents: Dependents, functions: Functions, owners: Sequence[Array], *, apart: bool
    ) -> Callable[[], Conditional]:
        """Plan choices by the kernel."""
        assert self.rows is not None
        given = self.rows.given(prior.name, apart=apart)
        first = self.choices
        self.choices += 1 if given.cell is not None else prior.size
        return partial(self._row_grid, prior, dependents, functions, owners, given, first)

    def _row_grid(
        self,
        prior: Prior,
        dependents: Dependents,
        functions: Functions,
        owners: Sequence[Array],
        given: RowConditional,
        first: int,
    ) -> Conditional:
        points, widths = self._cells(prior, self.grid or BY_ROWS)
        terms = terms_of(prior, dependents)
        return RowGrid(
            name=prior.name,
            shape=prior.shape,
            points=points,
            widths=widths,
            scores=Scores(
                function=functions.scores(prior.variable, terms, []), owners=owners, rows=[False] * len(terms)
            ),
            given=given,
            first=first,
            payments=self.payments,
        )

    def _cells(self, prior: Prior, count: int) -> tuple[Array, Array]:
        """Lay out a grid: middles of so many cells and their widths, or levels."""
        levels = self.levels[prior.name]
        if levels is not None:
            points = np.tile(levels.reshape(-1, *[1] * len(prior.shape)), (1, *prior.shape)).astype(float)
            return points, np.zeros(prior.shape)
        assert prior.low is not None and prior.high is not None
        return cells(prior.low, prior.high, count)

    def _free(self, prior: Prior, dependents: Dependents, functions: Functions) -> Conditional:
        density, forward, backward = functions.unconstrained(prior.variable, terms_of(prior, dependents))
        return Free(
            name=prior.name,
            shape=prior.shape,
            density=density,
            forward=forward,
            backward=backward,
        )

    def _refuse(self, prior: Prior, what: str, remedy: str = MARGINALISE) -> None:
        self.problems.append(Problem(where=prior.name, what=f"{prior.name!r} {what}", remedy=remedy))


def anywhere(prior: Prior, box: Box, levels: Array | None, turn: int, rng: np.random.Generator) -> Array:
    """Return a value of a free variable: the least, the greatest, or any."""
    shape = box.low.shape
    if levels is not None:
        return np.full(shape, levels[(0, -1)[turn]]) if turn < 2 else rng.choice(levels, shape)
    low, high = np.clip(box.low, -FAR, FAR), np.clip(box.high, -FAR, FAR)
    found = np.asarray(mixed(low, high, low / 2 + high / 2, turn, rng))
    if prior.distribution != "dirichlet":
        return found
    found = found + np.finfo(float).eps
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


__all__ = ["Scan", "owners_of", "plan_scan", "terms_of"]
