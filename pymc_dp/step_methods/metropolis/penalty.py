"""The penalty method: noise on each log ratio, of which the accept bit alone is released, and which costs no bias."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, final, override

from pymc_dp.accounting import Event, PenaltyBitEvent, SelfComposedEvent, penalty_ratio
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel import Grant, Pool
from pymc_dp.kernel.account import repeated
from pymc_dp.kernel.payer import Payer
from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.metropolis.base import PrivateMetropolis
from pymc_dp.step_methods.metropolis.coefficients import Place

MOST_NOISE = 3.0
"""Standard deviation of the noise on a log ratio from which a proposal is refused unseen."""
USUAL_NOISE = 2.0
"""Root mean square noise up to which proposals are tuned: where λ is small against it, chains mix best near it."""


class NoisePrice:
    """Bits that all cost the same: a step of range R gets noise R / ratio, and its loss is the square of that.

    Parameters
    ----------
    ratio : float
        Range over standard deviation.
    paid : int
        Bits that one chain may release.
    """

    power = 2
    most = MOST_NOISE**2

    def __init__(self, ratio: float, paid: int) -> None:
        self.ratio, self.paid = ratio, paid
        self.restart()

    def restart(self) -> None:
        """Begin the account of one chain."""
        self.made = 0

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take it up where `state` stood."""
        self.made = state["made"]

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs to go on from here."""
        return {"made": self.made}

    def noise(self, reach: float) -> float:
        """Return the standard deviation for a step of range `reach`, rounded up."""
        return reach / self.ratio * (1 + 1e-15)

    def loss(self, reach: float) -> float:
        """Return the variance of the noise."""
        noise = self.noise(reach)
        return noise * noise  # `**` raises where a float overflows

    def range_of(self, loss: float) -> float:
        """Return the range that gets noise of this variance."""
        return self.ratio * math.sqrt(loss)

    def allowed(self, left: int, demands: Sequence[float]) -> float:
        """Return the mean variance up to which proposals are tuned: no step takes from another."""
        return USUAL_NOISE**2

    def share(self, left: int) -> float:
        """Return the whole."""
        return 1.0

    def affords(self, reach: float) -> bool:
        """Count one bit; False where all that were paid for have been released."""
        if self.made == self.paid:
            return False
        self.made += 1
        return True

    @property
    def epsilon(self) -> float:
        """Not known here: the step interpolates what so many bits cost."""
        return math.nan


@final
class PenaltyMetropolis(PrivateMetropolis):
    """Metropolis with the penalty method: the exact posterior, accept bits of equal cost, fixed in advance.

    From θ it proposes θ' from a symmetric normal on the unconstrained scale. The log of the posterior's ratio,
    ``λ = log p(θ' | X) - log p(θ | X)``, gets normal noise of standard deviation s, and the chain goes there with
    probability ``min(1, exp(λ + noise - s²/2))``. The s²/2 makes up for the noise, so that the chain samples the
    posterior, whatever s is. Only the accept bit is released, which tells less than the noised ratio.

    The noise is proportional to what one row can do: ``s = R / r``, R the range of the log-likelihood ratio of the two
    released states, found as for `BarkerMetropolis`, and r one number for the whole run, the largest
    that its budget pays for. A chain always makes all of its steps.

    Parameters
    ----------
    vars, share
        Where other steps move other variables, as for `BarkerMetropolis`.
    clamp : float, optional
        As for `BarkerMetropolis`: clamps each row's log-likelihood ratio to ``± clamp ‖θ' - θ‖``; **the target
        changes** wherever that takes hold.
    scale : float or mapping of str to float or array, optional
        Standard deviation of the proposal on the unconstrained scale, for all variables or by the name of each. Public.
        None (default): tuned on released states.
    covariance : (d, d) array or DataTree, optional
        Public shape of the proposal, as for `BarkerMetropolis`.
    blocks : "each" or list of lists of str, optional
        As for `BarkerMetropolis`: one step is then one bit for every block.
    steps_per_draw : int
        Steps between two states that are kept; each is charged.
    epsilon, delta, chains, domain, model
        Only for use in ``pm.sample(step=...)``, as for `BarkerMetropolis`. `delta` must be > 0.

    Raises
    ------
    UnsupportedModelError
        As for `BarkerMetropolis`.
    ArgumentError
        For ``delta=0`` besides.

    Notes
    -----
    **Against Barker's rule.** A Barker bit of range R costs R²/8 and has no noise; one of these costs about .59 r²/2
    whatever R is, and where λ is small against s half of the noise is its own. Steps of range R get s = R / r: more
    steps of the same budget are noisier rather than shorter. Proposals with s > 3 are refused unseen, at no cost to
    exactness: s is the same both ways.

    **Released.** All states of every chain, tuning included; never the noised ratio, nor any function of it but the
    bit.

    **Guarantee.** All accept bits together are (ε, δ)-differentially private, class stepwise: no convergence is needed.
    Given everything before it, a bit is computed from a release of normal noise that is r-GDP (λ moves by at most
    R = r s), so that k bits cost no more than k `GDPEvent`; the Rényi divergences of the bit itself, bounded over all
    λ and all s up to 3, are less (`accounting.PenaltyBitEvent`). Places, proposals, tuning and R are functions of
    released states, public bounds and fresh randomness. R is enforced on what is summed, as for `BarkerMetropolis`.
    Arithmetic float64; not covered: the last bits of the noise and of its sum with λ.

    References
    ----------
    Ceperley, Dewing (1999), doi 10.1063/1.478034; Yıldırım, Ermiş (2019), doi 10.1007/s11222-018-9847-x.

    Examples
    --------
    >>> PenaltyMetropolis(blocks="each")
    PenaltyMetropolis(blocks='each')
    """

    name = "penalty_metropolis"
    rule: ClassVar[str] = "accept bits (penalty method)"
    spending: NoisePrice

    @override
    def price(self, funding: Funding) -> Event:
        budget, blocks = funding.budget, len(self.blocks)
        if budget.delta == 0:
            raise ArgumentError(
                "PenaltyMetropolis adds Gaussian noise, which has no guarantee at delta=0. Give delta > 0, far below "
                "1 / number of rows, or use dp.BarkerMetropolis(), whose bits are pure."
            )
        ratio = penalty_ratio(budget.epsilon, budget.delta, uses=funding.uses * blocks, most_noise=MOST_NOISE)
        self.spending = NoisePrice(ratio, funding.steps * blocks)
        bit: Event = PenaltyBitEvent(ratio=ratio, most_noise=MOST_NOISE)
        return SelfComposedEvent(
            event=bit if blocks == 1 else SelfComposedEvent(event=bit, count=blocks), count=funding.uses
        )

    @override
    def _accepts(self, here: Place, there: Place, reach: float) -> bool:
        return self._drawn("penalty", here, there, noise=(1 + 1e-15) / self.spending.ratio, most_noise=MOST_NOISE)

    @property
    def _bit(self) -> PenaltyBitEvent:
        return PenaltyBitEvent(ratio=self.spending.ratio, most_noise=MOST_NOISE)

    @override
    def _paid_for_chain(self) -> Event:
        return repeated(self._bit, self.spending.paid)

    @override
    def _pay(self, kernel: Payer) -> Grant | Pool:
        return kernel.grant(self._bit, self.spending.paid)

    @override
    def _acceptance(self, dimension: int) -> float:
        """Return 0.234 in high dimension, as for plain Metropolis.

        There the log ratio is normal with mean minus half of its variance, and so is one with the penalty's noise.
        """
        return 0.234 + 0.2 / dimension

    @override
    def spent_so_far(self) -> float:
        return PrivateStep.spent_so_far(self)

    @override
    def _filter(self) -> str:
        return (
            f"none: noise of standard deviation s = R / {self.spending.ratio:.6g} on each log ratio, so that every bit "
            f"costs the same; proposals with s > {MOST_NOISE:g} are refused unseen"
        )


__all__ = ["MOST_NOISE", "USUAL_NOISE", "NoisePrice", "PenaltyMetropolis"]
