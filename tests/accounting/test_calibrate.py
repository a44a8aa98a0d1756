import math

import pytest

import pymc_dp as dp
from pymc_dp.accounting import (
    BoundedRangeEvent,
    ComposedEvent,
    GaussianEvent,
    GDPEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    calibrated,
    mu_budget,
    noise_multiplier,
    pure_epsilon,
    range_per_use,
    rho_budget,
    total_epsilon,
)
from pymc_dp.accounting.calibrate import with_noise_times
from tests.accounting.oracle import EVENTS, UnknownEvent, pure, times

POISSON = {"sampling": "poisson", "sample_rate": 180 / 32561}
FIXED = {"sampling": "without_replacement", "population": 32561, "batch_size": 180}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "epsilon, delta, steps, sampler, neighbours",
    [
        (1.0, 1e-5, 32561, POISSON, "replace"),
        (1.0, 1e-5, 32561, POISSON, "add_remove"),
        (5.0, 1e-5, 32561, FIXED, "replace"),
        (0.2, 1e-9, 50, {"sampling": "poisson", "sample_rate": 0.3}, "replace"),
        (8.0, 1e-3, 3, {"sampling": "poisson", "sample_rate": 1.0}, "replace"),
        (0.5, 1e-6, 10, {"sampling": "without_replacement", "population": 10, "batch_size": 10}, "replace"),
        (0.5, 1e-12, 30_000, {"sampling": "poisson", "sample_rate": 1e-3}, "add_remove"),
    ],
)
def test_noise_never_overspends_nor_wastes(epsilon, delta, steps, sampler, neighbours):
    found = noise_multiplier(epsilon, delta, steps, **sampler, neighbours=neighbours)

    def total(noise):
        event = SubsampledGaussianEvent(noise_multiplier=noise, neighbours=neighbours, **sampler)
        return total_epsilon(times(event, steps), delta).epsilon

    assert total(found) <= epsilon < total(found * (1 - 1e-3))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("beside", "sampler"), [(BoundedRangeEvent(eta=0.5), FIXED), (GDPEvent(mu=0.13), POISSON)], ids=["range", "GDP"]
)
def test_noise_beside_another_event_never_overspends_nor_wastes_and_beats_adding(beside, sampler):
    found = noise_multiplier(1.0, 1e-5, 50, **sampler, beside=beside)

    def total(noise):
        event = SubsampledGaussianEvent(noise_multiplier=noise, neighbours="replace", **sampler)
        return total_epsilon(ComposedEvent(events=(beside, times(event, 50))), 1e-5).epsilon

    assert total(found) <= 1.0 < total(found * (1 - 2e-3))
    assert noise_multiplier(1.0, 1e-5, 50, **sampler) < found
    left = 1.0 - total_epsilon(beside, 0.5e-5).epsilon
    assert found < noise_multiplier(left, 0.5e-5, 50, **sampler)


@pytest.mark.few(11)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5])
@pytest.mark.parametrize("uses", [1, 7, 3000])
def test_ranges_never_overspend_and_use_the_best_accountant(epsilon, delta, uses):
    eta = range_per_use(epsilon, delta, uses=uses)
    assert total_epsilon(times(BoundedRangeEvent(eta=eta), uses), delta).epsilon <= epsilon
    assert eta >= epsilon / uses * (1 - 1e-15)
    if delta > 0:
        assert eta >= math.sqrt(8 * rho_budget(epsilon, delta) / uses) * (1 - 1e-9)
        assert total_epsilon(times(BoundedRangeEvent(eta=eta * 1.001), uses), delta).epsilon > epsilon
    else:
        assert total_epsilon(times(BoundedRangeEvent(eta=math.nextafter(eta, 9)), uses)).epsilon > epsilon


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1e-3])
@pytest.mark.parametrize("uses", [1, 3, 1000, 10**9])
def test_mu_never_overspends_nor_wastes(epsilon, delta, uses):
    mu = mu_budget(epsilon, delta, uses=uses)
    assert total_epsilon(times(GDPEvent(mu=mu), uses), delta).epsilon <= epsilon
    assert total_epsilon(times(GDPEvent(mu=mu * (1 + 1e-6)), uses), delta).epsilon > epsilon


every_event = pytest.mark.parametrize("event", [*EVENTS, times(times(pure(0.1), 2), 3)], ids=repr)


@pytest.mark.few(5)
@every_event
def test_a_target_is_never_overspent_nor_wasted(event):
    epsilon, delta, uses = 0.3, 1e-5, 100
    found = calibrated(event, epsilon, delta, uses=uses)
    assert total_epsilon(times(found, uses), delta).epsilon <= epsilon
    assert total_epsilon(times(with_noise_times(found, 0.999), uses), delta).epsilon > epsilon


@every_event
def test_without_delta_what_is_pure_fills_the_budget_to_the_last_digit(event):
    if math.isinf(pure_epsilon(event)):
        with pytest.raises(dp.errors.ArgumentError, match="Allow a delta > 0"):
            calibrated(event, 1.0, uses=3)
        return
    found = calibrated(event, 1.0, uses=3)
    assert 1.0 - 1e-12 < pure_epsilon(times(found, 3)) <= 1.0


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda: calibrated(pure(1.0), 0.0), "epsilon must be > 0"),
        (lambda: calibrated(pure(1.0), 1.0, 1.0), "delta must lie in"),
        (lambda: calibrated(pure(1.0), 1.0, uses=0), "uses must be >= 1"),
        (lambda: calibrated(pure(1.0), 1e-300, uses=10**9), "too small for 1000000000 uses"),
        (lambda: calibrated(UnknownEvent(), 1.0), "UnknownEvent"),
        (lambda: with_noise_times(ZCDPEvent(rho=1e300), 1e-10), "beyond any float"),
        (lambda: calibrated(GaussianEvent(noise_multiplier=1.0), 1e-9, 1e-9, uses=10**12), "noise_multiplier"),
    ],
)
def test_targets_without_an_answer_are_refused(build, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        build()
