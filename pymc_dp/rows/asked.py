"""What a release asks of the rows: exact integer sums, of a table in memory, of blocks of one, or of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.domain import MOST_ROWS
from pymc_dp.errors import PrivacyError
from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.long_rows import BLOCK
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.rows.gram_sums import require_room
from pymc_dp.rows.sums import LENGTHS, sum_products, sum_rows
from pymc_dp.rows.weighted import shares_of, weighted_sums


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Exact sums of one statistic, by cells; public.

    Attributes
    ----------
    response : Column
        What is observed.
    statistic : RowStatistic or GramSums
    cells : Cells
    with_sizes : bool
        Whether the number of rows of each cell comes first; not for counts, nor for a regression.
    predictors : tuple of Column
        Of a regression.
    totals : Column or None
        Of successes: how many trials a row has.
    weight : Column or None
        By which rows are weighed; not of a regression.
    largest : float
        Weight of which sums are in units.
    """

    response: Column
    statistic: RowStatistic | GramSums
    cells: Cells
    with_sizes: bool = False
    predictors: tuple[Column, ...] = ()
    totals: Column | None = None
    weight: Column | None = None
    largest: float = 1.0

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column of the table that is read."""
        totals = () if self.totals is None else (self.totals,)
        weights = () if self.weight is None else (self.weight,)
        read = (self.response, *totals, *weights, *self.predictors, *self.cells.columns)
        return tuple({source.leaf: source for column in read for source in column.sources}.values())

    @property
    def computed(self) -> bool:
        """Whether some columns are not in the table, but computed from it: no engine does that."""
        return any(column.sources != (column,) for column in (self.response, *self.predictors, *self.cells.columns))

    def of(self, values: Callable[[Column], Array]) -> Array:
        """Add up rows, as they are held: kernels clamp them.

        Parameters
        ----------
        values : callable
            From a column to its values, of one length for all.

        Returns
        -------
        (n_cells, n_integers) int64 array
            Of a regression (1, n_integers). Sums of parts of a table add up to those of the table.
        """
        if not self.computed:
            return self._added(values)
        held = {column.leaf: values(column) for column in self.columns}
        n_rows = len(next(iter(held.values())))
        if n_rows > MOST_ROWS or any(len(rows) != n_rows for rows in held.values()):
            raise PrivacyError(LENGTHS)
        if isinstance(self.statistic, GramSums):
            require_room(self.statistic, n_rows)
        # Computed columns of a block at a time, so that none is as long as the table.
        total = self._block(held, 0)
        for start in range(BLOCK, n_rows, BLOCK):
            total += self._block(held, start)
        return total

    def _block(self, held: Mapping[Variable, Array], start: int) -> Array:
        rows = slice(start, start + BLOCK)
        return self._added(lambda column: column.of(lambda one: held[one.leaf][rows]))

    def _added(self, values: Callable[[Column], Array]) -> Array:
        levels = [values(column) for column in self.cells.columns]
        response = values(self.response)
        if self.totals is not None:
            response = _of_trials(response, self.totals, values(self.totals))
        if isinstance(self.statistic, GramSums):
            predictors = [values(column) for column in self.predictors]
            return sum_products(self.statistic, self.cells, predictors, response, levels)[None]
        if self.weight is not None:
            shares = shares_of(self.weight.clamped(values(self.weight)), self.largest)
            return weighted_sums(self.cells, self.statistic, response, shares, levels)
        return sum_rows(self.cells, self.statistic, response, with_sizes=self.with_sizes, levels=levels)


def _of_trials(successes: Array, column: Column, totals: Array) -> Array:
    """Return failures and successes, (n_rows, 2): successes are kept between 0 and the trials of the row.

    Whatever it returns, the kernel that adds it up holds every row to the most trials that there are.
    """
    if successes.shape != totals.shape:
        raise PrivacyError(LENGTHS)
    with np.errstate(all="ignore"):
        most = column.clamped(totals).astype(np.float64)
        held = np.clip(np.nan_to_num(successes.astype(np.float64)), 0.0, most)
    return np.stack([most - held, held], axis=1)


__all__ = ["Asked"]
