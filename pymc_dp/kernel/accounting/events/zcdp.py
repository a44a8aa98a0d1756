"""A mechanism of which nothing but its zero-concentrated differential privacy is known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final, override

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.accounting.events.base import Event
from pymc_dp.kernel.errors import ArgumentError


@final
@dataclass(frozen=True, kw_only=True)
class ZCDPEvent(Event, kind="zcdp"):
    """Any mechanism that is `rho`-zCDP (Bun, Steinke 2016, definition 1.1), of which nothing else is known.

    Parameters
    ----------
    rho : float
        Bound > 0 on every Renyi divergence of order a divided by a, between neighbours.

    Examples
    --------
    >>> ZCDPEvent(rho=0.125).rho
    0.125
    """

    rho: float

    def __post_init__(self) -> None:
        rho = _validate.number("rho", self.rho)
        if rho <= 0:
            raise ArgumentError(f"rho must be > 0, got {rho}. Use zcdp.rho_for(epsilon, delta) for a budget's rho.")
        object.__setattr__(self, "rho", rho)

    @override
    def zcdp_rho(self) -> Fraction:
        # A bound on Renyi divergences belongs to no single dominating pair: there are no `loss_pairs`.
        return decimal(self.rho)


__all__ = ["ZCDPEvent"]
