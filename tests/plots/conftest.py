"""Traces with hand-made numbers: what is drawn is known, and nothing is sampled."""

from dataclasses import replace

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.accounting import ComposedEvent, DiscreteGaussianEvent
from pymc_dp.accounting.events import PureEvent
from pymc_dp.release.record import ReleaseRecord, TableRecord
from pymc_dp.trace.scrub import annotate

VALUES = {"affair": np.array([[30.0, 12.0], [-3.0, 7.0], [100.0, 41.0]]), "income": np.array([[20.0, 55.5]])}


def table(name, cells, columns, scales, epsilon):
    return TableRecord(
        name=name,
        likelihood="bernoulli",
        cell_dim=f"{name}_cell",
        column_dim=f"{name}_statistic",
        cells=cells,
        columns=columns,
        scales=scales,
        epsilon=epsilon,
        sensitivities=("Δ1 = 2: one row leaves one count and joins another",),
        sizes_public=False,
        plan={"blocks": [{}]},
    )


@pytest.fixture(scope="session")
def record():
    tables = (
        table("affair", ("rating=1", "rating=2", "rating=3"), ("count of 0", "count of 1"), (2.0, 2.0), 0.75),
        table("income", ("all rows",), ("sum", "sum of squares"), (4.0, 8.0), 0.25),
    )
    return ReleaseRecord(
        epsilon=1.0,
        delta=0.0,
        guarantee="exact",
        arithmetic="hardened",
        neighbours="replace",
        noise="discrete Laplace",
        noise_aware=True,
        event={},
        tables=tables,
        assumptions=("number of rows: 180",),
        left_out=(),
    )


@pytest.fixture(scope="session")
def trace(record):
    return annotate({}, record, VALUES)


@pytest.fixture(scope="session")
def gaussian_noise(record):
    """Two parts of one budget, of which the second is a quarter in ρ."""
    events = tuple(DiscreteGaussianEvent(scale=scale, l2_squared=1, shifts=(1,)) for scale in (5.0, 10.0))
    first, second = record.tables
    changed = {
        "tables": (replace(first, epsilon=0.85), replace(second, epsilon=0.38)),
        "event": ComposedEvent(events=events).to_dict(),
    }
    return annotate({}, replace(record, noise="discrete Gaussian", delta=1e-6, **changed), VALUES)


@pytest.fixture(scope="session")
def other_noise(record):
    return annotate({}, replace(record, noise="staircase"), VALUES)


@pytest.fixture
def ledger():
    account = dp.Ledger(epsilon=2.0)
    account.spend(PureEvent(epsilon=0.5), label="statistics of affair", neighbours="replace")
    account.spend(PureEvent(epsilon=1.0), label="a label " * 20, neighbours="replace")
    return account


@pytest.fixture
def agg():
    """Matplotlib without a screen; every figure is closed."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield plt
    plt.close("all")
