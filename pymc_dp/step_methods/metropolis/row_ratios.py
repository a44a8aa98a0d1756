"""Sum over rows of limited log-likelihood ratios of two states, whatever the rows hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import start_of
from pymc_dp.inspection.one_row import parts_of
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.proofs.unconstrained import PrivateReferences
from pymc_dp.rows.gate import read
from pymc_dp.samplers.row_function import RowFunction
from pymc_dp.step_methods.row_functions import RatioLimit
from pymc_dp.step_methods.row_functions.builder import compiled_rows

LANES = 64
"""Rows are filled up to a multiple of this, by rows that do not count: compiled loops then have no remainder, whose
arithmetic could differ in the last bit, and what a row adds does not depend on where it stands."""


class RowRatios:
    """Log-likelihood ratios, row by row, each held within a public interval.

    A row enters the graph as a row of placeholders and nothing else of the table does: what a row adds is a function of
    this row and of the two states. Densities are remembered row by row for the current state of the chain.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model
    references : PrivateReferences, optional
        Where the middle of what a row may add is looked for, given its public values.

    Raises
    ------
    UnsupportedModelError
        If the likelihood does not factorise over rows on dummy rows.

    Notes
    -----
    **Guarantee.** What is added up are whole numbers of the limit's units, in integers: the sum is the same in whatever
    order, and one row moves it by no more than ``RatioLimit.reach``, whatever the compiled density returns. As a float
    it is not rounded, for no more rows than a domain allows; the sum of more rows is cut at what these could add up to.
    To a sum about the middle of each row the sum of the middles is added, a number that public values determine.
    """

    def __init__(
        self, inspection: RowInspection, prior_model: Model, references: PrivateReferences | None = None
    ) -> None:
        free = dict(zip(inspection.stand_ins, prior_model.replace_rvs_by_values(prior_model.free_RVs), strict=True))
        found = RowFunction.of(inspection, prior_model, free)
        there = pt.vector("there")
        start, values = start_of(prior_model), prior_model.value_vars
        parts = parts_of(there, values, [np.shape(start[str(value.name)]) for value in values])
        each = clone_replace([found.over_rows(found.total)], parts, rebuild_strict=False)[0]
        self._graphs: tuple[list[Variable], Variable] | None = [there, *found.many], each.astype("float64")
        self._bound = inspection.domain.n_max
        self.most_rows = self._bound or inspection.n_rows
        self._columns: tuple[Column, ...] = found.columns
        self._references = () if references is None else references.rows
        self._tables: Sequence[Sequence[Array]] = ()
        self._count = 0
        self._known: dict[bytes, list[Array]] = {}

    def compile(self) -> None:
        """Compile, once: before the budget is charged, so that nothing is spent if this fails."""
        if self._graphs is not None:
            inputs, output = self._graphs
            self._function = compiled_rows(inputs, output)
            self._function.trust_input = True
            self._graphs = None
            RatioLimit.of(0.0, 0.0, 1).total(np.zeros(1), np.zeros(1), 1)

    def limit(self, low: float, high: float) -> RatioLimit:
        """Return the limit that holds each row's ratio within an interval of finite ends."""
        return RatioLimit.of(low, high, self.most_rows)

    def load(self) -> None:
        """Read the rows, once: clamped, contiguous copies. Reads private data: the budget must have been charged."""
        self.hold(self.read())

    def read(self) -> list[Array]:
        """Return clamped rows, one array per column. Reads private data: the budget must have been charged."""
        return [read(column) for column in self._columns]

    def hold(self, rows: Sequence[Array]) -> None:
        """Hold clamped rows, one array per column."""
        self._count, self._known = len(rows[0]), {}
        self.most_rows = self._bound or self._count  # without a bound their number is public
        filled = [_filled(column, row) for column, row in zip(self._columns, rows, strict=True)]
        self._tables = [filled, *(_at_reference(filled, values) for values in self._references)]

    @np.errstate(all="ignore")  # a warning could depend on a row
    def total(self, there: Array, here: Array, limit: RatioLimit, *, centred: bool = False) -> float:
        """Sum of g(x) = l(x, there) - l(x, here), each held within the limit, over the rows held. **Private**.

        Parameters
        ----------
        there, here : (n_values,) array
        limit : RatioLimit
        centred : bool
            Whether g less its middle at the references is what lies within the limit.
        """
        before, after = (self._at(values, 1 + centred * len(self._references)) for values in (here, there))
        self._known = {here.tobytes(): before, there.tobytes(): after}  # a chain stays here or goes there
        if not centred:
            return limit.total(after[0], before[0], self.most_rows)
        middle = _middle([two - one for one, two in zip(before[1:], after[1:], strict=True)])
        return limit.total(after[0], before[0] + middle, self.most_rows) + float(middle.sum())

    @np.errstate(all="ignore")
    def each(self, there: Array, here: Array) -> Array:
        """Return g of every row held, as floats return it: for rows that are public."""
        before, after = (self._at(values, 1) for values in (here, there))
        self._known = {here.tobytes(): before, there.tobytes(): after}
        return np.asarray(after[0] - before[0], dtype=np.float64)

    def _at(self, values: Array, count: int) -> list[Array]:
        """Log-likelihood of every row at one state, as it is and at the references. **Private**."""
        known = self._known.get(values.tobytes(), [])
        missing = self._tables[len(known) : count]
        return [*known, *(self._function(values, *rows)[: self._count] for rows in missing)]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}


def _filled(column: Column, rows: Array) -> Array:
    """Append rows of zeros, as the column holds them; they do not count."""
    zeros = column.clamped(np.zeros((-len(rows) % LANES, *rows.shape[1:]), dtype=rows.dtype))
    return np.concatenate([rows, zeros])


def _at_reference(rows: Sequence[Array], values: Sequence[Array | None]) -> list[Array]:
    """Return rows with all private values replaced."""
    pairs = zip(rows, values, strict=True)
    return [row if value is None else np.full(row.shape, value, dtype=row.dtype) for row, value in pairs]


def _middle(ratios: Sequence[Array]) -> Array:
    """Return the middle of the least and the largest ratio of each row; 0 where it is not finite. Public."""
    least, most = np.minimum.reduce(ratios), np.maximum.reduce(ratios)
    middle = least / 2 + most / 2
    return np.where(np.isfinite(middle), middle, 0.0)


__all__ = ["RowRatios"]
