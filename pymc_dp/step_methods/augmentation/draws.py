"""The functions of an unclamped row that the log-likelihood of its likelihood adds up."""

from __future__ import annotations

import numpy as np

from pymc_dp.families.features import TRANSFORMS, BoundedFeatures, SumStatistic
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array


def unclamped(statistic: SumStatistic, values: Array) -> Array:
    """Return what an unclamped row adds to the sufficient sums: (n_rows, n_sums), in units of the data."""
    if isinstance(statistic, BoundedMoments):
        return (values - statistic.centre)[:, None] ** np.array(statistic.powers)
    assert isinstance(statistic, BoundedFeatures)
    with np.errstate(all="ignore"):  # what is not finite is left out by the caller
        columns = [TRANSFORMS[item.transform].of_array(values, item.argument) for item in statistic.features]
    return np.stack(columns, axis=-1)


__all__ = ["unclamped"]
