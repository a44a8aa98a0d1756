"""Log-likelihoods at public points, summed over rows by the kernel for a choice among the points; ranges are found."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model

from pymc_dp.accounting import Event
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.kernel import Grant, Kernel, RowMap, Table
from pymc_dp.kernel.draw import slack
from pymc_dp.samplers.chain_account import NOT_BEGUN, granted
from pymc_dp.samplers.near_rows import CHUNK, NearRows, require_informative
from pymc_dp.samplers.public_rows import PublicRows
from pymc_dp.samplers.rows import ModelRows, rows_of

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
        self._near = NearRows(self._rows, self._public, PublicRows(columns, self._rows.inputs, self._public), points)
        self.range, self.size, self._centre = self._near.found(inspection.most_rows, replace=self._replace)
        require_informative(self.range)
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
        found = self._rows.at_points(self._rows.logp, points, len(self.points))
        if self._public:
            middles = self._rows.at_points(self._rows.middle_of_ends(self._public), points, len(self.points))
            self._middles = self._rows.row_map(middles, [points])
            found = found - middles
        self._map = self._rows.row_map(found - centre, [points, centre])

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


def few_kinds(columns: Collection[Column]) -> bool:
    """Whether rows are whole numbers with few possible values; public."""
    if any(one.public or not one.integer or one.row_shape for one in columns):
        return False
    ends = [(float(low), float(high)) for low, high in (one.ends for one in columns)]
    return math.prod(high - low + 1 for low, high in ends) <= MOST_KINDS


__all__ = ["RowScores", "few_kinds"]
