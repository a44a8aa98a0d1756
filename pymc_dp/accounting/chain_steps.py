"""Events of single steps of Metropolis chains."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final, override

from pymc_dp import _validate
from pymc_dp.accounting._exact import decimal
from pymc_dp.accounting.accept_bit import MOST_NOISE
from pymc_dp.accounting.elementary import Event
from pymc_dp.errors import ArgumentError


@final
@dataclass(frozen=True, kw_only=True)
class PenaltyBitEvent(Event):
    """The accept bit of one step of the penalty method, whose noise is proportional to what one row can do.

    A log-likelihood ratio that one row moves by at most R gets normal noise of standard deviation s = R / ratio, and
    the bit is whether a uniform number is below min(1, exp(noised ratio + public number - s²/2)). The noised ratio
    itself must never be seen.

    Parameters
    ----------
    ratio : float
        R / s > 0, the same for every step; read as the decimal number it prints.
    most_noise : float
        The largest s that may occur, in [0.5, 10].

    Notes
    -----
    **Guarantee.** The bit is computed from a release of Gaussian noise that is `ratio`-GDP, hence is `ratio`-GDP and
    ratio²/2-zCDP; no pure loss. Its Rényi divergences are .41, .59 or .64 of that release's where `most_noise` is 1, 3
    or 10 and order times ratio is small (`accept_bit`).

    References
    ----------
    Ceperley, Dewing 1999 (doi:10.1063/1.478034); Yıldırım, Ermiş 2019 (doi:10.1007/s11222-018-9847-x).

    Examples
    --------
    >>> float(PenaltyBitEvent(ratio=0.5, most_noise=3.0).rho)
    0.125
    """

    ratio: float
    most_noise: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", _validate.epsilon(self.ratio, "ratio"))
        most = _validate.number("most_noise", self.most_noise)
        if not MOST_NOISE[0] <= most <= MOST_NOISE[1]:
            raise ArgumentError(
                f"most_noise must lie in [{MOST_NOISE[0]:g}, {MOST_NOISE[1]:g}], got {most}. Chains mix best below 3."
            )
        object.__setattr__(self, "most_noise", most)

    @property
    def rho(self) -> Fraction:
        """The rho of its zCDP, ratio² / 2, exactly."""
        return decimal(self.ratio) ** 2 / 2

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "penalty_bit", "ratio": self.ratio, "most_noise": self.most_noise}


@final
@dataclass(frozen=True, kw_only=True)
class ApproximateEvent(Event):
    """Any mechanism that is (`epsilon`, `delta`)-DP, of which nothing else is known.

    Parameters
    ----------
    epsilon : float
        Privacy loss > 0 per use, read as the decimal number it prints.
    delta : float
        Failure probability in (0, 1) per use, likewise.

    Notes
    -----
    Losses and failure probabilities add (basic composition). It has no finite Rényi divergence. A mechanism with δ = 0
    is a `PureEvent`.

    Examples
    --------
    >>> ApproximateEvent(epsilon=0.5, delta=1e-6).to_dict()
    {'kind': 'approximate', 'epsilon': 0.5, 'delta': 1e-06}
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.epsilon(self.epsilon))
        delta = _validate.delta(self.delta)
        if delta == 0:
            raise ArgumentError("delta must be > 0 here. Use PureEvent for a mechanism without a failure probability.")
        object.__setattr__(self, "delta", delta)

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"kind": "approximate", "epsilon": self.epsilon, "delta": self.delta}


__all__ = ["ApproximateEvent", "PenaltyBitEvent"]
