"""One row of a table as a graph: the only place where a model's likelihood is taken apart row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors

from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import NUMPY, plain_function, start_of
from pymc_dp.inspection.one_row import frozen_shared, of_one_row, placeholder, with_rows
from pymc_dp.inspection.row_density import vectorized, written_out
from pymc_dp.inspection.rows import Column, reached, rebuild, shape_of
from pymc_dp.simulation.columns import dummy_rows

DUMMY_ROWS = 7
TOLERANCE = 1e-8


@dataclass(frozen=True, kw_only=True, eq=False)
class RowFunction:
    """The log-likelihood of one row as a graph, and the same over many rows. Nothing in it is private.

    A row enters the graph as a row of placeholders and nothing else of the table does: whatever the model is, what a
    row adds is a function of this row and of the parameters.

    Attributes
    ----------
    columns : tuple of Column
    one : mapping of Variable to Variable
        From the leaf of each column to the placeholder of one row of it.
    many : tuple of Variable
        Placeholders of (n_rows, ...) rows, one per column.
    terms : mapping of str to Variable
        Log-likelihood of one row in each observed variable: scalars over `one` and the parameters.
    total : Variable
        Their sum.
    """

    columns: tuple[Column, ...]
    one: Mapping[Variable, Variable]
    many: tuple[Variable, ...]
    terms: Mapping[str, Variable]
    total: Variable

    @classmethod
    def of(
        cls, inspection: RowInspection, prior_model: Model, parameters: Mapping[Variable, Variable] | None = None
    ) -> Self:
        """Build it, and hold it against the model's own log-likelihood on dummy rows. Reads no private value.

        Parameters
        ----------
        inspection : RowInspection
        prior_model : pymc.Model
            The model without its rows.
        parameters : mapping of Variable to Variable, optional
            What stands for each of ``inspection.stand_ins``; they stand for themselves by default.

        Raises
        ------
        UnsupportedModelError
            If the likelihood does not factorise over rows on dummy rows.
        PrivacyError
            If anything private were left in the graph.
        """
        free = dict(parameters or zip(inspection.stand_ins, inspection.stand_ins, strict=True))
        one = {column.leaf: placeholder(column.leaf, shape_of(column.leaf)[1:]) for column in inspection.columns}
        many = tuple(placeholder(column.leaf, (None, *shape_of(column.leaf)[1:])) for column in inspection.columns)
        terms = {term.name: frozen_shared(of_one_row(term, one, free), inspection.hidden) for term in inspection.terms}
        total = pt.add(*terms.values()) if len(terms) > 1 else next(iter(terms.values()))
        if inspection.hidden & set(reached([total, *prior_model.free_RVs])):
            raise PrivacyError("Private data would stay within a compiled function; this is an error of pymc_dp.")
        if parameters is None:
            free = _over_numbers(inspection, prior_model)
            verify_on_dummy_rows(inspection, free, rebuild([total], free)[0][0], one)
        else:
            verify_on_dummy_rows(inspection, free, total, one)
        return cls(columns=inspection.columns, one=one, many=many, terms=terms, total=total)

    def over_rows(self, graph: Variable) -> Variable:
        """Vectorise a graph over `one` into one over `many`: a new first axis counts rows."""
        return vectorised(graph, dict(zip(self.one.values(), self.many, strict=True)))


def verify_on_dummy_rows(
    inspection: RowInspection,
    free: Mapping[Variable, Variable],
    one_row: Variable,
    one: Mapping[Variable, Variable],
) -> None:
    """Compare the model's log-likelihood of a dummy table with the sum over its rows, at a few random positions.

    Raises
    ------
    UnsupportedModelError
        If they differ, the model's log-likelihood does not separate over rows in this way.
    """
    rng = np.random.default_rng(0)
    tables = dummy_rows(inspection.columns, DUMMY_ROWS, rng)
    held = {column.leaf: pt.constant(table) for column, table in zip(inspection.columns, tables, strict=True)}
    whole = [with_rows(term, held, free).sum() for term in inspection.terms]
    rows = {one[leaf]: table for leaf, table in held.items()}
    separate = vectorize_graph(one_row, rows).sum()
    totals = [pt.add(*whole) if len(whole) > 1 else whole[0], separate]
    names = ", ".join(term.name for term in inspection.terms)
    roots = [var for var in ancestors(totals) if var.owner is None]
    inputs = [var for var in roots if not isinstance(var, Constant | SharedVariable)]
    shapes = [var.type.shape for var in inputs]
    if any(None in shape for shape in shapes):
        start = start_of(inspection.model)
        shapes = [np.shape(start[str(var.name)]) for var in inputs]
    # Composite operations compile what is inside of them, by the default mode or in C, which may take minutes.
    with pytensor.config.change_flags(**NUMPY):
        function = plain_function(inputs, totals, few=True)
        for _ in range(3):
            point = [
                np.asarray(rng.normal(0, 0.3, shape)).astype(var.type.dtype)
                for var, shape in zip(inputs, shapes, strict=True)
            ]
            whole_sum, row_sum = function(*point)
            if not np.allclose(whole_sum, row_sum, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                what = (
                    "on dummy rows its log-likelihood is not the sum of terms of single rows: it does not factorise "
                    "over rows"
                )
                remedy = "Write a density that is a product over rows."
                raise UnsupportedModelError([Problem(where=names, what=what, remedy=remedy)])


def vectorised(graph: Variable, rows: Mapping[Variable, Variable]) -> Variable:
    """Vectorise a graph over one row into one over many; what no row enters is repeated for each."""
    used = {one: many for one, many in rows.items() if one in set(ancestors([graph]))}
    found = vectorized(written_out(graph, used), used) if used else graph
    if found.type.ndim > graph.type.ndim:
        return found
    return pt.broadcast_to(found, (next(iter(rows.values())).shape[0], *_lengths(found)))


def _over_numbers(inspection: RowInspection, prior_model: Model) -> dict[Variable, Variable]:
    """Return what stands for the free variables as graphs over real numbers, any of which lead into their supports."""
    values = {prior_model.rvs_to_values[rv]: _any_number(prior_model.rvs_to_values[rv]) for rv in prior_model.free_RVs}
    points = rebuild(prior_model.replace_rvs_by_values(prior_model.free_RVs), values)[0]
    return dict(zip(inspection.stand_ins, points, strict=True))


def _any_number(value: Variable) -> Any:
    if value.type.dtype.startswith("float"):
        return value
    return pt.TensorType("float64", value.type.shape)(value.name).round().astype(value.type.dtype)


def _lengths(graph: Variable) -> Sequence[Variable]:
    return [graph.shape[axis] for axis in range(graph.type.ndim)]


__all__ = ["RowFunction", "vectorised", "verify_on_dummy_rows"]
