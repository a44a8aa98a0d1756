"""The log-likelihood ratio of two states over rows, by the kernel; its range is found on public rows, and enforced."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.gradient import grad
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pymc_dp.accounting import Event
from pymc_dp.errors import ArgumentError, PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.kernel import Grant, Kernel, Pool, RowMap, Table
from pymc_dp.kernel.choices import Bit, Ends, choice_event
from pymc_dp.samplers.chain_account import ChainAccount
from pymc_dp.samplers.made_up import CORNERS, made_up_rows, values_to_sweep
from pymc_dp.samplers.rows import ModelRows, rows_of

ROOM = 1e-6
"""By how much a found range is widened, relatively."""
LEAST = 1e-12
"""Of a range, in nats."""
SHARPENED = 4
"""Rows with the largest and the least ratio that are moved on to the ends of what a row may be."""
SWEEPS = 2
"""Times that each entry takes all of its values, or fewer where the best ones stay."""


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

    The interval is that of the least and the largest g of public rows (`made_up_rows`), or ± clamp ‖θ' - θ‖, with
    distances of values over their `units`. Under
    replace g is taken less its mean at two reference rows, which have the public values of the row: only how far a row
    may range about that is paid for, and the means of all rows are added as what they are, public.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
    clamp : float, optional
    units : float or (n_values,) array

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
    ) -> None:
        self.rows, self._clamp, self._units = ModelRows(inspection, prior_model), clamp, units
        self._neighbours, self._n_rows = inspection.domain.neighbours, inspection.n_rows
        self._sense = 2 if self._neighbours == "replace" else 1
        self._centred = clamp is None and self._sense == 2
        self._public = [name for name, one in self.rows.columns.items() if one.public and self._sense == 2]
        self._made_up: dict[str, Array] = {}
        self._values: list[tuple[str, int, Array]] = []
        if clamp is None:
            if not clamped(inspection.model):
                require_limits(self.rows.columns.values(), "give BarkerMetropolis(clamp=...)")
            self._made_up = made_up_rows(self.rows.columns, self.rows.inputs)
            private = {name: one for name, one in self.rows.columns.items() if name not in self._public}
            self._values = values_to_sweep(private, self.rows.inputs)
        count = len(next(iter(self._made_up.values()))) if self._made_up else 0
        self.target, self.proof = _words(count, clamp)
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
            self._maps = _Maps(self.rows, self._public, centred=self._centred)
        return self._maps

    def load(self) -> None:
        """Read the rows, once. The budget was charged."""
        self._table, self._known, self._last = self.rows.table(), {}, None
        held = rows_of(self._table)
        if held and self._made_up and self._table.n_rows:
            # Public values are those of real rows; only private values are simulated.
            count = len(next(iter(self._made_up.values())))
            places = np.random.default_rng(count).integers(0, self._table.n_rows, count)
            self._made_up |= {name: values[places] for name, values in held.items()}

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
            found = np.concatenate([found, self._sharpened(here, there, found), self._swept(here, there, found)])
            wide = np.abs(after.half - before.half)
        if not (np.isfinite(found).all() and np.isfinite(wide).all()):
            return None
        return min(float(found.min()), -wide.max(initial=0.0)), max(float(found.max()), wide.max(initial=0.0))

    def _sharpened(self, here: Array, there: Array, found: Array) -> Array:
        """Return g of the rows with the least and largest g so far, moved to the end where g falls or rises most."""
        maps = self._compiled
        if maps.slopes is None:
            return np.zeros(0)
        rows, signs = self._farthest(found)
        slopes = maps.slopes.on(rows, [there], maps.width) - maps.slopes.on(rows, [here], maps.width)
        return self._of(maps.moved_to_ends(rows, signs[:, None] * np.nan_to_num(slopes)), here, there)

    def _swept(self, here: Array, there: Array, found: Array) -> Array:
        """Return g of the same rows while one entry after another takes each of its values, and keeps the best.

        The largest g may lie between the ends of what a row may be, or at a combination that no public row has.
        """
        if not self._values:
            return np.zeros(0)
        (rows, signs), seen = self._farthest(found), list[Array]()
        for _ in range(SWEEPS):
            before = [held.copy() for held in rows.values()]
            for name, entry, values in self._values:
                tried = {other: np.repeat(held, len(values), axis=0) for other, held in rows.items()}
                tried[name].reshape(len(tried[name]), -1)[:, entry] = np.tile(values, len(signs))
                each = self._of(tried, here, there)
                seen.append(each)
                best = np.argmax(signs[:, None] * np.nan_to_num(each).reshape(len(signs), -1), axis=1)
                rows[name].reshape(len(signs), -1)[:, entry] = values[best]
            if all(np.array_equal(one, other) for one, other in zip(before, rows.values(), strict=True)):
                break
        return np.concatenate(seen)

    def _farthest(self, found: Array) -> tuple[dict[str, Array], Array]:
        """Return the public rows with the least and the largest g, and the sign of each."""
        order = np.argsort(found)
        places, signs = np.concatenate([order[:SHARPENED], order[-SHARPENED:]]), np.repeat([-1.0, 1.0], SHARPENED)
        return {name: values[places] for name, values in self._made_up.items()}, signs[-len(places) :]

    def _of(self, rows: Mapping[str, Array], here: Array, there: Array) -> Array:
        """Return g of public rows, less what it is centred on."""
        first, second = (self._compiled.held.on(rows, [at, self._centre(at)], 1)[:, 0] for at in (here, there))
        return second - first

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
            rows = {name: np.stack(_ends_of(self.rows, name)) for name in self.rows.columns}
            centre = float(maps.held.on(rows, [at, np.zeros(())], 1).mean())
            total = centre * self._n_rows
        held = maps.held.on(self._made_up, [at, np.asarray(centre)], 1)[:, 0] if self._made_up else np.zeros(0)
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
            raise PrivacyError("No chain has begun here: call setup_chain first. A copy of a step begins its own.")
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
    slopes : RowMap or None
        Derivatives in the numbers of a row; None where all of their ends are looked at anyway.
    """

    def __init__(self, rows: ModelRows, public: list[str], *, centred: bool) -> None:
        self._rows = rows
        centre: Variable = pt.scalar("centre")
        taken, self.ends = centre, None
        if centred and public:
            ends = [_at_end(rows, side, public) for side in (0, 1)]
            taken, self.ends = pt.add(*ends) / 2, rows.row_map(pt.stack(ends), [rows.at])
        self.held: RowMap = rows.row_map(pt.stack([pt.sub(rows.logp, taken)]), [rows.at, centre])
        self._moved = [name for name in _movable(rows.columns) if name not in public]
        self.slopes: RowMap | None = None
        self.width = sum(rows.columns[name].width for name in self._moved)
        many = self.width and (
            2**self.width > CORNERS or any(rows.columns[name].norm is not None for name in self._moved)
        )
        if many:
            own = [rows.inputs[name] for name in self._moved]
            found = grad(rows.logp, own, disconnected_inputs="ignore", return_disconnected="zero")
            self.slopes = rows.row_map(pt.concatenate([one.ravel() for one in found]), [rows.at])

    def moved_to_ends(self, rows: Mapping[str, Array], slopes: Array) -> dict[str, Array]:
        """Return rows where a linear function of these slopes is largest."""
        found, start = dict(rows), 0
        for name in self._moved:
            column = self._rows.columns[name]
            own = slopes[:, start : start + column.width]
            start += column.width
            if column.norm is not None:
                length = np.linalg.norm(own, axis=1, keepdims=True)
                end = own * (column.norm / np.where(length > 0, length, 1.0))
            else:
                low, high = (np.ravel(side) for side in column.ends)
                end = np.where(own > 0, high, low)
            found[name] = np.ascontiguousarray(end.reshape(rows[name].shape))
        return found


def _movable(columns: Mapping[str, Column]) -> list[str]:
    """Return columns of numbers that lie within bounds or a norm."""
    return [
        name
        for name, one in columns.items()
        if not one.integer and (one.norm is not None or all(np.isfinite(end).all() for end in one.ends))
    ]


def _at_end(rows: ModelRows, side: int, public: list[str]) -> Variable:
    """Return the log-likelihood of a row whose private values are at the lower or upper ends of their bounds."""
    private = [name for name in rows.columns if name not in public]
    held: dict[Variable, Variable] = {rows.inputs[name]: pt.constant(_ends_of(rows, name)[side]) for name in private}
    return clone_replace([rows.logp], held, rebuild_strict=False)[0]


def _ends_of(rows: ModelRows, name: str) -> list[Array]:
    """Return the lowest and the highest value of a column; 0 where only a norm limits it."""
    column, var = rows.columns[name], rows.inputs[name]
    sides = (
        [np.zeros(column.row_shape)] * 2 if column.norm is not None else [np.clip(e, -1e3, 1e3) for e in column.ends]
    )
    return [np.reshape(side, var.type.shape).astype(var.type.dtype) for side in sides]


def require_limits(columns: Iterable[Column], otherwise: str) -> None:
    """Refuse rows that may be anything: no range would be found. `otherwise` says what would do without bounds."""
    loose = [one for one in columns if not one.limited]
    if loose:
        names = ", ".join(repr(one.name) for one in loose)
        given = ", ".join(f"{one.name!r}: (low, high)" for one in loose)
        raise UnsupportedModelError(
            [
                Problem(
                    where="model",
                    what=f"how far a row moves a step has no limit: {names} {'have' if len(loose) > 1 else 'has'} no "
                    "bounds",
                    remedy=f"Give public bounds of its values, dp.Domain(bounds={{{given}}}); or bound every row's "
                    f"log-likelihood by dp.clamp(model, low, high); or {otherwise}.",
                )
            ]
        )


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


__all__ = ["Place", "RowRatio", "require_limits"]
