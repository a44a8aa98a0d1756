"""Bounds that are enforced on rows held one by one, fitted to what public rows need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.step_methods.ops.row_density import RowDensity
from pymc_dp.step_methods.row_functions.bounds import Bound, IntervalBound, RangeBound, References
from pymc_dp.step_methods.row_functions.fitting import extreme, fitting_range, proposed
from pymc_dp.step_methods.row_functions.limits import RatioLimit
from pymc_dp.step_methods.row_functions.node_bounds import NodeBound


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """What is proved of the rows of a density, and public rows to try it with.

    Attributes
    ----------
    density : RowDensity
    rows : list of (n_tried, ...) arrays
        Public rows, one array per column; the lowest and the highest come first.
    range : float
        Proved bound of the range of a difference of two rows (``replace``), of one row (``add_remove``).
    neighbours : {"replace", "add_remove"}
    n_rows : int
        Most rows that a table may have.
    """

    density: RowDensity
    rows: list[Array]
    range: float
    neighbours: Neighbours
    n_rows: int

    def over(self, points: Array) -> RangeBound:
        """Return a bound for a choice among points."""
        tried = self._at_rows(points, self.rows)
        return fitting_range(
            [tried],
            (
                (references, [references.at(self._at_rows, points, self.rows)])
                for references in proposed(self.density.columns, self.rows, [tried])
            ),
            range_=self.range,
            neighbours=self.neighbours,
            n_rows=self.n_rows,
        )

    def about(self, anchor: Array) -> IntervalBound:
        """Return a bound for points that come one by one, with a fixed one.

        The interval is proved to hold the number of every row: cut anywhere, a sum of concave functions would be none,
        and no envelope of it would be known. So one row is charged twice what it can move under ``add_remove``, and
        four times under ``replace``: the number of each of two rows may be anywhere in the interval.
        """
        references = References() if self.neighbours == "add_remove" else extreme(self.density.columns, self.rows)
        limit = RatioLimit.of(-self.range, self.range, self.n_rows)
        return IntervalBound(limit=limit, anchor=anchor, neighbours=self.neighbours, references=references)

    def _at_rows(self, points: Array, rows: Sequence[Array]) -> Array:
        return self.density.each(points, rows)[1]


def enforced(proved: RowRange, bound: Bound | None) -> RowRange:
    """Return the range that is charged: the one that is enforced on rows, which is no less than the one proved.

    Where the papers' Δl is proved in place of a range, twice that is the range, and half of what is enforced the Δl.
    """
    if bound is None:
        return proved
    if isinstance(bound, NodeBound):
        return replace(proved, reason=f"{proved.reason}; enforced at {bound.nodes}")
    by_size = math.isinf(proved.value)
    charge, known = (bound.charge / 2, proved.sensitivity) if by_size else (bound.charge, proved.value)
    room = ", with room for what rows need" if charge > known * (1 + 1e-5) else ""
    unit = f"2^{math.log2(bound.limit.unit):.0f}"
    reason = f"{proved.reason}; enforced on the number of every row, in whole multiples of {unit}{room}"
    return replace(proved, **{"sensitivity" if by_size else "value": charge}, reason=reason)


__all__ = ["Fit", "enforced"]
