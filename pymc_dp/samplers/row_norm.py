"""The largest norm of a row's gradient that is found: on public rows, at states near the start and far from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.inspection.rows import Array, Column, known_rows
from pymc_dp.samplers.public_rows import PublicRows
from pymc_dp.samplers.rows import ModelRows, OfPublicRows

NEAR = (4.0, 8.0)
"""Distances from the start, over the unit or 1, at which rows are moved to where gradients are longer."""
FAR = tuple(64 * 16.0**power for power in range(7))
"""Distances at which gradients that have a bound are near it, or have come down from it."""
LAST = 2
"""Of these distances."""
AXES, ANYWHERE = 24, 12
"""Single values, at most, that are moved both ways; and directions at random."""
BEST = 4
"""States at which rows are moved, besides."""
MOVED, HALVED, ENTRIES = 4, 14, 24
"""Rows that are moved, times that their moves are halved, entries moved at a time."""
WIDEST = 1e3
"""End of a value that has none."""
ROOM = 1e-6
"""By how much a found norm is widened, relatively."""
GROWN, STEEP = 1.01, 4.0
"""Growth at the last distances, and at the last of the near ones, above which no bound was found."""


@dataclass(frozen=True, kw_only=True)
class FoundNorm:
    """The largest norm that was found.

    Attributes
    ----------
    value : float
        With a little room; 0 where no row has a gradient that is a number.
    where : str
        At which state, in words.
    rows, states : int
        How many were looked at.
    grows : bool
        Whether it keeps growing with the distance of states, so that no bound is near.
    """

    value: float
    where: str
    rows: int
    states: int
    grows: bool


class RowNorm:
    """Norms of the gradients of public rows; reads no private value.

    Parameters
    ----------
    rows : ModelRows
    slope : Variable
        Gradient of the log-likelihood of a row at a state: what the kernel adds up.
    """

    def __init__(self, rows: ModelRows, slope: Variable) -> None:
        self._columns, self._slopes = rows.columns, OfPublicRows(rows, slope)
        self._rng = np.random.default_rng(8128)
        public = {name: known_rows(one) for name, one in rows.columns.items() if one.public}
        simulated = PublicRows(rows.columns, rows.inputs, public)
        simulated.hold({name: own.reshape(-1, *simulated.rows[name].shape[1:]) for name, own in public.items()})
        self._rows = {name: np.asarray(own, dtype=rows.inputs[name].type.dtype) for name, own in simulated.rows.items()}
        self._count = len(simulated)
        free = {name: one for name, one in rows.columns.items() if not one.public and not len(one.levels)}
        self._entries = [(name, entry) for name, one in free.items() for entry in range(one.width)]

    def largest(self, start: Array, others: Sequence[Array], units: Array) -> FoundNorm:
        """Look for the largest norm: at the start, at draws from the prior, and along rays from the start."""
        axes = np.eye(len(start))[np.unique(np.linspace(0, len(start) - 1, AXES).astype(int))]
        single, ways = [*axes, *-axes], [*self._rng.standard_normal((ANYWHERE, len(start)))]
        unit = np.maximum(units, 1.0)
        states = [("at the start", start), *(("at a draw from the prior", at) for at in others)]
        close = len(states)
        rays = [(far, start + far * unit * way) for far in (*NEAR, *FAR) for way in (*single, *ways)]
        states += [(f"at a distance of {far:g} from the start", at) for far, at in rays]
        norms = np.array([self._norm(at) for _, at in states])
        longest = np.argsort(np.where(np.isfinite(norms), norms, 0.0))[-BEST:]
        along = [close + k * (len(single) + len(ways)) + np.arange(len(single)) for k in range(len(NEAR))]
        for place in {*longest, *np.concatenate(along)}:
            norms[place] = self._moved_on(states[place][1])
        rings = [norms[:close].max(), *norms[close:].reshape(len((*NEAR, *FAR)), -1).max(axis=1)]
        known = [norm for norm in rings if np.isfinite(norm)]
        steep = norms[along[1]].max() > STEEP * max(norms[:close].max(), norms[along[0]].max())
        best = int(np.argmax(np.where(np.isfinite(norms), norms, -1.0)))
        return FoundNorm(
            value=float(norms[best]) * (1 + ROOM),
            where=states[best][0],
            rows=self._count,
            states=len(states),
            grows=bool(steep or len(known) <= LAST or max(known[-LAST:]) > GROWN * max(known[:-LAST])),
        )

    def _norms(self, rows: Mapping[str, Array], at: Array) -> Array:
        """Return the norm of the gradient of each row, 0 where it is no number."""
        with np.errstate(all="ignore"):
            found = self._slopes.at(rows, at)
            return np.nan_to_num(np.linalg.norm(found, axis=1), nan=0.0, posinf=np.inf)

    def _norm(self, at: Array) -> float:
        return float(self._norms(self._rows, at).max())

    def _moved_on(self, at: Array) -> float:
        """Return the largest norm at a state, of rows that are moved to where it is larger."""
        norms = self._norms(self._rows, at)
        places = np.argsort(norms)[-MOVED:]
        rows = {name: values[places].copy() for name, values in self._rows.items()}
        for turn in range(HALVED if self._entries else 0):
            chosen = self._rng.permutation(len(self._entries))[:ENTRIES]
            moves = [(*self._entries[place], sign * 0.5 ** (turn + 1)) for place in chosen for sign in (1, -1)]
            tried = {name: np.concatenate([values] * (1 + len(moves))) for name, values in rows.items()}
            for place, (name, entry, share) in enumerate(moves, start=1):
                self._move(name, tried[name][place * len(places) : (place + 1) * len(places)], entry, share)
            each = self._norms(tried, at).reshape(-1, len(places))
            best = np.argmax(each, axis=0) * len(places) + np.arange(len(places))
            rows = {name: values[best] for name, values in tried.items()}
            norms = np.append(norms, each.max())
        return float(norms.max())

    def _move(self, name: str, values: Array, entry: int, share: float) -> None:
        """Move an entry of rows by a share of what it may range over, in place."""
        column, flat = self._columns[name], values.reshape(len(values), -1)
        low, high = (-column.norm, column.norm) if column.norm is not None else _ends(column, entry)
        step = share * (high - low)
        moved = np.clip(flat[:, entry] + (np.sign(step) * max(1.0, abs(step)) if column.integer else step), low, high)
        flat[:, entry] = np.rint(moved) if column.integer else moved
        if column.norm is not None:
            flat /= np.maximum(np.linalg.norm(flat, axis=1, keepdims=True) / column.norm, 1.0)


def _ends(column: Column, entry: int) -> tuple[float, float]:
    low, high = (float(np.clip(np.ravel(end)[entry], -WIDEST, WIDEST)) for end in column.ends)
    return low, high


__all__ = ["FoundNorm", "RowNorm"]
