"""Which private values a row's public values are looked at with: all of a few, else both ends."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.proofs.unconstrained import PrivateReferences


def chosen(observed, **given):
    with pm.Model() as model:
        mean = pm.Data("x", np.array([0.5, 1.5])) * pm.Normal("b") + pm.Data("w", np.array([0.1, 0.2]))
        if np.asarray(observed).dtype.kind == "i":
            pm.Poisson("y", pm.math.exp(mean), observed=observed)
        else:
            pm.Normal("y", mean, 1.0, observed=observed)
    inspection = inspect(model, Domain(**given)).rows
    names = [column.name for column in inspection.columns]
    found = PrivateReferences.of(inspection.columns, inspection.domain.neighbours)
    return found and (found.complete, [dict(zip(names, row, strict=True)) for row in found.rows])


def test_all_of_a_few_values_or_both_ends():
    complete, rows = chosen(np.array([0, 1]), public=("x", "w"), bounds={"y": (0, 7)})
    assert complete and [int(row["y"]) for row in rows] == list(range(8))
    assert all(row["x"] is None and row["y"].dtype == np.int64 for row in rows)
    complete, rows = chosen(np.array([0, 1]), public=("x", "w"), bounds={"y": (0, 8)})
    assert not complete and [int(row["y"]) for row in rows] == [0, 8]
    complete, rows = chosen(np.array([0, 1]), public=("x",), bounds={"y": (0, 1), "w": (-2.0, 3.0)})
    assert not complete and [(float(row["w"]), int(row["y"])) for row in rows] == [(-2.0, 0), (3.0, 1)]


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": {"y": (0.0, 1.0), "x": (0.0, 1.0), "w": (0.0, 1.0)}},
        {"public": ("x",), "bounds": {"y": (0.0, 1.0)}},
        {"public": ("x", "w")},
    ],
)
def test_there_are_none_without_public_columns_or_limits(given):
    assert chosen(np.array([0.1, 0.2]), **given) is None
