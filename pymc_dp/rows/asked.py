"""What a release asks of the rows: exact integer sums, of a table in memory, of blocks of one, or of an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.rows.sums import sum_products, sum_rows
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
    weight: Column | None = None
    largest: float = 1.0

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column that is read."""
        weights = () if self.weight is None else (self.weight,)
        return (self.response, *self.predictors, *self.cells.columns, *weights)

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
        levels = [values(column) for column in self.cells.columns]
        response = values(self.response)
        if isinstance(self.statistic, GramSums):
            predictors = [values(column) for column in self.predictors]
            return sum_products(self.statistic, self.cells, predictors, response, levels)[None]
        if self.weight is not None:
            shares = shares_of(self.weight.clamped(values(self.weight)), self.largest)
            return weighted_sums(self.cells, self.statistic, response, shares, levels)
        return sum_rows(self.cells, self.statistic, response, with_sizes=self.with_sizes, levels=levels)


__all__ = ["Asked"]
