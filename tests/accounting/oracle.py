"""Independent truth: hockey-stick divergences by plain sums over outcomes, sharing no code with the package."""

import math

import numpy as np

from pymc_dp.accounting import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    PureEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
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
