"""Tempered Metropolis of Foulds et al.: steps so small that a rejection is a rare event on every data set."""

from __future__ import annotations

import math
from typing import Any, ClassVar, final, override

import numpy as np

from pymc_dp import _validate
from pymc_dp.accounting import ApproximateEvent, Event
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Pool
from pymc_dp.kernel.account import repeated
from pymc_dp.kernel.accounting.decimals import decimal, float_down
from pymc_dp.kernel.payer import Payer
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.metropolis.arguments import Block, positive
from pymc_dp.step_methods.metropolis.base import PrivateMetropolis
from pymc_dp.step_methods.metropolis.coefficients import Place
from pymc_dp.step_methods.metropolis.proposals import Proposal
from pymc_dp.step_methods.metropolis.spending import Allowance, Certificate

LEAST_RADIUS = 1e-13
"""Of the size of the values: smaller steps are lost in the rounding of floats."""
SHRINK = 0.9


@final
class BallProposal(Proposal):
    """Uniform in θ + radius L B, where B is the ball of radius 1; symmetric, and never changed.

    Parameters
    ----------
    radius : float
    shape : (dimension, dimension) array
        L.
    """

    def __init__(self, radius: float, shape: Array) -> None:
        self.radius, self.shape = radius, shape

    @override
    def draw(self, values: Array, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal(len(values))
        length = rng.random() ** (1 / len(values)) / math.sqrt(float(noise @ noise))
        return values + self.radius * length * (self.shape @ noise)


@final
class TemperedMetropolis(PrivateMetropolis):
    """Metropolis's own rule with a tempered likelihood, (ε, δ) only because rejections are made rare (Foulds et al.).

    **For comparison with the paper: use `BarkerMetropolis` or `PenaltyMetropolis`.** Proposals come from a ball so
    small that hardly any could be rejected on any data set: its radius falls with the number of rows, of steps, and
    with 1/δ, to 1e-9 and less where there are thousands of rows, so that a chain hardly leaves its start.

    Parameters
    ----------
    vars, share
        Where other steps move other variables, as for `BarkerMetropolis`.
    beta : float
        Power of the likelihood in the target, in (0, 1]; the prior is not tempered. Default 1.
    radius : float, optional
        Radius of the ball on the unconstrained scale. Public. None (default): the largest found whose certificate holds
        at the initial point.
    covariance : (d, d) array or DataTree, optional
        Public; the ball is one of the values that it makes uncorrelated, as for `BarkerMetropolis`.
    blocks : "each" or list of lists of str, optional
        As for `BarkerMetropolis`; each has a radius of its own, where none is given.
    steps_per_draw : int
        Steps between two states that are kept; each is charged.
    epsilon, delta, chains, domain, model
        Only for use in ``pm.sample(step=...)``, as for `BarkerMetropolis`. `delta` must be > 0.

    Raises
    ------
    UnsupportedModelError
        As for `BarkerMetropolis`, or if no radius that floats can tell from 0 has a certificate.
    ArgumentError
        For ``delta=0``: a rejection that is impossible on one data set may be possible on its neighbour. If `radius`
        has no certificate at the initial point: the text names one that has.

    Notes
    -----
    **Certificate.** θ' is proposed and accepted with probability ``min(1, e^λ)``, λ = log prior(θ') - log prior(θ) +
    β Σ g(x_i), g(x) = l(x, θ') - l(x, θ). With R the range of g between neighbours, G the largest ``|g|`` of any row
    that could be, and N the number of rows (``replace``) or ``n_max`` (``add_remove``),

    - *accepting*: λ moves by at most β R between neighbours, and min(1, e^λ) by a factor of at most e^(β R);
    - *rejecting*: the probability of it on one data set exceeds e^(β R) times that on a neighbour by at most
      ``δ_t = 1 - e^-min(β R, F)``, ``F = |log prior(θ') - log prior(θ)| + β N G`` where N is public: λ is at least -F.

    The step is (ε_t, δ_t)-DP with ε_t = β R, in both orders of the neighbours (`docs/kernel.md`, statements 9 and 31).
    R, G and δ_t come from public values alone and are the same from θ' to θ; the kernel enforces them, and draws the
    bit. A θ' without prior density, or whose ε_t or δ_t is more than the share of one step, is refused whatever the
    rows are; such refusals are symmetric and cost nothing.

    **Guarantee.** ε_t and δ_t of all steps of all chains add up to at most (ε, δ) (basic composition, of steps chosen
    by looking at those before: Rogers, Roth, Ullman, Vadhan 2016); class stepwise: no convergence is needed. What a row
    can move is enforced on what is summed, as for `BarkerMetropolis`.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), theorem C.1.

    Examples
    --------
    >>> TemperedMetropolis(beta=0.5)
    TemperedMetropolis(beta=0.5)
    """

    name = "tempered_metropolis"
    rule: ClassVar[str] = "rare rejections (tempered Metropolis)"
    spending: Allowance

    def __init__(
        self,
        vars: Any = None,
        *,
        beta: float = 1.0,
        radius: float | None = None,
        covariance: Any = None,
        blocks: Any = None,
        steps_per_draw: int = 1,
        **funding: Any,
    ) -> None:
        self.power = positive("beta", _validate.number("beta", beta))
        if self.power > 1:
            raise ArgumentError(f"beta must lie in (0, 1], got {beta}. At 1 the posterior is not tempered.")
        self._given_radius = None if radius is None else positive("radius", radius)
        super().__init__(vars, covariance=covariance, blocks=blocks, steps_per_draw=steps_per_draw, **funding)
        self.settings |= {"beta": self.beta} | ({} if radius is None else {"radius": self._given_radius})

    @property
    def beta(self) -> float:
        """Power of the likelihood in the target."""
        return self.power

    @override
    def price(self, funding: Funding) -> Event:
        budget, uses = funding.budget, funding.uses * len(self.blocks)
        if budget.delta == 0:
            raise ArgumentError(
                "TemperedMetropolis needs delta > 0: a rejection that is impossible on one data set may be possible on "
                "its neighbour. Give delta > 0, or use dp.BarkerMetropolis(), whose bits are pure."
            )
        epsilon, delta = (float_down(decimal(total) / uses) for total in (budget.epsilon, budget.delta))
        self.spending = Allowance(epsilon, delta, funding.chains)
        self.radii = tuple(map(self._radius, self.blocks, self._shapes))
        return ApproximateEvent(epsilon=budget.epsilon, delta=budget.delta)

    def _radius(self, block: Block, shape: Array | None) -> float:
        """Return the radius for one block, whose certificate holds at the start."""
        best = self._largest_radius(block, shape)
        given = self._given_radius
        if best == 0:
            raise UnsupportedModelError([_nowhere(block, self.spending.delta)])
        if given is not None and given > best:
            raise ArgumentError(
                f"radius={given:g} has no certificate at the initial point: a step may cost epsilon="
                f"{self.spending.each:.3g} and delta={self.spending.delta:.3g}. Give at most {best:.3g}, or leave it "
                "out."
            )
        return best if given is None else given

    def _largest_radius(self, block: Block, shape: Array | None) -> float:
        """Shrink a ball until what its axes say about it has a certificate; 0 if it is lost in rounding before."""
        axes = np.eye(block.dimension) if shape is None else shape.T
        floor = LEAST_RADIUS * max(1.0, float(np.abs(self.coefficients.start.values).max(initial=0.0)))
        radius = 1.0
        while radius > floor:
            excess = self._excess(block, radius * axes)
            if excess <= 1:
                return radius
            radius *= min(SHRINK, max(1e-3, SHRINK / excess))
        return 0.0

    def _excess(self, block: Block, axes: Array) -> float:
        """Return how many times its share a step to the surface of a ball may cost, by steps along its axes.

        Where changes are nearly linear in short steps, that along a direction u is at most ``Σ |u_i| c_i <= ‖c‖``.
        """
        start = self.coefficients.start
        parts = []
        for axis in axes:
            own = [start.values[block.places] + step for step in (axis, -axis)]
            ends = [self.coefficients.at(block.moved(start.values, moved)) for moved in own]
            steps = [self._certificate(start, end) for end in ends]
            parts.append([max(step.epsilon for step in steps), max(step.fall for step in steps)])
        epsilon, fall = np.linalg.norm(np.array(parts), axis=0)
        return float(max(epsilon / self.spending.each, fall / self.spending.most_fall))

    def _certificate(self, here: Place, there: Place) -> Certificate:
        """Certify a step; infinite where the chain may not go."""
        epsilon, delta = self.ratio.bit(here, there, self.beta) if math.isfinite(there.prior) else (math.inf, 1.0)
        return Certificate(epsilon=epsilon, fall=-math.log1p(-delta) if delta < 1 else math.inf)

    @override
    def _between(self, here: Place, there: Place) -> float:
        """Return ε of a step; infinite where the step is not certified to cost its share at most."""
        step = self._certificate(here, there)
        return step.epsilon if self.spending.covers(step) else math.inf

    @property
    def _step(self) -> ApproximateEvent:
        return ApproximateEvent(epsilon=self.spending.each, delta=self.spending.delta)

    @override
    def _paid_for_chain(self) -> Event:
        return repeated(self._step, self.funding.steps * len(self.blocks))

    @override
    def _pay(self, kernel: Payer) -> Grant | Pool:
        return kernel.grant(self._step, self.funding.steps * len(self.blocks))

    @override
    def _accepts(self, here: Place, there: Place, reach: float) -> bool:
        return self._drawn("accept", here, there)

    @override
    def _acceptance(self, dimension: int) -> float:
        return 1.0

    @override
    def _proposal(self, block: Block, shape: Array | None) -> Proposal:
        radius = self.radii[self.blocks.index(block)]
        return BallProposal(radius, np.eye(block.dimension) if shape is None else shape)

    @override
    def _filter(self) -> str:
        return (
            f"each step may cost epsilon {self.spending.each:.3g} and delta {self.spending.delta:.3g}, certified from "
            "public values; others are refused unseen"
        )

    @override
    def _proposed(self) -> str:
        """Say how small the steps are."""
        radii = " and ".join(f"{radius:.3g}" for radius in self.radii)
        power = "" if self.beta == 1 else f"; likelihood to the power {self.beta:g}"
        return (
            f"uniform in a ball of radius {radii} on the unconstrained scale{self._scanned()}{power}. Such steps are "
            "tiny, and the chain hardly leaves its start: BarkerMetropolis and PenaltyMetropolis get much further"
        )


def _nowhere(block: Block, delta: float) -> Problem:
    return Problem(
        where=", ".join(block.names),
        what=f"no step that floats can distinguish from none is rejected with probability {delta:.3g} or less on all "
        "data",
        remedy="Ask for fewer draws or a larger delta; or use dp.BarkerMetropolis() or dp.PenaltyMetropolis().",
    )


__all__ = ["BallProposal", "TemperedMetropolis"]
