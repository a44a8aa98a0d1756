"""A row adds to every sum what it adds alone, to the last bit: whatever stands in it, and in the others."""

from dataclasses import replace

import numpy as np
import pytest

import pymc_dp as dp
from tests.gradients import likelihoods, models
from tests.gradients.sums import Sums

pytestmark = [
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning"),
]
BUILDS = {
    **{build.__name__: build for build in (*models.ALL, models.integrated)},
    **{name: likelihoods.CONTINUOUS[name] for name in ("von Mises", "mixture of two peaks", "censored")},
    **{name: likelihoods.DISCRETE[name] for name in ("binomial, n a column", "zero-inflated")},
}
PUBLIC = {"ordered": ["cuts"], "mixture of two peaks": ["w"]}
"""Arrays of priors."""
HOSTILE = (np.nan, np.inf, -1e308)


def table_of(model):
    """Columns of a model by name: data and observed values."""
    data = {one.name: one.get_value() for one in model.data_vars}
    values = {one.name: model.rvs_to_values[one] for one in model.observed_RVs}
    return data | {name: one.data for name, one in values.items() if hasattr(one, "data")}


def row_of(table, bad):
    return {name: np.full_like(column[:1], bad) if column.dtype.kind == "f" else
            np.full_like(column[:1], 2**30 if bad > 0 else -5) for name, column in table.items()}  # fmt: skip


@pytest.mark.few(2, cases="all")
@pytest.mark.parametrize("name", BUILDS)
def test_a_row_adds_what_it_adds_alone(name, monkeypatch):
    monkeypatch.setattr("pymc_dp.gradients.fit.block_size", lambda rows: 7)
    model, domain = BUILDS[name]()
    domain = replace(domain or dp.Domain(), neighbours="add_remove", n_max=100, public=PUBLIC.get(name, []))
    table = table_of(model)

    def release(rows):
        ledger, given = dp.Ledger(1.0, 1e-5, neighbours="add_remove"), {"epsilon": 1.0, "delta": 1e-5, "domain": domain}
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
