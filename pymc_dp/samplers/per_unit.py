"""A choice among public points that costs ε per unit of a distance: rows count for public nodes, by the kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model

from pymc_dp.accounting import Event
from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError, needs_bounds
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.kernel import Column as Stored
from pymc_dp.kernel import Kernel, RowMap, Table, choose_per_unit, rounding, steepest_per_unit
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.relations import l1_text
from pymc_dp.metrics import L1, PER_UNIT, Extent, Metric
from pymc_dp.samplers.chain_account import NOT_BEGUN, ChainAccount
from pymc_dp.samplers.near_rows import require_finite, require_informative
from pymc_dp.samplers.rows import ModelRows

NODES = (257, 129, 65, 33, 17, 9)
"""Nodes of each column of real numbers; the first for which there is room."""
MOST_COLUMNS, MOST_NODES, MOST_NUMBERS = 3, 5000, 2**22
"""Columns of a row; nodes of all of them; and numbers of nodes at points."""


class PerUnitScores:
    """Log-likelihoods of public nodes at public points: rows count for the nodes about them, linearly in between.

    Parameters
    ----------
    inspection : RowInspection
        With a metric.
    prior_model : pymc.Model
    points : (n_points, n_scalars) array
        Public values of all free variables, one after the other.

    Attributes
    ----------
    range : float
        R per unit of ρ: how far neighbours at distance 1 move the sum, as a range over the points.
    slack : float
        What whole weights add per unit of ρ, whatever R is.
    diameter : float
        Largest distance of two rows.
    grids : tuple of str
        What values are rounded to.
    reason : str

    Raises
    ------
    UnsupportedModelError
        For another metric, for public columns, rows of too many or of unbounded numbers, too many points, and numbers
        that are infinite or NaN at a node.

    Notes
    -----
    **Guarantee.** That of `choose_per_unit`: how steep the numbers at nodes are is computed from the whole numbers that
    are added up. Nothing is found or proved about the density.
    """

    def __init__(self, inspection: RowInspection, prior_model: Model, points: Array) -> None:
        metric = inspection.domain.metric
        assert metric is not None
        self.points, self._rows = points, ModelRows(inspection, prior_model, natural=True)
        columns = self._rows.columns
        if problems := _problems(list(columns.values()), metric):
            raise UnsupportedModelError(problems)
        parts = [part for part in metric.parts if isinstance(part, L1)]
        weights = {name: weight for part in parts for name, weight in part.weights.items()}
        self._weights = {
            kernel: weights[next(name for name in (one.name, *one.aliases) if name in weights)]
            for kernel, one in columns.items()
        }
        self._relation = f"{PER_UNIT}{l1_text(self._weights)}"
        self._nodes = _nodes(list(columns.values()), len(points))
        self._map: RowMap | None = self._compiled()
        rehearsed = self._kernel_of(self._made_up(), Rehearsal(self._relation))
        self._require_finite(rehearsed)
        self.range, self.slack = steepest_per_unit(rehearsed, self._map, [points], len(points), weights=self._weights)
        require_informative(self.range)
        steps = rounding(rehearsed)
        self.grids = tuple(f"{columns[name].name} to {step:.3g}" for name, step in steps.items() if step)
        named = {name: one for one in columns.values() for name in (one.name, *one.aliases) if name in weights}
        self.diameter = metric.diameter({name: _extent(one) for name, one in named.items()})
        kinds = len(next(iter(rehearsed._table.columns.values())).values)
        self.reason = f"per unit of ρ = {metric}, the steepest of the numbers at {kinds} public nodes of a row"
        self._table: Table | None = None
        self._kernel: Kernel | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is compiled behind, and what pays: a copy in another process begins its own chain."""
        return {**vars(self), "_map": None, "_kernel": None}

    def compile(self) -> None:
        """Compile what sampling needs: before the budget is charged."""
        if self._map is None:
            self._map = self._compiled()

    def load(self) -> None:
        """Read the rows, once. The budget was charged."""
        self._table = self._rows.table()

    def forget(self) -> None:
        """Let go of the rows."""
        self._table = self._kernel = None

    def begin(self, event: Event, uses: int) -> None:
        """Begin a chain of so many choices, each paid for by `event`, which was charged with those of all chains."""
        assert self._table is not None
        self.compile()
        self._kernel = self._kernel_of(self._table, ChainAccount(self._relation, *[event] * uses))

    def choose(self, beta: float, public: Array) -> int:
        """Draw a point with probability ∝ exp(public_k + β Σ l(x, θ_k)).

        Parameters
        ----------
        beta : float
            > 0; costs β times `range` per unit of ρ, and `slack`.
        public : (n_points,) array
            Log weights that owe nothing to the rows.
        """
        if self._kernel is None:
            raise PrivacyError(NOT_BEGUN)
        assert self._map is not None
        place, _ = choose_per_unit(
            self._kernel,
            self._map,
            [self.points],
            len(self.points),
            weights=self._weights,
            beta=beta,
            most=beta * self.range,
            public=public,
        )
        return place

    def _compiled(self) -> RowMap:
        points = pt.matrix("points", shape=(None, self.points.shape[1]))
        return self._rows.row_map(self._rows.at_points(self._rows.logp, points, len(self.points)), [points])

    def _kernel_of(self, table: Table, account: Any) -> Kernel:
        return Kernel(table, account).by_kind(self._nodes)

    def _made_up(self) -> Table:
        """Return a public table of one row, within the bounds of the columns."""
        stored = {}
        for name, column in self._rows.columns.items():
            (low, high), dtype = _ends(column), self._rows.inputs[name].type.dtype
            stored[name] = Stored(np.array([low], dtype=dtype), low, high)
        return Table(stored, neighbours="replace")

    def _require_finite(self, rehearsed: Kernel) -> None:
        assert self._map is not None
        kinds = {name: column.values for name, column in rehearsed._table.columns.items()}
        found = self._map.on({name: kinds[name] for name, _, _ in self._map._types}, [self.points], len(self.points))
        require_finite(found)


def _problems(columns: Sequence[Column], metric: Metric) -> list[Problem]:
    """Say which metrics, and which columns, a choice per unit is not for."""
    where = "Domain(metric=...)"
    if not all(isinstance(part, L1) for part in metric.parts):
        what = (
            f"ρ = {metric} is no weighted sum of absolute differences, which is all that a choice is made per unit of"
        )
        return [Problem(where=where, what=what, remedy="Use dp.metrics.L1, or leave the metric out.")]
    found = []
    if len(columns) > MOST_COLUMNS:
        what = f"rows have {len(columns)} columns, and a choice per unit of a metric is for {MOST_COLUMNS} at most"
        found.append(Problem(where=where, what=what, remedy="Use fewer columns, or leave the metric out."))
    for column in columns:
        if column.public or column.row_shape:
            what = "under a metric every column that a choice is made by must be private, and of one number a row"
            found.append(Problem(where=column.name, what=what, remedy="Leave the metric out."))
        elif not np.isfinite(_ends(column)).all():
            what = "under a metric its values need public bounds: ε per unit is enforced at nodes between them"
            found.append(Problem(where=column.name, what=what, remedy=f"{needs_bounds(column.name)}."))
    return found


def _nodes(columns: Sequence[Column], points: int) -> int:
    """Return how many nodes each column of real numbers has."""
    levels = math.prod(int(high - low) + 1 for low, high in (_ends(one) for one in columns if one.integer))
    real = sum(not one.integer for one in columns)
    room = min(MOST_NODES, MOST_NUMBERS // points)
    found = next((count for count in NODES if levels * count**real <= room), None)
    if found is None:
        what = (
            f"under a metric rows count for public nodes, at least {NODES[-1]} of each real number times all levels of "
            f"the others, and {points} points leave room for {room} nodes in all"
        )
        remedy = "Use fewer levels, columns or points, or leave the metric out."
        raise UnsupportedModelError([Problem(where=", ".join(one.name for one in columns), what=what, remedy=remedy)])
    return found


def _ends(column: Column) -> tuple[float, float]:
    low, high = (float(end) for end in column.ends)
    if np.dtype(column.leaf.type.dtype).kind == "b":
        return 0.0, 1.0
    return low, high


def _extent(column: Column) -> Extent:
    low, high = _ends(column)
    return Extent(low=low, high=high)


__all__ = ["PerUnitScores"]
