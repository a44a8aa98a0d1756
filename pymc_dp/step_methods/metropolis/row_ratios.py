"""Sum over rows of clamped log-likelihood ratios of two places: one compiled pass over whatever the rows hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.row_terms import RowInspection
from pymc_dp.inspection.rows import Array, reached, shape_of
from pymc_dp.step_methods.langevin.gradients import frozen_shared, verify_on_dummy_rows, with_rows


class RowRatios:
    """Clamped log-likelihood ratios, row by row.

    A row enters the graph as a row of placeholders and nothing else of the table does: what a row adds is a function of
    this row and of the two places, between -limit and limit, whatever the row holds.

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
        one = {leaf: pt.tensor(leaf.name, dtype=leaf.type.dtype, shape=shape_of(leaf)[1:]) for leaf in leaves}
        rows = {
            one[leaf]: pt.tensor(leaf.name, dtype=leaf.type.dtype, shape=(None, *shape_of(leaf)[1:])) for leaf in leaves
        }
        free = dict(zip(inspection.stand_ins, husk.replace_rvs_by_values(husk.free_RVs), strict=True))
        single = {leaf: row[None] for leaf, row in one.items()}
        terms = [with_rows(term, single, free).sum() for term in inspection.terms]
        total = frozen_shared(pt.add(*terms) if len(terms) > 1 else terms[0])
        if inspection.hidden & set(reached([total, *husk.free_RVs])):
            raise PrivacyError("Private data would stay within the compiled density; this is an error of pymc_dp.")
        verify_on_dummy_rows(inspection, free, total, one)
        here, there, limit = pt.vector("here"), pt.vector("there"), pt.scalar("limit", dtype="float64")
        each = _vectorised(total, rows)
        before, after = (clone_replace([each], _parts(husk, at), rebuild_strict=False)[0] for at in (here, there))
        ratio = (after - before).astype("float64")
        clamped = pt.switch(pt.isnan(ratio), 0.0, pt.clip(ratio, -limit, limit))
        self._function = pytensor.function(
            [there, here, limit, *rows.values()], clamped.sum(), on_unused_input="ignore"
        )
        self._function.trust_input = True
        self._columns = inspection.columns
        self._rows: Sequence[Array] = ()

    def load(self) -> None:
        """Read the rows, once: clamped, contiguous copies. Reads private data: the budget must have been charged."""
        self._rows = [column.read() for column in self._columns]

    def total(self, there: Array, here: Array, limit: float) -> float:
        """Sum of clip(l(x, there) - l(x, here), -limit, limit) over the rows held. **Private**."""
        return float(self._function(there, here, np.asarray(limit), *self._rows))


def _vectorised(total: Variable, rows: Mapping[Variable, Variable]) -> Variable:
    used = {one: many for one, many in rows.items() if one in set(ancestors([total]))}
    if used:
        return vectorize_graph(total, used)
    return pt.broadcast_to(total, (next(iter(rows.values())).shape[0],))  # the same for every row


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
