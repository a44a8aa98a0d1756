"""What a private model says of its tables is enough to augment their rows, or it states what is missing."""

import numpy as np
import pymc as pm
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import plan_release
from pymc_dp.release.record import describe
from pymc_dp.release.statistics import Statistics
from pymc_dp.step_methods.augmentation.tables import _layout, record_problems, statistic_of


def columns(model, **named):
    with model:
        return [pm.Data(name, values) for name, values in named.items()]


def planned(build, public=()):
    coords = {"first": range(2), "second": range(3)}
    with pm.Model(coords=coords) as model:
        a, b = columns(model, a=np.array([0, 0, 1, 1, 1, 1]), b=np.array([0, 1, 2, 0, 1, 2]))
        build(a, b)
    inspection = inspect(model, Domain(public=public, bounds={"x": (-1, 2)} if "x" in model.named_vars else None)).sums
    return inspection, plan_release(inspection, Statistics(), 1.0)


def coin(name, *index):
    dims = {1: ("first",), 2: ("first", "second")}[len(index)]
    return pm.Bernoulli(name, pm.Beta(f"p_{name}", 1, 1, dims=dims)[index], observed=np.arange(6) % 2)


def normal(a, b):
    pm.Normal("x", pm.Normal("m", 0, 1, dims="second")[b], pm.HalfNormal("s"), observed=np.linspace(0, 1, 6))


@pytest.mark.parametrize("build", [normal, lambda a, b: coin("y", a)])
def test_a_statistic_is_read_back_from_the_record(build):
    _, plan = planned(build)
    (table,) = plan.tables
    assert statistic_of(describe(*planned(build)).tables[0].plan["statistic"]) == table.statistic


def test_statistics_of_several_numbers_a_row_are_none():
    assert statistic_of({"kind": "features", "names": ["x", "y"]}) is None
    assert statistic_of({"kind": "another"}) is None


@pytest.mark.parametrize(("public", "sizes"), [(["a"], [2, 4]), (["b"], [2, 2, 2]), ((), [6])])
def test_rows_know_their_cells(public, sizes):
    """Public levels are the same along a row of cells, private ones the same in every row."""
    record = describe(*planned(lambda a, b: coin("y", a, b), public))
    plan = record.tables[0].plan
    cells, found = _layout(plan)
    assert found.tolist() == sizes and sorted(cells.ravel()) == list(range(6)) and not record_problems(record)
    for name, levels in zip(plan["columns"], plan["levels"], strict=True):
        held = np.array(levels)[cells]
        assert (held == (held[:, :1] if name in public else held[:1])).all()


def by_observed(a, b):
    label = coin("c", a)
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=2)[label], observed=np.arange(6) % 2)


def parent_and_other(a, b):
    coin("y", coin("c", a), b)


def overlapping(a, b):
    coin("y", a)
    coin("z", a, b)


def unnamed(a, b):
    coin("y", a)
    pm.Bernoulli("z", pm.Beta("p", 1, 1, shape=2)[np.arange(6) % 2], observed=np.arange(6) % 2)


REFUSED = {
    "private parents": (by_observed, "indexed by a private column itself"),
    "parents and others": (parent_and_other, "and by another column"),
    "overlapping columns": (overlapping, "not all of its columns"),
    "unnamed columns": (unnamed, "unnamed private column"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_tables_share_in_part_are_refused(name):
    build, text = REFUSED[name]
    found = record_problems(describe(*planned(build)))
    assert any(text in str(problem) for problem in found), found


def test_weighted_rows_are_not_augmented():
    with pm.Model() as model:
        pm.Data("w", np.ones(6))
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.arange(6) % 2)
    domain = Domain(weights={"y": "w"}, bounds={"w": (0, 3)})
    inspection = inspect(model, domain, weighted=True).sums
    (problem,) = record_problems(describe(inspection, plan_release(inspection, Statistics(), 1.0)))
    assert "weights" in problem.what
