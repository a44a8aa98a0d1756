"""An event that was defined outside of the package goes wherever those of the package go."""

import json
import math

import arviz as az
import numpy as np
import pytest

from pymc_dp import plots
from pymc_dp.accounting import (
    ComposedEvent,
    DiscreteLaplaceEvent,
    GDPEvent,
    Ledger,
    PureEvent,
    at_distance,
    pure_epsilon,
    rdp,
    total_delta,
    total_epsilon,
)
from pymc_dp.errors import ArgumentError, BudgetExceeded, TraceError
from pymc_dp.trace.manifest import PRIVACY, RECORD
from tests.accounting.oracle import assert_upper_bound, times
from tests.examples.event import TruncatedLaplaceEvent
from tests.golden.topics import FOLDER
from tests.trace.conftest import write_record

EVENT = TruncatedLaplaceEvent(scale=10.0, reach=200)


def divergence(event, count, epsilon):
    """The hockey-stick divergence of `count` uses, by plain sums over all outcomes, each with its two masses."""
    noise = np.exp(-np.abs(np.arange(-event.reach, event.reach + 1)) / event.scale)
    noise /= noise.sum()
    zeros = np.zeros(event.shift)
    here, there = np.r_[noise, zeros], np.r_[zeros, noise]
    p = q = np.ones(1)
    for _ in range(count):
        p, q = np.outer(p, here).ravel(), np.outer(q, there).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("count", [1, 2])
def test_what_it_claims_is_what_it_costs(shift, count):
    event = TruncatedLaplaceEvent(scale=4.0, reach=30, shift=shift)
    truth = lambda epsilon: divergence(event, count, epsilon)  # noqa: E731
    epsilons = [share * count * shift / 4.0 for share in (0.01, 0.3, 0.7, 1.0, 1.5)]
    assert_upper_bound(total_delta, times(event, count), truth, epsilons, within=2e-3)


def test_half_the_edge_would_be_too_little(monkeypatch):
    monkeypatch.setattr("tests.examples.event.TruncatedPair.edge", 1e-9)
    event = TruncatedLaplaceEvent(scale=4.0, reach=15)
    with pytest.raises(AssertionError, match="the truth is"):
        assert_upper_bound(total_delta, event, lambda epsilon: divergence(event, 1, epsilon), [0.5])


def test_it_composes_with_others_by_the_best_accountant():
    many = times(EVENT, 50)
    assert total_epsilon(many, 1e-6).accountant == "pld"
    assert total_epsilon(many, 1e-6).epsilon < 0.7 * 50 * 0.1
    plain = total_epsilon(times(DiscreteLaplaceEvent(scale=10.0, shifts=(1,)), 50), 1e-6).epsilon
    assert plain < total_epsilon(many, 1e-6).epsilon < plain * 1.01
    both = ComposedEvent(events=(many, PureEvent(epsilon=0.2), GDPEvent(mu=0.1)))
    assert total_epsilon(many, 1e-6).epsilon < total_epsilon(both, 1e-6).epsilon < math.inf


def test_what_it_does_not_say_is_infinite_and_refused_not_free():
    assert pure_epsilon(EVENT) == rdp.divergence(EVENT, 2.0) == math.inf
    with pytest.raises(ArgumentError, match="No finite epsilon"):
        total_epsilon(EVENT)
    with pytest.raises(ArgumentError, match="at_distance has no rule for an event of type TruncatedLaplaceEvent"):
        at_distance(EVENT, 2.0)


def test_a_ledger_pays_for_it_and_shows_it():
    ledger = Ledger(epsilon=0.25, delta=1e-6)
    entry = ledger.spend(EVENT, label="a count", neighbours="replace")
    assert entry.added <= 0.1 and "a count: epsilon=0.0999" in repr(ledger) and "a count" in ledger._repr_html_()
    assert json.loads(ledger.to_frame()["event"][0]) == EVENT.to_dict()
    with pytest.raises(BudgetExceeded, match="'another' asks for epsilon=1.99"):
        ledger.spend(TruncatedLaplaceEvent(scale=0.5, reach=20), label="another", neighbours="replace")
    figure = plots.budget(ledger, backend="none")
    assert [bar["x"].tolist()[1] for bar in figure.viz["bars"]["epsilon"].values] == [entry.total.epsilon, 0.25]


def test_a_saved_trace_that_paid_for_it_is_read_and_reported(tmp_path):
    tree = az.from_netcdf(FOLDER / "trace_released.nc")
    record = json.loads(tree[PRIVACY].attrs[RECORD])
    paid = {"event": EVENT.to_dict(), "epsilon": 0.1, "delta": 1e-6}
    write_record(tree, {**record, **paid})
    tree.to_netcdf(tmp_path / "trace.nc")
    loaded = az.from_netcdf(tmp_path / "trace.nc")
    assert loaded.dp.epsilon == 0.1
    assert "ε = 0.1, δ = 1e-06" in str(loaded.dp.report())
    write_record(loaded, {**record, **paid, "epsilon": 0.09})
    with pytest.raises(TraceError, match="its events cost more than the ε = 0.09"):
        loaded.dp.report()
