"""A released regression as an observed variable of the private model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.families.gram import GramSums
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.record import TableRecord
from pymc_dp.mechanisms.release_plan import TablePlan
from pymc_dp.transforms.regression import RegressionDensity
from pymc_dp.transforms.responses import Response


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
    density = regression_density(table, noise_aware=noise_aware, at_most=at_most)
    value = value if noise_aware else density.project(value)
    with new:
        beside = density.latents(table.name)
        held = pytensor.shared(np.ascontiguousarray(value, dtype=np.float64), shape=value.shape)
        pm.CustomDist(
            table.name,
            *parameters,
            table.scales,
            *beside,
            logp=density.logp,
            random=density.random,
            signature=density.signature,
            dims=(record.cell_dim, record.column_dim),
            observed=held,
        )


def regression_density(table: TablePlan, *, noise_aware: bool, at_most: bool) -> RegressionDensity:
    """Return the distribution of a released regression.

    Parameters
    ----------
    table : TablePlan
    noise_aware : bool
    at_most : bool
        Whether the number of rows is private, and what is known a bound on it.
    """
    statistic, cells, design = table.statistic, table.cells, table.observed.design
    assert isinstance(statistic, GramSums) and design is not None
    sizes = cells.sizes if cells.sizes is not None else cells.groups[:1]
    likelihood: Any = table.observed.distribution
    return RegressionDensity(
        statistic=statistic,
        response=Response(likelihood=likelihood, mean=design.link),
        reach=table.reach,
        sizes=np.asarray(sizes),
        scale=float(table.scales[0]),
        noise=table.kind,
        noise_aware=noise_aware,
        at_most=at_most,
        gram=table.gram,
    )


__all__ = ["observe_regression", "regression_density"]
