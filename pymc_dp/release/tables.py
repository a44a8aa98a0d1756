"""Tables of a release: laid out, planned with their noise, drawn. Plans depend on no private value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from pymc_dp._random import insecure
from pymc_dp.accounting import ComposedEvent, Event, total_epsilon
from pymc_dp.domain import Neighbours
from pymc_dp.errors import PrivacyError
from pymc_dp.families import Family
from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.families.histogram import Bins
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array
from pymc_dp.release.block import Block
from pymc_dp.release.network_plan import NetworkPlan
from pymc_dp.release.noise import NOISES, Noise
from pymc_dp.release.sensitivity import SumSensitivity
from pymc_dp.release.statistics import Statistics


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A block without its noise yet; `weight` is its part of its table's share."""

    columns: tuple[int, ...]
    steps: tuple[float, ...]
    sensitivity: SumSensitivity
    weight: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """What is released of one observed variable.

    Attributes
    ----------
    family : Family or None
        None for a regression on continuous columns.
    cells : Cells
        Rows of the released table; those of a regression are columns of its one row.
    labels : tuple of str
        One per released column.
    gram : (n_cells, 1 + d, 1 + d) array or None
        Known sums of products of (1, t), of a regression on public predictors.
    reach : float
        Of linear predictors, where a polynomial stands in for the likelihood of a regression; 0 where none does.
    """

    observed: Observed
    family: Family | None
    statistic: RowStatistic | GramSums
    cells: Cells
    labels: tuple[str, ...]
    gram: Array | None = None
    reach: float = 0.0

    @property
    def name(self) -> str:
        """Name of the observed variable, and of the release."""
        return self.observed.name

    @property
    def by_cells(self) -> tuple[Family, RowStatistic]:
        """Family and statistic of a table whose rows are cells; a regression has none."""
        if self.family is None or isinstance(self.statistic, GramSums):
            raise PrivacyError(f"{self.name} is a regression on continuous columns; this is an error of pymc_dp.")
        return self.family, self.statistic

    @property
    def cell_labels(self) -> tuple[str, ...]:
        """One text per row of the released table."""
        return self.cells.labels if self.family is not None else ("all rows",)

    @property
    def sizes_known(self) -> bool:
        """Whether the number of rows of every cell is public."""
        return self.cells.sizes is not None


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout(Table):
    """A table without its noise: no budget has a part in it."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseLayout:
    """The tables of all observed variables of a model, without their noise.

    Attributes
    ----------
    tables : tuple of Layout
    diameter : float
        Largest distance of two rows under the metric of the domain; 1 without one.
    grids : tuple of str
        What values are rounded to where a metric between rows is meant, in words.
    """

    tables: tuple[Layout, ...]
    diameter: float = 1.0
    grids: tuple[str, ...] = ()

    def laplace_sd(self, table: Layout, epsilon: float) -> float:
        """Standard deviation of Laplace noise on the first statistic of a table, in units of the data.

        ε is split equally among the tables. Continuous noise; what a release draws is calibrated to integers.
        """
        part = table.parts[-1]
        share = part.weight / sum(one.weight for one in table.parts) / len(self.tables)
        return sqrt(2) * part.sensitivity.l1 * part.steps[0] / (share * epsilon)


@dataclass(frozen=True, kw_only=True, eq=False)
class TablePlan(Table):
    """Everything public about the release of one observed variable.

    Attributes
    ----------
    delta : float
        Of the whole release.
    boxed : bool
        Whether the plug-in form cuts every count off by itself, at 0 and at the number of rows.
    """

    blocks: tuple[Block, ...]
    delta: float
    boxed: bool = False

    @property
    def epsilon(self) -> float:
        """What the release of this table costs alone, at the δ of the whole release."""
        return total_epsilon(self.event, self.delta).epsilon

    @property
    def event(self) -> Event:
        """What the release of this table costs."""
        return ComposedEvent(events=tuple(block.event for block in self.blocks))

    @property
    def noise(self) -> Noise:
        """Kind of noise."""
        return self.blocks[0].noise

    @property
    def kind(self) -> str:
        """Name of the kind of noise, as in `Statistics`."""
        return next(name for name, known in NOISES.items() if known is self.noise)

    @property
    def scales(self) -> Array:
        """Scale of the noise per column, in units of the data; 0 inside ``testing.without_noise``."""
        result = np.zeros(len(self.labels))
        replacement = insecure()
        if replacement is not None and replacement.rng is None:
            return result
        for block in self.blocks:
            result[list(block.columns)] = [block.scale * step for step in block.steps]
        return result


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasePlan:
    """The release of all observed variables of a model; made without reading a private value.

    Under the metric of a domain, `epsilon` and all sensitivities are per unit of it.

    Attributes
    ----------
    tables : tuple of TablePlan
        One per observed variable; none of those that `network` releases.
    diameter : float
        Largest distance of two rows under the metric; 1 without one.
    grids : tuple of str
        What values are rounded to where a metric between rows is meant, in words.
    network : NetworkPlan or None
        Coefficients that all observed variables are released by.
    """

    tables: tuple[TablePlan, ...]
    neighbours: Neighbours
    statistics: Statistics
    epsilon: float
    delta: float
    diameter: float = 1.0
    grids: tuple[str, ...] = ()
    network: NetworkPlan | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All vectors that get noise."""
        found = tuple(block for table in self.tables for block in table.blocks)
        return found if self.network is None else (*found, self.network.block)

    @property
    def event(self) -> Event:
        """The cost of the whole release."""
        return ComposedEvent(events=tuple(block.event for block in self.blocks))

    def sizes_shown(self, table: TablePlan) -> TablePlan | None:
        """Return the table that shows the sizes of another one's private groups: that of the grouping column itself."""
        columns = table.cells.columns
        if table.sizes_known or len(columns) != 1 or not isinstance(table.statistic, LevelCounts):
            return None
        (column,) = columns
        if column.outside != "first" or not np.array_equal(column.levels, np.arange(len(column.levels))):
            return None
        for other in self.tables:
            counts = isinstance(other.statistic, LevelCounts) and not isinstance(other.statistic, Bins)
            counts = counts and len(other.statistic.labels) == len(column.levels)
            if counts and other.observed.leaf is column.leaf and not other.cells.columns and other.scales.all():
                return other
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the observed variables."""
        nodes = () if self.network is None else self.network.sums.network.names
        return (*(table.name for table in self.tables), *nodes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Noised tables, in units of the data; public."""

    plan: ReleasePlan
    values: Mapping[str, Array]
    guarantee: Literal["exact", "none"]


__all__ = ["Drawn", "Layout", "Part", "ReleaseLayout", "ReleasePlan", "Table", "TablePlan"]
