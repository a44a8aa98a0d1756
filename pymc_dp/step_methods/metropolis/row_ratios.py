"""Sum over rows of clamped log-likelihood ratios of two places, whatever the rows hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar.basic import Abs, Add, Cast, LogicalComparison, Mul, Neg, Pow, Second, Sqr, Sub, Switch, TrueDiv
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.subtensor import Subtensor

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.one_row import frozen_shared, verify_on_dummy_rows, with_rows
from pymc_dp.inspection.row_terms import RowInspection
from pymc_dp.inspection.rows import Array, reached, shape_of

CHEAP = (Add, Sub, Mul, TrueDiv, Neg, Sqr, Pow, Cast, Switch, Second, Abs, LogicalComparison)


class RowRatios:
    """Clamped log-likelihood ratios, row by row.

    A row enters the graph as a row of placeholders and nothing else of the table does: what a row adds is a function of
    this row and of the two places, within public limits, whatever the row holds. Densities that take long are
    remembered row by row for the place where the chain is; others are computed anew, in one pass that writes nothing.

    Parameters
    ----------
    inspection : RowInspection
    husk : pymc.Model

    Raises
    ------
    UnsupportedModelError
        If rows do not separate on dummy rows.
    """

    def __init__(self, inspection: RowInspection, husk: Model) -> None:
        leaves = [column.leaf for column in inspection.columns]
        one = {leaf: pt.TensorType(leaf.type.dtype, shape_of(leaf)[1:])(leaf.name) for leaf in leaves}
        rows = {one[leaf]: pt.TensorType(leaf.type.dtype, (None, *shape_of(leaf)[1:]))(leaf.name) for leaf in leaves}
        free = dict(zip(inspection.stand_ins, husk.replace_rvs_by_values(husk.free_RVs), strict=True))
        single = {leaf: row[None] for leaf, row in one.items()}
        terms = [with_rows(term, single, free).sum() for term in inspection.terms]
        total = frozen_shared(pt.add(*terms) if len(terms) > 1 else terms[0])
        if inspection.hidden & set(reached([total, *husk.free_RVs])):
            raise PrivacyError("Private data would stay within the compiled density; this is an error of pymc_dp.")
        verify_on_dummy_rows(inspection, free, total, one)
        each = _vectorised(total, rows)
        self._remembers = _costly(each)
        self._graphs: tuple[list[Variable], Variable] | None = _graphs(husk, each, rows, self._remembers)
        self._columns = inspection.columns
        self._rows: Sequence[Array] = ()
        self._known: list[tuple[Array, Array]] = []

    def compile(self) -> None:
        """Compile, once: before the budget is charged, so that nothing is spent if this fails."""
        if self._graphs is not None:
            inputs, output = self._graphs
            self._function = pytensor.function(inputs, output, on_unused_input="ignore")
            self._function.trust_input = True
            self._graphs = None

    def load(self) -> None:
        """Read the rows, once: clamped, contiguous copies. Reads private data: the budget must have been charged."""
        self.hold([column.read() for column in self._columns])

    def hold(self, rows: Sequence[Array]) -> None:
        """Hold clamped rows, one array per column."""
        self._rows, self._known = rows, []

    @np.errstate(all="ignore")  # a warning could depend on a row
    def total(self, there: Array, here: Array, limits: tuple[float, float]) -> float:
        """Sum of clip(l(x, there) - l(x, here), *limits) over the rows held. **Private**."""
        if not self._remembers:
            return float(self._function(there, here, *map(np.asarray, limits), *self._rows))
        from pymc_dp.step_methods.metropolis.kernels import clamped_sum

        before, after = self._at(here), self._at(there)
        self._known = [(here, before), (there, after)]  # a chain stays here or goes there
        return float(clamped_sum(after, before, *limits))

    def _at(self, values: Array) -> Array:
        """Log-likelihood of every row at one place. **Private**."""
        for known, terms in self._known:
            if np.array_equal(known, values):
                return terms
        return np.asarray(self._function(values, *self._rows))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": []}


def _graphs(
    husk: Model, each: Variable, rows: Mapping[Variable, Variable], remembers: bool
) -> tuple[list[Variable], Variable]:
    """Inputs and output: log-likelihoods of all rows at a place, or the clamped sum of their ratios at two."""
    here, there = pt.vector("here"), pt.vector("there")
    low, high = pt.scalar("low", dtype="float64"), pt.scalar("high", dtype="float64")
    before, after = (
        clone_replace([each], _parts(husk, at), rebuild_strict=False)[0].astype("float64") for at in (here, there)
    )
    if remembers:
        return [there, *rows.values()], after
    ratio = after - before
    clamped = pt.clip(pt.switch(pt.isnan(ratio), 0.0, ratio), low, high).sum()
    return [there, here, low, high, *rows.values()], clamped


def _vectorised(total: Variable, rows: Mapping[Variable, Variable]) -> Variable:
    used = {one: many for one, many in rows.items() if one in set(ancestors([total]))}
    if used:
        return vectorize_graph(total, used)
    return pt.broadcast_to(total, (next(iter(rows.values())).shape[0],))  # the same for every row


def _costly(each: Variable) -> bool:
    """Whether the density of a row takes longer than to write it down: logarithms, exponentials, matrix products."""
    for node in toposort([each]):
        wide = any(not out.type.broadcastable[0] for out in node.outputs if getattr(out.type, "ndim", 0))
        cheap = isinstance(node.op, DimShuffle | Subtensor | Sum) or (
            isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, CHEAP)
        )
        if wide and not cheap:
            return True
    return False


def _parts(husk: Model, at: Variable) -> dict[Variable, Variable]:
    """Take the value variables out of a flat vector."""
    point, begin = husk.initial_point(), 0
    parts: dict[Variable, Variable] = {}
    for value in husk.value_vars:
        shape = np.shape(point[value.name])
        size = int(np.prod(shape))
        parts[value] = at[begin : begin + size].reshape(shape).astype(value.type.dtype)
        begin += size
    return parts


__all__ = ["RowRatios"]
