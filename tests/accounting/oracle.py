"""Events of every kind, and independent truth: hockey-stick divergences by plain sums over outcomes."""

import math

import numpy as np

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
    PureEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
)


def noise(scale, places):
    """Probabilities of discrete Laplace noise at whole `places`."""
    r = math.exp(-1 / scale)
    return (1 - r) / (1 + r) * r ** np.abs(places)


def gaussian_noise(scale, places):
    """Probabilities of discrete Gaussian noise at whole `places`."""
    reach = math.ceil(12 * scale)
    total = np.exp(-((np.arange(-reach, reach + 1) / scale) ** 2) / 2).sum()
    return np.exp(-((places / scale) ** 2) / 2) / total


def by_definition(parts, epsilon, noise=noise, reach=40):
    """Sum over all outcomes of max(0, P - e^epsilon Q); parts are (scale, shift), few and of small scale."""
    p = q = np.ones(1)
    for scale, shift in parts:
        places = np.arange(-math.ceil(reach * scale), math.ceil(reach * scale) + abs(shift) + 1)
        p = np.outer(p, noise(scale, places)).ravel()
        q = np.outer(q, noise(scale, places - shift)).ravel()
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def by_convolution(scale, shift, count, epsilon):
    """The same for `count` equal parts: losses are multiples of 1 / scale, and only positive numbers are added."""
    reach = math.ceil(40 * scale)
    places = np.arange(-reach, reach + shift + 1)
    losses = np.abs(places - shift) - np.abs(places)
    one = np.bincount(losses + shift, weights=noise(scale, places), minlength=2 * shift + 1)
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, one)
    loss = (np.arange(len(total)) - shift * count) / scale
    above = loss > epsilon
    return float(-np.expm1(epsilon - loss[above]) @ total[above])


def gaussian_by_definition(parts, epsilon):
    """The same with discrete Gaussian noise."""
    return by_definition(parts, epsilon, gaussian_noise, reach=9)


def gaussian_by_convolution(scale, shift, count, epsilon):
    """Of `count` parts with discrete Gaussian noise: their loss is count shift^2 / 2 - shift sum, over scale^2."""
    reach = math.ceil(12 * scale)
    one = gaussian_noise(scale, np.arange(-reach, reach + 1))
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, one)
    loss = (count * shift**2 / 2 - shift * (np.arange(len(total)) - reach * count)) / scale**2
    above = loss > epsilon
    return float(-np.expm1(epsilon - loss[above]) @ total[above])


def assert_upper_bound(delta_at, event, truth, epsilons, *, within=0.01):
    """`delta_at` is never below the truth, nor above it by more than a share `within`, down to 1e-8."""
    for epsilon in epsilons:
        claimed, exact = delta_at(event, epsilon), truth(epsilon)
        assert claimed >= exact * (1 - 1e-12), f"claims {claimed} at {epsilon}, the truth is {exact}"
        if exact > 1e-8:
            assert claimed <= exact * (1 + within), f"claims {claimed} at {epsilon}, the truth is only {exact}"


def laplace(scale, *shifts):
    return DiscreteLaplaceEvent(scale=scale, shifts=shifts)


def gaussian(scale, *shifts):
    return DiscreteGaussianEvent(scale=scale, shifts=shifts)


def times(event: Event, count: int) -> SelfComposedEvent:
    return SelfComposedEvent(event=event, count=count)


def pure(epsilon: float) -> PureEvent:
    return PureEvent(epsilon=epsilon)


def poisson(noise_multiplier, sample_rate, neighbours="replace"):
    return SubsampledGaussianEvent(
        noise_multiplier=noise_multiplier, sampling="poisson", sample_rate=sample_rate, neighbours=neighbours
    )


def without_replacement(noise_multiplier, batch_size, population):
    return SubsampledGaussianEvent(
        noise_multiplier=noise_multiplier,
        sampling="without_replacement",
        population=population,
        batch_size=batch_size,
        neighbours="replace",
    )


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
