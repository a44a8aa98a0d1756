"""What is released: blocks of integers with one noise each, tables of these, and all tables of a model.

They are laid out from public knowledge alone, and planned once the noise of a budget is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Literal

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.accounting import ComposedEvent, Event
from pymc_dp.accounting.noise_kinds import NoiseKind
from pymc_dp.domain import Neighbours
from pymc_dp.errors import PrivacyError
from pymc_dp.families import Family
from pymc_dp.families.cells import Cells
from pymc_dp.families.characters import NetworkSums
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.families.histogram import Bins
from pymc_dp.families.statistic import BoundedMoments, ExposedCounts, LevelCounts
from pymc_dp.inspection.computed.columns import shown
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.inspection.totals import SUCCESSES
from pymc_dp.kernel.randomness import insecure
from pymc_dp.kernel.tallies import Noised, PerUnit, SumRelease, Tally
from pymc_dp.release.sensitivity import SumSensitivity
from pymc_dp.release.statistics import Statistics
from pymc_dp.rows.asked import Asked
from pymc_dp.unit import Unit

NETWORK = "network"
"""Name of the table of a network's coefficients, and of its observed variable in a private model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Integer columns that get noise of one scale.

    Attributes
    ----------
    columns : tuple of int
        Its columns in the released table.
    steps : tuple of float
        Grid step of each column, in units of the data.
    sensitivity : SumSensitivity
    noise : NoiseKind
    weight : float
        Its part of its table's share of the budget.
    scale : float
        Noise scale in grid steps; NaN, which costs and draws nothing but an error, before a budget is known.
    """

    columns: tuple[int, ...]
    steps: tuple[float, ...]
    sensitivity: SumSensitivity
    noise: NoiseKind
    weight: float = 1.0
    scale: float = math.nan

    @property
    def event(self) -> Event:
        """What the release of this block costs."""
        return self.noise.event(self.sensitivity, self.scale)


@dataclass(frozen=True, kw_only=True, eq=False)
class TablePlan:
    """Everything public about one released table.

    Attributes
    ----------
    variables : tuple of Observed
        What it is released of: one observed variable, or all nodes of a network in their order.
    family : Family or None
        None for a regression on continuous columns, and for a network.
    statistic : RowStatistic, GramSums or NetworkSums
    cells : Cells
        Rows of the released table; those of a regression are columns of its one row, that of a network holds all rows.
        Of counts over an exposure their sizes are sums of exposures.
    labels : tuple of str
        One per released column.
    blocks : tuple of Block
    gram : (n_cells, 1 + d, 1 + d) array or None
        Known sums of products of (1, t), of a regression on public predictors.
    reach : float
        Of linear predictors, where a polynomial stands in for the likelihood of a regression; 0 where none does.
    boxed : bool
        Whether the plug-in form cuts every count off by itself, at 0 and at the number of rows.
    parents : tuple of Cells
        Of a network: configurations of the parents of each node.
    increment : float
        Of a network: rows that tables of the plug-in form have more, spread evenly.
    papers : bool
        Of a network: whether every coefficient is taken to move, as in the paper.
    weight : Column or None
        By which rows are weighed.
    largest : float
        Public bound on a weight, of which sums are in units.
    per_unit : PerUnit or None
        What the metric of the domain says of its sums.
    """

    variables: tuple[Observed, ...]
    family: Family | None
    statistic: RowStatistic | GramSums | NetworkSums
    cells: Cells
    labels: tuple[str, ...]
    blocks: tuple[Block, ...]
    gram: Array | None = None
    reach: float = 0.0
    boxed: bool = False
    parents: tuple[Cells, ...] = ()
    increment: float = 0.0
    papers: bool = False
    weight: Column | None = None
    largest: float = 1.0
    per_unit: PerUnit | None = None

    @property
    def name(self) -> str:
        """Name of the release: that of the observed variable, or `NETWORK`."""
        return NETWORK if isinstance(self.statistic, NetworkSums) else self.observed.name

    @property
    def observed(self) -> Observed:
        """The one variable that is released; a network has several."""
        (observed,) = self.variables
        return observed

    @property
    def by_cells(self) -> tuple[Family, RowStatistic]:
        """Family and statistic of a table whose rows are cells; regressions and networks have none."""
        if self.family is None or isinstance(self.statistic, GramSums | NetworkSums):
            raise PrivacyError(f"The rows of the table {self.name} are no cells; this is an error of pymc_dp.")
        return self.family, self.statistic

    @property
    def sums(self) -> NetworkSums:
        """Coefficients of a network; no other table has them."""
        if not isinstance(self.statistic, NetworkSums):
            raise PrivacyError(f"The table {self.name} is not one of a network; this is an error of pymc_dp.")
        return self.statistic

    @cached_property
    def asked(self) -> tuple[Asked, ...]:
        """Exact sums of the rows that it is made of: one, or one per node of a network."""
        statistic = self.statistic
        if isinstance(statistic, NetworkSums):
            nodes = zip(self.variables, self.parents, statistic.network.nodes, strict=True)
            return tuple(
                Asked(
                    response=Column(name=observed.name, leaf=observed.leaf),
                    statistic=LevelCounts(labels=tuple(map(str, range(node.n_levels)))),
                    cells=cells,
                )
                for observed, cells, node in nodes
            )
        if isinstance(statistic, ExposedCounts):
            return self._exposed(statistic)
        bounds = self.observed.bounds
        if isinstance(statistic, BoundedMoments):
            bounds = statistic.low, statistic.high
        design = self.observed.design
        one = Asked(
            response=Column(name=self.name, leaf=self.observed.leaf, bounds=bounds),
            statistic=statistic,
            cells=self.cells,
            with_sizes=not self.sizes_known and not isinstance(statistic, LevelCounts | GramSums),
            predictors=design.predictors if design is not None else (),
            totals=self.observed.totals if self.observed.distribution == SUCCESSES else None,
            weight=self.weight,
            largest=self.largest,
            second=isinstance(statistic, LevelCounts) and len(self.labels) < statistic.n_levels,
            per_unit=self.per_unit,
        )
        return (one,)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """What the kernel adds up: for each of `asked`, or of a network for all nodes together."""
        if isinstance(self.statistic, NetworkSums):
            return (Tally(reading=self.statistic.reading(papers=self.papers)),)
        return tuple(one.tally for one in self.asked)

    @property
    def noised(self) -> tuple[Noised, ...]:
        """What the kernel adds up, and the noise of each block."""
        scales, found = iter(block.scale for block in self.blocks), []
        for tally in self.tallies:
            found.append(Noised(tally, tuple(next(scales) for _ in range(1 + tally.sized))))
        return tuple(found)

    def _exposed(self, statistic: ExposedCounts) -> tuple[Asked, ...]:
        """Sums of exposures, unless these are public, and of counts."""
        exposure = self.observed.totals
        assert exposure is not None
        counts = Column(name=self.name, leaf=self.observed.leaf, bounds=(statistic.counts.low, statistic.counts.high))
        one = Asked(response=counts, statistic=statistic.counts, cells=self.cells, per_unit=self.per_unit)
        return (one,) if self.sizes_known else (replace(one, response=exposure, statistic=statistic.exposure), one)

    @property
    def weight_leaf(self) -> Variable | None:
        """What holds the weights of rows; None where they count once."""
        return None if self.weight is None else self.weight.leaf

    @property
    def cell_labels(self) -> tuple[str, ...]:
        """One text per row of the released table."""
        if isinstance(self.statistic, NetworkSums):
            return self.statistic.labels
        return self.cells.labels if self.family is not None else ("all rows",)

    @property
    def sizes_known(self) -> bool:
        """Whether the number of rows of every cell is public."""
        return self.cells.sizes is not None

    @property
    def rows_per_cell(self) -> float:
        """Rows of a typical cell: public sizes' median, else rows spread evenly (over the bound under add_remove).

        Of weighted rows the number is bounded by its product with the largest weight; a mean weight of 1 is taken.
        """
        typical = float(np.median(self.cells.groups))
        if isinstance(self.statistic, ExposedCounts):
            exposure, parts = self.statistic.exposure, 1 if self.sizes_known else self.cells.n_private
            each = self.statistic.middle if self.sizes_known else exposure.high
            return max(typical / each / parts, 1.0)
        return typical if self.sizes_known else max(typical / self.largest / self.cells.n_private, 1.0)

    @property
    def event(self) -> Event:
        """What the release of this table costs."""
        return ComposedEvent(events=tuple(block.event for block in self.blocks))

    @property
    def kind(self) -> str:
        """Name of the kind of noise, as in `Statistics`."""
        return self.blocks[0].noise.kind

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
class ReleaseLayout:
    """All tables of a model.

    Attributes
    ----------
    tables : tuple of TablePlan
        One per observed variable, or one of all of them as a network.
    diameter : float
        Largest distance of two rows under the metric of the domain; 1 without one.
    grids : tuple of str
        What values are rounded to where a metric between rows is meant, in words.
    """

    tables: tuple[TablePlan, ...]
    diameter: float = 1.0
    grids: tuple[str, ...] = ()

    @property
    def asked(self) -> list[Asked]:
        """Exact sums of the rows that all tables are made of."""
        return [one for table in self.tables for one in table.asked]

    @property
    def computed(self) -> tuple[str, ...]:
        """Columns that the model computes, in words, each once."""
        read = [column for one in self.asked for column in (one.response, *one.predictors, *one.cells.columns)]
        return tuple(dict.fromkeys(shown(read)))

    def laplace_sd(self, table: TablePlan, epsilon: float) -> float:
        """Standard deviation of Laplace noise on the first statistic of a table, in units of the data.

        ε is split equally among the tables. Continuous noise; what a release draws is calibrated to integers.
        """
        block = table.blocks[-1]
        share = block.weight / sum(one.weight for one in table.blocks) / len(self.tables)
        return sqrt(2) * block.sensitivity.l1 * block.steps[0] / (share * epsilon)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasePlan(ReleaseLayout):
    """The release of all observed variables of a model, with its noise; made without reading a private value.

    Under the metric of a domain, `epsilon` and all sensitivities are per unit of it.
    """

    neighbours: Neighbours
    relation: str
    statistics: Statistics
    epsilon: float
    delta: float
    unit: Unit | None = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All vectors that get noise."""
        return tuple(block for table in self.tables for block in table.blocks)

    @property
    def event(self) -> Event:
        """The cost of the whole release."""
        return ComposedEvent(events=tuple(block.event for block in self.blocks))

    @property
    def network(self) -> TablePlan | None:
        """The table of a network's coefficients, if that is what is released."""
        (first, *_) = self.tables
        return first if isinstance(first.statistic, NetworkSums) else None

    @cached_property
    def release(self) -> SumRelease:
        """What the kernel is asked for."""
        return SumRelease(
            [one for table in self.tables for one in table.noised],
            noise=self.statistics.noise,
            neighbours=self.neighbours,
            relation=self.relation,
            persons=self.unit is not None,
            rows=1 if self.unit is None else self.unit.max_rows,
        )

    def sizes_shown(self, table: TablePlan) -> TablePlan | None:
        """Return the table that shows the sizes of another one's private groups: that of the grouping column itself."""
        columns = table.cells.columns
        if table.observed.totals is not None:  # numbers of rows are no totals
            return None
        if table.sizes_known or len(columns) != 1 or not isinstance(table.statistic, LevelCounts):
            return None
        (column,) = columns
        if column.outside != "first" or not np.array_equal(column.levels, np.arange(len(column.levels))):
            return None
        for other in self.tables:
            counts = isinstance(other.statistic, LevelCounts) and not isinstance(other.statistic, Bins)
            counts = counts and len(other.statistic.labels) == len(column.levels)
            counts = counts and other.weight_leaf is table.weight_leaf
            if counts and other.observed.leaf is column.leaf and not other.cells.columns and other.scales.all():
                return other
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the observed variables."""
        return tuple(observed.name for table in self.tables for observed in table.variables)


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Noised tables, in units of the data; public."""

    plan: ReleasePlan
    values: Mapping[str, Array]
    guarantee: Literal["exact", "none"]


__all__ = ["NETWORK", "Block", "Drawn", "ReleaseLayout", "ReleasePlan", "TablePlan"]
