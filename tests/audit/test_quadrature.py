import math

import numpy as np
import pytest
from scipy.stats import norm

import pymc_dp as dp
from pymc_dp.accounting import ComposedEvent, PureEvent, SelfComposedEvent
from pymc_dp.audit import compare_with_event, density_loss, privacy_loss, product
from pymc_dp.kernel.accounting.events import Event
from tests.accounting.oracle import by_definition, laplace, noise


def counts_loss(scale, shift=1):
    """One count with discrete Laplace noise, on data sets in which it differs by `shift`."""
    places = np.arange(-math.ceil(45 * scale), math.ceil(45 * scale) + shift + 1)
    return privacy_loss(np.log(noise(scale, places)), np.log(noise(scale, places - shift)))


def gaussian(mean):
    return lambda x: norm.logpdf(x[:, 0], mean)


def test_discrete_loss_equals_the_definition():
    loss = counts_loss(2.0, 3)
    assert loss.epsilon == pytest.approx(1.5)
    for epsilon in (0.0, 0.3, 1.2):
        assert loss.hockey_stick(epsilon)[0] == pytest.approx(by_definition([(2.0, 3)], epsilon), rel=1e-9)
    assert loss.hockey_stick(1.5)[0] == pytest.approx(0, abs=1e-14)


def test_gaussian_density_has_its_closed_forms():
    loss = density_loss(gaussian(0.0), gaussian(0.5), [(-12, 12.5)], panels=512)
    assert loss.renyi([2, 8]) == pytest.approx([0.25, 1.0], rel=1e-9)
    epsilon = 0.4
    exact = norm.cdf(0.25 - epsilon / 0.5) - math.exp(epsilon) * norm.cdf(-0.25 - epsilon / 0.5)
    assert loss.hockey_stick(epsilon)[0] == pytest.approx(exact, abs=1e-5)


def test_truncated_posterior_shows_a_temperature_that_is_half():
    """One draw of a Bernoulli probability in [.05, .95] given 40 rows at temperature 2 log(.95 / .05): ε = 1."""

    def log_density(ones, temperature):
        return lambda x: (ones * np.log(x[:, 0]) + (40 - ones) * np.log1p(-x[:, 0])) / temperature

    temperature = 2 * math.log(0.95 / 0.05)
    for factor, low, high in ((1.0, 0.8, 1.0), (0.5, 1.6, 2.0)):
        sides = [log_density(ones, factor * temperature) for ones in (39, 40)]
        loss = density_loss(*sides, [(0.05, 0.95)], normalise=True)
        assert low < loss.epsilon <= high
        assert compare_with_event(loss, PureEvent(epsilon=1.0)).passed is (factor == 1.0)


@pytest.mark.parametrize(
    ("event", "losses"),
    [
        (laplace(2.0, 1), [(2.0, 1)]),
        (laplace(3.0, 1, 1), [(3.0, 1), (3.0, 1)]),
        (ComposedEvent(events=(laplace(2.0, 1), laplace(4.0, 3))), [(2.0, 1), (4.0, 3)]),
        (SelfComposedEvent(event=laplace(2.0, 1), count=2), [(2.0, 1), (2.0, 1)]),
    ],
)
def test_no_accountant_claims_less_than_the_truth(event: Event, losses):
    comparison = compare_with_event(product(*[counts_loss(*part) for part in losses]), event)
    assert comparison.passed, comparison.report()
    assert "not a proof" in comparison.report()
    assert comparison.claimed_epsilon == pytest.approx(comparison.measured_epsilon)


@pytest.mark.parametrize(
    ("p", "q", "weights", "text"),
    [
        ([0.0], [0.0, 1.0], 1.0, "lengths 1 and 2"),
        ([math.nan], [0.0], 1.0, "NaN"),
        ([0.0], [math.inf], 1.0, "inf at outcome 0"),
        ([0.0], [0.0], -1.0, ">= 0"),
        ([0.0], [0.0], [1.0, 1.0], "one per outcome"),
        ([-0.5], [0.0], 1.0, "log_p has mass 0.6"),
    ],
)
def test_distributions_that_are_none_are_refused(p, q, weights, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        privacy_loss(p, q, weights)
