"""``dp.TemperedGibbs``: every conditional is an exponential mechanism, and the whole chain is released and paid for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, override

import numpy as np
from pymc import Model
from pymc.step_methods.arraystep import BlockedStep
from pymc.step_methods.state import dataclass_state

from pymc_dp import _validate
from pymc_dp.accounting import Budget, ComposedEvent, Event, SelfComposedEvent, total_epsilon, zcdp
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, BudgetExceeded
from pymc_dp.inspection.findings import Inspected, Inspection
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import SamplerRecord
from pymc_dp.samplers.gibbs_sums import GibbsSums
from pymc_dp.step_methods.base import Guarantee, Point, PrivateStep, PrivateStepState
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.gibbs.latent_update import moved_rows
from pymc_dp.step_methods.gibbs.likelihoods import likelihoods_of
from pymc_dp.step_methods.gibbs.paying import GAIN, Payment, PricedDraw
from pymc_dp.step_methods.gibbs.plan import Scan, plan_scan
from pymc_dp.step_methods.gibbs.released import ReleasedScan, private_model
from pymc_dp.step_methods.gibbs.row_latents import inspect_with_latents
from pymc_dp.step_methods.gibbs.states import StatePaths
from pymc_dp.step_methods.markov.collapsed import CollapsedScan
from pymc_dp.step_methods.metropolis.spending import Spending
from pymc_dp.step_methods.own_variables import require_all, still_values

MOST_CELLS = 2**20


@dataclass_state
class GibbsState(PrivateStepState):
    """Sampling state: of the contract, and what a chain by rows has used of what pays for it."""

    walk: dict[str, Any]


class TemperedGibbs(PrivateStep):
    """Gibbs sampling whose every draw is differentially private, and which needs no convergence to be so.

    One step is a full scan: each free variable in turn is drawn from its conditional, the likelihood raised to the
    power β. Given the others, which are released, that draw is the exponential mechanism; its cost is set by how far
    one row can move the log-likelihood over this variable alone. β is the largest that pays for all scans of all
    chains, tuning and thinned ones included, and never above 1.

    Parameters
    ----------
    vars : list of str, optional
        Free variables that it moves, where other steps move the others: ``dp.sample(step=[...])``. All by default.
    share : float
        Weight of this step among those that share the budget.
    steps_per_draw : int
        Scans per draw that is kept; every scan is paid for, so that thinning buys nothing but a smaller trace.
    grid : int, optional
        Cells of the public grid on which a bounded variable without a conjugate form is drawn (1024). By rows: 256, at
        whose middles the log-likelihood of every row is computed. More are finer, at the same privacy loss.
    epsilon : float, optional
        Budget of a step for ``pm.sample``; leave it out for ``dp.sample``, and on a model that `privatize` made.
    delta : float
        δ > 0 buys far more: the cost of k scans then grows with √k.
    chains : int
        Chains that the budget pays for.
    domain : Domain, optional
    model : pymc.Model, optional

    Raises
    ------
    UnsupportedModelError
        With every variable that has no conditional of finite range, what is in the way and which bounds would do;
        nothing is spent.

    Notes
    -----
    **Conditionals.** Found conjugate in the graph, and drawn exactly within their bounds:

    - beta or uniform probability of Bernoulli, Binomial, Geometric, or NegativeBinomial rows (n or alpha known);
    - gamma, exponential or uniform rate of Poisson, Exponential, Gamma or InverseGamma rows (alpha known), and
      precision ``tau`` of Normal, LogNormal or HalfNormal rows;
    - inverse gamma or uniform scale, mean or variance of Exponential, Gamma and Laplace rows (location known), and
      variance of Normal, LogNormal or HalfNormal rows, ``sigma=sqrt(v)``;
    - uniform sd of Normal, LogNormal and HalfNormal rows, and scale of Weibull rows (alpha known);
    - normal or uniform mean of Normal and LogNormal rows, whose sd is known or a variable of its own;
    - Dirichlet shares of Categorical and Multinomial rows: one exact draw by rejection, hence one mechanism;
    - beta or Dirichlet probabilities of discrete variables, which see no row and cost nothing.

    The parameter is the variable, chosen among its elements by columns, by ``switch`` or by other variables
    (``p[z[region]]``); for rates, scales and variances also a product with anything else, or a power. All elements of
    a vector are one mechanism where they are independent given the rest: a row sits in one cell. Any other variable
    with bounds, and every discrete one with known levels (a change point, the class of a public region), is drawn on
    a grid. What sees no row (hyper-parameters) costs nothing and is updated by slice sampling.

    **Likelihoods.** A scan is by exact sums where these are sufficient for all likelihoods (and a cell of a grid costs
    the same for a million rows as for ten). Otherwise it is by rows: any density that factorises over them, such as
    regressions on continuous covariates, robust, censored, zero-inflated and mixture likelihoods, densities clipped by
    ``dp.clamp``. Every variable that rows reach is then drawn on a grid: it must be bounded, each element by itself, or
    have known levels. Rows need bounds.

    **Range.** R_l is how far neighbours move the log-likelihood over θ_l, given the present values of the others. By
    exact sums the kernel computes it from the bounds of what a row adds. By rows it is the largest that is found on
    public rows, which are moved on to where it is larger; it is enforced on the number of every row, and what a row
    adds beyond it is cut. A draw costs β R_l (pure) or (β R_l)^2 / 8 (zCDP). Every variable that rows reach must be
    bounded: see ``dp.truncate``. Rows that have no density anywhere count for nothing.

    **Who pays.** A chain has a *pool*, from which each draw takes what its range here costs. β is planned before rows
    are read, from ranges at draws from the prior and from simulated tables: the pool lasts on nine of ten of these. On
    others a chain may end before its budget is exceeded, and the trace is cut there, with a warning. Where β would not
    be a tenth greater for it, *grants* pay for the largest ranges that were found of each draw, and no chain ends
    early. At a state whose range by sums is larger, that draw has so much less of β. The report says which it was.

    **Latents per row** (a discrete variable with one entry per row and one prior for all, ``z ~ Categorical(w)``, ``x
    ~ Normal(mu[z], sd)``) are allowed under ``"replace"``, for likelihoods with exact sums; several observed variables
    may share them (naive Bayes), beside other columns. They are released with every state, by place. Each sees its own
    row only, so that all of them together cost one update; given them, a row cannot change its class. Where they are
    not wanted, ``pm.Mixture`` sums them out, and they cost nothing.

    **Markov states** (`MarkovStates`) are drawn all at once, by forward filtering and backward sampling: one mechanism
    over all paths, which one row moves through the state of its cell alone (two cells, where columns are private).
    Start and moves see no row and are free. Each chain begins at a draw from the prior.

    **On a private model** (made by `privatize`) no budget is needed and no update costs anything: rows are gone, and a
    scan takes as long for a million rows as for a thousand. A hidden Markov model of categories, all of whose priors
    are (truncated) Dirichlet, has a scan of its own: start and moves are summed out, and the counts behind noised ones
    are augmented, exactly where the model's own density of three levels or more approximates.

    A metric (``Domain(metric=...)``) is refused.

    **Guarantee.** All states of all chains together are (ε, δ)-differentially private for one row, under
    ``domain.neighbours``; class stepwise. All draws are the kernel's (`docs/kernel.md`): choices on grids and of
    latents are hardened, draws from conjugate distributions and of Markov states float64. The released chain has the
    tempered posterior, prior times likelihood to the power β, as its stationary distribution, as long as no row is
    cut. With a grid the density is that at the middle of each cell: a mean is off by a small part of a cell, and a
    variance greater by a twelfth of the square of its width.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 4.1 (whose amplification by a random scan does not hold for a
    released chain, and is not used) and 4.2; bounded range: Dong, Durfee, Rogers (2020), Cesar, Rogers (2021).

    Examples
    --------
    >>> TemperedGibbs()
    TemperedGibbs()
    """

    name = "tempered_gibbs"
    guarantee: ClassVar[Guarantee] = "stepwise"
    moves_some: ClassVar[bool] = True
    _state_class = GibbsState

    def __init__(
        self,
        vars: Any = None,
        *,
        steps_per_draw: int = 1,
        grid: int | None = None,
        epsilon: float | None = None,
        delta: float = 0.0,
        chains: int = 1,
        domain: Domain | None = None,
        model: Model | None = None,
        **pymc: Any,
    ) -> None:
        settings = {
            "steps_per_draw": _validate.many("steps_per_draw", steps_per_draw),
            "grid": None if grid is None else _validate.integer("grid", grid, 2, MOST_CELLS),
        }
        private = private_model(model)
        self.released: CollapsedScan | ReleasedScan | None = None
        self.beta, self.begins, self.ended = math.nan, False, False
        self.payment: Payment | None = None
        if private is not None and epsilon is not None:
            raise ArgumentError(
                "The model is private already and holds no rows, so TemperedGibbs costs nothing on it. Leave epsilon "
                "out."
            )
        super().__init__(
            vars,
            epsilon=epsilon,
            delta=delta,
            chains=chains,
            domain=domain,
            model=model,
            settings=settings,
            **pymc,
        )
        if private is not None:
            require_all(self.names, private, "on a private model, which holds no rows, TemperedGibbs moves")
            self.released = CollapsedScan.of(private) or ReleasedScan(private)
            self.vars = list(private.value_vars)
            self.var_names = tuple(str(var.name) for var in self.vars)

    @property
    def power(self) -> float:
        """β: nan before it is priced."""
        return self.beta

    @power.setter
    def power(self, power: float) -> None:
        self.beta = power

    # --- rows ---------------------------------------------------------------------------------------------------------

    @override
    def of_inspected(self, found: Inspected) -> Inspection:
        if not found.sums.problems:
            return found.sums
        return inspect_with_latents(found) or found.rows

    @override
    def plan(self, inspection: Inspection) -> Model:
        self.released = None  # a specification that was made inside of a private model is meant for this one
        likelihoods = likelihoods_of(inspection)
        self.tables, self.held, self.latents = likelihoods.tables, likelihoods.held, likelihoods.latents
        self.clamped, prior_model = clamped(inspection.model), likelihoods.prior_model
        self.scan: Scan = plan_scan(likelihoods, grid=self.settings["grid"], own=self.names)
        if not self.previewing:
            self.held.compile()
        self._still = () if self.names is None else still_values(prior_model, self.names)
        return prior_model

    @override
    def price(self, funding: Funding) -> Event:
        spending = None
        self.beta = largest_beta(self.scan.ranges, funding.budget, funding.uses, self.scan.slacks)
        if self.beta < 1:
            beta, pool = self.scan.plan.pooled(funding.budget, funding.chains, funding.steps)
            if beta > GAIN * self.beta:
                self.beta, spending = beta, pool
        self.beta = min(self.beta, self.scan.most_beta)
        return self._priced_at(funding, spending)

    def _priced_at(self, funding: Funding, spending: Spending | None) -> Event:
        """Return what all scans cost at the present β."""
        self.payment = Payment(self.scan.plan.priced, self.beta, funding.steps, spending)
        if spending is not None:
            return spending.event
        return scans_event(self.scan.ranges, self.beta, funding.uses, self.scan.slacks)

    @override
    def temper(self, power: float) -> Event:
        self.beta = min(power, self.beta)
        return self._priced_at(self.funding, None if self.payment is None else self.payment.spending)

    @override
    def load(self) -> None:
        self.scan.compile()
        self.held.load()

    @override
    def forget(self) -> None:
        if self.released is None:
            self.held.forget()

    @override
    def start_chain(self) -> None:
        self.ended = False
        assert self.payment is not None
        self.payment.begin(self.held.begin(self.payment.paid))
        self.scan.payments[:] = [self.payment]
        # States that begin alike would stay so for long: chains of hidden Markov models begin anywhere in the prior.
        self.begins = any(isinstance(update, StatePaths) for update in self.scan.updates)

    def _from_prior(self) -> dict[str, Array]:
        """Draw every free variable from its prior, which is public."""
        rng = np.random.default_rng(self.generator.integers(2**32, size=4))
        names = [str(rv.name) for rv in self.prior_model.free_RVs]
        return dict(zip(names, map(np.asarray, plain_draw(self.prior_model.free_RVs, rng)), strict=True))

    @override
    def advance(self, point: Point) -> Point:
        if self.released is not None:
            return self.released.advance(self.generator, point)
        if self.ended:
            return point
        values = self.scan.points.values(point)
        if self.begins and self.count == 0:
            values |= {name: value for name, value in self._from_prior().items() if self.moves(name)}
        latents = {latent.name for latent in self.latents}
        self._regroup(values)
        for update in self.scan.updates:
            try:
                drawn = update.draw(self.generator, values)
            except BudgetExceeded:  # of the pool, before rows are read: public
                self.ended = True
                return point
            values[update.name] = np.asarray(drawn, dtype=values[update.name].dtype)
            if update.name in latents:
                self._regroup(values)
        return {**self.scan.points.point(values, point), **{name: point[name] for name in self._still}}

    def _regroup(self, values: Mapping[str, Array]) -> None:
        """Let rows stand in the cells of their latents."""
        if self.latents:
            assert isinstance(self.held, GibbsSums)
            moved_rows(self.latents, self.tables, values)
            self.held.regroup()

    @property
    @override
    def arithmetic(self) -> str:
        return "float64" if self.released is None and self.scan.floats else "hardened"

    @override
    def active(self) -> bool:
        return not self.ended

    @override
    def spent_so_far(self) -> float:
        pays = None if self.payment is None else self.payment.spending
        return super().spent_so_far() if pays is None else pays.epsilon

    @property
    def walk(self) -> dict[str, Any]:
        """What one chain by rows has used, for its sampling state."""
        return {} if self.payment is None else {"ended": self.ended, "payment": self.payment.state()}

    @walk.setter
    def walk(self, state: Mapping[str, Any]) -> None:
        if state and self.payment is not None:
            self.ended = state["ended"]
            self.payment.resume(state["payment"])

    @override
    def describe(self) -> SamplerRecord:
        facts = [("beta", f"{self.beta:.6g}")]
        if self.payment is not None:
            facts.append(("payment", self.payment.words))
        facts += [update.fact for update in self.scan.updates]
        for name, (low, high) in self.clamped.items():
            target = f"log-likelihood of a row clipped to ({low:g}, {high:g}): not the posterior where that takes hold"
            facts.append((f"target of {name}", target))
        return SamplerRecord(
            name=type(self).__name__,
            noise=f"tempered conditionals, beta = {self.beta:.6g}",
            variables=tuple(update.name for update in self.scan.updates),
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=tuple(facts),
        )

    # --- releases -----------------------------------------------------------------------------------------------------

    @override
    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        if self.released is None:
            super().setup_chain(rng, tune, draws)
            return
        BlockedStep.setup_chain(self, rng, tune, draws)  # nothing to claim: PyMC's own generator will do
        self.generator, self.count = self.rng, 0
        self.released.start_chain()

    @override
    def spent(self) -> float:
        return 0.0 if self.released is not None else super().spent()


def scans_event(ranges: Sequence[float], beta: float, uses: int, slacks: Sequence[float] = ()) -> Event:
    """What `uses` scans cost, each an update of every range; `slacks` are added to what these cost."""
    pairs = zip(ranges, slacks or [0.0] * len(ranges), strict=True)
    events = [PricedDraw(most=item, slack=more).event(beta) for item, more in pairs]
    return SelfComposedEvent(event=events[0] if len(events) == 1 else ComposedEvent(events=tuple(events)), count=uses)


def largest_beta(ranges: Sequence[float], budget: Budget, uses: int, slacks: Sequence[float] = ()) -> float:
    """Return the greatest β in (0, 1] found at which `uses` scans fit a budget.

    By pure losses ``β = ε / (uses Σ R)``, by zCDP ``β = √(8 ρ / (uses Σ R^2))``; where δ > 0 the exact composition of
    the updates, whose ranges are fixed in advance, may allow more.

    Examples
    --------
    >>> round(largest_beta([2.0], Budget(1.0), 10), 6)
    0.05
    """
    return _largest_beta(tuple(ranges), budget, uses, tuple(slacks))


@lru_cache(maxsize=256)
def _largest_beta(ranges: tuple[float, ...], budget: Budget, uses: int, slacks: tuple[float, ...]) -> float:
    def fits(beta: float) -> bool:
        return total_epsilon(scans_event(ranges, beta, uses, slacks), budget.delta).epsilon <= budget.epsilon

    candidates = [budget.epsilon / (uses * math.fsum(ranges))]
    if budget.delta > 0:
        rho = zcdp.rho_for(budget.epsilon, budget.delta)
        candidates.append(math.sqrt(8 * rho / (uses * math.fsum(item**2 for item in ranges))))
    best, shave = min(1.0, max(candidates)), 1e-15
    while not fits(best):  # by the last digits only
        best *= 1 - shave
        shave = min(2 * shave, 0.5)
    if budget.delta > 0 and best < 1:
        best = _raised(fits, best)
    return best


def _raised(fits: Callable[[float], bool], best: float) -> float:
    """Bisect between a β that fits and one that does not; what is returned fits."""
    high = min(1.0, 2 * best)
    while fits(high):
        best, high = high, min(1.0, 2 * high)
        if best == 1:
            return best
    while high > best * (1 + 5e-4):
        middle = math.sqrt(best * high)
        best, high = (middle, high) if fits(middle) else (best, middle)
    return best


__all__ = ["TemperedGibbs", "largest_beta", "scans_event"]
