"""What is asked of the rows for a release: sums of one statistic, by cells, of some columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.families.statistic import ExposedCounts
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.kernel import tallies
from pymc_dp.kernel.readings import Reading, Successes
from pymc_dp.kernel.tallies import PerUnit, Rows, Tally


def tally_of(
    statistic: RowStatistic | GramSums,
    cells: Cells,
    *,
    sized: bool = False,
    second: bool = False,
    totals: Column | None = None,
    weighted: bool = False,
    per_unit: PerUnit | None = None,
) -> Tally:
    """Return what the kernel adds up; public.

    Parameters
    ----------
    statistic : RowStatistic or GramSums
    cells : Cells
    sized : bool
        Whether the number of rows of each cell comes first; not for counts, nor for a regression.
    second : bool
        Whether the first of two counts is left out.
    totals : Column or None
        Of successes: how many trials a row has.
    weighted : bool
    per_unit : PerUnit, optional
    """
    assert not isinstance(statistic, ExposedCounts)
    reading: Reading = statistic.reading(second=second)
    if totals is not None:
        assert totals.bounds is not None
        reading = Successes(reading.shape.most, *totals.bounds)  # type: ignore[attr-defined]
    keys = tuple(
        tallies.Key(column.levels, nearest=column.outside == "nearest", public=column.public)
        for column in cells.columns
    )
    place = tallies.Cells(keys, cells.lookup if keys else None)
    return Tally(reading=reading, cells=place, sized=sized, weighted=weighted, per_unit=per_unit)


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Sums of one statistic, by cells; public.

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
    second : bool
        Whether the first of two counts is left out: their sum is known.
    per_unit : PerUnit or None
        What the metric of the domain says of them.
    """

    response: Column
    statistic: RowStatistic | GramSums
    cells: Cells
    with_sizes: bool = False
    predictors: tuple[Column, ...] = ()
    totals: Column | None = None
    weight: Column | None = None
    largest: float = 1.0
    second: bool = False
    per_unit: PerUnit | None = None

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

    @cached_property
    def tally(self) -> Tally:
        """What the kernel adds up."""
        return tally_of(
            self.statistic,
            self.cells,
            sized=self.with_sizes,
            second=self.second,
            totals=self.totals,
            weighted=self.weight is not None,
            per_unit=self.per_unit,
        )

    def rows(self, values: Callable[[Column], Array]) -> Rows:
        """Return rows as the kernel takes them, each value as it is held. **Private**.

        Parameters
        ----------
        values : callable
            From a column to its values, of one length for all.
        """
        read = [*self.predictors, self.response] if self.totals is None else [self.response, self.totals]
        weight = None if self.weight is None else self.weight.clamped(values(self.weight)) / self.largest
        return Rows([values(column) for column in read], [values(column) for column in self.cells.columns], weight)

    def of(self, values: Callable[[Column], Array]) -> Array:
        """Return exact sums of some rows, as the kernel adds them up before the noise. **Private**."""
        return self.tally.exact(self.rows(values))


__all__ = ["Asked", "tally_of"]
