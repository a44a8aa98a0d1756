"""Bins: which one a value falls into, how they are laid out, how far one row moves them, and what is refused."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.families.histogram import Bins, labels_of
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.rows.sums import make_cells, sum_rows
from tests.rows.test_sums import column

pytestmark = pytest.mark.usefixtures("paid")
EDGES = (-2.0, 0.0, 0.5, 3.0)
BINS = Bins(labels=labels_of(EDGES, whole=False), edges=EDGES)
EXTREMES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, np.nextafter(0.5, 1), 3.0, 1e300, -1e300, 5e-324])


def test_every_value_is_counted_once_in_the_bin_that_holds_it(rng):
    values = np.concatenate([rng.normal(0, 2, 5000), EXTREMES, EDGES])
    found = sum_rows(make_cells([], len(values), None), BINS, values, with_sizes=False)
    assert found.sum() == len(values)
    expected = [
        (values <= -2).sum(),
        ((values > -2) & (values <= 0)).sum(),
        ((values > 0) & (values <= 0.5)).sum() + 1,
        ((values > 0.5) & (values <= 3)).sum(),
        (values > 3).sum(),
    ]
    assert found[0].tolist() == expected


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_no_row_moves_counts_by_more_than_was_proved(relation, rng):
    domain = dp.Domain() if relation == "replace" else dp.Domain(neighbours="add_remove", n_max=50)
    with pm.Model(coords={"of": range(2)}) as model:
        mu = pm.Normal("mu", dims="of")
        pm.StudentT("y", 3, mu=mu[pm.Data("g", np.array([0, 1, 0]))], sigma=1.0, observed=np.zeros(3))
    statistics = Statistics(mechanism=dp.Histogram(EDGES))
    (table,) = plan_release(inspect(model, domain).sums, statistics, 1.0).tables
    (block,) = table.blocks
    assert (block.sensitivity.l1, block.sensitivity.l2_squared) == ((2, 2) if relation == "replace" else (1, 1))
    hostile = np.concatenate([EXTREMES, EDGES, rng.normal(0, 2, 20)])
    groups = np.array([0, 1, -7, 99])
    worst = np.zeros(2)
    for _ in range(300):
        y, g = rng.choice(hostile, 4), rng.choice(groups, 4)
        z, h = y.copy(), g.copy()
        z[0], h[0] = rng.choice(hostile), rng.choice(groups)
        if relation == "add_remove":
            z, h = y[1:], g[1:]
        one, other = (
            sum_rows(make_cells([column(k, [0, 1])], len(k), None), table.statistic, v, with_sizes=False)
            for v, k in ((y, g), (z, h))
        )
        moved = np.abs(one - other)
        worst = np.maximum(worst, [moved.sum(), (moved**2).sum()])
    assert worst.tolist() == [block.sensitivity.l1, block.sensitivity.l2_squared]
