"""Which conditional each free variable has, found in the model graph, and how far one row can move it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
from pymc import Model
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.priors import Prior, constant_values, priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.gibbs.boxes import (
    MANY,
    NONE,
    Box,
    UnknownOperationError,
    boxes_of,
    check_bounds,
    feeds_from,
)
from pymc_dp.step_methods.gibbs.compiled import Functions, Points
from pymc_dp.step_methods.gibbs.conditionals import Conditional, Free, Grid, Scores
from pymc_dp.step_methods.gibbs.conjugacy import Hanging, conjugate
from pymc_dp.step_methods.gibbs.ranges import improper, update_range
from pymc_dp.step_methods.gibbs.row_latents import RowLatent, hangs_on, latent_range, latent_update
from pymc_dp.transforms.likelihood import TableLikelihood

MOST_LEVELS = 1024
MARGINALISE = "Marginalise it, or sample dp.privatize(...) instead."


@dataclass(frozen=True, kw_only=True, eq=False)
class Scan:
    """One full scan: an update of every free variable, in the model's order."""

    updates: tuple[Conditional, ...]
    points: Points

    functions: Functions

    def compile(self) -> None:
        """Compile now, in the process that workers are copied from."""
        self.functions.compile()

    @property
    def ranges(self) -> tuple[float, ...]:
        """What each mechanism of one scan pays at temperature 1."""
        return tuple(item for update in self.updates for item in update.ranges if item > 0)


def plan_scan(
    husk: Model,
    tables: Sequence[TableLikelihood],
    latents: Sequence[RowLatent] = (),
    *,
    neighbours: str,
    grid: int,
) -> Scan:
    """Find a conditional for every free variable of a husk; reads nothing private.

    Raises
    ------
    UnsupportedModelError
        With every variable that has none, and what to do.
    """
    return _Planner(husk, tables, latents, neighbours, grid).scan()


class _Planner:
    def __init__(
        self,
        husk: Model,
        tables: Sequence[TableLikelihood],
        latents: Sequence[RowLatent],
        neighbours: str,
        grid: int,
    ) -> None:
        self.husk, self.tables, self.neighbours, self.grid = husk, list(tables), neighbours, grid
        self.latents = {latent.name: latent for latent in latents}
        self.priors = {prior.name: prior for prior in priors_of(husk)}
        self.levels = {name: levels_of(prior) for name, prior in self.priors.items()}
        self.free = {prior.variable: self._box(prior) for prior in self.priors.values()}
        self.problems: list[Problem] = []
        self.boxes: list[list[Box]] = []

    def scan(self) -> Scan:
        for table in self.tables:
            try:
                found = boxes_of(table.parameters, self.free)
                check_bounds(table.parameters, self.free, found)
                self.boxes.append(self._wide(table, found))
            except UnknownOperationError as error:
                self.problems.append(
                    Problem(
                        where=table.name,
                        what=f"its parameters are computed by an operation without proved bounds: {error}",
                        remedy="Let them be free variables, selections of them, or simple functions such as sigmoid "
                        "and exp of sums of them.",
                    )
                )
        if self.problems:
            raise UnsupportedModelError(self.problems)
        functions = Functions(self.husk, {name: prior.shape for name, prior in self.priors.items()})
        updates = [self._update(prior, functions) for prior in self.priors.values()]
        if self.problems:
            raise UnsupportedModelError(self.problems)
        points = Points(
            functions,
            {str(rv.name): box.low for rv, box in self.free.items()},
            {str(rv.name): box.high for rv, box in self.free.items()},
        )
        compiled = tuple(update() for update in updates if update is not None)
        scan = Scan(updates=compiled, points=points, functions=functions)
        if not scan.ranges:
            what = "its likelihoods hang on no free variable that a row could tell anything about"
            raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give it a free variable.")])
        return scan

    def _box(self, prior: Prior) -> Box:
        levels = self.levels[prior.name]
        if levels is not None:
            low, high = np.full(prior.shape, float(levels[0])), np.full(prior.shape, float(levels[-1]))
        elif prior.low is not None and prior.high is not None:
            low, high = np.array(prior.low, dtype=float), np.array(prior.high, dtype=float)
        else:
            low, high = np.full(prior.shape, -np.inf), np.full(prior.shape, np.inf)
        places = np.arange(prior.size).reshape(prior.shape)
        return Box(low=low, high=high, feeds={prior.name: places})

    def _wide(self, table: TableLikelihood, boxes: Sequence[Box]) -> list[Box]:
        """Give every parameter one entry per cell."""
        wide = []
        for box, ndim in zip(boxes, table.family.event_ndims, strict=True):
            event = box.low.shape[len(box.low.shape) - ndim :]
            shape = (table.cells.count, *event)
            wide.append(
                Box(
                    low=np.broadcast_to(box.low, shape),
                    high=np.broadcast_to(box.high, shape),
                    feeds={name: np.broadcast_to(places, shape) for name, places in box.feeds.items()},
                )
            )
        return wide

    # --- one variable -------------------------------------------------------------------------------------------------

    def _update(self, prior: Prior, functions: Functions) -> Callable[[], Conditional] | None:
        """Plan the update of one variable; what it returns compiles it. None where a problem was noted."""
        if prior.name in self.latents:
            return self._latent(prior, functions)
        hanging = self._hanging(prior)
        found = conjugate(prior, hanging, self.husk) if hanging.tables else None
        if found is not None:
            whole = self._ranges(prior, hanging, together=True)
            return None if whole is None else partial(found, functions, *whole)
        if not hanging.tables and self.levels[prior.name] is None:
            if prior.variable.type.dtype.startswith("float"):
                return partial(self._free, prior, hanging, functions)
            self._refuse(prior, "is discrete without a known finite set of levels")
            return None
        elementwise = getattr(prior.variable.owner.op, "ndim_supp", 1) == 0
        if not elementwise:
            self._refuse(
                prior,
                f"is a {prior.distribution} that is not itself the parameter of its likelihood",
                "Use it as the parameter itself, or give its elements bounded priors of their own.",
            )
            return None
        if self.levels[prior.name] is None and not prior.bounded:
            self._unbounded(prior, hanging)
            return None
        owners = self._owners(prior, hanging)
        together = prior.size == 1 or not any((owner == MANY).any() for owner in owners)
        ranges = self._ranges(prior, hanging, together=together)
        if ranges is None:
            return None
        return partial(self._grid, prior, hanging, functions, owners, ranges, together)

    def _hanging(self, prior: Prior) -> Hanging:
        """Everything whose density depends on a variable directly."""
        rv = prior.variable
        others = [other for other in self.free if other is not rv]
        return Hanging(
            tables=tuple(
                (table, boxes)
                for table, boxes in zip(self.tables, self.boxes, strict=True)
                if any((box.owner(prior.name) != NONE).any() for box in boxes)
            ),
            children=tuple(other for other in others if feeds_from(other.owner.inputs, rv, others)),
            potentials=tuple(item for item in self.husk.potentials if feeds_from([item], rv, others)),
        )

    def _ranges(self, prior: Prior, hanging: Hanging, *, together: bool) -> tuple[tuple[float, ...], str] | None:
        """Bound each mechanism of an update: all elements at once, or one after the other."""
        elements: list[int | None] = [None] if together else list(range(prior.size))
        totals, reasons = [], []
        for element in elements:
            parts = [
                update_range(
                    table,
                    boxes,
                    prior.name,
                    element,
                    neighbours=self.neighbours,
                    # Not by its latents: neighbours share them once they are released.
                    moves=any(column.name not in self.latents for column in table.observed.private_columns),
                )
                for table, boxes in hanging.tables
            ]
            totals.append(sum(part.value for part in parts))
            reasons += [part.reason for part in parts]
        if not np.isfinite(totals).all():
            self._unbounded(prior, hanging)
            return None
        return tuple(totals) if hanging.tables else (), "; ".join(dict.fromkeys(reasons))

    def _latent(self, prior: Prior, functions: Functions) -> Callable[[], Conditional] | None:
        latent = self.latents[prior.name]
        held = [pair for pair in zip(self.tables, self.boxes, strict=True) if hangs_on(pair[0], latent)]
        for table, _ in held:
            if len(table.cells.columns) > 1:
                self._refuse(prior, f"shares the rows of {table.name!r} with other columns")
                return None
        found = latent_range(held)
        if not np.isfinite(found.value):
            self._unbounded(prior, Hanging(tables=tuple(held), children=(), potentials=()))
            return None
        return partial(latent_update, latent, prior.variable, functions, held, found)

    # --- what has no conjugate form -----------------------------------------------------------------------------------

    def _terms(self, prior: Prior, hanging: Hanging) -> list[Variable]:
        """Log-densities of a variable, of its children, and Potentials."""
        rvs = [prior.variable, *hanging.children]
        # A random variable stands in the place of its own value: both become the symbol of the value.
        terms = [pm.logp(rv, rv, warn_rvs=False) for rv in rvs]
        return [*terms, *(item.sum() for item in hanging.potentials)]

    def _owners(self, prior: Prior, hanging: Hanging) -> list[Array]:
        """Element of a variable that feeds each entry of its terms and of its tables."""
        owners = [np.arange(prior.size).reshape(prior.shape)]
        owners += [self._child_owner(prior, child) for child in hanging.children]
        owners += [np.full((), MANY) for _ in hanging.potentials]
        for _, boxes in hanging.tables:
            parts = [box.owner(prior.name).reshape(len(box.low), -1) for box in boxes]
            whole = np.concatenate(parts, axis=1)
            highest = whole.max(axis=1)
            lowest = np.where(whole == NONE, highest[:, None], whole).min(axis=1)
            owners.append(np.where(highest == lowest, highest, MANY))
        return owners

    def _child_owner(self, prior: Prior, child: Variable) -> Array:
        shape = self.priors[str(child.name)].shape
        op: Any = child.owner.op
        if isinstance(op, TruncatedRV) and op.ndim_supp == 0:
            parameters = list(child.owner.inputs[2:])
        elif isinstance(op, RandomVariable) and op.ndim_supp == 0:
            parameters = list(op.dist_params(child.owner))
        else:
            return np.full(self._term_shape(child), MANY)
        try:
            boxes = boxes_of(parameters, self.free)
        except UnknownOperationError:
            return np.full(shape, MANY)
        whole = np.stack([np.broadcast_to(box.owner(prior.name), shape) for box in boxes])
        highest = whole.max(axis=0)
        lowest = np.where(whole == NONE, highest, whole).min(axis=0)
        return np.where(highest == lowest, highest, MANY)

    def _term_shape(self, child: Variable) -> tuple[int, ...]:
        ndim = pm.logp(child, child, warn_rvs=False).type.ndim
        return self.priors[str(child.name)].shape[:ndim]

    def _grid(
        self,
        prior: Prior,
        hanging: Hanging,
        functions: Functions,
        owners: Sequence[Array],
        ranges: tuple[tuple[float, ...], str],
        together: bool,
    ) -> Conditional:
        levels = self.levels[prior.name]
        if levels is not None:
            points = np.tile(levels.reshape(-1, *(1,) * len(prior.shape)), (1, *prior.shape)).astype(float)
            widths = np.zeros(prior.shape)
        else:
            assert prior.low is not None and prior.high is not None
            widths = (prior.high - prior.low) / self.grid
            middles = (np.arange(self.grid) + 0.5).reshape(-1, *(1,) * len(prior.shape))
            points = prior.low + middles * widths
        terms = self._terms(prior, hanging)
        tables = [table for table, _ in hanging.tables]
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

    def _free(self, prior: Prior, hanging: Hanging, functions: Functions) -> Conditional:
        density, forward, backward = functions.unconstrained(prior.variable, self._terms(prior, hanging))
        return Free(
            name=prior.name,
            shape=prior.shape,
            ranges=(),
            reason="",
            density=density,
            forward=forward,
            backward=backward,
        )

    # --- refusals -----------------------------------------------------------------------------------------------------

    def _refuse(self, prior: Prior, what: str, remedy: str = MARGINALISE) -> None:
        self.problems.append(Problem(where=prior.name, what=f"{prior.name!r} {what}", remedy=remedy))

    def _unbounded(self, prior: Prior, hanging: Hanging) -> None:
        """Say which variables have to be bounded for an update to have a finite range."""
        blamed = {name for table, boxes in hanging.tables for name in improper(table, boxes)}
        names = [name for name in self.priors if name in blamed]
        own = self.free[prior.variable]
        if not names and not np.isfinite([own.low, own.high]).all():
            names = [prior.name]
        bounds = ", ".join(f"{name!r}: {self._suggestion(name)}" for name in names)
        self.problems.append(
            Problem(
                where=prior.name,
                what=f"one row can move the conditional of {prior.name!r}, whose support is "
                f"({float(own.low.min()):g}, {float(own.high.max()):g}), by any amount",
                remedy=f"Bound the parameter space by public numbers: dp.truncate(model, {{{bounds}}})."
                if names
                else "Keep the numbers in the likelihood away from the ends of their range (a probability of 0).",
            )
        )

    def _suggestion(self, name: str) -> str:
        box = next(box for rv, box in self.free.items() if rv.name == name)
        if (box.low >= 0).all() and (box.high <= 1).all():
            return "(0.01, 0.99)" if self.priors[name].distribution != "dirichlet" else "(0.01, None)"
        return "(0.1, 10.0)" if (box.low >= 0).all() else "(-10.0, 10.0)"


def levels_of(prior: Prior) -> Array | None:
    """Levels of a discrete variable that are known beforehand, ascending; None where there are none or too many."""
    op: Any = prior.variable.owner.op
    if prior.distribution == "bernoulli":
        return np.arange(2)
    if prior.distribution == "categorical":
        length = prior.parameters[0].type.shape[-1]
        if length is None:
            values = constant_values(prior.parameters)
            length = None if values is None else values[0].shape[-1]
        return None if length is None or length > MOST_LEVELS else np.arange(length)
    if prior.distribution in ("discrete_uniform", "binomial") and isinstance(op, RandomVariable):
        values = constant_values(prior.parameters)
        if values is None:
            return None
        low, high = (values[0], values[1]) if prior.distribution == "discrete_uniform" else (np.zeros(()), values[0])
        if np.unique(low).size == 1 and np.unique(high).size == 1 and high.max() - low.min() < MOST_LEVELS:
            return np.arange(int(low.min()), int(high.max()) + 1)
    return None


__all__ = ["Scan", "levels_of", "plan_scan"]
