"""What an event is: all that accountants read of it, what they may assume where it says nothing, its written form.

A kind of event is one class, in one file, and nothing else: its definition registers it. Accountants know no kinds;
they ask each event for the readings below and add up what they are given.

At the end, checks of parameters that events of several kinds have: shifts, noise multipliers.
"""

from __future__ import annotations

import math
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Never

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.pairs import LaplacePair, Normal, Pair
from pymc_dp.kernel.errors import ArgumentError

_ROUNDING = 1e-14
"""Room for the rounding of a handful of float operations, relative to the size of the terms added."""
KINDS: dict[str, type[Event]] = {}
"""Every kind of event by the name under which it is written, in the order of definition."""


class Event:
    """One use of the data, or several; a value that says what it costs, in the terms of every accountant.

    To add a kind of event, derive a frozen dataclass, name its kind, and override those readings that can be proved of
    it: ``class StaircaseEvent(Event, kind="staircase")``. Under that name, of no other class, `to_dict` writes it and
    a ledger finds it. A class without one is refused by every accountant.

    Attributes
    ----------
    kind : str or None
        The name of the class, under which it is written.

    Notes
    -----
    Each reading is a promise for every pair of neighbours. One that is not overridden is what others imply, or None:
    not known, which counts as an infinite loss, never as none.

    Readings of the cost of one use: `pure_loss`, `approximate_loss`, `zcdp_rho`, `gdp_half_square`,
    `renyi_divergence`, `loss_pairs`. An event must be hashable, equal to those that mean the same, and hold public
    values only.
    """

    __slots__ = ()

    kind: ClassVar[str | None] = None

    def __init_subclass__(cls, *, kind: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.kind = kind  # that of the class above would be written for what it is not
        if kind is not None:
            _register(cls, kind)

    # What it costs.

    def pure_loss(self) -> Fraction | None:
        """Return the exact pure loss, or None where no finite one is guaranteed. Default: None."""
        return None

    def approximate_loss(self) -> tuple[Fraction, Fraction] | None:
        """Return an (epsilon, delta) that is guaranteed whatever delta is asked for. Default: the pure loss, and 0."""
        loss = self.pure_loss()
        return None if loss is None else (loss, Fraction(0))

    def gdp_half_square(self) -> Fraction | None:
        """Return mu^2 / 2 of its Gaussian differential privacy, or None where no mu is guaranteed. Default: None."""
        # sqrt(2 rho)-GDP follows from rho-zCDP for Gaussian noise only: not for a bounded range or discrete noise.
        return None

    def zcdp_rho(self) -> Fraction | None:
        """Return a rho at which it is rho-zCDP, or None. Default: what a mu or a pure loss implies."""
        half_square, loss = self.gdp_half_square(), self.pure_loss()
        if half_square is not None:
            return half_square
        return None if loss is None else rho_of_pure(loss)

    def renyi_divergence(self, order: float) -> float:
        """Return a bound on its Renyi divergence at one `order` > 1, or inf where only its zCDP is known.

        Default: that of randomised response with the same pure loss.
        """
        loss = self.pure_loss()
        return math.inf if loss is None else LaplacePair(loss, 1).renyi_divergence(order)

    def loss_pairs(self) -> tuple[Pair, ...] | None:
        """Return pairs of distributions whose product dominates it in both directions, or None where none is known.

        Default: two normal distributions for a mu, randomised response for a pure loss.
        """
        half_square, loss = self.gdp_half_square(), self.pure_loss()
        if half_square is not None:
            return (Normal(half_square),)
        return None if loss is None else (LaplacePair(loss, 1),)

    @property
    def relation(self) -> str | None:
        """The neighbour relation that it is bound to. Default: None, it means the same under either."""
        return None

    # What it is made of.

    def parts(self) -> tuple[tuple[Event, int], ...]:
        """Return the events it is a composition of, each with its count. Default: none, it is elementary."""
        return ()

    # How it is written.

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a dict of JSON types, from which a ledger makes it again. Default: all fields."""
        own: Any = self  # a dataclass, unless its class overrides this
        return {"kind": self.kind, **{field.name: _written(getattr(self, field.name)) for field in fields(own)}}


def _written(value: object) -> object:
    if isinstance(value, Event):
        return value.to_dict()
    return [_written(item) for item in value] if isinstance(value, tuple) else value


def _register(cls: type[Event], kind: str) -> None:
    """Make a kind known; defined anew, as a notebook does when a cell is run again, it is replaced."""
    other = KINDS.get(kind)
    if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ArgumentError(f"There is an event of kind {kind!r} already, {other.__name__}. Choose another name.")
    KINDS[kind] = cls


def refuse(event: object, reader: str) -> Never:
    """Raise for an event without a rule: an event that an accountant does not know must never count as free."""
    raise ArgumentError(
        f"{reader} has no rule for an event of type {type(event).__name__}. "
        f"Use one of {', '.join(other.__name__ for other in KINDS.values())}, or register a rule for it."
    )


def known(event: object, reader: str) -> Event:
    """Return an event of a kind that is registered; refuse anything else."""
    if not isinstance(event, Event) or event.kind is None:
        refuse(event, reader)
    return event


@lru_cache(maxsize=4096)
def leaf_divergence(leaf: Event, order: float) -> float:
    """Return the Renyi divergence of an elementary event, never above order times its rho."""
    return min(leaf.renyi_divergence(order), order * _leaf_rho(leaf) * (1 + _ROUNDING))


@lru_cache(maxsize=512)
def _leaf_rho(leaf: Event) -> float:
    """Return the rho of an elementary event, the same for all orders; inf where it has none."""
    rho = leaf.zcdp_rho()
    return math.inf if rho is None else float_up(rho)


def rho_of_pure(epsilon: Fraction) -> Fraction:
    """Return rho = epsilon tanh(epsilon / 2), at which every epsilon-DP mechanism is rho-zCDP; rounded up.

    It is at most the usual epsilon^2 / 2 and cannot be improved. Proof: randomised response with p / (1-p) = e^epsilon
    dominates (Kairouz, Oh, Viswanath 2017), and for it, with y = epsilon / 2,
        (a-1) D_a = log sum p^a q^(1-a) = log cosh((2a-1) y) - log cosh(y).
    It is 0 at a = 1, as is rho a (a-1); and its slope in a, 2y tanh((2a-1) y), is at most (2a-1) 2y tanh(y), the slope
    of rho a (a-1), since tanh is concave on [0, inf) and 0 at 0. Hence D_a <= rho a for all a > 1, with equality as a
    tends to 1.
    """
    if epsilon < Fraction(1, 10**4):
        return epsilon**2 / 2  # the two agree to 1e-9 here, and exact fractions cannot underflow
    value = float_up(epsilon)
    return min(epsilon, Fraction(value * math.tanh(value / 2)) * (1 + Fraction(_ROUNDING)))


def canonical_shifts(shifts: object) -> tuple[int, ...]:
    """Return shifts in falling order: the loss does not depend on it, and equal events must compare equal."""
    if not isinstance(shifts, tuple | list) or not shifts:
        raise ArgumentError(f"shifts must be a tuple of whole numbers such as (1, 1), or None, got {shifts!r}.")
    return tuple(sorted((_validate.integer("each of shifts", shift) for shift in shifts), reverse=True))


def multiplier(value: object, unit: str) -> float:
    """Return a noise multiplier, standard deviation over `unit`, neither so small nor so large that squares fail."""
    result = _validate.number("noise_multiplier", value)
    if not 1e-6 <= result <= 1e12:
        raise ArgumentError(
            f"noise_multiplier (standard deviation / {unit}) must lie in [1e-6, 1e12], got {result}. "
            "calibrate.noise_multiplier returns the least one for a budget."
        )
    return result


__all__ = [
    "KINDS",
    "Event",
    "canonical_shifts",
    "known",
    "leaf_divergence",
    "multiplier",
    "refuse",
    "rho_of_pure",
]
