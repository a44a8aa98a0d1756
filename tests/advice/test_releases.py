from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.advice.releases import FRAME_COLUMNS, frame_rows, plan_at_one, release_advice, release_tables
from pymc_dp.inspection.inspect import inspect


def _plan(n_rows: int, neighbours: str = "replace"):
    with pm.Model() as model:
        group = pm.Data("group", np.zeros(n_rows, dtype=int))
        p = pm.Beta("p", 1, 1, shape=4)
        pm.Bernoulli("y", p[group], observed=np.zeros(n_rows, dtype=int))
    n_max = {"n_max": n_rows} if neighbours == "add_remove" else {}
    return plan_at_one(inspect(model, dp.Domain(neighbours=neighbours, **n_max)))


def test_noise_falls_with_epsilon_and_is_even_with_sampling_where_it_says():
    plan = _plan(400)
    rows = [dict(zip(FRAME_COLUMNS, row, strict=True)) for row in frame_rows(plan)]
    assert [row["epsilon"] * row["noise_sd"] for row in rows] == pytest.approx([2 * np.sqrt(2)] * 4)
    assert {row["rows_per_cell"] for row in rows} == {100}
    even = float(release_tables(plan)[1].rows[0][-1].removeprefix("ε = "))
    assert 2 * np.sqrt(2) / even == pytest.approx(np.sqrt(100 / 4), rel=0.01)


def test_too_few_rows_a_cell_are_told():
    (line,) = [line for line in release_advice(_plan(40), "replace") if "merging levels" in line]
    assert "4 cells of about 10 rows" in line
    assert not [line for line in release_advice(_plan(4000), "replace") if "merging levels" in line]


def test_public_groups_are_no_advice_where_they_cannot_be():
    assert any(
        "Domain(public=...)" in line and "halves the noise" in line for line in release_advice(_plan(40), "replace")
    )
    assert not any("Domain(public" in line for line in release_advice(_plan(40, "add_remove"), "add_remove"))
