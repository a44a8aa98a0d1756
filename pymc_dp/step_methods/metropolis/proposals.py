"""Symmetric normal proposals; those that adapt do so on released values and public ranges only."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, final, override

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.metropolis.spending import Price

OPTIMAL = 2.38
"""Scale of a proposal, in posterior standard deviations over √d, at which a chain in d dimensions mixes best."""
NARROW = 1e-4
"""Step at which the range per unit of a value is measured."""
CAPS = {1: 3.0, 2: 9.0}
"""Loss of a proposal, over what a step may spend on average, from which it is refused: three times the range."""
WINDOWS = (0.15, 0.3, 0.5, 0.75)
"""Shares of tuning after which the shape is taken from the states since the one before."""
SETTLED = 1.35
"""Acceptance, over the best one, up to which a chain counts as settled."""
LOOKS = 32

Reach = Callable[[Array], float]
"""Range of a step from the present state to another: public, and free to look at."""


class Proposal(ABC):
    """How a block's next state is proposed; this one learns nothing.

    Attributes
    ----------
    cap : float
        Loss above which a state is refused unseen.
    demand : float
        Loss per step that the proposal would have on average; infinite where only the budget keeps it short.
    together : sequence of Proposal
        Those of all blocks of a scan, this one included.
    """

    cap = math.inf
    demand = 0.0
    together: Sequence[Proposal] = ()

    @abstractmethod
    def draw(self, values: Array, rng: np.random.Generator) -> Array:
        """Propose a state."""

    def begin(self, values: Array, reach: Reach, price: Price, rng: np.random.Generator) -> None:  # noqa: B027
        """Look around, at public numbers."""

    def learn(self, values: Array, accepted: bool, loss: float) -> None:  # noqa: B027
        """Take note of one step: where the chain is, the bit, and the loss its proposal would have. All public."""

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs to go on from here."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027
        """Go on from a state."""


@final
class FixedProposal(Proposal):
    """N(θ, L L'), for all steps; a step is refused only for what it costs.

    Parameters
    ----------
    factor : (dimension, dimension) array
        L.
    """

    def __init__(self, factor: Array) -> None:
        self.factor = factor

    @override
    def draw(self, values: Array, rng: np.random.Generator) -> Array:
        return values + self.factor @ rng.standard_normal(len(self.factor))


@final
class AdaptiveProposal(Proposal):
    """N(θ, scale^2 L L'), tuned for mixing within what the budget allows per step, then fixed.

    While it tunes, the scale follows the accept bits to the best acceptance rate; the shape follows the covariance of
    the states; and the scale stays where steps cost on average what is left for each. Proposals that cost more than
    `cap` are refused unseen, at no cost: the range is the same in both directions, so that the target stays exact.

    Parameters
    ----------
    dimension : int
    tune, steps : int
        Tuning steps, and steps in all.
    acceptance : float
        Share of proposals that is accepted where the chain mixes best.
    shape : (dimension, dimension) array, optional
        L, public and kept: then the scale alone is tuned.
    """

    def __init__(self, dimension: int, *, tune: int, steps: int, acceptance: float, shape: Array | None = None) -> None:
        self.dimension, self.tune, self.steps, self.acceptance, self.shape = dimension, tune, steps, acceptance, shape
        self.together = (self,)
        self.made, self.seen, self.taken, self.gains = 0, 0, 0, 0
        self.scale, self.unit_loss, self.cap, self.held = 1.0, 0.0, math.inf, True
        self.factor = np.eye(dimension) if shape is None else shape
        self.mean, self.scatter = np.zeros(dimension), np.zeros((dimension, dimension))

    @override
    def begin(self, values: Array, reach: Reach, price: Price, rng: np.random.Generator) -> None:
        """Choose the first scale of every value by how far a row's log-likelihood moves with it; prepare every step."""
        self.reach, self.price, self.rng = reach, price, rng
        log_usual = math.lgamma((self.dimension + price.power) / 2) - math.lgamma(self.dimension / 2)
        self._usual = 2 ** (price.power / 2) * math.exp(log_usual)  # of the length of the noise, to this power
        if self.made:
            return  # taken up again
        self.scale = 1.0 if self.shape is None else OPTIMAL / math.sqrt(self.dimension)
        if self.shape is None:
            aim = price.range_of(self._allowed())
            moves = np.array([self._sensitivity(values, place) for place in range(self.dimension)])
            with np.errstate(divide="ignore"):
                self.factor = np.diag(np.minimum(1.0, aim / moves))
        self._limit(values)
        if not self.tune:
            self._freeze(values)

    @override
    def draw(self, values: Array, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal(self.dimension)
        self.length = float(noise @ noise) ** (self.price.power / 2) / self._usual
        if self.dimension == 1:
            return values + self.scale * self.factor[0, 0] * noise
        return values + self.scale * (self.factor @ noise)

    @override
    def learn(self, values: Array, accepted: bool, loss: float) -> None:
        self.made += 1
        if self.made > self.tune:
            return
        if loss < math.inf:
            self.unit_loss += max(0.01, 1 / (self.gains + 10)) * (
                loss / self.scale**self.price.power - self.length * self.unit_loss
            )
        self.gains += 1
        self.scale *= math.exp(2 * self.gains**-0.6 * (accepted - self.acceptance))
        allowed = self._allowed()
        self._keep_within(self._scale_for(allowed))
        self.cap = CAPS[self.price.power] * allowed
        if self.dimension > 1 and self.shape is None:
            self._note(values, accepted)
        if self.made == self.tune:
            self._freeze(values)

    @override
    def state(self) -> dict[str, Any]:
        kept = ("made", "seen", "taken", "gains", "scale", "unit_loss", "cap", "held", "factor", "mean", "scatter")
        return {name: getattr(self, name) for name in kept}

    @override
    def restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # --- within the budget --------------------------------------------------------------------------------------------

    @property
    def demand(self) -> float:  # type: ignore[override]
        """Loss per step that this proposal would have on average; infinite where only the budget keeps it short."""
        return math.inf if self.held else self.unit_loss * self.scale**self.price.power

    def _allowed(self) -> float:
        """Loss per step that would use up what is left, with the other blocks of a scan."""
        return self.price.allowed(self.steps - self.made, [proposal.demand for proposal in self.together])

    def _keep_within(self, best: float) -> None:
        """Bring the scale to `best` if it is above, and remember whether it was."""
        self.held = self.scale >= best
        self.scale = min(self.scale, best)

    def _scale_for(self, allowed: float) -> float:
        return (allowed / self.unit_loss) ** (1 / self.price.power) if self.unit_loss else math.inf

    def _limit(self, values: Array, share: float = 1.0) -> None:
        """Measure the average loss of proposals from here and bring the scale to where it is allowed."""
        allowed = share * self._allowed()
        for _ in range(3):  # the range is not quite proportional to the step
            looks = [(self.price.loss(self.reach(self.draw(values, self.rng))), self.length) for _ in range(LOOKS)]
            finite = np.array([look for look in looks if look[0] < math.inf]).reshape(-1, 2).sum(axis=0)
            if finite[1]:  # losses over lengths: less noise than the average loss
                self.unit_loss = float(finite[0] / finite[1]) / self.scale**self.price.power
            if sum(loss == math.inf for loss, _ in looks) > LOOKS / 2:
                self.scale /= 4
            elif self.scale > (best := self._scale_for(allowed)):
                self.scale = best
            else:
                break
        self.held = self.scale >= self._scale_for(allowed) * (1 - 1e-9)
        self.cap = CAPS[self.price.power] * allowed / share

    def _freeze(self, values: Array) -> None:
        """Fix the proposal for the draws, with room for the scatter of their losses."""
        average = self.unit_loss
        share = self.price.share((self.steps - self.made) * len(self.together))
        self._limit(values, share)
        self.unit_loss = max(average, self.unit_loss)
        self._keep_within(self._scale_for(share * self._allowed()))

    def _sensitivity(self, values: Array, place: int) -> float:
        """Range per unit of one value."""
        found = 0.0
        for step in (NARROW, -NARROW):
            moved = values.copy()
            moved[place] += step
            reach = self.reach(moved)
            found = max(found, reach / NARROW if reach < math.inf else 0.0)
        return found

    # --- shape --------------------------------------------------------------------------------------------------------

    def _note(self, values: Array, accepted: bool) -> None:
        """Add a state to the moments since the last window, and begin a new one where its time has come.

        Where many more proposals are accepted than would be best, the chain is on its way or its steps are kept short
        by the budget: what it has seen is not the posterior's shape.
        """
        self.seen += 1
        self.taken += accepted
        off = values - self.mean
        self.mean = self.mean + off / self.seen
        self.scatter = self.scatter + np.outer(off, values - self.mean)
        if self.made in {int(self.tune * share) for share in WINDOWS}:
            settled = self.taken < SETTLED * self.acceptance * self.seen
            if settled and self.seen > 2 * self.dimension:
                self._reshape(values)
            self.mean, self.scatter = np.zeros(self.dimension), np.zeros((self.dimension, self.dimension))
            self.seen, self.taken = 0, 0

    def _reshape(self, values: Array) -> None:
        weight = self.seen / (self.seen + 10 * self.dimension)
        held = self.factor * self.scale * math.sqrt(self.dimension) / OPTIMAL  # what the present proposal stands for
        covariance = weight * self.scatter / self.seen + (1 - weight) * held @ held.T
        jitter = 1e-10 * np.diag(np.maximum(np.diag(covariance), 1e-300))
        self.factor = np.linalg.cholesky(covariance + jitter)
        self.scale = OPTIMAL / math.sqrt(self.dimension)
        self.gains = 10
        self._limit(values)


__all__ = ["AdaptiveProposal", "FixedProposal", "Proposal"]
