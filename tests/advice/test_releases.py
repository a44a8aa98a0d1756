from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.advice.releases import FRAME_COLUMNS, frame_rows, noise_advice, release_tables
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import lay_out, plan_release
from pymc_dp.release.statistics import Statistics


def _plan(n_rows: int, neighbours: str = "replace"):
    with pm.Model(coords={"level": range(4)}) as model:
        group = pm.Data("group", np.zeros(n_rows, dtype=int))
        p = pm.Beta("p", 1, 1, dims="level")
        pm.Bernoulli("y", p[group], observed=np.zeros(n_rows, dtype=int))
    n_max = {"n_max": n_rows} if neighbours == "add_remove" else {}
    return lay_out(inspect(model, dp.Domain(neighbours=neighbours, **n_max)).sums, Statistics())


def test_noise_falls_with_epsilon_and_is_even_with_sampling_where_it_says():
    plan = _plan(400)
    rows = [dict(zip(FRAME_COLUMNS, row, strict=True)) for row in frame_rows(plan)]
    assert [row["epsilon"] * row["noise_sd"] for row in rows] == pytest.approx([2 * np.sqrt(2)] * 4)
    assert {row["rows_per_cell"] for row in rows} == {100}
    even = float(release_tables(plan)[1].rows[0][-1].removeprefix("ε = "))
    assert 2 * np.sqrt(2) / even == pytest.approx(np.sqrt(100 / 4), rel=0.01)


def _counts(n_variables: int):
    with pm.Model() as model:
        for place in range(n_variables):
            pm.Bernoulli(f"y{place}", pm.Beta(f"p{place}", 1, 1), observed=np.zeros(100, dtype=int))
    return inspect(model, dp.Domain()).sums


def test_gaussian_noise_is_named_where_many_numbers_move_and_by_the_factor_it_has():
    inspection = _counts(40)
    (line,) = noise_advice(inspection, 1.0, 0.0)
    laplace = plan_release(inspection, Statistics(), 1.0).tables[0]
    gaussian = plan_release(inspection, Statistics("gaussian"), 1.0, 1e-6).tables[0]
    sds = 2**0.5 * laplace.scales[0], gaussian.scales[0]
    assert line.startswith(f"Gaussian noise would be {sds[0] / sds[1]:.2g} times smaller at delta=1e-06 ")
    assert f"y0 {sds[0]:.3g} and {sds[1]:.3g}; y1" in line
    assert line.endswith('Statistics(noise="gaussian") with delta=1e-06.')
