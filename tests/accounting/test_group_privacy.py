import pytest

import pymc_dp as dp
from pymc_dp.accounting import (
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    GDPEvent,
    ZCDPEvent,
    group_event,
    replace_event,
    total_delta,
)
from tests.accounting import oracle
from tests.accounting.oracle import UnknownEvent, gaussian, laplace, poisson, pure, times, without_replacement


@pytest.mark.parametrize(
    "event, three",
    [
        (pure(0.1), pure(0.3)),
        (laplace(4.0, 2, 1), DiscreteLaplaceEvent(scale=4.0, sensitivity=9)),
        (gaussian(4.0, 2, 1), DiscreteGaussianEvent(scale=4.0, l2_squared=45)),
        (ZCDPEvent(rho=0.1), ZCDPEvent(rho=0.9)),
        (BoundedRangeEvent(eta=0.1), BoundedRangeEvent(eta=0.3)),
        (GDPEvent(mu=0.1), GDPEvent(mu=0.3)),
        (GaussianEvent(noise_multiplier=6.0), GaussianEvent(noise_multiplier=2.0)),
        (poisson(6.0, 0.1, "add_remove"), GaussianEvent(noise_multiplier=2.0)),
        (poisson(6.0, 0.1, "replace"), GaussianEvent(noise_multiplier=1.0)),
        (without_replacement(6.0, 1, 10), GaussianEvent(noise_multiplier=1.0)),
    ],
    ids=repr,
)
def test_three_rows_by_hand(event, three):
    assert group_event(event, rows=3) == three
    many = ComposedEvent(events=(event, times(event, 4)))
    assert group_event(many, rows=3) == ComposedEvent(events=(three, times(three, 4)))


@pytest.mark.parametrize("rows", [2, 4])
def test_covers_a_count_that_moves_by_several_rows(rows):
    event = times(laplace(9.0, 1), 15)
    for epsilon in (0.1, 0.5, 2.0):
        truth = oracle.by_convolution(9.0, rows, 15, epsilon)
        assert truth <= total_delta(group_event(event, rows=rows), epsilon)


def test_replace_is_one_removal_and_one_addition():
    event = ComposedEvent(events=(GDPEvent(mu=0.1), times(poisson(3.0, 0.1, "add_remove"), 7), pure(0.2)))
    replaced = ComposedEvent(events=(GDPEvent(mu=0.2), times(poisson(3.0, 0.1, "replace"), 7), pure(0.4)))
    assert replace_event(event) == replaced


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda: replace_event(poisson(3.0, 0.1, "replace")), "bound to 'replace' already"),
        (lambda: group_event(pure(1.0), rows=0), "rows must be >= 1"),
        (lambda: group_event(UnknownEvent(), rows=1), "UnknownEvent"),
        (lambda: group_event(times(UnknownEvent(), 2), rows=2), "UnknownEvent"),
        (lambda: replace_event(UnknownEvent()), "UnknownEvent"),
        (lambda: group_event(GaussianEvent(noise_multiplier=1.0), rows=10**9), "noise_multiplier"),
    ],
)
def test_groups_without_an_answer_are_refused(build, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        build()
