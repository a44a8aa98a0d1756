"""Choices among public candidates, and accept bits of chains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pymc_dp.kernel import draw, limits
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    Event,
    PenaltyBitEvent,
)
from pymc_dp.kernel.arguments import finite, flag, positive, whole
from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.holder import Holder, weighted
from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.payer import FLOAT64, HARDENED, Array, Pay
from pymc_dp.kernel.rowmap import RowMap

MOST_LOSS = 7
"""Of an accept bit: its 62 bits are rounded by less than 2^-50 of the bound up to here."""
EXTRA = Fraction(1, 2**50)


def choice_event(eta: float, candidates: int, *, cells: bool = False) -> BoundedRangeEvent:
    """Return what a choice costs: its range eta, and the slack of whole weights; twice the slack with private cells."""
    (eta,), candidates = positive(eta=eta), whole("candidates", candidates)
    return BoundedRangeEvent(eta=float_up(Fraction(eta) + draw.slack(candidates) * (2 if flag("cells", cells) else 1)))


class Ends:
    """An interval in whole units: `UNITS` for its width, its ends rounded outward.

    Attributes
    ----------
    width : float
    inverse : float
        Units per unit of the row map.
    low, high : int
    """

    def __init__(self, low: float, high: float) -> None:
        low, high = finite("low", low), finite("high", high)
        (self.width,) = positive(**{"high - low": high - low})
        self.inverse = UNITS / self.width
        if not max(-low, high) * self.inverse < limits.MOST_ENDS:
            raise ArgumentError("The interval is too short for its distance from 0. Subtract its middle first.")
        self.low, self.high = math.floor(low * self.inverse), math.ceil(high * self.inverse)

    @property
    def far(self) -> int:
        """The farther end's distance from 0."""
        return max(abs(self.low), abs(self.high))

    def moved(self, sense: int) -> int:
        """By how much a sum moves: from end to end under replace, from 0 to an end under add_remove."""
        return self.high - self.low if sense == 2 else self.far


class Bit:
    """Metropolis's bit in whole numbers: its exponent is `public` + `rate` times a sum, in units of 2^-48 nats."""

    def __init__(self, ends: Ends, beta: float, public: float, sense: int, n_rows: int | None) -> None:
        (beta,), public = positive(beta=beta), finite("public", public)
        self.rate = math.floor(Fraction(beta) * 2**draw.SHIFT / Fraction(ends.inverse))
        self.public = math.floor(Fraction(public) * 2**draw.SHIFT)
        self.loss = Fraction(self.rate * ends.moved(sense), 2**draw.SHIFT)
        self.fall: Fraction | None = None
        if n_rows is not None:
            self.fall = Fraction(abs(self.public) + self.rate * n_rows * ends.far, 2**draw.SHIFT)

    @property
    def event(self) -> ApproximateEvent:
        """That of `accept_event`."""
        return accept_event(self.loss, self.fall)


def accept_event(loss: Fraction, fall: Fraction | None) -> ApproximateEvent:
    """Return what Metropolis's bit costs: (Δ, 1 - e^-min(Δ, F) + 2^-50), both rounded up; F None where not known."""
    if not 0 < loss <= MOST_LOSS:
        raise ArgumentError(f"A bit may cost more than 0, and {MOST_LOSS} at most. Take a smaller step, or beta.")
    least = loss if fall is None else min(loss, fall)
    delta = Fraction(-math.expm1(-float_up(least))) * (1 + Fraction(1, 2**40)) + EXTRA
    if delta >= 1:
        raise ArgumentError("A rejection is possible on some table. Take a smaller step, or beta.")
    return ApproximateEvent(epsilon=float_up(loss), delta=float_up(delta))


class Penalty:
    """The bit of the penalty method for a whole sum that neighbours move by `moved`, in `inverse` units per nat.

    Attributes
    ----------
    event : Event
        What it costs: of the noised ratio, or with `most_noise` of the bit.
    """

    def __init__(
        self,
        moved: int,
        inverse: float | Fraction,
        beta: float,
        noise: float,
        most_noise: float | None,
        public: float,
    ) -> None:
        (beta, noise), self._public = positive(beta=beta, noise=noise), finite("public", public)
        self._scale = noise * moved
        self._nats = beta * self._scale / float(inverse)
        self._half, ratio = self._nats * self._nats / 2, Fraction(beta) / Fraction(inverse)
        if not (math.isfinite(self._half) and ratio < 2**1000):
            raise ArgumentError("The noise of the bit is too large for floats. Take less noise, or a smaller beta.")
        self._each = float(ratio)  # one factor: two floats, one after the other, could overflow for some sums
        self._as_bit = most_noise is not None
        self.event: Event
        if most_noise is None:
            self.event = DiscreteGaussianEvent(scale=self._scale, shifts=(moved,))
            draw.check_noise("gaussian", self._scale)
        else:
            self.event = PenaltyBitEvent(ratio=float_up(1 / Fraction(noise)), most_noise=most_noise)
            if not self._nats <= self.event.most_noise:
                raise ArgumentError(f"The noise of the bit is {self._nats:.3g} nats, above most_noise={most_noise:g}.")

    def drawn(self, total: int) -> bool:
        """Draw it. **Private** sum."""
        if self._as_bit:
            normal = draw.float_generator().standard_normal()
            exponent = self._public + self._each * total + self._nats * normal - self._half
        else:
            noised = float(draw.noised(np.array([total]), "gaussian", self._scale)[0])
            exponent = self._public + self._each * noised - self._half
        return draw.accepted(math.floor(max(min(exponent, 0.0), -1e4) * 2**draw.SHIFT))


class Choices(Holder):
    """Operations whose outcome is one of finitely many."""

    def choose(
        self,
        rowmap: RowMap,
        parameters: Sequence[Any],
        candidates: int,
        *,
        width: float,
        eta: float,
        public: Any = None,
        cell: str | None = None,
        cells: int = 1,
        pay: Pay = None,
    ) -> Any:
        """Draw a candidate with probability ∝ exp(public_k + T Σ_rows f_k), T = eta / (sense width).

        Parameters
        ----------
        width : float
            Range over candidates, > 0, within which each unit's scores f are held.
        eta : float
            > 0, what the exponents of neighbours may differ by, as a range.
        public : (K,) or (cells, K) array, optional
            Log weights that owe nothing to the rows; -inf excludes.
        cell : str, optional
            Column of whole numbers: there are `cells` choices, and a row counts for the one that it names.

        Returns
        -------
        int, or (cells,) array

        Notes
        -----
        **Guarantee.** Bounded range eta + `draw.slack`; all cells together, twice the slack. A unit's whole numbers lie
        in [-U, 0] whatever the floats, so that sums of neighbours differ by a vector of range sense U. From one cell to
        another, two independent choices move by range U, at eta / (2 U) each. Class exact.
        """
        width, eta = positive(width=width, eta=eta)
        candidates, cells = whole("candidates", candidates), whole("cells", cells)
        given = self._prepared(rowmap, parameters, candidates)
        place = self._cell(cell)
        log_weights = draw.log_weights(public, (cells, candidates))
        self._pay(pay, choice_event(eta, candidates, cells=cell is not None), "choose")
        inverse = UNITS / width

        def work() -> Array:
            total = np.zeros((cells, candidates), dtype=np.int64)

            def add(found: Array, first: Array, times: Array, rows: list[Array], shares: Array) -> None:
                own = np.zeros(len(times), dtype=np.int64) if place is None else rows[place]
                limits.add_spans(weighted(found, shares), first, times, own, inverse, UNITS, total)

            self._scan(rowmap, given, candidates, add)
            span = self.sense * UNITS
            pairs = zip(total, log_weights, strict=True)
            return draw.one_of(np.stack([draw.whole_weights(scores, span, eta, b) for scores, b in pairs]))

        chosen = self._read(work)
        return int(chosen[0]) if cell is None else chosen

    def barker(
        self,
        rowmap: RowMap,
        parameters: Sequence[Any],
        *,
        before: Sequence[Any] | None = None,
        low: float,
        high: float,
        beta: float = 1.0,
        public: float = 0.0,
        pay: Pay = None,
    ) -> bool:
        """Draw Barker's bit, 1 / (1 + e^-λ), λ = public + beta Σ g, each unit's g held within [low, high].

        Parameters
        ----------
        before : sequence, optional
            Other parameters, whose numbers are taken off: g is then the difference of a row's number at both. Numbers
            at the last two states are remembered, so that a chain computes one new number of each row for a bit.

        Notes
        -----
        **Guarantee.** A choice of two (`choose`) whose scores, 0 and Σ g, move by beta (high - low), or by beta
        max(|low|, |high|) under add_remove: bounded range of that, and the slack of two candidates. Class exact.
        """
        ends, (beta,), public = Ends(low, high), positive(beta=beta), finite("public", public)
        given, past = self._states(rowmap, parameters, before)
        moved = ends.moved(self.sense)
        eta = float_up(Fraction(beta) * moved / Fraction(ends.inverse))
        log_weights = draw.log_weights(np.array([0.0, public]), (2,))
        self._pay(pay, choice_event(eta, 2), "barker")

        def work() -> bool:
            scores = np.array([0, self._held(rowmap, given, 1, ends, past)[0]])
            return bool(draw.one_of(draw.whole_weights(scores, moved, eta, log_weights)[None])[0])

        return self._read(work)

    def accept(
        self,
        rowmap: RowMap,
        parameters: Sequence[Any],
        *,
        before: Sequence[Any] | None = None,
        low: float,
        high: float,
        beta: float = 1.0,
        public: float = 0.0,
        pay: Pay = None,
    ) -> bool:
        """Draw Metropolis's own bit, min(1, e^λ), λ = public + beta Σ g, each unit's g held within [low, high].

        `before` as in `barker`.

        Notes
        -----
        **Guarantee.** (Δ, 1 - e^-min(Δ, F) + 2^-50)-DP with Δ = beta (high - low), or beta max(|low|, |high|) under
        add_remove, and F = |public| + beta n max(|low|, |high|) where n is public: accepting moves by a factor e^Δ at
        most; of rejecting, (1 - e^λ)₊ - e^Δ (1 - e^λ')₊ is largest at λ = -min(Δ, F), λ' = 0. λ is a whole multiple of
        2^-48, the chance one of 2^-62. Class exact (Foulds et al. 2016, theorem C.1, made tight).
        """
        ends, (given, past) = Ends(low, high), self._states(rowmap, parameters, before)
        n_rows = self._table.n_rows if self.neighbours == "replace" else None
        bit = Bit(ends, beta, public, self.sense, n_rows)
        self._pay(pay, bit.event, "accept")
        return self._read(
            lambda: draw.accepted(bit.public + bit.rate * int(self._held(rowmap, given, 1, ends, past)[0]))
        )

    def penalty(
        self,
        rowmap: RowMap,
        parameters: Sequence[Any],
        *,
        before: Sequence[Any] | None = None,
        low: float,
        high: float,
        noise: float,
        most_noise: float | None = None,
        beta: float = 1.0,
        public: float = 0.0,
        pay: Pay = None,
    ) -> bool:
        """Draw the bit of the penalty method: min(1, e^(λ + s Z - s²/2)), λ as in `accept`, s its noise in nats.

        Parameters
        ----------
        before : sequence, optional
            As in `barker`.
        noise : float
            The scale of Z's term over what neighbours move Σ g by. The noised ratio is not shown.
        most_noise : float, optional
            Noise is of floats, and s at most this: the bit is charged as a bit, and not as its noised ratio.

        Notes
        -----
        **Guarantee.** ρ = 1 / (2 noise²), that of the noised ratio: the bit is computed from it alone. Class exact.
        With `most_noise` that of `PenaltyBitEvent` at a ratio of 1 / noise; arithmetic float64.
        """
        ends, (given, past) = Ends(low, high), self._states(rowmap, parameters, before)
        bit = Penalty(ends.moved(self.sense), ends.inverse, beta, noise, most_noise, public)
        self._pay(pay, bit.event, "penalty", HARDENED if most_noise is None else FLOAT64)
        return self._read(lambda: bit.drawn(int(self._held(rowmap, given, 1, ends, past)[0])))

    def _states(
        self, rowmap: RowMap, parameters: Sequence[Any], before: Sequence[Any] | None
    ) -> tuple[list[Any], list[Any] | None]:
        """Check a row map at two states, or at one."""
        past = None if before is None else self._prepared(rowmap, before, 1)
        return self._prepared(rowmap, parameters, 1), past

    def _held(self, rowmap: RowMap, given: list[Any], count: int, ends: Ends, before: list[Any] | None = None) -> Array:
        """Return exact sums of `count` numbers of each unit, each held within an interval, in units. **Private**."""
        total = np.zeros(count, dtype=np.int64)

        def add(found: Array, first: Array, times: Array, rows: list[Array], shares: Array) -> None:
            limits.add_interval(weighted(found, shares), first, times, ends.inverse, ends.low, ends.high, total)

        self._scan(rowmap, given, count, add, before=before)
        return total

    def _cell(self, cell: str | None, *, persons: bool = False) -> int | None:
        """Return the place of a column of cells; refuse one that is none."""
        if cell is None:
            return None
        column = self._table.columns.get(cell) if type(cell) is str else None
        if column is None or column.dtype != "int64" or column.shape or (self._table.persons and not persons):
            raise ArgumentError(f"cell must name a column of whole numbers, with rows as units, got {cell!r}.")
        return list(self._table.columns).index(cell)
