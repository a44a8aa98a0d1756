"""Likelihoods of rows held one by one: any density that factorises over rows, added up in one pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import stable
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.rows import Array, Column, rebuild, shape_of
from pymc_dp.metrics import Metric
from pymc_dp.proofs.one_variable import chosen_elements
from pymc_dp.proofs.row_likelihood import RowLikelihood
from pymc_dp.rows.gate import read
from pymc_dp.samplers.row_function import RowFunction, vectorised
from pymc_dp.simulation.columns import public_rows
from pymc_dp.step_methods.gibbs.compiled import Call, Functions, Values
from pymc_dp.step_methods.row_functions import Bound, Layout, NodeBound, Nodes, References
from pymc_dp.step_methods.row_functions.bounds import fitting_range, proposed

MOST_KINDS = 2**16
"""Kinds of rows that are counted, instead of holding every row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldRows:
    """Clamped rows, and how often each occurs. **Private**: never leaves a step.

    Attributes
    ----------
    columns : list of array
    weights : (n,) int64 array
    """

    columns: list[Array]
    weights: Array


class HeldLikelihood:
    """Log-likelihood of one observed variable, row by row.

    Parameters
    ----------
    inspection : RowInspection
        Without problems.
    rows : RowFunction
        Of the model.
    name : str
        Of the observed variable.
    row : RowLikelihood
        The same for one row, as proofs see it.

    Attributes
    ----------
    name : str
    row : RowLikelihood
    rows : HeldRows
        **Private**; there after `load`. Under a metric the nodes, and their shares of rows.
    nodes : Nodes or None
        What rows count for under a metric; `lay_out` makes them.
    """

    rows: HeldRows
    nodes: Nodes | None = None

    def __init__(self, inspection: RowInspection, rows: RowFunction, name: str, row: RowLikelihood) -> None:
        self.name, self.row = name, row
        self._free = {str(var.name): var for var in inspection.stand_ins}
        self._one_row = rows.terms[name]
        reach = set(ancestors([self._one_row]))
        over = {column: (rows.one[column.leaf], many) for column, many in zip(rows.columns, rows.many, strict=True)}
        self.every = inspection.columns
        self.columns = [column for column, (one, _) in over.items() if one in reach]
        if name not in clamped(inspection.model):
            _refuse_unbounded(self.columns)
        self._placeholders = [
            over[column][1].clone(name=f"{name}_column_{place}") for place, column in enumerate(self.columns)
        ]
        self._over = {over[column][0]: held for column, held in zip(self.columns, self._placeholders, strict=True)}
        self.graph: Any = vectorised(stable(self._one_row), self._over)
        self.most = inspection.n_rows if inspection.domain.n_max is None else inspection.domain.n_max
        self.neighbours = inspection.domain.neighbours
        private = not any(column.public for column in self.columns)  # public rows keep their order
        self._kinds = _kinds(self.columns, min(self.most, MOST_KINDS)) if private else None
        self.tried = public_rows(self.columns, np.random.default_rng(0))

    def depends_on(self, name: str) -> bool:
        """Whether a free variable reaches it."""
        return self._free[name] in set(ancestors([self._one_row]))

    def lay_out(self, metric: Metric, layout: Layout) -> None:
        """Let rows count for public nodes. Reads no row."""
        self.nodes = Nodes.of(self.columns, metric, self.most, layout=layout, every=self.every)

    def load(self) -> None:
        """Read the rows, once. Reads private data: the budget must have been charged."""
        held = [read(column) for column in self.columns]
        if self.nodes is not None:
            self.rows = HeldRows(columns=self.nodes.columns, weights=self.nodes.weights(held))
            return
        weights = np.ones(len(held[0]), dtype=np.int64)
        if self._kinds is not None:
            held, weights = self._kinds.columns, self._kinds.count(held)
        self.rows = HeldRows(columns=held, weights=weights)

    def element(self, name: str) -> Variable | None:
        """Return which element of a variable each row depends on, as a graph over rows; None if on several."""
        stand_in, elements = self._free[name], chosen_elements(self.row, name)
        nodes = [node for node in toposort([self._one_row]) if _chooses(node, stand_in)]
        if len(nodes) != 1 or elements is None or (elements < 0).any():
            return None
        (node,) = nodes
        shape = node.inputs[0].type.shape
        if None in shape or int(np.prod(shape)) != len(elements):
            return None
        # The index itself, at work on the numbers of what it chooses among.
        numbered: Any = node.op(pt.constant(elements.reshape(shape)), *node.inputs[1:])
        if numbered.type.shape not in ((), (1,) * numbered.type.ndim):
            return None
        return vectorised(numbered.reshape(()), self._over)

    def over(self, functions: Functions) -> tuple[Variable, list[Variable]]:
        """Return the log-likelihood of each row over values of the free variables, and the placeholders of the rows."""
        by_name = {str(other.name): symbol for other, symbol in functions.symbols.items()}
        (graph,), _ = rebuild([self.graph], {var: by_name[name] for name, var in self._free.items()})
        return graph, list(self._placeholders)

    def references(self, tried: Sequence[Array], *, owned: bool = False) -> list[References]:
        """Return what may be subtracted from all rows, by the log-likelihoods of public rows at some points.

        There is nothing where how many rows there are is private, nor where rows are added to elements of their own.
        """
        return [] if owned or self.neighbours == "add_remove" else proposed(self.columns, self.tried, tried)

    def scores(self, functions: Functions, rv: Variable, shape: tuple[int, ...], *, together: bool) -> RowScores:
        """Make the log-likelihood at many values of one variable; of each element by itself if `together`."""
        graph, rows = self.over(functions)
        call, many = functions.at_many(rv, [graph], rows, make=compiled)
        element = self.element(str(rv.name)) if together else None
        return RowScores(
            likelihood=self,
            call=call,
            many=many,
            owner=None if element is None else functions.call([element], self._placeholders),
            size=int(np.prod(shape)) if element is not None else 1,
            owned=element is not None,
        )

    def named(self, rows: Sequence[Array]) -> dict[str, Array]:
        """Return rows by the name of their placeholders."""
        return {str(var.name): column for var, column in zip(self._placeholders, rows, strict=True)}


def _refuse_unbounded(columns: Sequence[Column]) -> None:
    """Refuse private numbers of any size: beside a log-likelihood of 1e17 no other row, nor the prior, has a digit."""
    free = [column.name for column in columns if not column.limited]
    if free:
        what = (
            "its values have no bounds, so the log-likelihood of one huge row would leave floats no digits for the "
            "other rows"
        )
        remedy = "Give public bounds of its values, dp.Domain(bounds={%r: (low, high)}), or use dp.clamp."
        raise UnsupportedModelError([Problem(where=name, what=what, remedy=remedy % name) for name in free])


def _chooses(node: Any, stand_in: Variable) -> bool:
    """Whether a node chooses among entries that depend on a free variable."""
    return isinstance(node.op, AdvancedSubtensor) and stand_in in set(ancestors([node.inputs[0]]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Kinds:
    """Every row that can be, where all its values are whole numbers between public bounds.

    Attributes
    ----------
    columns : list of arrays
        The kinds, in a public order.
    lows : list of int
        Least value of each column.
    sizes : list of int
        Number of values of each entry of a row, columns one after the other.
    """

    columns: list[Array]
    lows: list[int]
    sizes: list[int]

    def count(self, rows: Sequence[Array]) -> Array:
        """Count the rows of each kind. **Private**."""
        parts = [
            (column.astype(np.int64) - low).reshape(len(column), int(np.prod(column.shape[1:])))
            for column, low in zip(rows, self.lows, strict=True)
        ]
        codes = np.ravel_multi_index(tuple(np.concatenate(parts, axis=1).T), self.sizes)
        return np.bincount(codes, minlength=int(np.prod(self.sizes))).astype(np.int64)


def _kinds(columns: Sequence[Column], most: int) -> Kinds | None:
    """Enumerate all rows that can be; None where there are more than `most`, or no end of them."""
    lows, sizes = [], list[int]()
    for column in columns:
        if not column.integer or column.bounds is None:
            return None
        low, high = (int(end) for end in column.bounds)
        lows.append(low)
        sizes += [high - low + 1] * int(np.prod(shape_of(column.leaf)[1:]))
        if float(np.prod(np.array(sizes, dtype=float))) > most:
            return None
    digits = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)
    found, start = [], 0
    for column, low in zip(columns, lows, strict=True):
        shape = shape_of(column.leaf)[1:]
        end = start + int(np.prod(shape))
        values = (digits[:, start:end] + low).reshape(len(digits), *shape)
        found.append(np.ascontiguousarray(values.astype(column.leaf.type.dtype)))
        start = end
    return Kinds(columns=found, lows=lows, sizes=sizes)


@dataclass(kw_only=True, eq=False)
class RowScores:
    """Log-likelihood of all rows held at many values of one variable, with a bound that is enforced on every row.

    Attributes
    ----------
    likelihood : HeldLikelihood
    call : Call
        From candidates, the values of the other variables and rows to (n_candidates, n_rows) log-likelihoods.
    many : str
        Name of the candidates.
    owner : Call or None
        From rows to the only element that each depends on, where elements are added up by themselves.
    size : int
        Number of elements, or 1 where they are not distinguished.
    owned : bool
        Whether each row is added to one element alone, so that nothing is common to all rows of all elements.
    bounds : tuple of Bound
        One for all candidates, or one for each element that is updated by itself; `fit` makes them.
    """

    likelihood: HeldLikelihood
    call: Call
    many: str
    owner: Call | None
    size: int
    owned: bool
    bounds: tuple[Bound, ...] = ()

    def fit(self, ranges: Sequence[float], tries: Sequence[tuple[Array, Values]]) -> tuple[float, ...]:
        """Make bounds for proved ranges, and return what they charge: never less.

        Parameters
        ----------
        ranges : sequence of float
            One for all candidates, or one for each element; under a metric per unit of it.
        tries : sequence of (array, mapping)
            Candidates and values of the other variables, at which public rows are tried.
        """
        item = self.likelihood
        if item.nodes is not None:
            self.bounds = tuple(NodeBound(nodes=item.nodes, most=range_) for range_ in ranges)
            return tuple(ranges)
        tried = [self._each(values, candidates, item.tried) for candidates, values in tries]
        centres = [
            (references, [references.at(partial(self._each, values), points, item.tried) for points, values in tries])
            for references in item.references(tried, owned=self.owned)
        ]
        self.bounds = tuple(
            fitting_range(tried, centres, range_=range_, neighbours=item.neighbours, n_rows=item.most)
            for range_ in ranges
        )
        return tuple(bound.charge for bound in self.bounds)

    def __call__(self, candidates: Array, values: Values, element: int = 0) -> Array:
        """Add up the rows: (n_candidates, size) array. **Private**.

        Parameters
        ----------
        candidates : (n_candidates, ...) array
        values : mapping
        element : int
            The one that is updated, where each is updated by itself.
        """
        bound = self.bounds[element if len(self.bounds) > 1 else 0]
        rows, owner = self.likelihood.rows, None
        if self.owner is not None and len(rows.weights):  # no operation vectorises over no rows
            (owner,) = self.owner(self.likelihood.named(rows.columns))
        each = partial(self._each, values)
        return bound.by_element(each, candidates, rows.columns, rows.weights, owner, self.size)

    def _each(self, values: Values, candidates: Array, rows: Sequence[Array]) -> Array:
        """Log-likelihoods as floats return them: (n_candidates, n_rows) array. **Private**."""
        with np.errstate(all="ignore"):
            (found,) = self.call({**values, self.many: candidates, **self.likelihood.named(rows)})
        return np.broadcast_to(found, (len(candidates), len(rows[0])))


__all__ = ["HeldLikelihood", "HeldRows", "RowScores"]
