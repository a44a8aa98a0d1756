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
from pymc_dp.release.record import TableRecord
from pymc_dp.release.tables import TablePlan
from pymc_dp.transforms.observed import add_release, held
from pymc_dp.transforms.regression import RegressionDensity


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
    # Without noise, in tests, the released sums are exact.
    noise_aware = noise_aware and bool(table.scales.any())
    density = regression_density(table, noise_aware=noise_aware, at_most=at_most)
    value = value if noise_aware else density.project(value)
    with new:
        beside = density.latents(table.name, density.coordinates(value))
        add_release(record, [*parameters, held(table.scales), *beside], density, value)


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


def _response(table: TablePlan) -> Response:
    design = table.observed.design
    assert design is not None
    likelihood: Any = table.observed.distribution
    return Response(likelihood=likelihood, mean=design.link)


def _sizes(table: TablePlan) -> Array:
    """Public sizes of cells, or one number: that of all rows, or the bound on it."""
    return np.asarray(table.cells.sizes if table.cells.sizes is not None else table.cells.groups[:1])


__all__ = ["observe_regression", "regression_density"]
