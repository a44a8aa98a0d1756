"""Barker's Metropolis: every accept bit is the exponential mechanism over two places, and is paid for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, override

import numpy as np
from pymc import Model
from pymc.step_methods.state import dataclass_state

from pymc_dp import _validate
from pymc_dp.accounting import Event
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.clamped import clamped
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.row_terms import RowInspection, inspect_rows
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.record import SamplerRecord
from pymc_dp.sensitivity.unconstrained import StepProof
from pymc_dp.step_methods.base import Funding, Point, PrivateStep, PrivateStepState
from pymc_dp.step_methods.metropolis.coefficients import Coefficients, Place
from pymc_dp.step_methods.metropolis.proposals import AdaptiveProposal, FixedProposal, Proposal
from pymc_dp.step_methods.metropolis.ratios import ClampedRatio, ProvedRatio, Ratio, SumsRatio
from pymc_dp.step_methods.metropolis.row_ratios import RowRatios
from pymc_dp.step_methods.metropolis.spending import Spending
from pymc_dp.transforms.husk import husk as husk_of
from pymc_dp.transforms.likelihood import sums_problems, table_likelihoods


@dataclass_state
class BarkerState(PrivateStepState):
    """Sampling state: of the contract, and what the chain has spent and learnt about its proposals."""

    walk: dict[str, Any]


class BarkerMetropolis(PrivateStep):
    """Metropolis with Barker's rule: the exact posterior, each accept bit accounted by its own proved range.

    From θ it proposes θ' from a symmetric normal on the unconstrained scale and goes there with probability
    ``σ(log p(θ' | X) - log p(θ | X))``. Any parameter graph will do, and no parameter needs bounds: only how far one
    row moves the *difference* of two released places is paid for, and short steps cost little.

    That is known in closed form where the likelihood has exact sums, at a price that does not grow with the rows. For
    any other model whose rows separate it is proved at every step, by interval arithmetic on the graph of a row's
    log-likelihood: give public bounds or norms of what a row holds, ``Domain(bounds=..., norms=...)``.

    Parameters
    ----------
    clamp : float, optional
        For models whose range cannot be proved, as with rows that have no bounds. ``g(x) = l(x, θ') - l(x, θ)`` of each
        row is clamped to ``± clamp ‖θ' - θ‖`` (Euclidean norm, unconstrained scale), in one pass over the rows per
        step. **The target changes** wherever that takes hold: below the largest gradient norm of a row, the chain has
        no density that is known. None (default): no clamp.
    scale : float or mapping of str to float or array, optional
        Standard deviation of the proposal on the unconstrained scale, for all variables or by the name of each. Public.
        None (default): chosen from the public ranges and tuned on released states, within what the budget allows, so
        that a chain seldom ends early. A given scale is never changed: steps that are too long end the chain.
    steps_per_draw : int
        Steps between two states that are kept; each is charged.
    epsilon, delta, chains, domain, model
        Only for use in ``pm.sample(step=...)``: the budget of all its chains together, what is public about a row, and
        the model. Without `epsilon` this is a specification for ``dp.sample(step=...)``.

    Raises
    ------
    UnsupportedModelError
        If a likelihood has no exact sums here, the range of a step is not proved near the initial point either, and no
        clamp is given: the text names what has no bound, and what would do. If its rows do not separate, a free
        variable is discrete, or the model cannot start at its initial point.
    ArgumentError

    Notes
    -----
    Every step is paid for; ``dp.sample`` makes 4000 draws after 1000 of tuning unless told otherwise. More steps of the
    same budget are shorter ones.

    **Released.** All states of every chain, tuning included; a filter ends a chain before its budget is exceeded, and
    the trace is cut there.

    **Guarantee.** With ``R`` the range of g over everything that a row may be (``sup g - inf g`` under ``replace``,
    for rows that share their public values; ``sup |g|`` under ``add_remove``; with a clamp twice and once
    ``clamp ‖θ' - θ‖``), or a proved bound of it, one step is R-DP and
    R²/8-zCDP. Places, proposals, tuning and R are functions of released states, public bounds and fresh randomness, so
    that the filter may stop by them; the whole budget is reserved first and is the guarantee, ``epsilon_spent`` is
    bookkeeping. Class stepwise: no convergence is needed. Arithmetic float64 (ideal real numbers). A tuned proposal
    that costs more than nine times (δ = 0: three times) what is left per step is refused without a look at the rows; R
    is the same both ways, so that the target is unchanged. While it tunes the chain is not yet a draw from the
    posterior; afterwards the proposal is fixed. Where a row could be one for which a parameter is outside of its
    support, or for which nothing is proved, the chain does not go, whether or not there is such a row.

    **Time.** A proof takes some milliseconds a step; where values without bounds are clamped (`dp.clamp`), ten times
    more: give bounds too.

    References
    ----------
    Barker (1965), doi 10.1071/PH650119; Foulds, Geumlek, Welling, Chaudhuri (2016), appendix C; range accounting: Dong,
    Durfee, Rogers (2020), Cesar, Rogers (2021), lemma 3.4; filter: Feldman, Zrnic (2021).

    Examples
    --------
    >>> BarkerMetropolis(steps_per_draw=2)
    BarkerMetropolis(steps_per_draw=2)
    """

    name = "barker_metropolis"
    guarantee = "stepwise"
    default_draws: ClassVar[int] = 4000
    default_tune: ClassVar[int] = 1000
    _state_class = BarkerState

    def __init__(
        self,
        vars: Any = None,
        *,
        clamp: float | None = None,
        scale: float | Mapping[str, Any] | None = None,
        steps_per_draw: int = 1,
        **funding: Any,
    ) -> None:
        settings: dict[str, Any] = {}
        if clamp is not None:
            settings["clamp"] = _positive("clamp", clamp)
        if scale is not None:
            settings["scale"] = _scale(scale)
        if _validate.integer("steps_per_draw", steps_per_draw) != 1:
            settings["steps_per_draw"] = steps_per_draw
        self.ended = False
        self.proposal: Proposal | None = None
        self._here: Place | None = None
        super().__init__(vars, settings=settings, **funding)

    @property
    def clamp(self) -> float | None:
        """Clamp of a row's log-likelihood ratio, per unit of distance; None where its range is known or proved."""
        clamp: float | None = self.settings.get("clamp")
        return clamp

    @override
    def inspect(self, model: Model, domain: Domain | None) -> Inspection:
        """Look for sums of rows; where there are none, for rows that are kept apart."""
        if self.clamp is None:
            found = super().inspect(model, domain)
            if not (found.problems or sums_problems(found)):
                return found
        return inspect_rows(model, domain)

    @override
    def plan(self, inspection: Inspection) -> Model:
        self.neighbours = inspection.domain.neighbours
        self._clamped_rows = clamped(inspection.model)
        husk, tables = (
            (husk_of(inspection), ()) if isinstance(inspection, RowInspection) else table_likelihoods(inspection)
        )
        discrete = [str(var.name) for var in husk.free_RVs if not var.type.dtype.startswith("float")]
        if discrete:
            raise UnsupportedModelError([_discrete(name) for name in discrete])
        self.coefficients = Coefficients(husk, tables, quick=self.previewing)
        if not self.coefficients.start.possible:
            raise UnsupportedModelError([IMPOSSIBLE])
        names = {str(var.name): str(husk.rvs_to_values[var].name) for var in husk.free_RVs}
        self._fixed = _spread(self.settings.get("scale"), names, self.coefficients)
        self.ratio: Ratio = (
            self._of_rows(inspection, husk)
            if isinstance(inspection, RowInspection)
            else SumsRatio(tables, self.neighbours)
        )
        if not self.previewing:
            self.ratio.compile()
        return husk

    def _of_rows(self, inspection: RowInspection, husk: Model) -> Ratio:
        """Prove a range, unless one is given; then look at how rows can be passed over."""
        if self.clamp is not None:
            return ClampedRatio(RowRatios(inspection, husk), self.neighbours, self.clamp)
        proof = StepProof(inspection, husk)
        if proof.problems:
            raise UnsupportedModelError(proof.problems)
        return ProvedRatio(RowRatios(inspection, husk), proof)

    @override
    def price(self, funding: Funding) -> Event:
        self.spending = Spending(funding.budget, funding.chains)
        return self.spending.event

    @override
    def load(self) -> None:
        self.ratio.load()

    @override
    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        self._tuning = tune * self.steps_per_draw
        super().setup_chain(rng, tune, draws)

    @override
    def start_chain(self) -> None:
        assert self.funding is not None
        self.spending.restart()
        self.ended, self._here = False, None
        if self._fixed is not None:
            self.proposal = FixedProposal(self._fixed)
        else:
            dimension = self.coefficients.dimension
            self.proposal = AdaptiveProposal(dimension, tune=self._tuning, steps=self.funding.steps)
        self._begun = False

    @override
    def advance(self, point: Point) -> Point:
        assert self.generator is not None and self.proposal is not None
        if self.ended:
            return point
        here = self._place(point)
        if not self._begun:
            self.proposal.begin(here.values, self._reach, self.spending, self.generator)
            self._begun = True
        there = self.coefficients.at(self.proposal.draw(here.values, self.generator))
        reach = self._between(here, there)
        loss = self.spending.loss(reach)
        accepted = False
        if loss <= self.proposal.cap and reach < math.inf:
            if not self.spending.affords(reach):
                self.ended = True
                return point
            accepted = self._accepts(here, there)
        if accepted:
            self._here = there
            point = self.coefficients.point(there.values, point)
        self.proposal.learn(self._here.values if self._here is not None else here.values, accepted, loss)
        return point

    def _accepts(self, here: Place, there: Place) -> bool:
        """Draw the bit: the only thing that the rows have a say in; its loss was charged."""
        assert self.generator is not None
        return bool(self.generator.random() < sigmoid(self._odds(here, there)))

    def _odds(self, here: Place, there: Place) -> float:
        """Log of the posterior's ratio at two places. **Private**."""
        return there.prior - here.prior + self.ratio.moved(here, there)

    def _between(self, here: Place, there: Place) -> float:
        """Range of g between two places: public. Infinite where a chain may not go."""
        return self.ratio.reach(here, there) if math.isfinite(there.prior) else math.inf

    def _reach(self, values: Array) -> float:
        assert self._here is not None
        return self._between(self._here, self.coefficients.at(values))

    def _place(self, point: Point) -> Place:
        """Coefficients at a point, remembered from the step before."""
        values = self.coefficients.flatten(point)
        if self._here is None or not np.array_equal(values, self._here.values):
            self._here = self.coefficients.at(values)
        return self._here

    @override
    def spent(self) -> float:
        return self.spending.epsilon

    @override
    def active(self) -> bool:
        return not self.ended

    @property
    def walk(self) -> dict[str, Any]:
        """What one chain has spent and learnt, for its sampling state."""
        if self.proposal is None:
            return {}
        return {"ended": self.ended, "spending": self.spending.state(), "proposal": self.proposal.state()}

    @walk.setter
    def walk(self, state: Mapping[str, Any]) -> None:
        self._here = None
        if not state:
            self.proposal, self.ended = None, False
            return
        if self.proposal is None:
            raise PrivacyError("A state can only be restored in a chain that has begun: call setup_chain first.")
        self.ended, self._begun = state["ended"], False
        self.spending.restart(**state["spending"])
        self.proposal.restore(state["proposal"])

    @override
    def describe(self) -> SamplerRecord:
        assert self.funding is not None
        relation = "sup g - inf g" if self.neighbours == "replace" else "sup |g|"
        law = "ranges add" if self.spending.pure else "R²/8-zCDP each"
        proposal = "fixed" if self._fixed is not None else "tuned on released states, then fixed"
        return SamplerRecord(
            name=type(self).__name__,
            noise="accept bits (Barker)",
            variables=tuple(str(var.name) for var in self.husk.free_RVs),
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=(
                ("target", self.ratio.target),
                *(
                    ("target", f"log-likelihood of a row of {name} clamped to ({low:g}, {high:g}): a pseudo-posterior")
                    for name, (low, high) in self._clamped_rows.items()
                ),
                (
                    "one row moves",
                    f"R = {relation} of the log-likelihood ratio g of two released places, {self.ratio.proof}",
                ),
                ("filter", f"{law}; a chain ends before its {self.spending.reserved:.6g} are exceeded"),
                ("proposal", f"normal on the unconstrained scale, {proposal}"),
            ),
        )


IMPOSSIBLE = Problem(
    where="model",
    what="at its initial point the prior or a likelihood has density 0, so that no chain can start",
    remedy="Give initval= in the model: a public place inside of all supports.",
)


def sigmoid(odds: float) -> float:
    """Return 1 / (1 + e^-odds)."""
    if odds >= 0:
        return 1 / (1 + math.exp(-odds))
    small = math.exp(odds)
    return small / (1 + small)


def _positive(name: str, value: object) -> float:
    result = _validate.number(name, value)
    if result <= 0:
        raise ArgumentError(f"{name} must be > 0, got {result}. Leave it out for the default.")
    return result


def _scale(scale: object) -> float | dict[str, Any]:
    if not isinstance(scale, Mapping):
        return _positive("scale", scale)
    sizes = {str(name): np.asarray(size, dtype=float) for name, size in scale.items()}
    for name, size in sizes.items():
        if not (np.isfinite(size).all() and (size > 0).all()):
            raise ArgumentError(f"scale[{name!r}] must be > 0 everywhere, got {size.tolist()}.")
    return sizes


def _spread(scale: float | Mapping[str, Any] | None, names: Mapping[str, str], at: Coefficients) -> Array | None:
    """Standard deviation of each value."""
    if scale is None:
        return None
    if not isinstance(scale, Mapping):
        return np.full(at.dimension, scale)
    if set(scale) != set(names):
        raise ArgumentError(
            f"scale names {sorted(scale)}, but the free variables are {sorted(names)}. Give one number, or one each."
        )
    try:
        return at.spread({names[name]: size for name, size in scale.items()})
    except ValueError:
        raise ArgumentError(
            "scale has arrays that do not fit the variables on the unconstrained scale (a Dirichlet has one value less "
            "there). Give numbers."
        ) from None


def _discrete(name: str) -> Problem:
    return Problem(
        where=name,
        what="it is discrete, and a normal proposal needs real numbers",
        remedy="Marginalise it out of the model.",
    )


__all__ = ["BarkerMetropolis"]
