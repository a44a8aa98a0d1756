"""Sums over rows that change by no more than is charged per unit of a metric: numbers of public nodes, held to that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, override

import numpy as np

from pymc_dp.draws.finite_choice import settled
from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.row_functions.bounds import Bound, Each, References, Rows
from pymc_dp.step_methods.row_functions.limits import LEAST_EXPONENT
from pymc_dp.step_methods.row_functions.nodes import VALUE_BITS, Nodes

AT_ONCE = 2**22
"""Log-likelihoods that are evaluated at once."""
MOST_NUMBERS = 2**24
"""Of nodes at points, all held at once."""
TURNS = 16
"""Times that numbers which are too steep are made smaller, before they count for nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """What the nodes count with at some points: public.

    Attributes
    ----------
    whole : (n_points, n_nodes) int64 array
    unit : float
        Power of 2.
    steepest : float
        Largest difference over points of two rows' differences, per unit of the metric, as these numbers have it.
    """

    whole: Array
    unit: float
    steepest: float

    @classmethod
    def of(cls, nodes: Nodes, values: Array, owner: Array | None = None) -> Numbers:
        """Round finite values to whole numbers of a unit."""
        size = float(np.abs(values).max(initial=0.0))
        unit = 2.0 ** max(np.frexp(size)[1] - VALUE_BITS, LEAST_EXPONENT)
        whole = np.rint(values / unit).astype(np.int64)
        return cls(whole=whole, unit=unit, steepest=nodes.per_unit(whole, owner) * unit)

    @classmethod
    def within(cls, most: float, nodes: Nodes, values: Array, owner: Array | None = None) -> Numbers:
        """Round values to numbers that are no steeper than is charged: smaller ones in proportion, where they were."""
        found, share = cls.of(nodes, values, owner), 1.0
        for turn in range(TURNS):
            if found.steepest <= most:
                return found
            share *= most / found.steepest * (1 - turn * 2.0**-12)  # rounding makes some steps steeper
            found = cls.of(nodes, values * share, owner)
        return cls.of(nodes, np.zeros_like(values), owner)


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeBound(Bound):
    """For a choice among points, where ε is per unit of a metric.

    Attributes
    ----------
    nodes : Nodes
    most : float
        What is charged per unit of the metric.

    Notes
    -----
    **Guarantee.** Between two tables the sums at any two points differ, in their difference, by at most ``charge Σ
    ρ(x_i, y_i)``, whatever the compiled density returns: numbers of the nodes that are steeper than that, which is seen
    before they meet a row, are made smaller, all in the same proportion.
    """

    nodes: Nodes
    most: float
    references: References = field(default_factory=References)

    @property
    @override
    def charge(self) -> float:
        return self.most

    @override
    def by_element(
        self, each: Each, points: Any, rows: Rows, weights: Array, owner: Array | None = None, elements: int = 1
    ) -> Array:
        """Add up the rows of each element by themselves; `rows` are nodes, `weights` the shares of rows they have."""
        owner = None if owner is None else np.clip(owner, 0, elements - 1).astype(np.int64)
        values, common = centred(self._values(each, points), shared=owner is None)
        values = np.maximum(
            values, values.min(where=np.isfinite(values), initial=0.0)
        )  # of finite range in real numbers
        found = Numbers.within(self.most, self.nodes, values, owner)
        total = np.zeros((len(values), elements), dtype=np.int64)
        for element in range(elements):
            own = slice(None) if owner is None else owner == element
            total[:, element] = found.whole[:, own] @ weights[own]
        total -= total.max(axis=0, keepdims=True)
        n_rows = int(weights.sum()) // self.nodes.shares  # public
        return total * (found.unit / self.nodes.shares) + settled(common * n_rows)[:, None]

    def _values(self, each: Each, points: Any) -> Array:
        return node_values(each, points, self.nodes)


def node_values(each: Each, points: Any, nodes: Nodes) -> Array:
    """Return the log-likelihood of every node at every point, as floats return it: public."""
    size = max(1, AT_ONCE // nodes.count)
    with np.errstate(all="ignore"):
        return np.concatenate([each(points[s : s + size], nodes.columns) for s in range(0, len(points), size)])


def centred(values: Array, *, shared: bool = True) -> tuple[Array, Array]:
    """Return numbers of nodes up to what decides nothing, none above 0, and what all rows have in common at each point.

    What is the same at all points of one node decides nothing; where all rows are for one choice, `shared`, nor does
    what all of them have in common. Nodes that are NaN or +∞ somewhere, or -∞ everywhere, count as 0.
    """
    middle = values[:, values.shape[1] // 2]
    common = middle if shared and np.isfinite(middle).all() else np.zeros(len(values))
    with np.errstate(all="ignore"):
        found = values - common[:, None]
        top = found.max(axis=0)
        return np.where(np.isfinite(top), found - top, 0.0), common


__all__ = ["MOST_NUMBERS", "NodeBound", "Numbers", "centred", "node_values"]
