import copy
import json
import math
import pickle

import pytest

import pymc_dp as dp
from pymc_dp.accounting import (
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    PureEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    event_from_dict,
    leaves,
)
from pymc_dp.kernel.accounting.events import base
from tests.accounting.oracle import EVENTS, UnknownEvent, poisson, pure, times, without_replacement


@pytest.mark.parametrize("event", [*EVENTS, times(times(pure(0.1), 2), 3)], ids=repr)
def test_events_survive_json_pickle_and_copy(event):
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert pickle.loads(pickle.dumps(event)) == copy.deepcopy(event) == event
    assert hash(copy.deepcopy(event)) == hash(event)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: PureEvent(epsilon=math.nan), "finite"),
        (lambda: PureEvent(epsilon=True), "must be a number"),
        (lambda: DiscreteLaplaceEvent(scale=0.0, shifts=(1,)), "scale must be > 0"),
        (lambda: DiscreteLaplaceEvent(scale=1.0), "Give sensitivity"),
        (lambda: DiscreteLaplaceEvent(scale=1.0, shifts=(1, 0)), "each of shifts must be >= 1"),
        (lambda: DiscreteLaplaceEvent(scale=1.0, sensitivity=1, shifts=(1, 1)), "sum to 2"),
        (lambda: DiscreteLaplaceEvent(scale=5e-324, shifts=(1,)), "finite"),
        (lambda: DiscreteGaussianEvent(scale=1.0), "Give l2_squared"),
        (lambda: DiscreteGaussianEvent(scale=1.0, l2_squared=4, shifts=(1, 1)), "sum to 2, but l2_squared is 4"),
        (lambda: DiscreteGaussianEvent(scale=1e-200, shifts=(1,)), "finite"),
        (lambda: GaussianEvent(noise_multiplier=-1.0), "L2 sensitivity"),
        (lambda: poisson(0.0, 0.1), "clip norm"),
        (lambda: poisson(1.0, 0.0), "sample_rate must lie in"),
        (lambda: poisson(1.0, None), "sample_rate must be a number"),
        (lambda: without_replacement(1.0, 11, 10), "batch_size must be in 1..10"),
        (lambda: ComposedEvent(events=()), "one event or more"),
        (lambda: ComposedEvent(events=(1.0,)), "float"),
        (lambda: SelfComposedEvent(event=pure(1.0), count=0), "count must be >= 1"),
        (lambda: SelfComposedEvent(event="x", count=2), "str"),
        (lambda: leaves(UnknownEvent()), "UnknownEvent"),
        (lambda: event_from_dict({"kind": "pur", "epsilon": 1.0}), "Did you mean 'pure'"),
        (lambda: event_from_dict({"kind": "pure", "rho": 1.0}), "cannot have the fields"),
    ],
)
def test_bad_events_are_refused_with_a_text(build, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        build()


@pytest.mark.parametrize("sampling", ["poisson", "without_replacement", "fixed", "shuffle", None])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove", "substitute", None])
def test_a_sampler_without_a_proved_curve_cannot_be_written_down(sampling, neighbours):
    sizes = {"sample_rate": 0.1} if sampling == "poisson" else {"population": 100, "batch_size": 10}
    build = lambda **more: SubsampledGaussianEvent(  # noqa: E731
        noise_multiplier=1.0, sampling=sampling, neighbours=neighbours, **{**sizes, **more}
    )
    if (sampling, neighbours) in {
        ("poisson", "replace"),
        ("poisson", "add_remove"),
        ("without_replacement", "replace"),
    }:
        assert build().rate == 0.1
        foreign = {"batch_size": 10} if sampling == "poisson" else {"sample_rate": 0.1}
        with pytest.raises(dp.errors.ArgumentError, match="does not belong"):
            build(**foreign)
    else:
        with pytest.raises(dp.errors.ArgumentError, match="sampling='without_replacement' with neighbours='replace'"):
            build()


def test_noise_over_clip_norm_becomes_noise_over_sensitivity():
    assert GaussianEvent.of_all_rows(poisson(8.0, 0.1, "replace")) == GaussianEvent(noise_multiplier=4.0)
    assert GaussianEvent.of_all_rows(poisson(8.0, 0.1, "add_remove")) == GaussianEvent(noise_multiplier=8.0)
    assert GaussianEvent.of_all_rows(without_replacement(8.0, 1, 10)) == GaussianEvent(noise_multiplier=4.0)


def kinds(event):
    """All kinds of events within an event, its own included."""
    return {event.kind}.union(*(kinds(part) for part, _ in event.parts()))


def test_every_kind_has_a_sample_that_the_contracts_are_tried_on():
    # each of them is composed with itself there, by a count and by a loop
    of_package = {kind for kind, known in base.KINDS.items() if known.__module__.startswith("pymc_dp.")}
    assert set().union(*map(kinds, [*EVENTS, times(pure(0.1), 2)])) == of_package


def test_two_relations_cannot_be_composed():
    event = ComposedEvent(events=(poisson(1.0, 0.1, "replace"), times(poisson(1.0, 0.1, "add_remove"), 2)))
    with pytest.raises(dp.errors.ArgumentError, match="cannot be composed"):
        leaves(event)
