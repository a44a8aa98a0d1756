"""What every accountant must obey; inherit and give `epsilon_at` and `delta_at`."""

import itertools
import math

import pytest

from pymc_dp.accounting import (
    ApproximateEvent,
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    GDPEvent,
    PenaltyBitEvent,
    ZCDPEvent,
)
from pymc_dp.errors import ArgumentError
from tests.accounting import oracle
from tests.accounting.oracle import gaussian, laplace, poisson, pure, times, without_replacement

EVENTS = [
    pure(0.1),
    pure(3.0),
    laplace(10.0, 1),
    laplace(7.3, 1, 1),
    laplace(40.0, 5, 2),
    DiscreteLaplaceEvent(scale=20.0, sensitivity=3),
    ZCDPEvent(rho=0.01),
    gaussian(7.3, 1, 1),
    gaussian(6e9, 10**9, 3),
    DiscreteGaussianEvent(scale=20.0, l2_squared=3),
    ComposedEvent(events=(pure(0.2), laplace(12.0, 2))),
    ComposedEvent(events=(pure(0.2), ZCDPEvent(rho=0.02))),
    BoundedRangeEvent(eta=0.3),
    GaussianEvent(noise_multiplier=6.0),
    GDPEvent(mu=0.15),
    ComposedEvent(
        events=(GDPEvent(mu=0.1), GaussianEvent(noise_multiplier=9.0), BoundedRangeEvent(eta=0.1), pure(0.1))
    ),
    PenaltyBitEvent(ratio=0.15, most_noise=3.0),
    ComposedEvent(events=(PenaltyBitEvent(ratio=0.05, most_noise=1.0), GDPEvent(mu=0.1))),
    ApproximateEvent(epsilon=0.1, delta=1e-9),
    ComposedEvent(events=(ApproximateEvent(epsilon=0.2, delta=2e-9), pure(0.1), ZCDPEvent(rho=0.01))),
    poisson(3.0, 0.01, "add_remove"),
    without_replacement(4.0, 10, 1000),
    ComposedEvent(events=(poisson(1.5, 0.01), ZCDPEvent(rho=0.0001))),
    ComposedEvent(
        events=(BoundedRangeEvent(eta=0.1), poisson(4.0, 0.02), GaussianEvent(noise_multiplier=20.0), pure(0.1))
    ),
]
DELTAS = (1e-200, 1e-12, 1e-9, 1e-6, 1e-3, 0.5, 0.999999)
EPSILONS = (0.0, 1e-9, 0.01, 0.3, 1.0, 5.0, 500.0)


class UnknownEvent(Event):
    def to_dict(self):
        return {"kind": "unknown"}


every_event = pytest.mark.parametrize("event", EVENTS, ids=repr)


class AccountantContract:
    within = math.inf

    def epsilon_at(self, event, delta):
        raise NotImplementedError

    def delta_at(self, event, epsilon):
        raise NotImplementedError

    @every_event
    def test_self_composition_equals_a_loop(self, event):
        loop = ComposedEvent(events=(event,) * 12)
        for composed in (times(event, 12), times(times(event, 3), 4), ComposedEvent(events=(times(event, 11), event))):
            assert [self.epsilon_at(composed, d) for d in DELTAS] == [self.epsilon_at(loop, d) for d in DELTAS]
            assert [self.delta_at(composed, e) for e in EPSILONS] == [self.delta_at(loop, e) for e in EPSILONS]

    @every_event
    def test_answers_are_never_negative_nor_nan(self, event):
        for count in (1, 30, 1000):
            composed = times(event, count)
            assert all(self.epsilon_at(composed, delta) >= 0 for delta in DELTAS)
            assert all(0 <= self.delta_at(composed, epsilon) <= 1 for epsilon in EPSILONS)

    @every_event
    def test_answers_fall_as_the_other_number_grows(self, event):
        for count in (1, 50):
            composed = times(event, count)
            epsilons = [self.epsilon_at(composed, delta) for delta in DELTAS]
            deltas = [self.delta_at(composed, epsilon) for epsilon in EPSILONS]
            assert all(a >= b for a, b in itertools.pairwise(epsilons))
            assert all(a >= b for a, b in itertools.pairwise(deltas))

    @every_event
    def test_more_uses_cost_more(self, event):
        # the grid of the losses may differ, hence the last digits
        epsilons = [self.epsilon_at(times(event, count), 1e-6) for count in (1, 2, 5, 20, 200)]
        assert all(b >= a * (1 - 1e-6) for a, b in itertools.pairwise(epsilons))

    @every_event
    def test_the_two_answers_agree(self, event):
        for delta in (1e-9, 1e-6, 1e-3):
            epsilon = self.epsilon_at(times(event, 10), delta)
            if math.isfinite(epsilon):
                assert self.delta_at(times(event, 10), epsilon) <= delta * (1 + 1e-9)

    @pytest.mark.parametrize("scale, shift, count", [(4.0, 1, 1), (20.0, 1, 50), (9.7, 3, 12), (60.0, 10, 100)])
    def test_covers_discrete_laplace_noise(self, scale, shift, count):
        oracle.assert_upper_bound(
            self.delta_at,
            times(laplace(scale, shift), count),
            lambda epsilon: oracle.by_convolution(scale, shift, count, epsilon),
            [x * shift * count / scale for x in (0.0, 0.03, 0.1, 0.3, 0.6, 0.9, 1.0)],
            within=self.within,
        )

    @pytest.mark.parametrize("shifts", [(1, 1), (3, 1), (2, 2, 1)], ids=repr)
    @pytest.mark.parametrize("sign", [1, -1])
    def test_covers_vectors_in_every_direction(self, shifts, sign):
        scale = 1.7
        signed = [(scale, shift * sign**place) for place, shift in enumerate(shifts)]
        oracle.assert_upper_bound(
            self.delta_at,
            laplace(scale, *shifts),
            lambda epsilon: oracle.by_definition(signed, epsilon),
            [0.0, 0.2, 0.5, 1.0, 1.4],
            within=self.within,
        )

    @pytest.mark.parametrize("event", [UnknownEvent(), times(UnknownEvent(), 2)], ids=["bare", "nested"])
    def test_an_unknown_event_is_refused(self, event):
        with pytest.raises(ArgumentError, match="UnknownEvent"):
            self.epsilon_at(event, 1e-6)
        with pytest.raises(ArgumentError, match="UnknownEvent"):
            self.delta_at(event, 1.0)
