"""The likelihood of exact sums: what samplers that hold the rows evaluate, at a cost independent of their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families import Family
from pymc_dp.families.cells import Cells
from pymc_dp.families.features import RowStatistic
from pymc_dp.families.gram import GramSums
from pymc_dp.families.statistic import ExposedCounts, LevelCounts
from pymc_dp.inspection.findings import Inspection, Observed
from pymc_dp.inspection.interpreted import kept_while_shared
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.inspection.totals import SUCCESSES
from pymc_dp.kernel.readings import Counts, Numbers, Places, Powers
from pymc_dp.release.plan import lay_out, table_problems
from pymc_dp.release.statistics import Statistics, family_of
from pymc_dp.rows.gate import private_values
from pymc_dp.rows.sums import sum_rows
from pymc_dp.transforms.prior_model import prior_model_with


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactSums:
    """Exact sums of the clamped, rounded rows of one observed variable. **Private**: never leaves a step.

    Attributes
    ----------
    sums : (n_cells, n_statistics) float64 array
        Counts of every level, or sums of powers in units of the data, without the offset of squares.
    sizes : (n_cells,) float64 array
        Number of rows per cell.
    """

    sums: Array
    sizes: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class TableLikelihood:
    """Log-likelihood of one observed variable as a function of exact sums; holds graphs and public numbers only.

    Attributes
    ----------
    observed : Observed
    family : Family
    statistic : RowStatistic
    cells : Cells
    parameters : tuple of Variable
        Parameters of each cell, (n_cells or 1,) graphs over the free variables of the prior model, with a trailing axis
        where the family has one.
    """

    observed: Observed
    family: Family
    statistic: RowStatistic
    cells: Cells
    parameters: tuple[Variable, ...]

    @property
    def name(self) -> str:
        """Name of the observed variable."""
        return self.observed.name

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.cells.count

    @property
    def summable(self) -> bool:
        """Whether exact sums are enough, and few corners close to what a row adds are known."""
        statistic = self.statistic
        if isinstance(statistic, ExposedCounts | GramSums) or self.observed.distribution == SUCCESSES:
            return False  # a row of these is read with its own total or exposure
        reading = statistic.reading()
        if isinstance(reading, Numbers) and reading.together == "apart":
            return len(reading.reaches) == 1
        return isinstance(reading, Places | Counts | Powers) or (
            isinstance(reading, Numbers) and reading.together == "curve"
        )

    def read(self) -> ExactSums:
        """Add up the rows, once. Reads private data: the budget must have been charged."""
        assert not isinstance(self.statistic, ExposedCounts)
        table = sum_rows(self.cells, self.statistic, private_values(self.observed.leaf), with_sizes=True).astype(float)
        if isinstance(self.statistic, LevelCounts):
            return ExactSums(sums=table, sizes=table.sum(axis=1) / self.statistic.per_row)
        sizes, sums = table[:, 0], table[:, 1:] * np.array(self.statistic.steps)
        sums += np.outer(sizes, self.statistic.shifts)
        return ExactSums(sums=sums, sizes=sizes)

    def logp(self, sums: TensorVariable, sizes: TensorVariable) -> TensorVariable:
        """Log-likelihood of all rows per cell, up to a term free of the parameters: (n_cells,) tensor.

        Minus infinity where a parameter is outside of its support; 0 for a cell without rows whatever its parameters.
        """
        return sums_logp(self.family, self.statistic, self.parameters, self.cells.count, sums, sizes)


def sums_logp(
    family: Family,
    statistic: RowStatistic,
    parameters: Sequence[Variable],
    n_cells: int,
    sums: TensorVariable,
    sizes: TensorVariable,
) -> TensorVariable:
    """Log-likelihood of rows with these exact sums, see `TableLikelihood.logp`."""
    given = [
        pt.broadcast_to(item, (n_cells, *item.shape[1:])) if item.type.shape[:1] == (1,) else item
        for item in parameters
    ]
    valid, safe = within_support(family, given)
    return pt.switch(valid, family.plugin_logp(safe, statistic, sums, sizes), -np.inf)


def sums_problems(inspection: Inspection, *, evidence: bool = False) -> list[Problem]:
    """Say what keeps the likelihoods of a model from being sampled on exact sums of the rows alone.

    Parameters
    ----------
    inspection : Inspection
    evidence : bool
        Whether the log-likelihood itself is needed, with what no parameter enters.
    """
    summed = {observed.name for observed in inspection.observed if family_of(observed) is not None}
    problems = [problem for problem in table_problems(inspection) if problem.where in summed]
    problems += [_not_summed(observed) for observed in inspection.observed if observed.name not in summed]
    if problems:
        return problems
    tables = table_likelihoods(inspection)[1]
    lacking = [one for one in tables if not one.summable or (evidence and one.family.base is None)]
    return [_not_summed(table.observed) for table in lacking]


def _not_summed(observed: Observed) -> Problem:
    return Problem(
        where=observed.name,
        what=f"exact sums of its rows do not say closely how far one row of a {observed.title} likelihood can move it",
        remedy="Its rows are gone through one by one.",
    )


@kept_while_shared
def table_likelihoods(inspection: Inspection) -> tuple[Model, tuple[TableLikelihood, ...]]:
    """Return a prior model and the likelihood of each observed variable on exact sums. Reads no private value.

    Raises
    ------
    UnsupportedModelError
        With every problem, if a likelihood has no sufficient statistics here.
    """
    layout = lay_out(inspection, Statistics())
    per_cell = [per_cell_parameters(table.observed, table.cells) for table in layout.tables]
    prior_model, moved = prior_model_with(
        inspection, [parameter for parameters in per_cell for parameter in parameters]
    )
    remaining = iter(moved)
    return prior_model, tuple(
        TableLikelihood(
            observed=table.observed,
            family=table.by_cells[0],
            statistic=table.by_cells[1],
            cells=table.cells,
            parameters=tuple(next(remaining) for _ in parameters),
        )
        for table, parameters in zip(layout.tables, per_cell, strict=True)
    )


def per_cell_parameters(observed: Observed, cells: Cells) -> list[Variable]:
    """Parameters of a likelihood with every row-level column replaced by its value in each cell."""
    return [pt.atleast_1d(parameter) for parameter in rebuild(observed.parameters, cells.constants)[0]]


def within_support(family: Family, parameters: Sequence[TensorVariable]) -> tuple[TensorVariable, list[TensorVariable]]:
    """Return whether a likelihood has these parameters, cell by cell, and ones that it has: no gradient is NaN there.

    In place of others stands a probability, equal weights, or the unit matrix.
    """
    valid, safe = family.supported(parameters), []
    for item, ndim in zip(parameters, family.event_ndims, strict=True):
        known = pt.eye(item.shape[-1]) if ndim == 2 else 1 / item.shape[-1] if ndim else 0.5
        safe.append(pt.switch(pt.shape_padright(valid, ndim), item, known))
    return valid, safe


__all__ = [
    "ExactSums",
    "TableLikelihood",
    "per_cell_parameters",
    "sums_logp",
    "sums_problems",
    "table_likelihoods",
    "within_support",
]
