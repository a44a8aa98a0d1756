"""A released regression as an observed variable of the private model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.families.gram import GramSums
from pymc_dp.families.polynomial import Response
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.record import TableRecord
from pymc_dp.mechanisms.release_plan import TablePlan
from pymc_dp.transforms.observed import add_release
from pymc_dp.transforms.regression import RegressionDensity
from pymc_dp.transforms.regression_wide import WideRegression


def observe_regression(
    new: Model,
    record: TableRecord,
    parameters: Sequence[Variable],
    table: TablePlan,
    value: Array,
    *,
    noise_aware: bool,
    at_most: bool,
) -> None:
    """Add a released regression to the private model, with the unknown moments of its predictors."""
    density: RegressionDensity | WideRegression
    if noise_aware and is_wide(table):
        density, beside = _wide(table, value), []
    else:
        # Without noise, in tests, the released sums are exact.
        noise_aware = noise_aware and bool(table.scales.any())
        density = regression_density(table, noise_aware=noise_aware, at_most=at_most)
        value = value if noise_aware else density.project(value)
        with new:
            beside = density.latents(table.name, density.coordinates(value))
    with new:
        add_release(record, [*parameters, table.scales, *beside], density, value)


def is_wide(table: TablePlan) -> bool:
    """Whether there are too many private predictors for the exact form, and there is noise."""
    statistic = table.statistic
    assert isinstance(statistic, GramSums)
    return statistic.wide and bool(table.scales.any())


def regression_density(table: TablePlan, *, noise_aware: bool, at_most: bool) -> RegressionDensity:
    """Return the distribution of a released regression.

    Parameters
    ----------
    table : TablePlan
    noise_aware : bool
    at_most : bool
        Whether the number of rows is private, and what is known a bound on it.
    """
    assert isinstance(table.statistic, GramSums)
    return RegressionDensity(
        statistic=table.statistic,
        response=_response(table),
        reach=table.reach,
        sizes=_sizes(table),
        scale=float(table.scales[0]),
        noise=table.kind,
        noise_aware=noise_aware,
        at_most=at_most,
        gram=table.gram,
    )


def _wide(table: TablePlan, value: Array) -> WideRegression:
    assert isinstance(table.statistic, GramSums)
    scale = float(table.scales[0])
    return WideRegression.of(table.statistic, _response(table), value, _sizes(table), scale=scale, noise=table.kind)


def _response(table: TablePlan) -> Response:
    design = table.observed.design
    assert design is not None
    likelihood: Any = table.observed.distribution
    return Response(likelihood=likelihood, mean=design.link)


def _sizes(table: TablePlan) -> Array:
    """Public sizes of cells, or one number: that of all rows, or the bound on it."""
    return np.asarray(table.cells.sizes if table.cells.sizes is not None else table.cells.groups[:1])


__all__ = ["is_wide", "observe_regression", "regression_density"]
