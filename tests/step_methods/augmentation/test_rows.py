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


def test_sums_and_noise_follow_the_rows(rng):
    """Two groups of public sizes with private levels: the residuals are the release less the counts of the rows."""
    cells = [[0, 2], [1, 3]]
    rows = AugmentedRows(row_models([table("u", ["a", "b"], cells=cells, sizes=[5, 9])])[0])
    parameters = {"u": [np.tile([0.2, 0.3, 0.5], (4, 1))]}
    rows.start(rng, parameters)
    assert sum(rows.sweep(rng, parameters) for _ in range(20)) > 20
    sums, sizes = rows.sums()
    assert (sums.sum(axis=1) == sizes).all() and (sizes[cells].sum(axis=1) == [5, 9]).all()
    assert (rows.residuals == -sums.ravel()).all()


def test_a_start_without_finite_sums_is_refused(rng, monkeypatch):
    monkeypatch.setattr("pymc_dp.step_methods.augmentation.rows.MOST_TRIES", 3)
    logs = BoundedFeatures(low=0.1, high=9.0, features=(feature("log", 0.1, 9.0),))
    (model,) = row_models([table("u", distribution="gamma", statistic=logs)])
    with pytest.raises(ArgumentError, match="initval"):
        AugmentedRows(model).start(rng, {"u": [np.array([1e-9]), np.array([1.0])]})


def test_only_rows_whose_parameters_change_are_redrawn(rng):
    rows = AugmentedRows(row_models([table("u", ["a"], cells=[[0], [1]], sizes=[400, 500])])[0])
    old, new = ({"u": [np.array([[0.2, 0.3, 0.5], last])]} for last in ([0.1, 0.1, 0.8], [0.8, 0.1, 0.1]))
    rows.start(rng, old)
    held = rows.rows
    assert rows.redrawn(rng, old, old) is None
    found, residuals, gain = rows.redrawn(rng, old, new)
    assert (found.terms[0][:400] == held.terms[0][:400]).all()
    assert (found.terms[0][400:] == 0).mean() > 0.7 > 0.3 > (held.terms[0][400:] == 0).mean()
    assert gain == np.abs(rows.residuals).sum() - np.abs(residuals).sum()  # released zeros, a scale of 1


def test_children_of_a_table_are_redrawn_with_it(rng):
    """A new class makes other features, so that all rows are redrawn where any parameter changes."""
    rows = AugmentedRows(row_models([table("x", ["c"], cells=[[0, 1, 2]]), table("c")])[0])
    old = {"c": [np.array([[0.2, 0.3, 0.5]])], "x": [np.tile([0.0, 0.0, 1.0], (3, 1))]}
    new = {"c": [np.array([[1.0, 0.0, 0.0]])], "x": old["x"]}
    rows.start(rng, old)
    found, residuals, _ = rows.redrawn(rng, old, new)
    rows.replace(found, residuals)
    assert (found.terms[0] == 0).all() and (found.cells[1] == 0).all()
    assert rows.sums()[2].tolist() == [[0, 0, 6], [0, 0, 0], [0, 0, 0]]


def test_rows_without_finite_sums_are_not_accepted(rng):
    """A parameter far out, at which most reciprocals are infinite in floats, draws no warning and no such row."""
    reciprocal = BoundedFeatures(
        low=0.1, high=9.0, features=(feature("reciprocal", 0.1, 9.0), feature("log", 0.1, 9.0))
    )
    (model,) = row_models([table("u", distribution="invgamma", statistic=reciprocal)])
    rows = AugmentedRows(model)
    rows.start(rng, old := {"u": [np.array([2.0]), np.array([1.0])]})
    far = {"u": [np.array([1e-5]), np.array([1e-5])]}
    assert rows.sweep(rng, far) == 0 and rows.redrawn(rng, old, far)[2] == -np.inf
