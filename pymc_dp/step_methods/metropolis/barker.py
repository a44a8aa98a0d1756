"""Barker's Metropolis: every accept bit is the exponential mechanism over two places, and is paid for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, cast, override

import numpy as np
from pymc import Model
from pymc.step_methods.state import dataclass_state

from pymc_dp import _validate
from pymc_dp.accounting import Event
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.row_terms import RowInspection, inspect_rows
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.record import SamplerRecord
from pymc_dp.sensitivity.steps import StepRange
from pymc_dp.step_methods.base import Funding, Point, PrivateStep, PrivateStepState
from pymc_dp.step_methods.metropolis.coefficients import Coefficients, Place, held_sums, row_table
from pymc_dp.step_methods.metropolis.proposals import AdaptiveProposal, FixedProposal, Proposal
from pymc_dp.step_methods.metropolis.row_ratios import RowRatios
from pymc_dp.step_methods.metropolis.spending import Spending
from pymc_dp.transforms.husk import husk as husk_of
from pymc_dp.transforms.likelihood import TableLikelihood, table_likelihoods


@dataclass_state
class BarkerState(PrivateStepState):
    """Sampling state: of the contract, and what the chain has spent and learnt about its proposals."""

    walk: dict[str, Any]


class BarkerMetropolis(PrivateStep):
    """Metropolis with Barker's rule: the exact posterior, each accept bit accounted by its own proved range.

    From θ it proposes θ' from a symmetric normal on the unconstrained scale and goes there with probability
    ``σ(log p(θ' | X) - log p(θ | X))``. Any parameter graph will do, and no parameter needs bounds: only how far one
    row moves the *difference* of two released places is paid for, and short steps cost little.

    Parameters
    ----------
    clamp : float, optional
        For models without a closed form of the range: any whose rows separate, with continuous covariates, without
        bounds. ``g(x) = l(x, θ') - l(x, θ)`` of each row is clamped to ``± clamp ‖θ' - θ‖`` (Euclidean norm,
        unconstrained scale), in one pass over the rows per step. **The target changes** wherever that takes hold: below
        the largest gradient norm of a row, the chain has no density that is known. None (default): no clamp.
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
        If a likelihood has no exact sums here, so no closed form of the range, and no clamp is given; if with one its
        rows do not separate; if a free variable is discrete, or the model cannot start at its initial point.
    ArgumentError

    Notes
    -----
    Every step is paid for; ``dp.sample`` makes 4000 draws after 1000 of tuning unless told otherwise. More steps of the
    same budget are shorter ones.

    **Released.** All states of every chain, tuning included; a filter ends a chain before its budget is exceeded, and
    the trace is cut there.

    **Guarantee.** With ``R`` the range of g over everything that a row may be (``sup g - inf g`` under ``replace``,
    within the cells that a row's public columns leave it; ``sup |g|`` under ``add_remove``; with a clamp twice and once
    ``clamp ‖θ' - θ‖``), one step is R-DP and
    R²/8-zCDP. Places, proposals, tuning and R are functions of released states, public bounds and fresh randomness, so
    that the filter may stop by them; the whole budget is reserved first and is the guarantee, ``epsilon_spent`` is
    bookkeeping. Class stepwise: no convergence is needed. Arithmetic float64 (ideal real numbers). A tuned proposal
    that costs more than nine times (δ = 0: three times) what is left per step is refused without a look at the rows; R
    is the same both ways, so that the target is unchanged. While it tunes the chain is not yet a draw from the
    posterior; afterwards the proposal is fixed. Where a row could be in a cell whose parameter is outside of its
    support, the chain does not go, whether or not there is such a row.

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
        """Clamp of a row's log-likelihood ratio, per unit of distance; None where the range has a closed form."""
        clamp: float | None = self.settings.get("clamp")
        return clamp

    @override
    def inspect(self, model: Model, domain: Domain | None) -> Inspection:
        return super().inspect(model, domain) if self.clamp is None else inspect_rows(model, domain)

    @override
    def plan(self, inspection: Inspection) -> Model:
        self.neighbours = inspection.domain.neighbours
        self.tables: tuple[TableLikelihood, ...] = ()
        if self.clamp is None:
            husk, self.tables = table_likelihoods(inspection)
        else:
            husk = husk_of(inspection)
        discrete = [str(var.name) for var in husk.free_RVs if not var.type.dtype.startswith("float")]
        if discrete:
            raise UnsupportedModelError([_discrete(name) for name in discrete])
        self.range = StepRange([row_table(table) for table in self.tables], self.neighbours)
        self.ratios = None if self.clamp is None else RowRatios(cast(RowInspection, inspection), husk)
        self.coefficients = Coefficients(husk, self.tables)
        if not self.coefficients.start.possible:
            raise UnsupportedModelError(
                [
                    Problem(
                        where="model",
                        what="at its initial point the prior or a likelihood has density 0, so that no chain can start",
                        remedy="Give initval= in the model: a public place inside of all supports.",
                    )
                ]
            )
        names = {str(var.name): str(husk.rvs_to_values[var].name) for var in husk.free_RVs}
        self._fixed = _spread(self.settings.get("scale"), names, self.coefficients)
        return husk

    @override
    def price(self, funding: Funding) -> Event:
        self.spending = Spending(funding.budget, funding.chains)
        return self.spending.event

    @override
    def load(self) -> None:
        if self.ratios is not None:
            self.ratios.load()
        sums = [held_sums(table, table.read()) for table in self.tables]
        self._sums = np.concatenate([np.zeros(0), *sums])

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
        if self.ratios is not None:
            moved = self.ratios.total(there.values, here.values, self._limit(here, there))
        else:
            moved = float((there.coefficients - here.coefficients) @ self._sums)
        return there.prior - here.prior + moved

    def _limit(self, here: Place, there: Place) -> float:
        """Where the ratio of a row is clamped: public, and the same both ways."""
        assert self.clamp is not None
        return self.clamp * float(np.linalg.norm(there.values - here.values))

    def _between(self, here: Place, there: Place) -> float:
        """Range of g between two places: public. Infinite where a chain may not go."""
        if not math.isfinite(there.prior):
            return math.inf
        if self.clamp is not None:
            return (2 if self.neighbours == "replace" else 1) * self._limit(here, there)
        return self.range(there.coefficients - here.coefficients)

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
        target, proof = "the posterior, not tempered, where every row that could be is possible", "closed form"
        if self.clamp is not None:
            target = (
                f"not the posterior wherever a row's log-likelihood ratio exceeds {self.clamp:g} ‖θ' - θ‖ and is cut"
            )
            proof = f"clamping g of each row to ± {self.clamp:g} ‖θ' - θ‖"
        law = "ranges add" if self.spending.pure else "R²/8-zCDP each"
        proposal = "fixed" if self._fixed is not None else "tuned on released states, then fixed"
        return SamplerRecord(
            name=type(self).__name__,
            noise="accept bits (Barker)",
            variables=tuple(str(var.name) for var in self.husk.free_RVs),
            chains=self.funding.chains,
            steps=self.funding.steps,
            facts=(
                ("target", target),
                (
                    "one row moves",
                    f"R = {relation} of the log-likelihood ratio g of two released places, by {proof}",
                ),
                ("filter", f"{law}; a chain ends before its {self.spending.reserved:.6g} are exceeded"),
                ("proposal", f"normal on the unconstrained scale, {proposal}"),
            ),
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
