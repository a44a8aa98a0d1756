from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection import inspect as file
from pymc_dp.inspection.inspect import inspect

ROWS = np.array([0, 1, 1, 0])


def _regression() -> tuple[pm.Model, dp.Domain]:
    with pm.Model() as model:
        x = pm.Data("x", np.arange(4.0))
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, 1.0, observed=ROWS * 1.0)
        pm.Bernoulli("z", pm.Beta("p", 1, 1), observed=ROWS)
    return model, dp.Domain(bounds={"y": (0, 1)})


def test_a_table_is_read_once_for_all_that_ask(monkeypatch):
    read = []
    monkeypatch.setattr(
        file, "data_leaf", lambda findings, rv, plain=file.data_leaf: [read.append(rv), plain(findings, rv)][1]
    )
    model, domain = _regression()
    found = inspect(model, domain)
    assert found.sums is found.sums and found.rows is found.rows
    assert found.sums.inspected is found.rows.inspected is found
    assert read == model.observed_RVs


@pytest.mark.parametrize("first", ["sums", "rows"])
def test_what_one_reader_refuses_is_no_problem_of_the_other(first):
    found = inspect(*_regression())
    getattr(found, first)
    assert [problem.where for problem in found.sums.problems] == ["y"] and found.rows.problems == ()
    assert [item.name for item in found.sums.clean] == ["z"], "a column without bounds has no sums"


def test_a_metric_is_a_problem_of_both_unless_it_is_accounted_for():
    model, domain = _regression()[0], dp.Domain(bounds={"y": (0, 1)}, metric=dp.metrics.Hamming(["x", "y", "z"]))
    where = "Domain(metric=...)"
    refused = inspect(model, domain)
    assert all(view.problems[0].where == where for view in (refused.sums, refused.rows))
    assert where not in [problem.where for problem in inspect(model, domain, per_unit=True).rows.problems]
