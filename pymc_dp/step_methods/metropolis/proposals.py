"""Symmetric normal proposals; those that adapt do so on released values and public ranges only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.metropolis.spending import Spending

OPTIMAL = 2.38
"""Scale of a proposal, in posterior standard deviations over √d, at which a chain in d dimensions mixes best."""
NARROW = 1e-4
"""Step at which the range per unit of a value is measured."""
DRIFT, SCATTER = 0.2, 2.5
"""What the draws are planned to leave of the budget: a share, as the range changes on their way, and so many standard
deviations of the sum of their losses."""
CAPS = {1: 3.0, 2: 9.0}
"""Loss of a proposal, over what a step may spend on average, from which it is refused: three times the range."""
WINDOWS = (0.15, 0.3, 0.5, 0.75)
"""Shares of tuning after which the shape is taken from the states since the one before."""
SETTLED = 1.35
"""Acceptance, over the best one, up to which a chain counts as settled."""
LOOKS = 32

Reach = Callable[[Array], float]
"""Range of a step from the present place to another: public, and free to look at."""


class FixedProposal:
    """N(θ, diag(sd^2)), for all steps; a step is refused only for want of budget.

    Parameters
    ----------
    sd : (dimension,) array
    """

    cap = math.inf

    def __init__(self, sd: Array) -> None:
        self.sd = sd

    def begin(self, values: Array, reach: Reach, spending: Spending, rng: np.random.Generator) -> None:
        """Do nothing."""

    def draw(self, values: Array, rng: np.random.Generator) -> Array:
        """Propose a place."""
        return values + self.sd * rng.standard_normal(len(self.sd))

    def learn(self, values: Array, accepted: bool, loss: float) -> None:
        """Do nothing."""

    def state(self) -> dict[str, Any]:
        """Nothing that changes."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Do nothing."""


class AdaptiveProposal:
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
    """

    def __init__(self, dimension: int, *, tune: int, steps: int, acceptance: float) -> None:
        self.dimension, self.tune, self.steps, self.acceptance = dimension, tune, steps, acceptance
        self.made, self.seen, self.taken, self.gains = 0, 0, 0, 0
        self.scale, self.unit_loss, self.cap = 1.0, 0.0, math.inf
        self.factor = np.eye(dimension)
        self.mean, self.scatter = np.zeros(dimension), np.zeros((dimension, dimension))

    def begin(self, values: Array, reach: Reach, spending: Spending, rng: np.random.Generator) -> None:
        """Choose the first scale of every value by how far a row's log-likelihood moves with it; prepare every step."""
        self.reach, self.spending, self.rng = reach, spending, rng
        log_usual = math.lgamma((self.dimension + spending.power) / 2) - math.lgamma(self.dimension / 2)
        self._usual = 2 ** (spending.power / 2) * math.exp(log_usual)  # of the length of the noise, to this power
        if self.made:
            return  # taken up again
        aim = spending.range_of(spending.reserved / self.steps)
        moves = np.array([self._sensitivity(values, place) for place in range(self.dimension)])
        with np.errstate(divide="ignore"):
            self.factor = np.diag(np.minimum(1.0, aim / moves))
        self.scale = 1.0
        self._limit(values)
        if not self.tune:
            self._freeze(values)

    def draw(self, values: Array, rng: np.random.Generator) -> Array:
        """Propose a place."""
        noise = rng.standard_normal(self.dimension)
        self.length = float(noise @ noise) ** (self.spending.power / 2) / self._usual
        if self.dimension == 1:
            return values + self.scale * self.factor[0, 0] * noise
        return values + self.scale * (self.factor @ noise)

    def learn(self, values: Array, accepted: bool, loss: float) -> None:
        """Take note of one step: where the chain is, the bit, and the loss its proposal would have. All public."""
        self.made += 1
        if self.made > self.tune:
            return
        if loss < math.inf:
            self.unit_loss += max(0.01, 1 / (self.gains + 10)) * (
                loss / self.scale**self.spending.power - self.length * self.unit_loss
            )
        self.gains += 1
        self.scale *= math.exp(2 * self.gains**-0.6 * (accepted - self.acceptance))
        allowed = self._allowed()
        self.scale = min(self.scale, self._scale_for(allowed))
        self.cap = CAPS[self.spending.power] * allowed
        if self.dimension > 1:
            self._note(values, accepted)
        if self.made == self.tune:
            self._freeze(values)

    def state(self) -> dict[str, Any]:
        """Return what `restore` needs to go on from here."""
        kept = ("made", "seen", "taken", "gains", "scale", "unit_loss", "cap", "factor", "mean", "scatter")
        return {name: getattr(self, name) for name in kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.__dict__.update(state)

    # --- within the budget --------------------------------------------------------------------------------------------

    def _allowed(self) -> float:
        """Loss per step that would use up what is left."""
        return self.spending.remaining / max(self.steps - self.made, 1)

    def _scale_for(self, allowed: float) -> float:
        return (allowed / self.unit_loss) ** (1 / self.spending.power) if self.unit_loss else math.inf

    def _limit(self, values: Array, share: float = 1.0) -> None:
        """Measure the average loss of proposals from here and bring the scale to where it is allowed."""
        allowed = share * self._allowed()
        for _ in range(3):  # the range is not quite proportional to the step
            looks = [(self.spending.loss(self.reach(self.draw(values, self.rng))), self.length) for _ in range(LOOKS)]
            finite = np.array([look for look in looks if look[0] < math.inf]).reshape(-1, 2).sum(axis=0)
            if finite[1]:  # losses over lengths: less noise than the average loss
                self.unit_loss = float(finite[0] / finite[1]) / self.scale**self.spending.power
            if sum(loss == math.inf for loss, _ in looks) > LOOKS / 2:
                self.scale /= 4
            elif self.scale > (best := self._scale_for(allowed)):
                self.scale = best
            else:
                break
        self.cap = CAPS[self.spending.power] * allowed / share

    def _freeze(self, values: Array) -> None:
        """Fix the proposal for the draws, with room for the scatter of their losses."""
        average = self.unit_loss
        share = 1 / (1 + DRIFT + SCATTER * math.sqrt(2 / max(self.steps - self.made, 1)))
        self._limit(values, share)
        self.unit_loss = max(average, self.unit_loss)
        self.scale = min(self.scale, self._scale_for(share * self._allowed()))

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


Proposal = FixedProposal | AdaptiveProposal

__all__ = ["AdaptiveProposal", "FixedProposal", "Proposal"]
