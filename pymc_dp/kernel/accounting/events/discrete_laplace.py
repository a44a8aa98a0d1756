"""An integer vector released with discrete Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final, override

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import decimal, float_up
from pymc_dp.kernel.accounting.events.base import Event, canonical_shifts, rho_of_pure
from pymc_dp.kernel.accounting.pairs import LaplacePair
from pymc_dp.kernel.errors import ArgumentError


@final
@dataclass(frozen=True, kw_only=True)
class DiscreteLaplaceEvent(Event, kind="discrete_laplace"):
    """An integer vector released with independent discrete Laplace noise, P(k) proportional to exp(-|k| / scale).

    Parameters
    ----------
    scale : float
        Noise scale in integer units; the sampler uses this float's exact binary value.
    sensitivity : int, optional
        Largest L1 sensitivity of the vector between neighbours. Needed where `shifts` is None, else their sum.
    shifts : tuple of int, optional
        Absolute sensitivities of the coordinates in the worst case: for **every** pair of neighbours there must be an
        order of the coordinates in which each moves by at most the shift of that place, and coordinates beyond them not
        at all. (1,) for one count, (1, 1) for a table under replace. It must be the whole truth: (2,) may not stand for
        (1, 1), nor the other way round. None where only the L1 sensitivity is known; then only its pure loss is used.

    Examples
    --------
    >>> DiscreteLaplaceEvent(scale=4.0, shifts=(1, 1)).epsilon
    0.5
    """

    scale: float
    sensitivity: int = 0
    shifts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        scale = _validate.number("scale", self.scale)
        if scale <= 0:
            raise ArgumentError(f"scale must be > 0, got {scale}. Use sensitivity / epsilon, rounded up.")
        shifts, sensitivity = self.shifts, self.sensitivity
        if shifts is not None:
            shifts = canonical_shifts(shifts)
            sensitivity = sensitivity or sum(shifts)
        elif not sensitivity:
            raise ArgumentError("Give sensitivity (the L1 sensitivity, in integer units), or shifts.")
        sensitivity = _validate.integer("sensitivity", sensitivity)
        if shifts is not None and sum(shifts) != sensitivity:
            raise ArgumentError(
                f"shifts {shifts} sum to {sum(shifts)}, but sensitivity is {sensitivity}. Leave sensitivity out."
            )
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "shifts", shifts)
        object.__setattr__(self, "sensitivity", sensitivity)
        _validate.epsilon(self.epsilon, "sensitivity / scale")

    @property
    def unit(self) -> Fraction:
        """Loss per unit of sensitivity, 1 / scale, exactly."""
        return 1 / Fraction(self.scale)

    @property
    def epsilon(self) -> float:
        """Pure loss of the whole vector, sensitivity / scale rounded up."""
        return float_up(self.sensitivity * self.unit)

    @override
    def pure_loss(self) -> Fraction:
        return decimal(self.epsilon)

    @override
    def zcdp_rho(self) -> Fraction:
        # Coordinates with independent noise compose: a table that moves by (1, 1) is two releases of half the loss
        # each.
        parts = (self.sensitivity,) if self.shifts is None else self.shifts
        return sum((parts.count(part) * rho_of_pure(part * self.unit) for part in set(parts)), Fraction(0))

    @override
    def renyi_divergence(self, order: float) -> float:
        return sum(pair.renyi_divergence(order) for pair in self.loss_pairs())

    @override
    def loss_pairs(self) -> tuple[LaplacePair, ...]:
        # A coordinate that moves by less than its shift is dominated: the noise is log-concave, so the best test is
        # k <= t, and P(k <= t) - e^epsilon P(k + shift <= t) grows with the shift. Products of dominated pairs are
        # dominated (Zhu, Dong, Wang 2022, theorem 10). Without shifts only the pure loss of the vector is known.
        if self.shifts is None:
            return (LaplacePair(self.sensitivity * self.unit, 1),)
        return tuple(LaplacePair(self.unit, shift) for shift in self.shifts)


__all__ = ["DiscreteLaplaceEvent"]
