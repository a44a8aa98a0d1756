"""Posteriors of models whose rows enter by sums: conjugate, or from a grid, at a cost independent of the rows.

Posteriors that factorise into truncated conjugate distributions: found in the graph, drawn exactly.

What every way to draw from a tempered posterior can do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, override

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.accounting import BoundedRangeEvent, Event
from pymc_dp.draws.finite_choice import choose
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.interpreted import stable
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.one_row import frozen_shared, parts_of
from pymc_dp.inspection.priors import OWN_TRANSFORM, Prior, priors_of
from pymc_dp.inspection.row_density import guarded, vectorized
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.kernel.account import covers, repeated
from pymc_dp.kernel.conjugates import Conjugate as Family
from pymc_dp.kernel.conjugates import drawing
from pymc_dp.kernel.draw import slack
from pymc_dp.samplers.near_rows import no_digits
from pymc_dp.samplers.sums import COMPUTED, KernelSums, ModelSums, slopes_of
from pymc_dp.step_methods.gibbs.compiled import Functions
from pymc_dp.step_methods.gibbs.conjugacy import Conjugacy, Dependents, TablePair, conjugate
from pymc_dp.step_methods.gibbs.conjugate_draws import CONDITIONALS, Back, Conjugate
from pymc_dp.step_methods.gibbs.grid import Ends, somewhere
from pymc_dp.step_methods.gibbs.likelihoods import ends_of
from pymc_dp.step_methods.ops.grid import by_name, grid_of, log_prior
from pymc_dp.step_methods.ops.price import Temperature
from pymc_dp.step_methods.row_range import RowRange
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

CELLS = {1: 16_384, 2: 256}
"""Cells per axis of a grid."""
CHUNK = 2**20
"""Numbers held at once while derivatives are evaluated."""
NONE = 1e-200
"""A range that is none."""
POINTS = 257
"""Between the ends of parameters, at which Δl is looked at."""
ROOM, ROUNDED = 1e-9, 2.0**-22
"""By how much a planned range is widened, relatively; and in nats, for what rounding of coefficients adds to it."""
NO_SUPPORT = "Its prior density is 0, or its likelihood has no valid parameters, on all of the grid"
NOTHING = Problem(
    where="model",
    what="its likelihoods depend on no free variable that a row could tell anything about",
    remedy="Give it a free variable.",
)
FAR = (
    "Subtract a public number from its values and from their mean, so that both lie near 0, or give its parameters "
    "bounds nearer to those of its values."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConjugatePosterior:
    """A posterior that is a product of truncated conjugate distributions, whatever the rows.

    Every likelihood is, in each of its cells, a function of one free variable, and no prior depends on another. So the
    posterior is a product over free variables, and the conditional of each, which `conjugate` finds, is its marginal.

    Attributes
    ----------
    updates : tuple of Conjugate
        One for each free variable.
    anywhere : mapping of str to array
        A public point. Conditionals are the same wherever other variables are; factors of parameters are found there.
    """

    updates: tuple[Conjugate, ...]
    anywhere: Mapping[str, Array]
    words = "independent and exact, from truncated conjugate distributions"

    @classmethod
    def of(cls, prior_model: Model, priors: Sequence[Prior], tables: Sequence[TableLikelihood]) -> Self | list[Problem]:
        """Find the form in the graph, or say what is in the way."""
        problems = [
            Problem(where=str(var.name), what="a Potential has no conjugate form", remedy="")
            for var in prior_model.potentials
        ]
        free = {prior.variable: ends_of(prior) for prior in priors}
        dependents = {prior.name: Dependents.of(prior, free, tables) for prior in priors}
        found = [item for prior in priors if (item := conjugate(prior, dependents[prior.name], free)) is not None]
        lost = {prior.name for prior in priors} - {item.prior.name for item in found}
        for prior in priors:
            unknown = not any(prior.distribution in conditional.priors for conditional in CONDITIONALS)
            what = ""
            if prior.constants is None or prior.low is None or unknown:
                what = f"its prior ({prior.distribution}) is not a plain conjugate one with constant parameters"
            elif dependents[prior.name].children:
                what = "the prior of another variable depends on it"
            problems += [Problem(where=prior.name, what=what, remedy="")] if what else []
        functions = Functions(prior_model, {prior.name: prior.shape for prior in priors})
        anywhere = _anywhere(free)
        for table in tables:
            behind = [prior for prior in priors if prior.variable in set(ancestors(table.parameters))]
            if any(prior.name in lost for prior in behind) or _crowded(table, found, functions, anywhere):
                problems.append(_problem(table, behind))
        if problems or lost:
            return problems
        return cls(updates=tuple(item.compile(functions) for item in found), anywhere=anywhere)

    def by_sums(self, sums: ModelSums, power: float) -> list[tuple[Family, Back]]:
        """Return what the kernel draws each of `seen` from, the prior to a power; and how it is made of that."""
        return [one.by_sums(sums, self.anywhere, power) for one in self.seen]

    @property
    def seen(self) -> tuple[Conjugate, ...]:
        """Those of variables that a row tells of."""
        return tuple(one for one in self.updates if one.links)


def _anywhere(free: Mapping[Variable, Ends]) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {str(var.name): somewhere(rng, var, ends) for var, ends in free.items()}


def _crowded(
    table: TableLikelihood, found: Sequence[Conjugacy], functions: Functions, anywhere: Mapping[str, Array]
) -> bool:
    """Whether some cell of a table depends on several free variables."""
    held = np.zeros(table.n_cells, dtype=int)
    for item in found:
        for pair in item.pairs:
            if isinstance(pair, TablePair) and pair.table is table:
                held += pair.link(item.prior, functions).places(anywhere) >= 0
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


class BySums(KernelSums, ABC):
    """A posterior given exact sums, which the kernel holds, and draws from.

    Parameters
    ----------
    sums : ModelSums

    Attributes
    ----------
    range : RowRange
    added : float
        What a draw costs above its range.
    stream : int or None
        Which of several chains draws, see `ByTotals`.
    """

    stream: int | None = None
    exact = True
    range: RowRange
    added = ROUNDED

    def read(self) -> None:
        """Add up the rows, once. The budget was charged."""
        self.load()

    def begin(self, held: None, paid: Event, steps: int) -> None:
        """Begin a chain of so many draws, each of which `paid` was charged for."""
        self._pay = self.opened(repeated(paid, steps), stream=self.stream).grant(paid, steps)

    @property
    @abstractmethod
    def words(self) -> str:
        """How draws are made, for the trace."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, held: None, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""

    @abstractmethod
    def costs(self, inverse: float) -> Event:
        """Return what the kernel charges for a draw."""

    def covered(self, found: Temperature) -> Temperature:
        """Return a temperature whose planned event covers what the kernel charges: if higher, by rounding alone."""
        less = 1e-12
        while not covers(found.event, self.costs(found.inverse)):
            found, less = replace(found, inverse=found.inverse * (1 - less)), min(2 * less, 0.5)
        return found

    @abstractmethod
    def simulated(
        self, rng: np.random.Generator, held: Mapping[str, ExactSums], inverse: float, temper_prior: bool
    ) -> dict[str, Array]:
        """Draw likewise given made-up sums, which are public."""


class SummedDraws(BySums):
    """A posterior that factorises into truncated conjugate distributions.

    Parameters
    ----------
    form : ConjugatePosterior
    sums : ModelSums
    size : float
        Δl, where the papers' rule asks for it.
    """

    words = ConjugatePosterior.words

    def __init__(self, form: ConjugatePosterior, sums: ModelSums, size: float) -> None:
        super().__init__(sums)
        self._form = form
        try:
            found = float(self.costs(1.0).eta) * (1 + ROOM)
        except ArgumentError:  # boxes that are open, or numbers beyond floats
            found = math.inf
        reason = f"how far any two possible rows differ over the support of the priors, {COMPUTED}"
        self.range = RowRange(value=found, sensitivity=max(size, found / 2), reason=reason)

    @override
    def costs(self, inverse: float) -> BoundedRangeEvent:
        layout, families = self.sums.layout, [family for family, _ in self._form.by_sums(self.sums, 1.0)]
        return drawing(layout, families, [layout.exponents(family.linear, inverse) for family in families])

    @override
    def draw(self, rng: np.random.Generator, held: None, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""
        power, form = inverse if temper_prior else 1.0, self._form
        found = form.by_sums(self.sums, power)
        drawn = self.kernel.draw([family for family, _ in found], beta=inverse, pay=self._pay)
        by_name = {one.name: one.draw(rng, form.anywhere, {}, inverse, power) for one in form.updates if not one.links}
        made = zip(form.seen, found, drawn, strict=True)
        by_name |= {one.name: back(value) for one, (_, back), value in made}
        return {one.name: by_name[one.name] for one in form.updates}

    @override
    def simulated(
        self, rng: np.random.Generator, held: Mapping[str, ExactSums], inverse: float, temper_prior: bool
    ) -> dict[str, Array]:
        power = inverse if temper_prior else 1.0
        return {one.name: one.draw(rng, self._form.anywhere, held, inverse, power) for one in self._form.updates}


class SummedGrid(BySums):
    """A posterior on a grid, of which the kernel chooses a cell by exact sums: θ is uniform within it.

    Parameters
    ----------
    inspection : Inspection
    prior_model : pymc.Model
    priors : sequence of Prior
        Of which `_grid_problem` says nothing.
    tables : sequence of TableLikelihood
    cells : int, optional
        Per axis.
    papers : bool
        Whether Δl is wanted, for the papers' rule.

    Raises
    ------
    UnsupportedModelError
        If no point of the grid has a density, or numbers are too large for floats.
    """

    words = "independent and exact: a cell of a public grid, then a uniform point within it"

    def __init__(
        self,
        inspection: Inspection,
        prior_model: Model,
        priors: Sequence[Prior],
        tables: Sequence[TableLikelihood],
        cells: int | None,
        *,
        papers: bool,
    ) -> None:
        super().__init__(ModelSums(tables, inspection))
        self.priors = tuple(priors)
        scalars = sum(prior.size for prior in priors)
        points, self.widths = grid_of(self.priors, cells or CELLS[scalars])
        prior = log_prior(prior_model, self.priors, points)
        slopes = _slopes(prior_model, self.priors, tables, points)
        possible = np.isfinite(prior) & np.isfinite(slopes).all(axis=1)
        if not possible.any():
            raise UnsupportedModelError([Problem(where="model", what=NO_SUPPORT, remedy="Change its priors.")])
        self.points, self.prior = points[possible], prior[possible]
        self.slopes = slopes[possible]
        self.coefficients = self.sums.whole(self.slopes)
        layout = self.sums.layout
        try:
            found = float(layout.nats(layout.range(layout.exponents(self.coefficients, 1.0)))) * (1 + ROOM)
        except ArgumentError:
            found = math.inf
        size = _size(self.sums, self.coefficients) if papers else 0.0
        reason = f"how far any two possible rows differ over the grid, {COMPUTED}"
        self.range = RowRange(value=found, sensitivity=max(size, found / 2), reason=reason)
        self.added = float(slack(len(self.points))) + ROUNDED

    @override
    def costs(self, inverse: float) -> BoundedRangeEvent:
        return self.sums.layout.choice(self.sums.layout.exponents(self.coefficients, inverse))

    @override
    def draw(self, rng: np.random.Generator, held: None, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""
        public = (inverse if temper_prior else 1.0) * self.prior
        place = self.kernel.choose(self.coefficients, beta=inverse, public=public, pay=self._pay)
        return by_name(self.priors, self.points[place] + self.widths * (rng.random(len(self.widths)) - 0.5))

    @override
    def simulated(
        self, rng: np.random.Generator, held: Mapping[str, ExactSums], inverse: float, temper_prior: bool
    ) -> dict[str, Array]:
        weights = (inverse if temper_prior else 1.0) * self.prior + inverse * self.slopes @ self.sums.flat(held)
        place = choose(rng, weights)
        return by_name(self.priors, self.points[place] + self.widths * (rng.random(len(self.widths)) - 0.5))


def _summed_grid(
    prior_model: Model,
    priors: Sequence[Prior],
    tables: Sequence[TableLikelihood],
    inspection: Inspection,
    cells: int | None,
    *,
    papers: bool,
) -> SummedGrid | list[Problem]:
    """Lay a grid, or say what is in the way."""
    grid = SummedGrid(inspection, prior_model, priors, tables, cells, papers=papers)
    if not grid.range.value > 0:
        raise UnsupportedModelError([NOTHING])
    if not math.isfinite(grid.range.value):
        what = "one row can move its log-likelihood by any amount within the bounds of its parameters"
        remedy = "Bound the parameter space by public numbers, with dp.truncate, away from the ends of their range."
        return [Problem(where=tables[0].name, what=what, remedy=remedy)]
    lost = no_digits(grid.sums.most(grid.coefficients), inspection.most_rows, grid.range.value, FAR)
    return grid if lost is None else [lost]


def _grid_problem(priors: Sequence[Prior]) -> str:
    """Say why no grid can be laid; empty if one can."""
    scalars = sum(prior.size for prior in priors)
    if scalars == 0:
        return "The model has no free variable."
    if scalars > 2 or any(prior.distribution == "dirichlet" for prior in priors):
        return f"Exact draws need conjugate priors, or at most 2 bounded scalar parameters (there are {scalars})."
    own = [prior.name for prior in priors if prior.distribution.endswith(OWN_TRANSFORM)]
    if own:
        return f"Leave out the transform of {', '.join(own)}, set by hand: some of them restrict the prior too."
    if not all(prior.bounded for prior in priors):
        names = ", ".join(f"{prior.name!r}: (low, high)" for prior in priors if not prior.bounded)
        return f"With bounds it can be drawn from a grid: dp.truncate(model, {{{names}}})."
    if any(np.issubdtype(prior.variable.type.dtype, np.integer) for prior in priors):
        return "Exact draws from a grid need continuous parameters."
    return ""


def _slopes(prior_model: Model, priors: Sequence[Prior], tables: Sequence[TableLikelihood], points: Array) -> Array:
    """Return derivatives of all log-likelihoods in their sums at (n_points, n_scalars) points; public."""
    flat = pt.vector("flat", shape=(points.shape[1],), dtype="float64")
    parts = parts_of(flat, [prior.variable for prior in priors], [prior.shape for prior in priors])
    found = pt.concatenate([slopes_of(table, lambda graphs: rebuild(graphs, parts)[0]) for table in tables])
    batch = pt.matrix("points", shape=(None, points.shape[1]), dtype="float64")
    graph = vectorized(stable(frozen_shared(guarded(found), ())), {flat: batch})
    if graph.type.ndim == 1:
        graph = pt.broadcast_to(graph, (batch.shape[0], graph.shape[0]))
    function = compiled([batch], [graph])
    size = max(1, CHUNK // max(1, sum(table.cells.count for table in tables)))
    with np.errstate(all="ignore"):
        return np.concatenate([function(points[start : start + size])[0] for start in range(0, len(points), size)])


def table_posterior(
    prior_model: Model,
    tables: tuple[TableLikelihood, ...],
    inspection: Inspection,
    cells: int | None,
    *,
    papers: bool = False,
) -> BySums | list[Problem]:
    """Find the form of a posterior, or say why it has none or why a row can move it by any amount.

    Raises
    ------
    UnsupportedModelError
        If a row can move it by nothing, or there is no posterior.
    """
    priors = priors_of(prior_model)
    form = ConjugatePosterior.of(prior_model, priors, tables)
    if isinstance(form, list):
        if problem := _grid_problem(priors):
            return [*form, Problem(where="model", what=problem.rstrip("."), remedy="")]
        return _summed_grid(prior_model, priors, tables, inspection, cells, papers=papers)
    sums = ModelSums(tables, inspection)
    found = SummedDraws(form, sums, _size_over_ends(prior_model, priors, sums) if papers else 0.0)
    if not found.range.value > NONE:
        raise UnsupportedModelError([NOTHING])
    return found if math.isfinite(found.range.value) else _unbounded(priors, tables)


def _size(sums: ModelSums, coefficients: Array) -> float:
    """Return Δl: by how much neighbours move the log-likelihood at one point at most."""
    base = sums.of_rows([table.family.base or 0.0 for table in sums.tables])
    layout = sums.layout
    try:
        return float(layout.nats(layout.largest_move(layout.exponents(coefficients + base, 1.0)))) * (1 + ROOM)
    except ArgumentError:
        return math.inf


def _size_over_ends(prior_model: Model, priors: Sequence[Prior], sums: ModelSums) -> float:
    """Return Δl over points between the ends of all parameters at once."""
    shares = np.linspace(0, 1, POINTS)[:, None]
    parts = []
    for prior in priors:
        low, high = (np.ravel(end).astype(float) for end in ends_of(prior))
        if prior.distribution == "dirichlet":  # one level as likely as it may be, the others as little
            rest = 1 - prior.low.sum(axis=-1, keepdims=True)  # type: ignore[union-attr]
            tops = [np.ravel(prior.low + rest * np.eye(prior.shape[-1])[k]) for k in range(prior.shape[-1])]
            parts.append(np.array(tops)[np.arange(POINTS) % len(tops)])
        else:
            parts.append(low + shares * (high - low))
    points = np.concatenate(parts, axis=1)
    return _size(sums, sums.whole(_slopes(prior_model, priors, sums.tables, points)))


def _unbounded(priors: Sequence[Prior], tables: Sequence[TableLikelihood]) -> list[Problem]:
    problems = []
    for table in tables:
        upstream = set(ancestors(table.parameters))
        behind = [prior for prior in priors if prior.variable in upstream and _open(prior)]
        if not behind:
            continue
        bounds = {"beta": "(0.01, 0.99)", "uniform": "(0.01, 0.99)", "dirichlet": "(0.01, None)"}
        truncations = ", ".join(f"{prior.name!r}: {bounds.get(prior.distribution, '(low, high)')}" for prior in behind)
        problems.append(
            Problem(
                where=table.name,
                what="one row can move its log-likelihood by any amount, because its parameters have no bounds that "
                "keep every value possible",
                remedy=f"Truncate the prior, by public bounds: dp.truncate(model, {{{truncations}}}).",
            )
        )
    return problems


def _open(prior: Prior) -> bool:
    """Whether the bounds of a prior may be ends of the support of a parameter."""
    return not prior.bounded or prior.distribution in ("beta", "dirichlet") or bool((np.asarray(prior.low) == 0).any())


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


__all__ = ["BySums", "Posterior", "table_posterior"]
