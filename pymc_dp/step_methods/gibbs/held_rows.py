"""Likelihoods of rows held one by one: any density whose rows separate, added up in one pass over the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.clamped import clamped
from pymc_dp.inspection.one_row import frozen_shared, with_rows
from pymc_dp.inspection.row_columns import RowColumn
from pymc_dp.inspection.row_terms import RowInspection, RowTerm
from pymc_dp.inspection.rows import Array, shape_of
from pymc_dp.sensitivity.moving import chosen_elements
from pymc_dp.sensitivity.row_likelihood import RowLikelihood
from pymc_dp.step_methods.gibbs.compiled import Call, Functions, Values
from pymc_dp.step_methods.ops.compiled import compiled

MOST_KINDS = 2**16
"""Kinds of rows that are counted, instead of holding every row."""
CHUNK = 2**18
"""Log-likelihoods held at once, those of all candidates for some rows: they fit a cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldRows:
    """Clamped rows, and how often each occurs. **Private**: never leaves a step.

    Attributes
    ----------
    columns : mapping of str to array
        By the name of their placeholders.
    weights : (n,) float64 array
    """

    columns: Mapping[str, Array]
    weights: Array

    def parts(self, size: int) -> Iterator[tuple[dict[str, Array], Array]]:
        """Yield `size` rows at a time."""
        for start in range(0, len(self.weights), size):
            rows = slice(start, start + size)
            yield {name: column[rows] for name, column in self.columns.items()}, self.weights[rows]


class HeldLikelihood:
    """Log-likelihood of one observed variable, row by row.

    Parameters
    ----------
    inspection : RowInspection
        Without problems.
    term : RowTerm
        Of the observed variable.
    row : RowLikelihood
        The same for one row, as proofs see it.

    Attributes
    ----------
    name : str
    row : RowLikelihood
    rows : HeldRows
        **Private**; there after `load`.
    """

    rows: HeldRows

    def __init__(self, inspection: RowInspection, term: RowTerm, row: RowLikelihood) -> None:
        self.name, self.row = term.name, row
        self._free = {str(var.name): var for var in inspection.stand_ins}
        reach = set(ancestors([term.logp]))
        self._columns = [column for column in inspection.columns if column.leaf in reach]
        if term.name not in clamped(inspection.model):
            _refuse_unbounded(self._columns)
        self._placeholders = [_placeholder(column, f"{term.name}_column_{i}") for i, column in enumerate(self._columns)]
        leaves = [column.leaf for column in self._columns]
        whole: Any = frozen_shared(with_rows(term, dict(zip(leaves, self._placeholders, strict=True)), {}))
        self.graph = whole.sum(axis=tuple(range(1, whole.type.ndim)))
        most = inspection.n_rows if inspection.domain.n_max is None else inspection.domain.n_max
        self._kinds = _kinds(self._columns, min(most, MOST_KINDS))

    def hangs_on(self, name: str) -> bool:
        """Whether a free variable reaches it."""
        return self._free[name] in set(ancestors([self.graph]))

    def load(self) -> None:
        """Read the rows, once. Reads private data: the budget must have been charged."""
        read = [column.read() for column in self._columns]
        weights = np.ones(len(read[0]))
        if self._kinds is not None:
            read, weights = self._kinds.columns, self._kinds.count(read)
        names = [str(var.name) for var in self._placeholders]
        self.rows = HeldRows(columns=dict(zip(names, read, strict=True)), weights=weights)

    def element(self, name: str) -> Variable | None:
        """Return which element of a variable each row hangs on, as a graph over rows; None if on several."""
        stand_in, elements = self._free[name], chosen_elements(self.row, name)
        nodes = [node for node in toposort([self.graph]) if _chooses(node, stand_in)]
        if len(nodes) != 1 or elements is None or (elements < 0).any():
            return None
        (node,) = nodes
        shape = node.inputs[0].type.shape
        if None in shape or int(np.prod(shape)) != len(elements):
            return None
        # The index itself, at work on the places of what it chooses among.
        placed: Any = node.op(pt.constant(elements.reshape(shape)), *node.inputs[1:])
        return placed.ravel()

    def over(self, functions: Functions) -> tuple[Variable, list[Variable]]:
        """Return the log-likelihood of each row over values of the free variables, and the placeholders of the rows."""
        by_name = {str(other.name): symbol for other, symbol in functions.symbols.items()}
        (graph,), _ = rebuild([self.graph], {var: by_name[name] for name, var in self._free.items()})
        return graph, list(self._placeholders)

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
        )


def _refuse_unbounded(columns: Sequence[RowColumn]) -> None:
    """Refuse private numbers of any size: beside a log-likelihood of 1e17 no other row, nor the prior, has a digit."""
    free = [column.name for column in columns if not column.limited]
    if free:
        what = "its values have no bounds, and beside that of one huge row floats have no digits left for other rows"
        remedy = "Give public bounds of its values, for example dp.Domain(bounds={%r: (-10, 10)}), or use dp.clamp."
        raise UnsupportedModelError([Problem(where=name, what=what, remedy=remedy % name) for name in free])


def _placeholder(column: RowColumn, name: str) -> Variable:
    return pt.TensorType(column.leaf.type.dtype, (None, *shape_of(column.leaf)[1:]))(name)


def _chooses(node: Any, stand_in: Variable) -> bool:
    """Whether a node chooses among entries that hang on a free variable."""
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
            (column.astype(np.int64) - low).reshape(len(column), -1)
            for column, low in zip(rows, self.lows, strict=True)
        ]
        codes = np.ravel_multi_index(tuple(np.concatenate(parts, axis=1).T), self.sizes)
        return np.bincount(codes, minlength=int(np.prod(self.sizes))).astype(np.float64)


def _kinds(columns: Sequence[RowColumn], most: int) -> Kinds | None:
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
    """Log-likelihood of all rows held at many values of one variable.

    Attributes
    ----------
    likelihood : HeldLikelihood
    call : Call
        From candidates, the values of the other variables and rows to (n_candidates, n_rows) log-likelihoods.
    many : str
        Name of the candidates.
    owner : Call or None
        From rows to the only element that each hangs on, where elements are added up by themselves.
    size : int
        Number of elements, or 1 where they are not told apart.
    """

    likelihood: HeldLikelihood
    call: Call
    many: str
    owner: Call | None
    size: int

    def __call__(self, candidates: Array, values: Values) -> Array:
        """Add up the rows: (n_candidates, size) array. **Private**.

        A row whose log-likelihood is not a finite number at every candidate counts for nothing.
        """
        total = np.zeros((len(candidates), self.size))
        held = {**values, self.many: candidates}
        with np.errstate(all="ignore"):
            for columns, weights in self.likelihood.rows.parts(max(1, CHUNK // len(candidates))):
                (found,) = self.call({**held, **columns})
                found = np.broadcast_to(found, (len(candidates), len(weights)))
                counted = np.where(np.isfinite(found).all(axis=0), found, 0.0)
                total += counted @ self._shares(columns, weights)
        return total

    def _shares(self, columns: Mapping[str, Array], weights: Array) -> Any:
        """Weight of each row for each element."""
        if self.owner is None:
            return weights[:, None]
        (owner,) = self.owner(columns)
        from scipy import sparse  # half of the time to import the package

        return sparse.csr_array((weights, (np.arange(len(weights)), owner.astype(np.int64))), (len(weights), self.size))


__all__ = ["HeldLikelihood", "HeldRows", "RowScores"]
