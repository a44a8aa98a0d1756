"""The loop over rows keeps track of the noise, and replaces rows by its probability alone."""

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.families.features import BoundedFeatures, feature
from pymc_dp.families.statistic import LevelCounts
from pymc_dp.step_methods.augmentation.kernels import sweep
from pymc_dp.step_methods.augmentation.rows import AugmentedRows, row_models
from pymc_dp.step_methods.augmentation.tables import Table


def slow_sweep(places, steps, new_places, new_steps, threshold, released, scales, gaussian):
    """Accept or reject with all sums added up anew for every row."""
    places, steps, accepted = places.copy(), steps.copy(), []

    def log_noise():
        sums = np.zeros(len(released))
        np.add.at(sums, places, steps)
        z = (released - sums) / scales
        return (-0.5 * z**2 if gaussian else -np.abs(z)).sum()

    for i in range(len(places)):
        before, held = log_noise(), (places[i].copy(), steps[i].copy())
        places[i], steps[i] = new_places[i], new_steps[i]
        accepted.append(log_noise() - before > threshold[i])
        if not accepted[i]:
            places[i], steps[i] = held
    return np.array(accepted)


@pytest.mark.parametrize("gaussian", [False, True])
def test_rows_are_replaced_as_the_noise_allows(gaussian, rng):
    def rows():
        return rng.integers(0, 5, (40, 3)), rng.integers(-4, 5, (40, 3))

    old, new = rows(), rows()
    released, scales = rng.integers(-20, 20, 5), rng.uniform(1, 5, 5)
    threshold = -rng.standard_exponential(40)
    threshold[:3] = np.inf
    residuals = released.copy()
    np.subtract.at(residuals, *old)
    accepted = np.zeros(40, dtype=bool)
    sweep(*old, *new, threshold, residuals, scales, gaussian, accepted)
    assert (accepted == slow_sweep(*old, *new, threshold, released, scales, gaussian)).all() and 3 < accepted.sum() < 38
    places, steps = (np.where(accepted[:, None], one, two) for one, two in zip(new, old, strict=True))
    np.add.at(residuals, places, steps)
    assert (residuals == released).all()


def table(name, columns=(), *, cells=((0,),), sizes=(6,), distribution="categorical", statistic=None):
    n_cells, statistic = np.size(cells), statistic or LevelCounts(labels=("0", "1", "2"))
    return Table(
        name=name,
        distribution=distribution,
        statistic=statistic,
        parameters=(),
        columns=tuple(columns),
        cells=np.array(cells),
        group_sizes=np.array(sizes),
        sized=False,
        dropped=False,
        released=np.zeros((n_cells, len(statistic.labels)), dtype=np.int64),
        scales=np.ones(len(statistic.labels)),
        gaussian=False,
    )


def test_tables_share_rows_where_they_share_private_columns():
    by = {"cells": [[0, 1, 2]]}
    found = row_models(
        [table("x", ["c"], **by), table("c"), table("u", ["g"], **by), table("v", ["g"], **by), table("w")]
    )
    assert [tuple(item.name for item in model.tables) for model in found] == [("c", "x"), ("u", "v"), ("w",)]
    assert [model.parents for model in found] == [(None, 0), (None, None), (None,)]










