"""Which conditional each free variable has, found in the model graph, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pymc as pm
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.draws.finite_choice import cells
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.columns import WITHOUT, levels_of
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.hidden_markov import MARKOV, Chain, chains_of
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.gibbs import GibbsRows
from pymc_dp.samplers.gibbs_sums import GibbsSums
from pymc_dp.simulation.columns import mixed
from pymc_dp.step_methods.gibbs.by_rows import RowGrid, likelihoods_by_rows
from pymc_dp.step_methods.gibbs.by_sums import (
    PublicConjugate,
    SummedConjugate,
    SummedGrid,
    SumsUpdate,
    likelihoods_by_sums,
)
from pymc_dp.step_methods.gibbs.compiled import Functions, Points
from pymc_dp.step_methods.gibbs.conjugacy import Conjugacy, Dependents, conjugate, fed
from pymc_dp.step_methods.gibbs.grid import Conditional, Free, Scores, Values
from pymc_dp.step_methods.gibbs.latent_update import Apart, LatentUpdate
from pymc_dp.step_methods.gibbs.likelihoods import Likelihoods, ends_of
from pymc_dp.step_methods.gibbs.owners import MANY, NOWHERE, joined, owners_of
from pymc_dp.step_methods.gibbs.paying import FAR, Payment, RangePlan
from pymc_dp.step_methods.gibbs.refusals import MARGINALISE, joint, unbounded
from pymc_dp.step_methods.gibbs.states import StatePaths, moves_update
from pymc_dp.transforms.likelihood import TableLikelihood

CELLS, BY_ROWS = 1024, 256
"""Cells of a grid where exact sums are enough; and of rows that are gone through one by one, for every cell."""
MOST_EXTREMES = 8
"""Values at its ends that a free variable is moved to."""
INSIDE = 1e-3
"""Share of what is between the ends of a variable that no row sees, from which it is tried."""
PROBES = 12
"""States at which it is looked at which elements of a variable are independent given the rest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scan:
    """One full scan: an update of every variable that it moves, in the model's order.

    Attributes
    ----------
    plan : RangePlan
        Of the draws by the kernel.
    payments : list of Payment
        The one of the chain, last.
    """

    updates: tuple[Conditional, ...]
    points: Points
    functions: Functions
    plan: RangePlan
    payments: list[Payment] = field(default_factory=list)

    def compile(self) -> None:
        """Compile now, in the process that workers are copied from."""
        self.functions.compile()

    @property
    def ranges(self) -> tuple[float, ...]:
        """The largest that was found for each draw of one scan, at temperature 1."""
        return tuple(one.most for one in self.plan.priced if one.most > 0)

    @property
    def slacks(self) -> tuple[float, ...]:
        """What is added to what these cost."""
        return tuple(one.slack for one in self.plan.priced if one.most > 0)

    @cached_property
    def most_beta(self) -> float:
        """Above which the kernel would not hold what rows say of their latents."""
        latents = [update for update in self.updates if isinstance(update, LatentUpdate)]
        return min((update.most_beta(self.plan.states) for update in latents), default=1.0)

    @property
    def floats(self) -> bool:
        """Whether draws of the kernel are made in floats."""
        return any(isinstance(update, SummedConjugate | StatePaths) for update in self.updates)


def plan_scan(likelihoods: Likelihoods, *, grid: int | None, own: Collection[str] | None = None) -> Scan:
    """Find a conditional for free variables of a prior model; reads nothing private.

    Parameters
    ----------
    likelihoods : Likelihoods
    grid : int or None
        Cells of every grid.
    own : collection of str, optional
        Variables that are updated; all by default. The others may be anywhere in their supports.

    Raises
    ------
    UnsupportedModelError
        With every variable that has none, and what to do.
    """
    return _Planner(likelihoods, grid).scan(own)


class _Planner:
    def __init__(self, likelihoods: Likelihoods, grid: int | None) -> None:
        self.likelihoods, self.grid = likelihoods, grid
        self.prior_model, self.tables, self.held = likelihoods.prior_model, likelihoods.tables, likelihoods.held
        self.latents = {latent.name: latent for latent in likelihoods.latents}
        self.priors = {prior.name: prior for prior in priors_of(self.prior_model)}
        self.levels = {name: levels_of(prior) for name, prior in self.priors.items()}
        self.ends = {name: ends_of(prior) for name, prior in self.priors.items()}
        self.free = {prior.variable: self.ends[name] for name, prior in self.priors.items()}
        kinds = {prior.distribution for prior in self.priors.values()}
        self.chains = chains_of(self.prior_model, tuple(self.priors.values())) if MARKOV in kinds else ()
        self.functions = Functions(self.prior_model, {name: prior.shape for name, prior in self.priors.items()})
        parameters = [one for table in self.tables for one in table.parameters]
        self.seen = {
            name
            for name, prior in self.priors.items()
            if (isinstance(self.held, GibbsRows) and self.held.depends_on(name))
            or fed(parameters, prior, list(self.free))
        }
        self.problems: list[Problem] = []
        self.payments: list[Payment] = []
        self.draws = 0

    def scan(self, own: Collection[str] | None) -> Scan:
        moved = [prior for name, prior in self.priors.items() if own is None or name in own]
        updates = [update for prior in moved if (update := self._update(prior)) is not None]
        self._require()
        low = {name: ends[0] for name, ends in self.ends.items()}
        points = Points(self.functions, low, {name: ends[1] for name, ends in self.ends.items()})
        plan = self._plan(updates)
        if not any(one.most > 0 for one in plan.priced):
            what = "its likelihoods depend on no free variable that a row could tell anything about"
            problem = Problem(where="model", what=what, remedy="Give it a free variable.")
            if own is not None:
                what = "no row tells anything about them, given the other variables"
                problem = Problem(where=", ".join(own), what=what, remedy="Name a variable of a likelihood with them.")
            raise UnsupportedModelError([problem])
        reason = self._reason(plan)
        known = tuple(
            replace(
                one, ranges=tuple(item.most for item in plan.priced[one.first : one.first + one.draws]), reason=reason
            )
            if isinstance(one, RowGrid | SumsUpdate)
            else one
            for one in updates
        )
        return Scan(updates=known, points=points, functions=self.functions, plan=plan, payments=self.payments)

    def _require(self) -> None:
        if self.problems:
            raise UnsupportedModelError(list(dict.fromkeys(self.problems)))

    def _plan(self, updates: Sequence[Conditional]) -> RangePlan:
        """Look at the ranges of what the kernel draws."""
        own = [update for update in updates if isinstance(update, RowGrid | SumsUpdate)]
        inspection, held = self.likelihoods.inspection, self.held
        if isinstance(held, GibbsRows):
            assert isinstance(inspection, RowInspection)
            likelihoods: Callable[..., Array] = partial(likelihoods_by_rows, inspection, held)
        else:
            call = self.functions.slopes_here(self.tables)
            likelihoods = partial(likelihoods_by_sums, inspection, held, lambda values: np.concatenate(call(values)))
        extremes = {name: self._extremes(other) for name, other in self.priors.items()}
        return RangePlan(self.prior_model, own, self.ends, extremes, self._anywhere, held.most_rows, likelihoods)

    def _within(self, prior: Prior) -> tuple[Array, Array]:
        """Return ends of a free variable, no farther than `FAR`; of one that no row sees inside of its support."""
        low, high = (np.clip(end, -FAR, FAR) for end in self.ends[prior.name])
        if prior.name in self.seen or self.levels[prior.name] is not None:
            return low, high
        return low + INSIDE * (high - low), high - INSIDE * (high - low)

    def _extremes(self, prior: Prior) -> list[Array]:
        """Return values of a free variable at its ends: all elements at the same, and by turns."""
        low, high = self._within(prior)
        turn = np.arange(prior.size).reshape(prior.shape) % 2 == 0
        found = [low, high]
        if prior.distribution == "dirichlet":  # a level of each vector as likely as it may be
            levels, vectors = prior.shape[-1], np.arange(prior.size // prior.shape[-1]).reshape(prior.shape[:-1])
            rest = 1 - low.sum(axis=-1, keepdims=True)
            both = [np.zeros_like(vectors), vectors][: 1 + (vectors.size > 1)]
            found = [low + rest * np.eye(levels)[(one + k) % levels] for k in range(levels) for one in both]
        elif prior.size > 1:
            found += [np.where(turn, low, high), np.where(turn, high, low)]
        return [one.astype(prior.variable.type.dtype) for one in found[:MOST_EXTREMES]]

    def _reason(self, plan: RangePlan) -> str:
        if isinstance(self.held, GibbsRows):
            return (
                f"the largest at {len(plan.states)} states, of {len(self.held.public)} public rows that are moved on "
                "to where it is larger; enforced on the number of every row, and rows beyond it are cut"
            )
        return (
            f"the largest at {len(plan.states)} states, of any two rows that there may be; at each state the kernel "
            "computes its own"
        )

    def _anywhere(self, turn: int) -> dict[str, Array]:
        rng = np.random.default_rng(turn)
        return {
            name: anywhere(other, self._within(other), self.levels[name], turn, rng).astype(other.variable.type.dtype)
            for name, other in self.priors.items()
        }

    # --- one variable -------------------------------------------------------------------------------------------------

    def _update(self, prior: Prior) -> Conditional | None:
        """Return the update of one variable. None where a problem was noted."""
        if prior.name in self.latents:
            return self._latent(prior)
        by_rows = isinstance(self.held, GibbsRows) and self.held.depends_on(prior.name)
        dependents = Dependents.of(prior, self.free, self.tables, self.prior_model.potentials, by_rows=by_rows)
        for chain in self.chains:
            if prior.variable is chain.states.variable:
                return self._states(chain, dependents)
            if prior in chain.free and (moves := moves_update(chain, prior, dependents)) is not None:
                return moves()
        found = conjugate(prior, dependents, self.free)
        if found is not None:
            return self._conjugate(prior, found, dependents)
        if not dependents.rows and self.levels[prior.name] is None:
            if prior.variable.type.dtype.startswith("float"):
                return self._free(prior, dependents)
            self._refuse(prior, WITHOUT)
            return None
        return self._on_a_grid(prior, dependents) if self._may_have_a_grid(prior, dependents) else None

    def _conjugate(self, prior: Prior, found: Conjugacy, dependents: Dependents) -> Conditional:
        given = found.compile(self.functions)
        if not dependents.tables:
            return PublicConjugate(name=prior.name, shape=prior.shape, given=given)
        return SummedConjugate(given=given, **self._by_sums(prior, dependents))

    def _by_sums(self, prior: Prior, dependents: Dependents, draws: int = 1) -> dict[str, Any]:
        """Return what all updates by sums have."""
        assert isinstance(self.held, GibbsSums)
        first = self.draws
        self.draws += draws
        return {
            "name": prior.name,
            "shape": prior.shape,
            "of": self.held,
            "first": first,
            "payments": self.payments,
            "unbounded": partial(self._unbounded, prior, dependents),
        }

    def _unbounded(self, prior: Prior, dependents: Dependents) -> Problem:
        """Say at the ends of which variables a row can move an update by any amount."""
        call, middle = self.functions.slopes_here(dependents.tables), self._middle()
        names: list[str] = []
        for name, other in self.priors.items():
            for end in self._extremes(other):
                with np.errstate(all="ignore"):
                    slopes = call({**middle, name: end})
                if name not in names and not all(np.isfinite(one).all() for one in slopes):
                    names.append(name)
        return unbounded(prior, names, self.ends, self.priors)

    def _middle(self) -> dict[str, Array]:
        found = {}
        for name, other in self.priors.items():
            low, high = self._within(other)
            levels, dtype = self.levels[name], other.variable.type.dtype
            value = low / 2 + high / 2 if levels is None else np.full(other.shape, levels[len(levels) // 2])
            if other.distribution == "dirichlet":
                value = np.full(other.shape, 1 / other.shape[-1])
            found[name] = np.asarray(value).astype(dtype)
        return found

    def _may_have_a_grid(self, prior: Prior, dependents: Dependents) -> bool:
        if getattr(prior.variable.owner.op, "ndim_supp", 1) != 0:
            self.problems.append(joint(prior))
        elif self.levels[prior.name] is None and not prior.variable.type.dtype.startswith("float"):
            self._refuse(prior, WITHOUT)
        elif self.levels[prior.name] is None and not prior.bounded:
            self.problems.append(unbounded(prior, [], self.ends, self.priors))
        else:
            return True
        return False

    def _on_a_grid(self, prior: Prior, dependents: Dependents) -> Conditional:
        points, widths = self._cells(prior, self.grid or (BY_ROWS if dependents.by_rows else CELLS))
        terms = terms_of(prior, dependents)
        owners = self._owners(prior, dependents)
        scores = Scores(size=prior.size, function=self.functions.scores(prior.variable, terms), owners=owners)
        of_tables = self._of_tables(prior, dependents.tables)
        states = [self._anywhere(turn) for turn in range(PROBES)]
        apart = not any((one == MANY).any() for values in states for one in [*owners(values), *of_tables(values)])
        if dependents.by_rows:
            return self._by_rows(prior, points, widths, scores, apart=apart)
        together = prior.size == 1 or apart
        return SummedGrid(
            points=points,
            widths=widths,
            together=together,
            scores=scores,
            slopes=self.functions.slopes(prior.variable, self.tables),
            owners=self._of_tables(prior, self.tables),
            **self._by_sums(prior, dependents, 1 if together else prior.size),
        )

    def _owners(self, prior: Prior, dependents: Dependents) -> Callable[[Values], list[Array]]:
        """Return the element that feeds each entry of the terms of a variable."""
        own = np.arange(prior.size, dtype=np.float64).reshape(prior.shape)
        children = [self._of_child(prior, child) for child in dependents.children]
        many = [np.full((), MANY) for _ in dependents.potentials]
        return lambda values: [own, *(child(values) for child in children), *many]

    def _of_child(self, prior: Prior, child: Variable) -> Callable[[Values], Array]:
        op: Any = child.owner.op
        shape = self.priors[str(child.name)].shape
        if isinstance(op, TruncatedRV) and op.ndim_supp == 0:
            parameters = list(child.owner.inputs[2:])
        elif isinstance(op, RandomVariable) and op.ndim_supp == 0:
            parameters = list(op.dist_params(child.owner))
        else:
            whole = np.full(shape[: pm.logp(child, child, warn_rvs=False).type.ndim], MANY)
            return lambda values: whole
        call = owners_of(parameters, prior, self.functions)
        return lambda values: joined(np.stack([np.broadcast_to(one, shape) for one in call(values)]), 0)

    def _of_tables(self, prior: Prior, tables: Sequence[TableLikelihood]) -> Callable[[Values], list[Array]]:
        """Return the element that feeds each cell of each table."""
        counts = [len(table.parameters) for table in tables]
        call = owners_of([one for table in tables for one in table.parameters], prior, self.functions)

        def found(values: Values) -> list[Array]:
            remaining = iter(call(values))
            parts = []
            for table, count in zip(tables, counts, strict=True):
                own = [next(remaining) for _ in range(count)]
                wide = [np.broadcast_to(one, (table.n_cells, *one.shape[1:])).reshape(table.n_cells, -1) for one in own]
                parts.append(joined(np.concatenate([np.full((table.n_cells, 1), NOWHERE), *wide], axis=1), 1))
            return parts

        return found

    def _latent(self, prior: Prior) -> Conditional:
        latent = self.latents[prior.name]
        tables = [table for table in self.tables if any(one.name == latent.name for one in table.cells.columns)]
        (own,) = prior.variable.owner.op.dist_params(prior.variable.owner)
        return LatentUpdate(
            prior=self.functions.function([own.squeeze()]),
            apart=Apart(tables, latent, self.likelihoods.inspection, list(self.latents)),
            slopes=self.functions.slopes_here(tables),
            **self._by_sums(prior, Dependents(tables=tuple(tables))),
        )

    def _states(self, chain: Chain, dependents: Dependents) -> Conditional | None:
        """Plan the update of all states of a Markov chain at once."""
        prior = chain.states
        if dependents.by_rows or dependents.children or dependents.potentials:
            self._refuse(prior, "is needed for more than parameters of sums over the rows of its cells")
            return None
        owners = self._of_tables(prior, dependents.tables)
        if any((one < 0).any() for turn in range(PROBES) for one in owners(self._anywhere(turn))):
            self._refuse(prior, "feeds parameters that depend on several of its states, or on none")
            return None
        return StatePaths(
            chain=chain,
            slopes=self.functions.slopes(prior.variable, self.tables),
            owners=self._of_tables(prior, self.tables),
            **self._by_sums(prior, dependents),
        )

    # --- what has no conjugate form -----------------------------------------------------------------------------------

    def _by_rows(self, prior: Prior, points: Array, widths: Array, scores: Scores, *, apart: bool) -> Conditional:
        """Plan choices by the kernel, row by row."""
        assert isinstance(self.held, GibbsRows)
        given, first = self.held.given(prior.name, apart=apart), self.draws
        self.draws += 1 if given.cell is not None else prior.size
        return RowGrid(
            name=prior.name,
            shape=prior.shape,
            points=points,
            widths=widths,
            together=given.cell is not None,
            scores=scores,
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

    def _free(self, prior: Prior, dependents: Dependents) -> Conditional:
        density, forward, backward = self.functions.unconstrained(prior.variable, terms_of(prior, dependents))
        return Free(name=prior.name, shape=prior.shape, density=density, forward=forward, backward=backward)

    def _refuse(self, prior: Prior, what: str, remedy: str = MARGINALISE) -> None:
        self.problems.append(Problem(where=prior.name, what=f"{prior.name!r} {what}", remedy=remedy))


def terms_of(prior: Prior, dependents: Dependents) -> list[Variable]:
    """Log-densities of a variable, of its children, and Potentials."""
    rvs = [prior.variable, *dependents.children]
    # A random variable stands in place of its own value: both become the symbol of the value.
    terms = [pm.logp(rv, rv, warn_rvs=False) for rv in rvs]
    return [*terms, *(item.sum() for item in dependents.potentials)]


def anywhere(
    prior: Prior, ends: tuple[Array, Array], levels: Array | None, turn: int, rng: np.random.Generator
) -> Array:
    """Return a value of a free variable: the least, the greatest, the one in the middle, or any."""
    shape = prior.shape
    if levels is not None:
        return np.full(shape, levels[(0, -1)[turn]]) if turn < 2 else rng.choice(levels, shape)
    low, high = ends
    found = np.asarray(mixed(low, high, low / 2 + high / 2, turn, rng))
    if prior.distribution != "dirichlet":
        return found
    found = found + np.finfo(float).eps
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


__all__ = ["Scan", "plan_scan"]
