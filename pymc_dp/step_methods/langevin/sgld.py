"""Stochastic gradient Langevin dynamics whose own noise makes it private."""

from __future__ import annotations

import math
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, final, override

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp.accounting import SelfComposedEvent, total_epsilon
from pymc_dp.accounting.calibrate import noise_multiplier, with_noise
from pymc_dp.accounting.events import Event, SubsampledGaussianEvent
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.clamped import clamped, clamped_facts
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.one_row import dummy_rows
from pymc_dp.inspection.row_terms import RowInspection, inspect_rows
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.record import SamplerRecord
from pymc_dp.step_methods.base import Funding, Guarantee, Point, PrivateStep
from pymc_dp.step_methods.langevin.gradients import RowGradients, row_gradients
from pymc_dp.transforms.husk import husk

if TYPE_CHECKING:
    from pymc_dp.step_methods.langevin.kernels import Plan, Table

Sampling = Literal["poisson", "without_replacement"]
SAMPLINGS: tuple[Sampling, ...] = ("poisson", "without_replacement")
CHUNK_BYTES = 3 * 2**16
LARGEST_STABLE = 0.25
"""Default steps stay below this over N C²: where gradients have norm C, the log-likelihood bends by about N C²."""


@final
class SGLD(PrivateStep):
    """Stochastic gradient Langevin dynamics: θ + η ∇log-posterior of a random batch + N(0, 2η) noise.

    Every state of the chain is public and paid for. The noise that Langevin dynamics adds anyway is what protects the
    rows; gradients are clipped row by row, over all parameters together. Works on any differentiable model whose rows
    separate, whatever the rows hold.

    Parameters
    ----------
    vars : list, optional
        All free variables, or none.
    batch_size : int
        Rows per batch: exactly so many without replacement, expected in a Poisson batch.
    clip_norm : float
        Greatest Euclidean norm C of one row's gradient, in unconstrained space; longer ones are shortened to it.
        Public: one that was found by looking at the rows would break the guarantee.
    step_size : float, optional
        η. By default the largest that has enough noise for the budget, though at most 1 / (4 N C²), where the dynamics
        would no longer be stable.
    sampling : {"poisson", "without_replacement"}, optional
        "poisson" (default): every row is in the batch independently. "without_replacement": under
        ``neighbours="replace"`` only.
    papers : bool
        Noise N(0, η), as the papers write it, in place of N(0, 2η). It samples from the posterior **squared**: half of
        the variance.
    steps_per_draw : int
        Steps between two states that are kept; all are charged.
    epsilon, delta : float
        Budget of a funded step; `delta` must be > 0.
    chains : int
        Chains that a funded step pays for.
    domain : Domain, optional
        For a funded step.
    model : pymc.Model, optional
        For a funded step.

    Raises
    ------
    UnsupportedModelError
        If rows do not separate, reach anything but the likelihoods, or a free variable is discrete.
    ArgumentError
        If ``delta=0``; if `step_size` has too little noise for the budget: the text says which step size would do, and
        what the wanted one costs.

    Notes
    -----
    **Guarantee.** Class stepwise: the whole chain is (ε, δ)-DP for one row under the relation of the domain, without
    any convergence; arithmetic float64. The sum of the clipped gradients of a batch has L2 norm at most C per row, and
    noise of standard deviation b/(ηN) · √(2η), so that a step is a Gaussian mechanism of noise multiplier √(2/η) b/(NC)
    on a random batch. N and b are the public number of rows (``n_max`` under add_remove) and the expected batch size,
    never the realised ones. Run times are not covered.

    The target is approximate as for any SGLD: steps are finite, batches add noise of their own, and clipping biases
    the gradient where it cuts rows of one direction more than those of another.

    References
    ----------
    Wang, Fienberg, Smola (2015), algorithm 2; Welling, Teh (2011). The factor 2: the papers' θ − η∇U + N(0, η) has
    stationary law ∝ exp(−2U).

    Examples
    --------
    >>> SGLD(batch_size=100, clip_norm=2.0, sampling="poisson")
    SGLD(batch_size=100, clip_norm=2.0, sampling='poisson')
    """

    name = "sgld"
    guarantee: ClassVar[Guarantee] = "stepwise"

    def __init__(
        self,
        vars: Any = None,
        *,
        batch_size: int = 256,
        clip_norm: float = 1.0,
        step_size: float | None = None,
        sampling: Sampling | None = None,
        papers: bool = False,
        steps_per_draw: int = 1,
        epsilon: float | None = None,
        delta: float = 0.0,
        chains: int = 1,
        domain: Domain | None = None,
        model: Model | None = None,
        **pymc_arguments: Any,
    ) -> None:
        self._functions: tuple[Any, Any] | None = None
        self._rows: tuple[Array, ...] | None = None
        self._table: Table | None = None
        settings = {
            "batch_size": _validate.integer("batch_size", batch_size),
            "clip_norm": _positive("clip_norm", clip_norm),
            "step_size": None if step_size is None else _positive("step_size", step_size),
            "sampling": None if sampling is None else _validate.choice("sampling", sampling, SAMPLINGS),
            "papers": _flag("papers", papers),
            "steps_per_draw": _validate.integer("steps_per_draw", steps_per_draw),
        }
        super().__init__(
            vars,
            epsilon=epsilon,
            delta=delta,
            chains=chains,
            domain=domain,
            model=model,
            settings=settings,
            **pymc_arguments,
        )

    # --- planning: public things only ---------------------------------------------------------------------------------

    @override
    def inspect(self, model: Model, domain: Domain | None) -> Inspection:
        return inspect_rows(model, domain)

    @override
    def plan(self, inspection: Inspection) -> Model:
        found = cast(RowInspection, inspection)
        new = husk(found)
        self.neighbours = found.domain.neighbours
        self.population = found.n_rows if found.domain.n_max is None else found.domain.n_max
        self.sampling = cast(Sampling, self.settings["sampling"] or "poisson")
        self._check_batch()
        self.gradients: RowGradients = row_gradients(found, new)
        self._columns = found.columns
        self._clamped_rows = clamped(found.model)
        self._dummies = tuple(dummy_rows(found.columns, 3, np.random.default_rng(0)))
        return new

    def _check_batch(self) -> None:
        batch = self.settings["batch_size"]
        if batch > self.population:
            what = "n_max" if self.neighbours == "add_remove" else "the number of rows"
            raise ArgumentError(
                f"batch_size={batch} is above {what}, {self.population}. Give SGLD a smaller batch_size."
            )
        if self.neighbours == "add_remove" and self.sampling != "poisson":
            raise ArgumentError(
                f"sampling={self.sampling!r} does not go with neighbours='add_remove': a batch of fixed size depends "
                "on the number of rows, and no curve is proved. Use sampling='poisson', or neighbours='replace'."
            )

    @override
    def price(self, funding: Funding) -> Event:
        budget = funding.budget
        if budget.delta == 0:
            raise ArgumentError(
                "SGLD adds Gaussian noise, which has no guarantee at delta=0. Give delta > 0, far below 1 / number of "
                "rows."
            )
        needed = noise_multiplier(budget.epsilon, budget.delta, funding.uses, **self._batches())
        wanted = self.settings["step_size"]
        largest = self._largest_step(needed)
        if wanted is None:
            stable = LARGEST_STABLE / (self.population * self.settings["clip_norm"] ** 2)
            self.step_size = min(largest, stable)
        elif wanted <= largest:
            self.step_size = wanted
        else:
            raise ArgumentError(self._too_large(wanted, largest, funding))
        if not self.previewing:
            self._compile()
        return SelfComposedEvent(event=self._event(self.step_size), count=funding.uses)

    def _batches(self) -> dict[str, Any]:
        batch = self.settings["batch_size"]
        drawn: dict[str, Any] = {"sample_rate": batch / self.population}
        if self.sampling == "without_replacement":
            drawn = {"population": self.population, "batch_size": batch}
        return {"sampling": self.sampling, "neighbours": self.neighbours, **drawn}

    def _variance(self, step_size: float) -> float:
        """Variance of what a step adds to every parameter: 2η, or η in the papers' form."""
        return step_size if self.settings["papers"] else 2 * step_size

    def multiplier(self, step_size: float) -> float:
        """Noise on the sum of clipped gradients over the clip norm, rounded down: √(2/η) b / (N C)."""
        scale = self.population / self.settings["batch_size"]
        return math.sqrt(self._variance(step_size)) / (step_size * scale * self.settings["clip_norm"]) * (1 - 1e-12)

    def _largest_step(self, needed: float) -> float:
        """Largest step size whose noise multiplier is not below `needed`."""
        share = self.settings["batch_size"] / (self.population * self.settings["clip_norm"] * needed)
        return self._variance(1.0) * share**2 * (1 - 1e-9)

    def _event(self, step_size: float) -> SubsampledGaussianEvent:
        like = SubsampledGaussianEvent(noise_multiplier=1.0, **self._batches())
        return with_noise(like, self.multiplier(step_size))

    def _too_large(self, wanted: float, largest: float, funding: Funding) -> str:
        event = SelfComposedEvent(event=self._event(wanted), count=funding.uses)
        cost = total_epsilon(event, funding.budget.delta).epsilon
        return (
            f"step_size={wanted:g} has too little noise for {funding.uses} steps within {funding.budget}: they would "
            f"cost epsilon={cost:.4g}. The largest step size that would do is {largest:.4g}. Leave step_size out to "
            "have one chosen, make fewer steps, or clip to a smaller norm."
        )

    def _compile(self) -> None:
        """Compile everything on dummy rows: nothing is spent if this fails."""
        if self._functions is None:
            self._functions = self.gradients.compiled()
            size = sum(int(np.prod(shape)) for _, shape, _ in self.gradients.shapes)
            table = _kernels().make_table(self._dummies, self._loop_plan(3))
            rng = np.random.default_rng(0)
            self._walk(np.zeros(size), 1, rng, self._loop_plan(3), table)

    # --- the rows -----------------------------------------------------------------------------------------------------

    @override
    def load(self) -> None:
        self._rows = tuple(column.read() for column in self._columns)
        self._columns = ()

    @override
    def start_chain(self) -> None:
        assert self._rows is not None
        self._compile()
        self._loop = self._loop_plan(self.population)
        self._table = _kernels().make_table(self._rows, self._loop)

    def _loop_plan(self, population: int) -> Plan:
        batch = min(self.settings["batch_size"], population)
        rate = self.settings["batch_size"] / self.population
        width = sum(column[0].nbytes for column in self._dummies)
        plan: Plan = _kernels().Plan(
            step_size=self.step_size,
            scale=self.population / self.settings["batch_size"],
            noise=math.sqrt(self._variance(self.step_size)),
            clip_norm=self.settings["clip_norm"],
            poisson=self.sampling == "poisson",
            batch_size=batch,
            waiting=-math.log1p(-rate) if rate < 1 else math.inf,
            chunk=max(32, min(1024, CHUNK_BYTES // max(1, width))),
        )
        return plan

    def _walk(self, position: Array, steps: int, rng: np.random.Generator, plan: Plan, table: Table) -> None:
        assert self._functions is not None
        gradient, prior = self._functions
        _kernels().walk(
            position,
            steps,
            rng,
            plan,
            gradient,
            prior,
            table.rows,
            self.gradients.starts,
            table.buffers,
            table.squares,
            table.places,
            table.order,
            table.swaps,
        )

    def clipped_sum(self, position: Array, places: Array) -> Array:
        """Return the sum of the clipped gradients of some rows, without noise. **Private**; for tests and audits."""
        assert self._rows is not None
        self._compile()
        assert self._functions is not None
        table = _kernels().make_table(self._rows, self._loop_plan(self.population))
        total = np.zeros(position.size)
        _kernels().add_clipped(
            self._functions[0],
            position,
            table.rows,
            np.asarray(places, dtype=np.int64),
            self.gradients.starts,
            self.settings["clip_norm"],
            table.buffers,
            table.squares,
            total,
        )
        return total

    @override
    def step(self, point: Point) -> tuple[Point, list[dict[str, Any]]]:
        self.require_paid()
        point = self._moved(point, self.steps_per_draw)
        self.count += self.steps_per_draw
        return point, self.statistics()

    @override
    def advance(self, point: Point) -> Point:
        return self._moved(point, 1)

    def _moved(self, point: Point, steps: int) -> Point:
        assert self._table is not None and self.generator is not None
        position = np.concatenate([np.ravel(point[name]).astype(np.float64) for name, _, _ in self.gradients.shapes])
        self._walk(position, steps, self.generator, self._loop, self._table)
        new, start = dict(point), 0
        for name, shape, dtype in self.gradients.shapes:
            size = int(np.prod(shape))
            new[name] = position[start : start + size].reshape(shape).astype(dtype)
            start += size
        return new

    @override
    def describe(self) -> SamplerRecord:
        assert self.funding is not None
        variance = "η (the papers' form: the target is the posterior squared)" if self.settings["papers"] else "2η"
        batch = self.settings["batch_size"]
        shown = {
            "poisson": f"Poisson, {batch} of {self.population} rows expected",
            "without_replacement": f"{batch} of {self.population} rows without replacement",
        }[self.sampling]
        total = total_epsilon(self.event, self.funding.budget.delta)
        multiplier = self.multiplier(self.step_size)
        return SamplerRecord(
            name=type(self).__name__,
            noise=f"Gaussian of variance {variance} per step, multiplier {multiplier:.6g}",
            variables=tuple(str(var.name) for var in self.husk.free_RVs),
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=(
                ("batch", shown),
                ("clip norm", f"{self.settings['clip_norm']:g} per row, over all parameters in unconstrained space"),
                ("step size", f"{self.step_size:.6g}"),
                ("noise multiplier", f"{multiplier:.6g} (standard deviation over clip norm, per step)"),
                ("accountant", f"{total.accountant}: epsilon={total.epsilon:.6g}"),
                ("rows, public", f"{self.population}"),
                *clamped_facts(self._clamped_rows),
            ),
        )

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Leave compiled functions and scratch space behind: a worker makes its own."""
        return {**super().__getstate__(), "_functions": None, "_table": None}


def _positive(name: str, value: object) -> float:
    result = _validate.number(name, value)
    if not 1e-100 < result < 1e100:
        raise ArgumentError(f"{name} must lie in (1e-100, 1e100), got {result}.")
    return result


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} must be True or False, got {value!r}.")
    return value


def _kernels() -> ModuleType:
    """Import the compiled loops at first use: numba alone takes longer to import than the rest of the package."""
    from pymc_dp.step_methods.langevin import kernels

    return kernels


__all__ = ["SGLD"]
