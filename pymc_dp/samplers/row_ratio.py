"""The log-likelihood ratio of two states over rows, by the kernel; its range is found on public rows, and enforced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pymc_dp.accounting import Event
from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Kernel, Pool, RowMap, Table
from pymc_dp.kernel.choices import Bit, Ends, choice_event
from pymc_dp.samplers.chain_account import NOT_BEGUN, ChainAccount
from pymc_dp.samplers.public_rows import PublicRows
from pymc_dp.samplers.rows import ModelRows, rows_of

ROOM = 1e-6
"""By how much a found range is widened, relatively."""
LEAST = 1e-12
"""Of a range, in nats."""
Rule = Literal["barker", "accept", "penalty"]


class Place(Protocol):
    """A state of a chain, and the log density of the prior there."""

    @property
    def values(self) -> Array:
        """All free variables on the unconstrained scale, one after the other."""

    @property
    def prior(self) -> float:
        """Log density of the prior."""


class RowRatio:
    """g(x) = l(x, θ') - l(x, θ), summed over rows by the kernel, which holds g of each row in an interval.

    The interval is that of the least and the largest g of public rows (`simulated_rows`), or ± clamp ‖θ' - θ‖, with
    distances of values over their `units`. Under
    replace g is taken less its mean at two reference rows, which have the public values of the row: only how far a row
    may range about that is paid for, and the means of all rows are added as what they are, public.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
    clamp : float, optional
    units : float or (n_values,) array
    otherwise : str
        What else there is to do where rows have no bounds.

    Attributes
    ----------
    rows : ModelRows
    target : str
        What the chain samples.
    proof : str
        What limits the range.

    Raises
    ------
    UnsupportedModelError
        If a column has no bounds, and neither a clamp nor the model limits what a row adds; or if the kernel does not
        take the graph of a row.

    Notes
    -----
    **Guarantee.** That of the kernel's operations. Nothing in here can make a bit cost more than was paid.
    """

    def __init__(
        self,
        inspection: RowInspection,
        prior_model: Model,
        clamp: float | None = None,
        *,
        units: float | Array = 1.0,
        otherwise: str = "; or give BarkerMetropolis(clamp=...)",
    ) -> None:
        self.rows, self._clamp, self._units = ModelRows(inspection, prior_model), clamp, units
        self._neighbours, self._n_rows = inspection.domain.neighbours, inspection.n_rows
        self._sense = 2 if self._neighbours == "replace" else 1
        self._centred = clamp is None and self._sense == 2
        self._public = [name for name, one in self.rows.columns.items() if one.public and self._sense == 2]
        self._simulated: PublicRows | None = None
        self._end_rows = {name: np.stack(self.rows.ends_of(name)) for name in self.rows.columns}
        if clamp is None:
            self.rows.require_limits(otherwise)
            self._simulated = PublicRows(self.rows.columns, self.rows.inputs, self._public)
        self.target, self.proof = _words(len(self._simulated or ()), clamp)
        self._table: Table | None = None
        self._kernel: Kernel | None = None
        self._pay: Grant | Pool | None = None
        self._maps: _Maps | None = None
        self._known: dict[bytes, _Known] = {}
        self._last: tuple[tuple[bytes, bytes], tuple[float, float] | None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is compiled behind, and what pays: a copy in another process begins its own chain.

        Between `load` and `forget` it holds the rows: those who run chains elsewhere send them there.
        """
        return {**vars(self), "_maps": None, "_kernel": None, "_pay": None, "_known": {}, "_last": None}

    def compile(self) -> None:
        """Compile what sampling needs: before the budget is charged."""
        self._compiled  # noqa: B018

    @property
    def _compiled(self) -> _Maps:
        if self._maps is None:
            self._maps = _Maps(self.rows, self._public, self._simulated, centred=self._centred)
        return self._maps

    def load(self) -> None:
        """Read the rows, once. The budget was charged."""
        self._table, self._known, self._last = self.rows.table(), {}, None
        if self._simulated is not None:
            self._simulated.hold(rows_of(self._table))

    def forget(self) -> None:
        """Let go of the rows."""
        self._table = self._kernel = self._pay = None

    def begin(self, paid: Sequence[Event], pay: Callable[[Kernel], Grant | Pool]) -> None:
        """Begin a chain, for which the parts `paid` were charged; `pay` says what pays for its bits."""
        assert self._table is not None
        self._kernel = Kernel(self._table, ChainAccount(self._neighbours, *paid))
        self._pay = pay(self._kernel)

    @property
    def pays(self) -> Grant | Pool | None:
        """What pays for the bits of this chain; None before it began."""
        return self._pay

    # --- ranges: public -----------------------------------------------------------------------------------------------

    def reach(self, here: Place, there: Place) -> float:
        """Return how far one row moves the sum; infinite where a chain may not go."""
        ends = self._ends(here.values, there.values)
        return math.inf if ends is None else float(choice_event(ends.moved(self._sense) / ends.inverse, 2).eta)

    def bit(self, here: Place, there: Place, beta: float) -> tuple[float, float]:
        """Return ε and δ of Metropolis's own bit; infinite and 1 where a chain may not go, or always be rejected."""
        ends, n_rows = self._ends(here.values, there.values), self._n_rows if self._sense == 2 else None
        if ends is None:
            return math.inf, 1.0
        try:
            event = Bit(ends, beta, self._odds(here, there, beta), self._sense, n_rows).event
        except ArgumentError:
            return math.inf, 1.0
        return float(event.epsilon), float(event.delta)

    def _odds(self, here: Place, there: Place, beta: float) -> float:
        """Return the part of the log ratio that is public."""
        return there.prior - here.prior + beta * self._offset(here.values, there.values)

    def _ends(self, here: Array, there: Array) -> Ends | None:
        within = self._within(here, there)
        try:
            return None if within is None else Ends(*within)
        except ArgumentError:  # too far apart for numbers
            return None

    def _within(self, here: Array, there: Array) -> tuple[float, float] | None:
        """Return the interval that g of each row is held in, with a little room; None where some g is no number."""
        key = here.tobytes(), there.tobytes()
        if self._last is None or self._last[0] != key:  # a step asks for its reach, and then for its bit
            self._last = key, self._widened(self._interval(here, there))
        return self._last[1]

    @staticmethod
    def _widened(found: tuple[float, float] | None) -> tuple[float, float] | None:
        if found is None:
            return None
        low, high = min(found[0], 0.0), max(found[1], 0.0)
        room = max(LEAST, ROOM * (high - low))
        return low - room, high + room

    def _interval(self, here: Array, there: Array) -> tuple[float, float] | None:
        """Return the least and the largest g, less what it is centred on; None where some g is no number."""
        if self._clamp is not None:
            size = self._clamp * float(np.linalg.norm((there - here) / self._units))
            return (-size, size) if size < math.inf else None
        before, after = self._at(here), self._at(there)
        with np.errstate(all="ignore"):
            found = after.held - before.held
            found = np.concatenate([found, *self._moved_on(here, there, found)])
            wide = np.abs(after.half - before.half)
        if not (np.isfinite(found).all() and np.isfinite(wide).all()):
            return None
        return min(float(found.min()), -wide.max(initial=0.0)), max(float(found.max()), wide.max(initial=0.0))

    def _moved_on(self, here: Array, there: Array, found: Array) -> list[Array]:
        """Return g of the rows with the least and largest g so far, moved on to where it is less, or larger."""
        maps, public = self._compiled, self._simulated
        assert public is not None
        rows, signs = public.farthest(found)
        numbers = [public.swept(rows, signs, lambda tried: self._of(tried, here, there))[1]]
        if maps.slopes is not None:  # at once to the ends where g falls or rises most
            slopes = maps.slopes.on(rows, [there, here], public.width)
            numbers.append(self._of(public.at_ends(rows, signs[:, None] * np.nan_to_num(slopes)), here, there))
        return numbers

    def _of(self, rows: Mapping[str, Array], here: Array, there: Array) -> Array:
        """Return g of public rows, less what it is centred on."""
        found: Array = self._compiled.pairs.on(rows, [there, here, self._centre(there) - self._centre(here)], 1)[:, 0]
        return found

    def _centre(self, at: Array) -> Array:
        return np.asarray(self._at(at).centre)

    def _at(self, at: Array) -> _Known:
        """Return numbers of public rows at a state; those of the last few states are remembered."""
        key = at.tobytes()
        found = self._known.pop(key, None)
        if found is None:
            with np.errstate(all="ignore"):
                found = self._look(at)
        self._known[key] = found
        while len(self._known) > 2:
            del self._known[next(iter(self._known))]
        return found

    def _look(self, at: Array) -> _Known:
        maps = self._compiled
        centre, total, half = 0.0, 0.0, np.zeros(0)
        if maps.ends is not None:
            if self._table is not None:
                ends = maps.ends.on(rows_of(self._table), [at], 2)
                total, half = float(ends.mean(axis=1).sum()), (ends[:, 1] - ends[:, 0]) / 2
        elif self._centred:
            centre = float(maps.held.on(self._end_rows, [at, np.zeros(())], 1).mean())
            total = centre * self._n_rows
        rows = {} if self._simulated is None else self._simulated.rows
        held = maps.held.on(rows, [at, np.asarray(centre)], 1)[:, 0] if rows else np.zeros(0)
        return _Known(held, centre, total, half)

    def _offset(self, here: Array, there: Array) -> float:
        """Return what the means of all rows add to the ratio: public."""
        return self._at(there).total - self._at(here).total if self._centred else 0.0

    # --- bits: by the kernel ------------------------------------------------------------------------------------------

    def draw(self, rule: Rule, here: Place, there: Place, beta: float, **given: float) -> bool:
        """Draw a bit by one of the kernel's rules; `reach` found it possible.

        Parameters
        ----------
        rule : {"barker", "accept", "penalty"}
        beta : float
            Power of the likelihood.
        **given
            Further arguments of this rule.

        Raises
        ------
        BudgetExceeded
            Where it cannot be paid for.
        """
        if self._kernel is None:
            raise PrivacyError(NOT_BEGUN)
        within = self._within(here.values, there.values)
        assert within is not None
        after, before = ([place.values, self._centre(place.values)] for place in (there, here))
        return bool(
            getattr(self._kernel, rule)(
                self._compiled.held,
                after,
                before=before,
                low=within[0],
                high=within[1],
                beta=beta,
                public=self._odds(here, there, beta),
                pay=self._pay,
                **given,
            )
        )


class _Known:
    """Numbers of public rows at one state."""

    def __init__(self, held: Array, centre: float, total: float, half: Array) -> None:
        self.held, self.centre, self.total, self.half = held, centre, total, half


class _Maps:
    """Compiled graphs of one row.

    Attributes
    ----------
    held : RowMap
        The number of a row at a state, given a centre: what the kernel adds up.
    ends : RowMap or None
        Those of a row with the values of the references in place of private ones: functions of public columns; None
        where no column is public.
    pairs : RowMap
        What `held` is at a state less what it is at another, given how far the centre moves: for public rows.
    slopes : RowMap or None
        Derivatives of that in the numbers of a row; None where all of their ends are looked at anyway.
    """

    def __init__(self, rows: ModelRows, public: list[str], simulated: PublicRows | None, *, centred: bool) -> None:
        centre: Variable = pt.scalar("centre")
        taken, self.ends = centre, None
        if centred and public:
            taken, self.ends = rows.middle_of_ends(public), rows.row_map(pt.stack(rows.at_ends(public)), [rows.at])
        number = pt.sub(rows.logp, taken)
        self.held: RowMap = rows.row_map(pt.stack([number]), [rows.at, centre])
        before = rows.at.type("before")
        pair = number - clone_replace([number], {rows.at: before, centre: pt.zeros(())}, rebuild_strict=False)[0]
        self.pairs: RowMap = rows.row_map(pt.stack([pair]), [rows.at, before, centre])
        self.slopes: RowMap | None = None
        if simulated is not None and simulated.movable:
            found = rows.slopes(simulated.movable)
            found = found - clone_replace([found], {rows.at: before})[0]
            self.slopes = rows.row_map(found, [rows.at, before])


def _words(count: int, clamp: float | None) -> tuple[str, str]:
    if clamp is not None:
        return (
            f"not the posterior wherever a row's log-likelihood ratio exceeds {clamp:g} ‖θ' - θ‖ and is cut",
            f"by clamping g of each row to ± {clamp:g} ‖θ' - θ‖",
        )
    return (
        "the posterior, not tempered, as long as no row lies beyond the range that was found; it is cut there",
        f"the largest found at every step from {count} simulated rows within the bounds, moved to where it is larger, "
        "and enforced",
    )


__all__ = ["Place", "RowRatio"]
