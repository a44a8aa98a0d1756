"""Log-likelihoods at public points, summed over rows by the kernel for a choice among the points; ranges are found."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph

from pymc_dp.accounting import Event
from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.kernel import Grant, Kernel, RowMap, Table
from pymc_dp.kernel.draw import slack
from pymc_dp.samplers.chain_account import NOT_BEGUN, granted
from pymc_dp.samplers.middle import middle
from pymc_dp.samplers.public_rows import PublicRows, where_rows
from pymc_dp.samplers.rows import ModelRows, OfPublicRows, rows_of

ROOM = 1e-9
"""By how much a found range is widened, relatively."""
ROUNDING = 1e-6
"""Relative difference of two ranges that is put down to rounding."""
SPREAD = 400
"""Points at which all public rows are looked at; those that are the farthest there, at all points."""
ROUNDS, GAIN = 4, 0.002
"""Times that a centre is looked for, and by how much moved rows must lie farther out for another time."""
FARTHEST, TURNS = 12, 2
"""Rows with the largest range, and how many times they are moved on to where it is larger."""
COMPARED = 96
"""Rows of which a mean is taken as the centre."""
CHUNK = 2**21
"""Numbers held at once."""
DIGITS = 1e-3
"""How much the rounding of the numbers of all rows may be, of what one row can move."""
MOST_KINDS = 4096
"""Possible rows of whole numbers, up to which rows are counted by kind."""


class RowScores:
    """f_k(x) = l(x, θ_k), less a public centre, summed over rows by the kernel, which holds the range of f over k.

    Under replace a centre c_k is taken off every row: where no column is public, the mean of public rows that lies in
    the middle of all of them; where some are, that of the two rows at all lower and all upper ends, with their public
    values.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
    points : (n_points, n_scalars) array
        θ_1, ..., θ_K, public: values of all free variables, one after the other.

    Attributes
    ----------
    range : float
        R: how far neighbours move Σ f, as a range over the points; this is found, enforced, and paid for.
    size : float
        Δl: how far they move it at any one point. Found, and not enforced by itself: 2 Δl is at least R.
    slack : float
        What whole weights add to what a choice costs, whatever R is.
    reason : str
        How R was found.

    Raises
    ------
    UnsupportedModelError
        If a row may be anything, if a number of some row is infinite or NaN at some point, if rows tell nothing about
        the points, or if the kernel does not take the graph of a row.

    Notes
    -----
    **Guarantee.** That of `Kernel.choose`. Nothing in here can make a choice cost more than was paid.
    """

    def __init__(self, inspection: RowInspection, prior_model: Model, points: Array) -> None:
        self.points, self._rows = points, ModelRows(inspection, prior_model, natural=True)
        self._neighbours = inspection.domain.neighbours
        self._replace, self._n_rows = self._neighbours == "replace", inspection.n_rows
        columns = self._rows.columns
        self._public = [name for name, one in columns.items() if one.public and self._replace]
        self._rows.require_limits()
        self._near = _Near(self._rows, self._public, PublicRows(columns, self._rows.inputs, self._public), points)
        self.range, self.size, self._centre = self._near.found(inspection.most_rows, replace=self._replace)
        self.slack = float(slack(len(points)))
        self.reason = (
            f"the largest found from {len(self._near.public)} simulated rows, moved to where it is larger, at "
            f"{len(points)} points; enforced on the number of every row, and rows beyond it are cut"
        )
        self._map: RowMap | None = None
        self._middles: RowMap | None = None
        self._table: Table | None = None
        self._kernel: Kernel | None = None
        self._pay: Grant | None = None
        self._total: Array | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is compiled behind, and what pays: a copy in another process begins its own chain."""
        return {**vars(self), "_map": None, "_middles": None, "_kernel": None, "_pay": None}

    def infinite_at(self, points: Array) -> Array:
        """Return at which of other public points the number of some public row is infinite or NaN: booleans."""
        return np.asarray(~np.isfinite(self._near.at(self._near.public.rows, points)).all(axis=0))

    # --- life of a chain ----------------------------------------------------------------------------------------------

    def compile(self) -> None:
        """Compile what sampling needs: before the budget is charged."""
        if self._map is not None:
            return
        points, centre = pt.matrix("points", shape=(None, self._rows.at.type.shape[0])), pt.vector("centre")
        found = self._at_points(self._rows.logp, points)
        if self._public:
            middles = self._at_points(self._rows.middle_of_ends(self._public), points)
            self._middles = self._rows.row_map(middles, [points])
            found = found - middles
        self._map = self._rows.row_map(found - centre, [points, centre])

    def _at_points(self, graph: Variable, points: Variable) -> Variable:
        """Return a vector: what no point enters is the same at all of them."""
        found = vectorize_graph(graph, {self._rows.at: points})
        return found if found.type.ndim else pt.alloc(found, len(self.points))

    def load(self) -> None:
        """Read the rows, once. The budget was charged."""
        self._table, self._total = self._rows.table(), None

    def forget(self) -> None:
        """Let go of the rows."""
        self._table = self._kernel = self._pay = None

    def begin(self, event: Event, uses: int) -> None:
        """Begin a chain of so many choices, each paid for by `event`, which was charged with those of all chains."""
        assert self._table is not None
        self.compile()
        kernel, self._pay = granted(self._table, self._neighbours, event, uses)
        self._kernel = kernel.by_kind() if few_kinds(self._rows.columns.values()) else kernel

    # --- choices: by the kernel ---------------------------------------------------------------------------------------

    def choose(self, beta: float, public: Array, most: float | None = None) -> int:
        """Draw a point with probability ∝ exp(public_k + β Σ l(x, θ_k)).

        Parameters
        ----------
        beta : float
            > 0; costs β times `range`, and `slack`.
        public : (n_points,) array
            Log weights that owe nothing to the rows.
        most : float, optional
            What is enforced and paid for instead of `range`.
        """
        if self._kernel is None:
            raise PrivacyError(NOT_BEGUN)
        assert self._map is not None
        sense = 2 if self._replace else 1
        width = (self.range if most is None else most) / sense
        return int(
            self._kernel.choose(
                self._map,
                [self.points, self._centre],
                len(self.points),
                width=width,
                eta=beta * sense * width,
                public=public + beta * self._offset,
                pay=self._pay,
            )
        )

    @property
    def _offset(self) -> Array:
        """What the centres of all rows add to the sum: public."""
        if self._total is None:
            assert self._table is not None
            self._total = np.zeros(len(self.points)) if not self._replace else self._n_rows * self._centre
            if self._middles is not None:
                held, size = rows_of(self._table), max(1, CHUNK // len(self.points))
                for start in range(0, self._table.n_rows, size):
                    some = {name: values[start : start + size] for name, values in held.items()}
                    self._total = self._total + self._middles.on(some, [self.points], len(self.points)).sum(axis=0)
        return self._total


class _Near:
    """Numbers of public rows at the points, and how far they range. Reads no row."""

    def __init__(self, rows: ModelRows, known: Sequence[str], public: PublicRows, points: Array) -> None:
        self.public, self._points = public, points
        self._plain = self._centred = OfPublicRows(rows, rows.logp, several=True)
        if known:  # public columns
            self._centred = OfPublicRows(rows, pt.sub(rows.logp, rows.middle_of_ends(known)), several=True)
        self._slopes = OfPublicRows(rows, rows.slopes(public.movable)) if public.movable else None

    def at(self, rows: Mapping[str, Array], points: Array, *, centred: bool = False) -> Array:
        """Return (n_rows, n_points) numbers, as floats return them."""
        function = self._centred if centred else self._plain
        size = max(1, CHUNK // max(len(next(iter(rows.values()))), 1))
        parts = [function.at(rows, points[start : start + size]) for start in range(0, len(points), size)]
        return np.concatenate(parts).T

    def found(self, n_rows: int, *, replace: bool) -> tuple[float, float, Array]:
        """Return R, Δl, and the centre: (n_points,) array; of tables with so many rows at most."""
        spread = self._points[_spread(self._points)]
        width, rows = 0.0, dict(self.public.rows)
        for _ in range(ROUNDS):
            plain = self.at(rows, spread)
            if not np.isfinite(plain).all():
                what = "its log-likelihood is infinite or NaN for some rows that there may be, at some points"
                raise UnsupportedModelError([Problem(where="model", what=what, remedy=REMEDY)])
            by_row = self._centred is not self._plain
            found = self.at(rows, spread, centred=True) if by_row else plain
            weights = _centre_of(found) if replace and not by_row else {}
            centre, near = np.zeros(len(self._points)), np.zeros(len(spread))
            if weights:
                places, shares = list(weights), np.array(list(weights.values()))
                some = {name: values[places] for name, values in rows.items()}
                centre, near = shares @ self.at(some, self._points), shares @ plain[places]
            width, moved = self._widest(rows, found - near, centre)
            if width <= float(np.ptp(found - near, axis=1).max()) * (1 + GAIN):
                break  # rows that were moved on lie no farther out, and would have no say in where the middle is
            rows = {name: np.concatenate([moved[name], values]) for name, values in rows.items()}
        size = np.ptp(plain, axis=0).max() if replace else np.abs(plain).max()
        sense = 2 if replace else 1
        if not width > 0:
            what = "no row can tell anything about which candidate is best"
            remedy = "Give other candidates, or a likelihood that depends on a free variable."
            raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
        if (problem := no_digits(np.abs(plain).max(), n_rows, width, REMEDY)) is not None:
            raise UnsupportedModelError([problem])
        range_ = sense * width * (1 + ROOM)
        return range_, max(float(size) * (1 + ROOM), range_ / 2), centre

    def _widest(self, rows: Mapping[str, Array], near: Array, centre: Array) -> tuple[float, Mapping[str, Array]]:
        """Return the largest range over all points, of rows that range far at some, and moved on; and these rows."""
        order = np.argsort(np.ptp(near, axis=1))[-FARTHEST:]
        far: Mapping[str, Array] = {name: values[order] for name, values in rows.items()}
        largest = float(np.ptp(near, axis=1).max())
        for turn in range(TURNS + 1):
            found = self.at(far, self._points, centred=True) - centre
            if not np.isfinite(found).all():
                break
            largest = max(largest, float(np.ptp(found, axis=1).max()))
            if turn < TURNS:
                far = self._moved_on(far, found.argmax(axis=1), found.argmin(axis=1), centre)
        return largest, far

    def _moved_on(self, rows: Mapping[str, Array], high: Array, low: Array, centre: Array) -> dict[str, Array]:
        """Move each row on to where its number at one point exceeds that at another by more."""
        places = np.concatenate([high, low])
        points, count = self._points[places], len(high)

        def difference(tried: Mapping[str, Array]) -> Array:
            """Of rows that come in `count` equal parts."""
            found = self.at(tried, points, centred=True) - centre[places]
            own = np.repeat(np.arange(count), len(found) // count)
            every = np.arange(len(found))
            return np.asarray(found[every, own] - found[every, own + count])

        if self._slopes is not None:
            slopes = np.stack([np.subtract(*self._steep(rows, turn, points, count)) for turn in range(count)])
            moved = self.public.at_ends(rows, np.nan_to_num(slopes))
            better = difference(moved) > difference(rows)
            rows = where_rows(better, moved, rows)
        return self.public.swept(dict(rows), np.ones(count), difference)[0]

    def _steep(self, rows: Mapping[str, Array], turn: int, points: Array, count: int) -> list[Array]:
        assert self._slopes is not None
        row = {name: values[turn : turn + 1] for name, values in rows.items()}
        return [self._slopes.at(row, points[place])[0] for place in (turn, turn + count)]


REMEDY = (
    "Give every column of numbers bounds (dp.Domain), narrower ones where it has some; write the density such that it "
    "stays finite (logit_p= instead of p=, pm.logcdf, pm.math.log1mexp); bound every row's log-likelihood by "
    "dp.clamp(model, low, high); or take points away from where it is infinite (dp.truncate)."
)


def no_digits(size: float, n_rows: int, moved: float, remedy: str) -> Problem | None:
    """Say that sums of so many numbers of a size may be rounded by more than a share of what one row moves them by."""
    if size * np.finfo(np.float64).eps * n_rows <= DIGITS * moved:
        return None
    what = "one row may have a log-likelihood so large that floats have no digits left for the others"
    return Problem(where="model", what=what, remedy=remedy)


def few_kinds(columns: Collection[Column]) -> bool:
    """Whether rows are whole numbers with few possible values; public."""
    if any(one.public or not one.integer or one.row_shape for one in columns):
        return False
    ends = [(float(low), float(high)) for low, high in (one.ends for one in columns)]
    return math.prod(high - low + 1 for low, high in ends) <= MOST_KINDS


def _spread(points: Array) -> Array:
    """Return the numbers of some points: those at the ends in each direction, and others evenly."""
    count, width = points.shape
    if count <= SPREAD:
        return np.arange(count)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    scale = np.maximum(np.ptp(points, axis=0), 1e-300)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (64, width))
    directions = np.concatenate([np.eye(width), -np.eye(width), signs])
    ends = np.argmax((points - middle) / scale @ directions.T, axis=0)
    return np.unique(np.concatenate([ends, np.linspace(0, count - 1, SPREAD).astype(int)]))


def _centre_of(found: Array) -> dict[int, float]:
    """Return weights of the public rows whose mean lies in the middle of all; none where nothing is gained.

    Parameters
    ----------
    found : (n_rows, n_points) array
    """
    chosen = np.unique(
        [*range(min(ROUNDS * FARTHEST, len(found))), *np.linspace(0, len(found) - 1, COMPARED, dtype=int)]
    )
    weights = dict[int, float]()
    for _ in range(3):  # rows that are far from that mean take part in the next
        part = middle([found[chosen].T])
        weights = {int(chosen[place]): weight for place, weight in part.items()}
        mean = np.array(list(weights.values())) @ found[list(weights)]
        widths = np.ptp(found - mean, axis=1)
        if widths.max() <= np.ptp(found[chosen] - mean, axis=1).max() * (1 + ROUNDING):
            break
        chosen = np.unique(np.concatenate([chosen, np.argsort(widths)[-COMPARED // 4 :]]))
    alone = float(np.ptp(found, axis=1).max())
    return weights if widths.max() < alone * (1 - ROUNDING) else {}


__all__ = ["RowScores", "few_kinds", "no_digits"]
