"""One posterior sample by NUTS on the tempered model: private only if the chain has converged, which no test proves.

NUTS on a tempered posterior: compiled once, for tables of any length; nothing is printed, logged or warned of.
"""

from __future__ import annotations

import io
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pymc.blocking import DictToArrayBijection, RaveledVars
from pymc.step_methods.hmc.integration import CpuLeapfrogIntegrator
from pymc.step_methods.hmc.quadpotential import QuadPotentialFull

from pymc_dp.before_kernel import derived_generator
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.priors import log_concave
from pymc_dp.inspection.rows import Array
from pymc_dp.simulation.rows import draw_rows
from pymc_dp.step_methods.ops.curvature import mode, units
from pymc_dp.step_methods.ops.held_density import Held, HeldDensity
from pymc_dp.step_methods.values import Point

TUNE = 1000
"""Steps in which step sizes and scales are learnt from the rows."""
CURVED_TUNE, MOST_CURVED = 200, 500
"""Steps in which step sizes are learnt where scales are the curvature at the mode; the most scalars for such scales."""
WIDE = (2.0, 1.0, 0.5, 0.0)
"""How far about the mode a chain begins, in posterior standard deviations: the first distance of finite density."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """What a chain went through after tuning. **Private** if the rows were.

    Attributes
    ----------
    states : (n_draws, n_values) array
        On PyMC's unconstrained scale.
    divergences : int
    last : dict of str to array
        Free variables at the last state, on their own scale.
    """

    states: Array
    divergences: int
    last: dict[str, Array]


class TemperedChain:
    """A NUTS sampler of ``prior^power exp(inverse Σ l(x, θ))``, each row's number held (`HeldDensity`).

    Rows are put into it for one chain and taken out again.

    Parameters
    ----------
    density : HeldDensity
    prior_model : pymc.Model
        Whose priors and Potentials are the prior. It is changed: the likelihood becomes a Potential of it.
    temper_prior : bool
        Whether power is `inverse` too; else it is 1.
    """

    def __init__(self, density: HeldDensity, prior_model: Model, *, temper_prior: bool) -> None:
        self._names = [prior.name for prior in density.priors]
        self._inverse = pytensor.shared(np.float64(1.0))
        self._held = density.stand_ins()
        flat = pt.concatenate([rv.ravel().astype("float64") for rv in prior_model.free_RVs])
        prior, likelihood = density.graphs(prior_model, flat, self._held)
        with prior_model:
            pm.Potential("tempered_likelihood", self._inverse * likelihood)
            if temper_prior:
                pm.Potential("tempered_prior", (self._inverse - 1) * prior)
        self._start = prior_model.initial_point(random_seed=0)
        with _silent():
            self._step: Any = pm.NUTS(model=prior_model)
            self._learnt = self._step.potential
            self._parameters = prior_model.compile_fn(
                prior_model.replace_rvs_by_values(prior_model.free_RVs),
                inputs=prior_model.value_vars,
                mode="FAST_COMPILE",
                on_unused_input="ignore",
            )

    @property
    def may_be_curved(self) -> bool:
        """Whether there are few enough scalars for the curvature at the mode."""
        return sum(np.size(value) for value in self._start.values()) <= MOST_CURVED

    def run(self, held: Held, inverse: float, draws: int, rng: np.random.Generator, *, curved: bool) -> Chain:
        """Run one chain.

        Parameters
        ----------
        held : Held
        inverse : float
        draws : int
            Steps after tuning.
        rng : numpy.random.Generator
        curved : bool
            Begin about the mode, in units of the curvature there. Else from a start that no row moves, and every
            scalar has a scale of its own, which is learnt.

        Raises
        ------
        Exception
            Of any kind, whose text may tell of a row.
        """
        with _silent():
            self._put(held, inverse)
            try:
                return self._walk(draws, rng, curved=curved)
            finally:
                self._put(held.nothing(), 1.0)

    def _put(self, held: Held, inverse: float) -> None:
        shared: Any = self._held
        for name, rows in held.rows.items():
            shared.rows[name].set_value(rows)
        shared.counts.set_value(held.counts)
        shared.levels.set_value(held.levels)
        self._inverse.set_value(np.float64(inverse))

    def _walk(self, draws: int, rng: np.random.Generator, *, curved: bool) -> Chain:
        point = {name: value + rng.uniform(-1, 1, np.shape(value)) for name, value in self._start.items()}
        potential, tune = self._learnt, TUNE
        if curved:
            point, potential = self._about_mode(point, rng)
            tune = CURVED_TUNE
        self._step.potential = potential
        self._step.integrator = CpuLeapfrogIntegrator(potential, self._step._logp_dlogp_func)
        states, divergences, point = walked(self._step, point, rng, tune=tune, draws=draws)
        last = dict(zip(self._names, self._parameters(point), strict=True))
        return Chain(states=states, divergences=divergences, last=last)

    def _about_mode(self, point: Point, rng: np.random.Generator) -> tuple[Point, Any]:
        """Return a place about the mode, and kinetic energy in units of the curvature there."""
        start = DictToArrayBijection.map(point)

        def slope(flat: Array) -> tuple[float, Array]:
            value, gradient = self._step._logp_dlogp_func(RaveledVars(flat, start.point_map_info))
            return float(value), np.asarray(gradient)

        centre = mode(slope, start.data)
        scales = units(slope, centre)
        noise = scales @ rng.normal(size=len(centre))
        places = (centre + share * noise for share in WIDE)
        begun = next((place for place in places if np.isfinite(slope(place)[0])), centre)
        point = DictToArrayBijection.rmap(RaveledVars(begun, start.point_map_info))
        return point, QuadPotentialFull(scales @ scales.T)


def walked(step: Any, point: Point, rng: np.random.Generator, *, tune: int, draws: int) -> tuple[Array, int, Point]:
    """Tune NUTS anew and walk: states after that, (draws, n_values), how many steps diverged, and the last point.

    Parameters
    ----------
    step : pymc.NUTS
    point : mapping of str to array
        Where the chain begins.
    rng : numpy.random.Generator
    tune, draws : int
    """
    step.setup_chain(rng, tune, draws)
    step.reset_tuning()
    states, divergences, names = [], 0, list(point)
    for turn in range(tune + draws):
        if turn == tune:
            step.stop_tuning()
        point, (stats, *_) = step.step(point)
        if turn >= tune:
            states.append(np.concatenate([np.ravel(point[name]) for name in names]))
            divergences += int(stats["diverging"])
    return np.array(states), divergences, point


@contextmanager
def _silent() -> Iterator[None]:
    """Let nothing be printed, logged or warned of, nor be raised for a number: it could depend on a row."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            with np.errstate(all="ignore"):
                yield
    finally:
        logging.disable(level)


TRIAL, CHAINS, TRIALS, MOST_ROWS = 500, 2, 2, 20_000
"""Draws of a chain on simulated data, chains per table, tables, and rows: longer tables have narrower posteriors."""
CORRELATION_TIMES, LEAST = 20, 500
"""Length of a chain, in the longest correlation time met on simulated data; and its least length."""
GOOD_RHAT, FEW_DIVERGENCES = 1.05, 0.01
"""What chains on simulated data must reach: the largest R-hat of a scalar, the share of steps that diverge."""


@dataclass(frozen=True, kw_only=True)
class Length:
    """How a chain is run, as judged on simulated data: steps after tuning, and whether in units of the curvature."""

    steps: int
    curved: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvergedPosterior:
    """The last state of a NUTS chain on the tempered posterior, of a length judged on data simulated from the prior.

    Notes
    -----
    **Guarantee.** That of an exact draw from the density that the chain sees (`HeldDensity`), if the chain had
    converged: class asymptotic. With total variation distance t
    to the target on every data set it would be (ε, δ + (1 + e^ε) t) [Wang, Fienberg, Smola 2015, proposition 10]; no t
    is proved here. The length of the chain is a function of public simulations, and known before rows are read; tuning,
    step sizes and run times see the rows, and are not released.
    """

    inspection: RowInspection
    density: HeldDensity
    prior_model: Model
    temper_prior: bool
    _lengths: dict[float, Length | str] = field(default_factory=dict)
    exact = False

    @classmethod
    def of(
        cls, inspection: RowInspection, density: HeldDensity, prior_model: Model, *, temper_prior: bool
    ) -> Self | str:
        """Return a way to draw, or say what is in the way."""
        if temper_prior and not all(prior.bounded or log_concave(prior) for prior in density.priors):
            return "a power of its prior may have no mass"
        return cls(inspection=inspection, density=density, prior_model=prior_model, temper_prior=temper_prior)

    @property
    def words(self) -> str:
        """How draws are made, for the trace."""
        return (
            "the last state of a NUTS chain each, NOT exact: the guarantee holds only if every chain has converged "
            f"({CORRELATION_TIMES} correlation times of data simulated from the prior, after tuning)"
        )

    def obstacle(self, inverse: float, temper_prior: bool) -> str:
        """Say what is in the way of chains on simulated data, which are public; empty if nothing is."""
        found = self.length(inverse)
        return found if isinstance(found, str) else ""

    def length(self, inverse: float) -> Length | str:
        """Return how long a chain is, or why there is no such number; the rows held change nothing."""
        if inverse not in self._lengths:
            self._lengths[inverse] = self._judged(inverse)
        return self._lengths[inverse]

    def read(self) -> Held:
        """Hold the rows. Reads private data."""
        return self.density.read()

    def draw(self, rng: np.random.Generator, held: Held, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Run one chain on the rows held and return its last state."""
        length = self.length(inverse)
        assert isinstance(length, Length)
        own = derived_generator(rng)
        chain: Chain | None = None
        with suppress(Exception):  # its text and its traceback may tell of a row
            chain = self._chain.run(held, inverse, length.steps, own, curved=length.curved)
        if chain is None or not np.isfinite(chain.states[-1]).all():
            raise PrivacyError("The chain could not be run. The budget is spent; nothing was released.")
        return chain.last

    @cached_property
    def _chain(self) -> TemperedChain:
        return TemperedChain(self.density, self.prior_model, temper_prior=self.temper_prior)

    def _judged(self, inverse: float) -> Length | str:
        try:
            tables = self._tables()
        except Exception:
            return (
                "no table can be simulated from its prior: every distribution must have random draws, for any number "
                "of rows; pm.CustomDist takes a function, random="
            )
        if self._chain.may_be_curved:
            with suppress(Exception):  # a mode without curvature is no place to begin
                if not isinstance(found := self._agreed(tables, inverse, curved=True), str):
                    return found
        return self._agreed(tables, inverse, curved=False)

    def _agreed(self, tables: Sequence[Held], inverse: float, *, curved: bool) -> Length | str:
        """Return how long chains must be that agree on all tables, or say how they do not."""
        longest = 1.0
        for turn, table in enumerate(tables):
            rngs = [np.random.default_rng([turn, chain]) for chain in range(CHAINS)]
            chains = [self._chain.run(table, inverse, TRIAL, rng, curved=curved) for rng in rngs]
            if (found := _disagreement(chains)) is not None:
                return found
            longest = max(longest, CHAINS * TRIAL / max(_effective_size(chains), 1.0))
        return Length(steps=max(LEAST, math.ceil(CORRELATION_TIMES * longest)), curved=curved)

    def _tables(self) -> list[Held]:
        """Simulate public tables; one row more is tried too, so that a model of fixed length never works by chance."""
        domain, n_rows = self.inspection.domain, self.inspection.n_rows
        count = min(n_rows if domain.n_max is None else domain.n_max, MOST_ROWS)
        rngs = [np.random.default_rng(turn) for turn in range(TRIALS)]
        simulated(self.inspection, self.prior_model, count + 1, np.random.default_rng(TRIALS))
        return [self.density.held(simulated(self.inspection, self.prior_model, count, rng)) for rng in rngs]


def simulated(inspection: RowInspection, prior_model: Model, count: int, rng: np.random.Generator) -> list[Array]:
    """Return a public table of `count` rows: the number of rows held changes nothing.

    Raises
    ------
    Exception
        Of any kind, if some distribution cannot be drawn from.
    """
    values = plain_draw(list(prior_model.free_RVs), rng)
    truth = {str(rv.name): value for rv, value in zip(prior_model.free_RVs, values, strict=True)}
    return list(draw_rows(inspection, truth, {}, n_rows=count, rng=rng)[1])


def _disagreement(chains: Sequence[Chain]) -> str | None:
    import arviz as az

    states = np.stack([chain.states for chain in chains])
    with np.errstate(all="ignore"):
        spread = max(float(az.rhat(states[:, :, place])) for place in range(states.shape[2]))
    diverging = sum(chain.divergences for chain in chains) / (len(chains) * len(states[0]))
    if not spread < GOOD_RHAT:
        return f"on data simulated from its prior NUTS chains do not agree (R-hat {spread:.2f}); change its coordinates"
    if diverging > FEW_DIVERGENCES:
        return f"on data simulated from its prior {diverging:.0%} of the steps of NUTS diverge; change its coordinates"
    return None


def _effective_size(chains: Sequence[Chain]) -> float:
    import arviz as az

    states = np.stack([chain.states for chain in chains])
    return min(float(az.ess(states[:, :, place])) for place in range(states.shape[2]))


__all__ = ["Chain", "ConvergedPosterior", "TemperedChain", "walked"]
