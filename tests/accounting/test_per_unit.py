"""Losses per unit of a metric: never mixed with losses per row, unless converted by a distance."""

import math
from fractions import Fraction

import pytest

import pymc_dp as dp
from pymc_dp.accounting import (
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteLaplaceEvent,
    PureEvent,
    SelfComposedEvent,
    at_distance,
    charge,
    loss_at,
    pure_epsilon,
)

METRIC = dp.metrics.L1("x")
ROWS, UNITS = dp.Domain(), dp.Domain(metric=METRIC)
PURE = [
    PureEvent(epsilon=0.1),
    BoundedRangeEvent(eta=0.7),
    DiscreteLaplaceEvent(scale=3.0, sensitivity=2, shifts=(1, 1)),
    SelfComposedEvent(event=BoundedRangeEvent(eta=0.1), count=7),
    ComposedEvent(events=(PureEvent(epsilon=0.3), DiscreteLaplaceEvent(scale=8.0, sensitivity=1))),
]


@pytest.mark.parametrize("event", PURE, ids=repr)
@pytest.mark.parametrize("distance", [0.001, 0.1, 1.0, 3.0, 7.3])
def test_losses_grow_in_proportion_to_distance_and_are_rounded_up(event, distance):
    one, far = pure_epsilon(event), pure_epsilon(at_distance(event, distance))
    assert far >= one * distance * (1 - 1e-12)
    if "Laplace" not in repr(event):  # whose sensitivity is a whole number
        assert far == pytest.approx(one * distance, rel=1e-12)


def test_a_loss_at_a_distance_is_never_rounded_down():
    assert loss_at(0.1, 0.3) == 0.03 and loss_at(0.5, 6.0) == 3.0
    for epsilon in (0.7, 1 / 3, 1e-9):
        for distance in (0.3, 2 / 3, 1e9):
            exact = Fraction(repr(epsilon)) * Fraction(repr(distance))
            assert exact <= Fraction(repr(loss_at(epsilon, distance))) <= exact * (1 + Fraction(1, 10**15))
    assert math.isinf(loss_at(0.1, math.inf))


@pytest.mark.parametrize(
    "domain", [ROWS, dp.Domain(metric=dp.metrics.L1({"x": 2.0})), dp.Domain(metric=dp.metrics.Hamming("x"))]
)
def test_a_ledger_of_a_metric_takes_nothing_else(domain):
    ledger = dp.Ledger(1.0, metric=METRIC)
    with pytest.raises(dp.errors.ArgumentError):
        charge(ledger, PureEvent(epsilon=0.1), label="a draw", domain=domain, diameter=1.0)
    assert ledger.history == []


def test_a_ledger_of_rows_is_charged_for_whole_rows():
    ledger = dp.Ledger(3.0)
    charge(ledger, BoundedRangeEvent(eta=0.5), label="a draw", domain=UNITS, diameter=6.0)
    assert ledger.remaining == 0
    assert ledger.history[0].label == "a draw (whole rows: ρ up to 6)"
    charge(other := dp.Ledger(3.0), PureEvent(epsilon=0.5), label="a draw", domain=ROWS, diameter=6.0)
    assert other.remaining == 2.5


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"metric": "x"}, "dp.metrics"),
        ({"metric": METRIC, "delta": 1e-6}, "delta must be 0"),
        ({"metric": METRIC, "neighbours": "add_remove"}, "equally many rows"),
    ],
)
def test_ledgers_of_a_metric_are_pure_and_between_tables_of_one_length(arguments, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        dp.Ledger(1.0, **arguments)
