"""What a release asks of the rows: exact integer sums, of a table in memory, of blocks of one, or of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytensor.graph.basic import Variable

from pymc_dp.domain import MOST_ROWS
from pymc_dp.errors import PrivacyError
from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.rows import BLOCK, Array, Column
from pymc_dp.rows.gram_sums import require_room
from pymc_dp.rows.sums import LENGTHS, sum_products, sum_rows


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
    """

    response: Column
    statistic: RowStatistic | GramSums
    cells: Cells
    with_sizes: bool = False
    predictors: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column of the table that is read."""
        read = (self.response, *self.predictors, *self.cells.columns)
        return tuple({source.leaf: source for column in read for source in column.sources}.values())

    @property
    def computed(self) -> bool:
        """Whether some columns are not in the table, but computed from it: no engine does that."""
        return any(column.sources != (column,) for column in (*self.predictors, *self.cells.columns))

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
        n_rows = len(held[self.response.leaf])
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
        if isinstance(self.statistic, GramSums):
            predictors = [values(column) for column in self.predictors]
            return sum_products(self.statistic, self.cells, predictors, response, levels)[None]
        return sum_rows(self.cells, self.statistic, response, with_sizes=self.with_sizes, levels=levels)


__all__ = ["Asked"]
