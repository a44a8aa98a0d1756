"""Hamiltonian Monte Carlo whose gradients and accept tests are noised, each drawn by the kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, cast, final, override

import numpy as np
from pymc import Model
from pymc.step_methods.state import dataclass_state

from pymc_dp import _validate
from pymc_dp.accounting import Event
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspected, Inspection, RowInspection
from pymc_dp.inspection.row_density import clamped, clamped_facts
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import SamplerRecord
from pymc_dp.samplers.batch_gradients import refuse_discrete
from pymc_dp.samplers.chain_account import NOT_BEGUN
from pymc_dp.samplers.hmc import Chain, Phase, Priced, Slopes, Specification, leapfrog
from pymc_dp.samplers.hmc_tuning import Climb, StepSize, target_acceptance
from pymc_dp.samplers.row_norm import FoundNorm, RowNorm
from pymc_dp.samplers.row_ratio import RowRatio
from pymc_dp.simulation.prior import prior_points
from pymc_dp.step_methods.base import Point, PrivateStep, PrivateStepState
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.langevin.batches import LARGEST, SMALLEST, positive, require_delta
from pymc_dp.step_methods.metropolis.arguments import sizes_of, spread
from pymc_dp.step_methods.metropolis.base import IMPOSSIBLE
from pymc_dp.step_methods.metropolis.coefficients import Coefficients, Place, coefficients_of
from pymc_dp.transforms.prior_model import shared_prior_model

ACCEPTED, SIZE = "acceptance_rate", "step_size"
INSTEAD = "; at delta=0 use dp.BarkerMetropolis()"
GIVE = "Give clip_norm, a public number: gradients of rows beyond it are shortened, and ratios clamped."
GIVEN = "; or give PrivateHMC(clip_norm=...)"
DRAWS = 32
"""States drawn from the prior at which gradients of public rows are looked at."""


@dataclass_state
class HamiltonianState(PrivateStepState):
    """Sampling state: of the contract, where the chain is with its noised gradient, and its step sizes."""

    walk: dict[str, Any]


@final
class PrivateHMC(PrivateStep):
    """Hamiltonian Monte Carlo on noised gradients, each trajectory accepted by a noised log-likelihood ratio.

    A trajectory of `n_leapfrog` steps follows the gradient of the log-posterior: per-row gradients of the likelihood
    are clipped, summed and noised; the prior's, which is public, is exact. Its end is accepted by the penalty method,
    which corrects for what the noise of the ratio would do to the target. Works on any differentiable model that
    factorises over rows.

    Parameters
    ----------
    vars : list, optional
        All free variables, or none.
    clip_norm : float, optional
        Greatest Euclidean norm b_g of one row's gradient, on the unconstrained scale per unit of `scale`; longer ones
        are shortened to it. Public: one that was found by looking at the rows would break the guarantee. None
        (default): the largest that is found on simulated rows, at the start, at draws from the prior and far from the
        start. Where it grows with the distance from the start it has to be given.
    clamp : float, optional
        b_l: the log-likelihood ratio of each row is clamped to ``± clamp ‖θ' - θ‖`` (in the same units). None
        (default): `clip_norm`; where that is found too, each ratio's range is found for the two states, as for
        `BarkerMetropolis`.
    n_leapfrog : int
        Leapfrog steps of a trajectory; as many noised gradients are paid for.
    step_size : float, optional
        Of a leapfrog step, in units of `scale`. None (default): from public numbers, then tuned on accept bits.
    scale : float or mapping of str to float or array, optional
        Unit of each value on the unconstrained scale, such as its posterior standard deviation: one number, or by the
        name of each variable. Public. It is the inverse root of the mass, and gradients are clipped and noised per
        unit. Default 1.
    gradient_share : float
        Share of the budget, in (0, 1), that gradients get; accept tests get the rest.
    steps_per_draw : int
        Steps between two states that are kept; all are charged.
    epsilon, delta, chains, domain, model
        Only for use in ``pm.sample(step=...)``: the budget of all its chains together (`delta` must be > 0), what is
        public about a row, and the model. Without `epsilon` this is a specification for ``dp.sample(step=...)``.

    Raises
    ------
    UnsupportedModelError
        If the likelihood does not factorise over rows, a free variable is discrete, the model cannot start at its
        initial point, or no bound of gradients is found and no `clip_norm` given.
    ArgumentError
        If ``delta=0``.

    Notes
    -----
    **What is sampled.** The posterior, not tempered, at any noise and any `clip_norm`, unless rows are cut: clipped
    and noised gradients change what is proposed and not what is sampled. Where a row's ratio exceeds `clamp`, or the
    range that was found, it is cut, and the chain has no density that is known; a clamp at or above the largest
    gradient norm of the rows held never cuts. While it tunes the chain is not yet a draw from the posterior: for half
    of the tuning steps it climbs along noised gradients, without accept tests, and for the other half tunes its step
    size; then everything is fixed.

    Why that is so. Let e_0..e_L be the noise of the gradients along a trajectory, independent of points and momenta and
    alike: discrete N(0, σ²), in whole units. The map (θ, p, e_0..e_L) → (θ', -p', e_L..e_0) is made of shears, so it
    keeps volumes; it undoes itself, since on the way back the noised gradients are the same in reversed order; and it
    keeps the density of the noise, which does not change when reversed. It is thus a Metropolis proposal for posterior
    × N(p; 0, 1) × noise, of ratio exp(ΔH), ΔH being of exact energies. Momentum and e_1..e_L are drawn anew before
    every step; e_0, which belongs to the state of the chain, may be kept, because a draw of some coordinates from their
    own distribution leaves the product as it is. So each step needs L new gradients and not L + 1: the noised gradient
    where a trajectory ended (or, after a rejection, where it began) is the first of the next. The penalty method
    accepts with min(1, exp(ΔH + ξ - s²/2)), ξ ~ N(0, s²) and s the same both ways, so that E of it keeps detailed
    balance. Where s would exceed 3 the end is refused unseen, on both ways.

    **Released.** All states of every chain with their accept bits, tuning included, and every noised gradient, which is
    paid for and not shown. ``sample_stats`` holds ``acceptance_rate`` of the steps of a draw and ``step_size``, both
    functions of accept bits.

    **Guarantee.** That of two operations of the kernel (`docs/kernel.md`). A row moves the sum of clipped gradients by
    at most 2 b_g under ``replace``, b_g under ``add_remove``, and gets discrete Gaussian noise of a fixed multiple z_g
    of that: arithmetic hardened, statement 11. It moves a log ratio by its range R, which is enforced; normal noise has
    the fixed multiple z_l of R, and the bit alone is released, which tells less than the noised ratio
    (`accounting.PenaltyBitEvent`). So k steps of a chain are k bits and ``k n_leapfrog + 1`` gradients, all fixed in
    advance: no filter. Class stepwise: no convergence is needed. Arithmetic float64, for the noise of the ratios: its
    last bits are not covered. Proposals where the prior has no density are refused without a look at the rows. Run
    times are not covered. ``dp.sample`` makes 300 draws after 100 of tuning by default; more steps of the same budget
    have more noise.

    **When.** A trajectory beats a random step only where the noise lets it be about as long as the posterior is wide:
    √(steps) clip_norm √(dimension) / (ε √rows) far below 1. With fewer rows `BarkerMetropolis` gets more out of ε.

    References
    ----------
    Räisä, Koskela, Honkela (2021), Differentially private Hamiltonian Monte Carlo, algorithm 1, which pays L + 1
    gradients a step; penalty method: Ceperley, Dewing (1999), doi 10.1063/1.478034, Yıldırım, Ermiş (2019), doi
    10.1007/s11222-018-9847-x.

    Examples
    --------
    >>> PrivateHMC(clip_norm=2.0, n_leapfrog=4)
    PrivateHMC(clip_norm=2.0, n_leapfrog=4)
    """

    name = "private_hmc"
    guarantee = "stepwise"
    default_draws: ClassVar[int] = 300
    default_tune: ClassVar[int] = 100
    public_stats: ClassVar[tuple[str, ...]] = (ACCEPTED, SIZE)
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {
        **PrivateStep.stats_dtypes_shapes,
        ACCEPTED: (np.float64, []),
        SIZE: (np.float64, []),
    }
    _state_class = HamiltonianState

    def __init__(
        self,
        vars: Any = None,
        *,
        clip_norm: float | None = None,
        clamp: float | None = None,
        n_leapfrog: int = 2,
        step_size: float | None = None,
        scale: float | Mapping[str, Any] | None = None,
        gradient_share: float = 0.4,
        steps_per_draw: int = 1,
        **funding: Any,
    ) -> None:
        self._size: StepSize | None = None
        self._chain: Chain | None = None
        self._at: tuple[Place, Array] | None = None
        self._expected: Array | None = None
        self._accepts = 0
        settings = hamiltonian_settings(
            clip_norm=clip_norm,
            clamp=clamp,
            n_leapfrog=n_leapfrog,
            step_size=step_size,
            scale=scale,
            gradient_share=gradient_share,
            steps_per_draw=steps_per_draw,
        )
        super().__init__(vars, settings=settings, **funding)

    # --- planning: public things only ---------------------------------------------------------------------------------

    @override
    def of_inspected(self, found: Inspected) -> Inspection:
        return found.rows

    @override
    def plan(self, inspection: Inspection) -> Model:
        require_delta(self.budget, type(self).__name__, INSTEAD)
        found = cast(RowInspection, inspection)
        prior_model = shared_prior_model(found)
        refuse_discrete(prior_model)
        self.population = found.n_rows if found.domain.n_max is None else found.domain.n_max
        self._clamped_rows = clamped(found.model)
        clip_norm, clamp = self.settings["clip_norm"], self.settings["clamp"]
        self.places = coefficients_of(prior_model, (), quick=self.previewing)
        if not self.places.start.possible:
            raise UnsupportedModelError([IMPOSSIBLE])
        self.units = units_of(self.settings["scale"], self.places)
        self.ratio = RowRatio(found, prior_model, clamp or clip_norm, units=self.units, otherwise=GIVEN)
        if clip_norm is None:
            self.ratio.rows.require_limits(GIVEN)
        self.slopes = Slopes(self.ratio.rows, prior_model, self.units)
        self.found = self._found_norm(prior_model) if clip_norm is None else None
        clip_norm = clip_norm if self.found is None else self.found.value
        self.specification = Specification(
            clip_norm=clip_norm,
            clamp=clamp or clip_norm,
            size=self.places.dimension,
            sense=2 if found.domain.neighbours == "replace" else 1,
            n_leapfrog=self.settings["n_leapfrog"],
            gradient_share=self.settings["gradient_share"],
        )
        if not self.previewing:
            self.slopes.of_row  # noqa: B018 (compiles it, before the budget is charged)
            self.ratio.compile()
            start, of_prior = self.places.start.values, self.slopes.of_prior
            if not np.isfinite(of_prior(start)).all():
                raise UnsupportedModelError([IMPOSSIBLE])
            self.climb = Climb(of_prior, start, self.units, clip_norm=clip_norm, population=self.population)
        return prior_model

    def _found_norm(self, prior_model: Model) -> FoundNorm:
        """Look for the largest norm of a row's gradient, or say that it has no bound."""
        rng, start = np.random.default_rng(496), self.places.start.values
        others = [self.places.flatten(point) for point in prior_points(prior_model, DRAWS, rng)]
        found = RowNorm(self.ratio.rows, self.slopes.slope).largest(start, others, self.units)
        if found.grows or not found.value > SMALLEST:
            why = "it grows with the distance of states from the start" if found.grows else "all that are seen are 0"
            what = f"no bound of the gradient of a row is found: {why}"
            raise UnsupportedModelError([Problem(where="model", what=what, remedy=GIVE)])
        return found

    @property
    def cut(self) -> bool:
        """Whether ratios of rows are clamped below what is found of their gradients."""
        clamp = self.settings["clamp"]
        return self.found is None or (clamp is not None and clamp < self.found.value)

    @override
    def price(self, funding: Funding) -> Event:
        require_delta(funding.budget, type(self).__name__, INSTEAD)
        self.noise: Priced = self.specification.priced(funding.budget, chains=funding.chains, steps=funding.steps)
        return self.noise.event(funding.steps, funding.chains)

    # --- the rows -----------------------------------------------------------------------------------------------------

    @override
    def load(self) -> None:
        self.ratio.load()

    @override
    def forget(self) -> None:
        self._chain = None
        self.ratio.forget()

    @override
    def start_chain(self) -> None:
        self._chain = Chain(self.noise, self.funding.steps, self.slopes, self.ratio)
        given = self.settings["step_size"]
        dimension = self.places.dimension
        first = self.noise.first_step(self.population) if given is None else given
        self._climbs = self.tuning_steps // 2
        tune = self.tuning_steps - self._climbs if given is None else 0
        self._size = StepSize(first, tune=tune, target=target_acceptance(dimension))
        self._at, self._expected, self._accepts = None, None, 0
        self.climb.restart()

    @override
    def step(self, point: Point) -> tuple[Point, list[dict[str, Any]]]:
        self._accepts = 0
        return super().step(point)

    @override
    @np.errstate(all="ignore")  # a trajectory may leave the numbers
    def advance(self, point: Point) -> Point:
        here, slope = self._begin(point)
        moved = self._climbed(here, slope) if self.count < self._climbs else self._went(here, slope)
        self._accepts += moved
        if moved:
            assert self._at is not None
            point = self.places.point(self._at[0].values, point)
        self._expected = self.places.flatten(point)
        return point

    def _climbed(self, here: Place, slope: Array) -> bool:
        """Go uphill, with no accept test; stay where the prior has no density there."""
        values, slope = self.climb(here.values, slope, self.chain.slope, self.settings["n_leapfrog"])
        there = self.places.at(values)
        moved = math.isfinite(there.prior) and bool(np.isfinite(slope).all())
        if moved:
            self._at = there, slope
        return moved

    def _went(self, here: Place, slope: Array) -> bool:
        """Follow a trajectory and go to its end, if it is accepted."""
        assert self._size is not None
        start = Phase(here.values, self.generator.standard_normal(self.places.dimension), slope)
        end = leapfrog(
            start,
            self.chain.slope,
            step_size=self._size.value,
            n_leapfrog=self.settings["n_leapfrog"],
            units=self.units,
        )
        accepted = end is not None and self._goes_on(here, start, end)
        self._size.learn(accepted)
        return accepted

    def _begin(self, point: Point) -> tuple[Place, Array]:
        """Return where the chain is and its noised gradient there, which is drawn once: at the start of the chain."""
        values = self.places.flatten(point)
        if self._at is None:
            self._at = self.places.at(values), self.chain.slope(values)
        elif self._expected is None or not np.array_equal(values, self._expected):
            raise PrivacyError(
                "A chain of PrivateHMC goes on from its last state only: the gradient anywhere else is not paid for."
            )
        return self._at

    def _goes_on(self, here: Place, start: Phase, end: Phase) -> bool:
        """Go to the end of a trajectory, if it is accepted."""
        there = self.places.at(end.position)
        accepted = self.chain.goes(here, start, there, end)
        if accepted:
            self._at = there, end.slope
        return accepted

    @property
    def chain(self) -> Chain:
        """What pays for the gradients and bits of a chain that has begun."""
        if self._chain is None:
            raise PrivacyError(NOT_BEGUN)
        return self._chain

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what pays: a copy in another process begins its own chain."""
        return {**super().__getstate__(), "_chain": None}

    # --- what is shown ------------------------------------------------------------------------------------------------

    @override
    def on_the_way(self, event: Event, funding: Funding, steps: int) -> Event:
        return self.noise.event(steps, funding.chains)

    @override
    def statistics(self) -> list[dict[str, Any]]:
        assert self._size is not None
        (shared,) = super().statistics()
        return [{**shared, ACCEPTED: self._accepts / self.steps_per_draw, SIZE: self._size.value}]

    @property
    def walk(self) -> dict[str, Any]:
        """Where one chain is, its noised gradient there, and its step size, for its sampling state."""
        if self._size is None or self._chain is None:
            return {}
        place = None if self._at is None else (self._at[0].values, self._at[1], self._expected)
        used = dict(self._chain.used)
        return {"place": place, "climb": self.climb.size, "size": self._size.state(), "used": used}

    @walk.setter
    def walk(self, state: Mapping[str, Any]) -> None:
        if not state:
            self._size = None
            return
        if self._size is None or self._chain is None:
            raise PrivacyError("A state can only be restored in a chain that has begun: call setup_chain first.")
        self._chain.take_again(state["used"])
        self._size.restore(state["size"])
        self.climb.size = state["climb"]
        self._at = self._expected = None
        if state["place"] is not None:
            values, slope, self._expected = state["place"]
            self._at = self.places.at(values), slope

    @override
    def describe(self) -> SamplerRecord:
        size = self.settings["step_size"]
        return SamplerRecord(
            name=type(self).__name__,
            noise=f"Gaussian, multipliers {self.noise.gradient:.4g} (gradients) and {self.noise.ratio:.4g} (ratios)",
            variables=self.own,
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=(
                ("target", self.ratio.target),
                *clamped_facts(self._clamped_rows),
                ("clip norm", self._clipping()),
                ("one row moves", f"a ratio by its range, {self.ratio.proof}"),
                (
                    "noise",
                    f"sd {self.noise.gradient_noise:.4g} on a gradient, {self.noise.ratio:.4g} ranges on a ratio",
                ),
                (
                    "trajectory",
                    f"{self.settings['n_leapfrog']} leapfrog steps and gradients; one more at the start",
                ),
                (
                    "step size",
                    "tuned on accept bits after a climb, then fixed" if size is None else f"{size:g}",
                ),
                ("accountant", "gradients as discrete Gaussian noise, ratios as accept bits"),
            ),
        )

    def _clipping(self) -> str:
        found = self.found
        how = "longer gradients of rows are shortened"
        if found is not None:
            seen = f"{found.rows} simulated rows and {found.states} states"
            how = f"the largest found on {seen}, {found.where}; {how}"
        return f"{self.specification.clip_norm:.6g} per row, over all parameters on the unconstrained scale; {how}"


def hamiltonian_settings(
    *,
    clip_norm: float | None,
    clamp: float | None,
    n_leapfrog: int,
    step_size: float | None,
    scale: float | Mapping[str, Any] | None,
    gradient_share: float,
    steps_per_draw: int,
) -> dict[str, Any]:
    """Return checked settings; those that are None stay so."""
    share = _validate.number("gradient_share", gradient_share)
    if not 0 < share < 1:
        raise ArgumentError(f"gradient_share must lie in (0, 1), got {share}. 0.4 does well on most targets.")
    return {
        "clip_norm": _positive("clip_norm", clip_norm),
        "clamp": _positive("clamp", clamp),
        "n_leapfrog": _validate.many("n_leapfrog", n_leapfrog),
        "step_size": _positive("step_size", step_size),
        "scale": _scale(scale),
        "gradient_share": share,
        "steps_per_draw": _validate.many("steps_per_draw", steps_per_draw),
    }


def units_of(scale: float | Mapping[str, Array] | None, places: Coefficients) -> Array:
    """Return the unit of each value of a prior model, one after the other."""
    found = spread(scale, places.value_names, places)
    return np.ones(places.dimension) if found is None else found


def _positive(name: str, value: object) -> float | None:
    return None if value is None else positive(name, value)


def _scale(scale: object) -> float | dict[str, Array] | None:
    if not isinstance(scale, Mapping):
        return _positive("scale", scale)
    return sizes_of(scale, above=SMALLEST, below=LARGEST)


__all__ = ["PrivateHMC"]
