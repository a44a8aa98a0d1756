"""Probabilities of bins given the parameters of a likelihood, in every cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import PrivacyError
from pymc_dp.families.cells import Cells
from pymc_dp.families.characters import NetworkSums
from pymc_dp.families.gram import GramSums
from pymc_dp.families.histogram import Bins
from pymc_dp.inspection.cumulative import Cumulative, finite_gradient, of_plain
from pymc_dp.inspection.design import Design
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.release.tables import TablePlan
from pymc_dp.transforms.likelihood import per_cell_parameters
from pymc_dp.transforms.network import network_parameters

LARGEST = 2.0**53
"""Whole numbers that floats hold exactly."""


def table_parameters(table: TablePlan) -> list[Variable]:
    """Return the parameters of each cell: those of the likelihood, the probabilities of its bins, or coefficients.

    Of a network, the conditional probabilities of all nodes.
    """
    if isinstance(table.statistic, NetworkSums):
        return [network_parameters(table)]
    if table.observed.design is not None:
        assert isinstance(table.statistic, GramSums)
        return regression_parameters(table.observed.design, table.cells, apart=table.statistic.apart)
    if isinstance(table.statistic, Bins):
        return [bin_probabilities(table.observed, table.cells, table.statistic)]
    return per_cell_parameters(table.observed, table.cells)


def regression_parameters(design: Design, cells: Cells, *, apart: bool) -> list[Variable]:
    """Return intercepts (n_cells,), slopes (width,), or (n_cells, width) with `apart`, and the dispersion."""
    intercepts, slopes = design.coefficients(cells.constants, cells.count)
    dispersion = pt.constant(1.0) if design.dispersion is None else pt.as_tensor(design.dispersion).reshape(())
    return [intercepts, slopes if apart else slopes[0], dispersion]


def bin_probabilities(observed: Observed, cells: Cells, bins: Bins) -> TensorVariable:
    """Return the probability of every bin in every cell, (n_cells, n_bins); NaN where parameters are invalid.

    Every edge in every cell is one row of a made-up table, on which the distribution function of a row is evaluated.
    """
    edges = _as_rows(bins.edges, observed.variable.type.dtype)
    n_edges, n_cells = len(edges), cells.count
    levels: dict[Variable, Variable] = {
        var: pt.constant(np.repeat(level, n_edges).astype(var.type.dtype))
        for column, level in zip(cells.columns, cells.levels, strict=True)
        for var in column.stand_ins
    }
    cumulative = observed.cumulative or _of_plain(observed)
    given = [_repeated(item, n_cells * n_edges) for item in rebuild(observed.parameters, levels)[0]]
    rows = {cumulative.at: pt.constant(np.tile(edges, n_cells)), **dict(zip(cumulative.inputs, given, strict=True))}
    ends = [item for item in (cumulative.below, cumulative.above) if item is not None]
    values = [pt.exp(item).reshape((n_cells, n_edges)) for item in rebuild(ends, {**levels, **rows})[0]]
    return _differences(*values)


def _of_plain(observed: Observed) -> Cumulative:
    found = of_plain(observed.variable, observed.parameters)
    if found is None:
        raise PrivacyError(f"{observed.name} has no distribution function; this is an error of pymc_dp.")
    return found


def _as_rows(edges: Sequence[float], dtype: str) -> Array:
    """Return edges as values of a row: at most an edge is, of whole numbers, at most the whole number below it."""
    if np.dtype(dtype).kind == "f":
        return np.asarray(edges, dtype=dtype)
    return np.clip(np.floor(edges), -LARGEST, LARGEST).astype(np.int64).astype(dtype)


def _repeated(parameter: Variable, count: int) -> Variable:
    whole = pt.broadcast_to(pt.atleast_1d(parameter), (count,))
    return finite_gradient(whole) if str(whole.type.dtype).startswith("float") else whole


def _differences(below: TensorVariable, above: TensorVariable | None = None) -> TensorVariable:
    """Return differences of a distribution function, and of what is above where that is known and the smaller one."""
    zero, one = pt.zeros_like(below[:, :1]), pt.ones_like(below[:, :1])
    ends = pt.concatenate([zero, below, one], axis=1)
    found = ends[:, 1:] - ends[:, :-1]
    if above is not None:
        tails = pt.concatenate([one, above, zero], axis=1)
        found = pt.switch(ends[:, :-1] > 0.5, tails[:, :-1] - tails[:, 1:], found)
    return pt.switch(found < 0, 0.0, found)  # by rounding; what is no number stays none


__all__ = ["bin_probabilities", "table_parameters"]
