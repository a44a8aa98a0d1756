"""A row adds to every sum what it adds alone, to the last bit: whatever stands in it, and in the others."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.gradients import likelihoods, models
from tests.gradients.sums import Sums

pytestmark = [
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning"),
]


def cells():
    """Whole numbers alone, of which rows of one cell are evaluated once."""
    g, y = np.arange(40) % 3, np.arange(40) % 5
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(pm.Normal("a", shape=3)[pm.Data("g", g)]), observed=y)
    return model, dp.Domain(bounds={"g": (0, 2), "y": (0, 9)})


def trials():
    """Counts of levels that add up to a total of their row."""
    n = np.arange(40) % 5 + 4
    with pm.Model() as model:
        levels = pm.LogNormal("levels", 0, 0.5, shape=3)
        y = np.random.default_rng(1).multinomial(n, np.ones(3) / 3)
        pm.Multinomial("y", n=pm.Data("n", n), p=levels / levels.sum(), observed=y)
    return model, dp.Domain(bounds={"n": (4, 8), "y": (0, 8)})


def persons():
    model, domain = models.bernoulli()
    with model:
        pm.Data("who", np.arange(40) // 3)
    return model, replace(domain, neighbours="add_remove", n_max=100, unit=dp.Unit("who", max_rows=4))


BUILDS = {
    **{build.__name__: build for build in (cells, trials, persons)},
    **{build.__name__: build for build in (*models.ALL, models.integrated)},
    **{name: likelihoods.CONTINUOUS[name] for name in ("von Mises", "mixture of two peaks", "censored")},
    **{name: likelihoods.DISCRETE[name] for name in ("binomial, n a column", "zero-inflated")},
    **likelihoods.VECTORS,
}
PUBLIC = {"ordered": ["cuts"], "mixture of two peaks": ["w"]}
"""Arrays of priors."""
QUICK = ["cells", "persons", "zero-inflated"]
SLOW = [pytest.param(name, marks=pytest.mark.slow(cases="all")) for name in BUILDS if name not in QUICK]
HOSTILE = (np.nan, np.inf, -1e308)


def table_of(model):
    """Columns of a model by name: data and observed values."""
    data = {one.name: one.get_value() for one in model.data_vars}
    values = {one.name: model.rvs_to_values[one] for one in model.observed_RVs}
    return data | {name: one.data for name, one in values.items() if hasattr(one, "data")}


def row_of(table, bad):
    whole = 10**6 if "who" in table else 2**30 if bad > 0 else -5
    return {name: np.full_like(column[:1], bad if column.dtype.kind == "f" else whole)
            for name, column in table.items()}  # fmt: skip


@pytest.mark.parametrize("name", QUICK + SLOW)
def test_a_row_adds_what_it_adds_alone(name, monkeypatch):
    monkeypatch.setattr("pymc_dp.gradients.fit.block_size", lambda rows: 7)
    model, domain = BUILDS[name]()
    domain = replace(domain or dp.Domain(), neighbours="add_remove", n_max=100, public=PUBLIC.get(name, []))
    table = table_of(model)

    def release(rows):
        ledger = dp.Ledger(1.0, 1e-5, neighbours="add_remove", unit=domain.unit and domain.unit.column)
        given = {"epsilon": 1.0, "delta": 1e-5, "domain": domain}
        statistics = dp.Gradients(steps=10, robust=True)
        return dp.privatize(model, **given, statistics=statistics, rows=rows, ledger=ledger, progressbar=False), ledger

    sums = Sums(release)
    whole = sums(table)
    last = {column: values[-1:] for column, values in table.items()}
    rest, alone = sums({column: values[:-1] for column, values in table.items()}), sums(last)
    assert any(one.any() for one in alone)
    for one, other, own in zip(whole, rest, alone, strict=True):
        np.testing.assert_array_equal(one - other, own)
    for bad in HOSTILE:
        row = row_of(table, bad)
        more = sums({column: np.concatenate([row[column], values]) for column, values in table.items()})
        for one, other, own in zip(more, whole, sums(row), strict=True):
            np.testing.assert_array_equal(one - other, own)
