"""Public tables that look like the rows of a model: covariates anywhere in their bounds, the rest from the prior."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.shape_utils import change_dist_size
from pytensor.graph.basic import Variable

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.clamped import unclamped
from pymc_dp.inspection.findings import Observed, RowInspection
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.one_row import placeholder
from pymc_dp.inspection.row_density import per_row
from pymc_dp.inspection.rows import Array, Column, known_rows, reached, shape_of


def simulated(inspection: RowInspection, prior_model: Model, count: int, rng: np.random.Generator) -> list[Array]:
    """Return a table of `count` rows, one array per column: public columns as they are, private ones within bounds.

    Observed variables are drawn one after another, given free variables from their prior and what was drawn before.
    Nothing private is looked at, and the number of rows held changes nothing.

    Raises
    ------
    Exception
        Of any kind, if some distribution cannot be drawn from.
    """
    tables = {column.leaf: column.clamped(_filled(column, count, rng)) for column in inspection.columns}
    by_leaf = {column.leaf: column for column in inspection.columns}
    values = plain_draw(list(prior_model.free_RVs), rng)
    known = dict(zip(inspection.model.free_RVs, map(pt.constant, map(np.asarray, values)), strict=True))
    for item in inspection.observed:
        drawn = by_leaf[item.leaf].clamped(_drawn(inspection, item, tables, known, rng))
        tables[item.leaf], known[item.variable] = drawn, pt.constant(drawn)
    return [tables[column.leaf] for column in inspection.columns]


def _filled(column: Column, count: int, rng: np.random.Generator) -> Array:
    """Return rows that fill what is public about a column."""
    if column.public:
        return known_rows(column)[np.linspace(0, shape_of(column.leaf)[0] - 1, count).astype(int)]
    shape = (count, *shape_of(column.leaf)[1:])
    low, high = column.bounds or (-1.0, 1.0)
    if column.integer:
        return rng.integers(int(low), int(high), size=shape, endpoint=True).astype(column.leaf.type.dtype)
    if column.norm is not None:
        flat = rng.normal(size=(count, int(np.prod(shape[1:]))))
        lengths = np.sqrt((flat**2).sum(axis=1, keepdims=True))
        return np.asarray(column.norm * rng.uniform(0.3, 1.0, size=lengths.shape) * flat / lengths).reshape(shape)
    return rng.uniform(low, high, size=shape)


def _drawn(
    inspection: RowInspection,
    item: Observed,
    tables: Mapping[Variable, Array],
    known: Mapping[Variable, Variable],
    rng: np.random.Generator,
) -> Array:
    """Draw one observed variable for all rows of a table, whose number need not be that of the rows held."""
    rows = {leaf: placeholder(leaf, (None, *table.shape[1:])) for leaf, table in tables.items()}
    variable = unclamped(item.variable)
    (plain,), _ = rebuild([per_row(variable, inspection.axis.beside(variable))], {**rows, **known})
    batch = tables[item.leaf].shape[: plain.type.ndim - plain.owner.op.ndim_supp]
    constants = {row: pt.constant(tables[leaf]) for leaf, row in rows.items()}
    (sized,), _ = rebuild([change_dist_size(plain, batch)], constants)
    if inspection.hidden & set(reached([sized])):
        raise PrivacyError("Private data would enter a simulation; this is an error of pymc_dp.")
    return np.asarray(plain_draw(sized, rng))


__all__ = ["simulated"]
