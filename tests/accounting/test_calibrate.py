import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_dp.accounting import (
    BoundedRangeEvent,
    ComposedEvent,
    GaussianEvent,
    GDPEvent,
    PureEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    calibrate,
    gaussian_multiplier,
    mu_budget,
    noise_multiplier,
    range_per_use,
    rho_budget,
    total_epsilon,
    zcdp,
)
from pymc_dp.errors import ArgumentError
from tests.accounting.oracle import times

POISSON = {"sampling": "poisson", "sample_rate": 180 / 32561}
FIXED = {"sampling": "without_replacement", "population": 32561, "batch_size": 180}


def test_updates_cost_what_theory_5_says():
    def epsilon(uses):
        return total_epsilon(times(BoundedRangeEvent(eta=0.01), uses), 1e-5).epsilon

    assert epsilon(400) == pytest.approx(0.375, abs=5e-4)
    assert epsilon(1000) == pytest.approx(0.62, abs=0.005)
    assert range_per_use(0.3752, 1e-5, uses=400) == pytest.approx(0.01, rel=1e-3)


def test_a_chain_costs_what_theory_6_says():
    assert zcdp.epsilon_of_rho(0.135, 1e-6) == pytest.approx(2.52, abs=0.005)
    assert rho_budget(2.52, 1e-6) == pytest.approx(0.135, abs=5e-4)


@pytest.mark.parametrize(
    "epsilon, sampler, over", [(1.0, POISSON, 25), (1.0, FIXED, 11.6), (5.0, POISSON, 21), (5.0, FIXED, 9.2)]
)
def test_the_papers_noise_is_over_what_is_needed_as_theory_7_says(epsilon, sampler, over):
    n, batch, steps, delta = 32561, 180, 32561, 1e-5
    # [W alg 2]: std of the parameter noise is sigma eta, that on the sum of clipped gradients sigma eta tau / (eta n)
    variance = 128 * steps / epsilon**2 * math.log(2.5 * steps / delta) * math.log(2 / delta)
    papers = math.sqrt(variance) * batch / n
    needed = noise_multiplier(epsilon, delta, steps, **sampler)
    assert papers / needed == pytest.approx(over, rel=0.015)


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
def test_noise_never_overspends_nor_wastes_and_is_found_fast(epsilon, delta, steps, sampler, neighbours):
    import dp_accounting.pld.privacy_loss_distribution
    import dp_accounting.rdp  # noqa: F401

    calibrate._noise_multiplier.cache_clear()
    start = time.process_time()
    found = noise_multiplier(epsilon, delta, steps, **sampler, neighbours=neighbours)
    assert time.process_time() - start < 2

    def total(noise):
        event = SubsampledGaussianEvent(noise_multiplier=noise, neighbours=neighbours, **sampler)
        return total_epsilon(times(event, steps), delta).epsilon

    assert total(found) <= epsilon < total(found * (1 - 1e-3))
    start = time.process_time()
    assert noise_multiplier(epsilon, delta, steps, **sampler, neighbours=neighbours) == found
    assert time.process_time() - start < 0.05


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


def test_nearly_nothing_beside_another_event_is_found_and_nothing_is_refused():
    beside = PureEvent(epsilon=0.99)
    found = noise_multiplier(1.0, 1e-5, 50, **POISSON, beside=beside)
    event = SubsampledGaussianEvent(noise_multiplier=found, neighbours="replace", **POISSON)
    assert 0.999 < total_epsilon(ComposedEvent(events=(beside, times(event, 50))), 1e-5).epsilon <= 1.0
    with pytest.raises(ArgumentError, match="Nothing of epsilon=1.0 is left"):
        noise_multiplier(1.0, 1e-5, 50, **POISSON, beside=PureEvent(epsilon=1.1))


def test_all_rows_under_replace_need_twice_the_noise_over_the_clip_norm():
    whole = {"sampling": "poisson", "sample_rate": 1.0}
    plain = gaussian_multiplier(1.0, 1e-6, uses=20)
    assert noise_multiplier(1.0, 1e-6, 20, **whole, neighbours="replace") == pytest.approx(2 * plain, rel=1e-3)
    assert noise_multiplier(1.0, 1e-6, 20, **whole, neighbours="add_remove") == pytest.approx(plain, rel=1e-3)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.floats(0.05, 8), st.sampled_from([1e-9, 1e-6, 1e-4]), st.integers(1, 5000), st.floats(1e-2, 1), st.booleans())
def test_noise_of_any_budget_fits_it(epsilon, delta, steps, rate, replace):
    sampler = {
        "sampling": "poisson",
        "sample_rate": rate,
        "neighbours": "replace" if replace else "add_remove",
    }
    found = noise_multiplier(epsilon, delta, steps, **sampler)
    event = SubsampledGaussianEvent(noise_multiplier=found, **sampler)
    assert total_epsilon(times(event, steps), delta).epsilon <= epsilon


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


@pytest.mark.parametrize("epsilon, delta, uses", [(0.01, 1e-9, 1), (1.0, 1e-6, 1), (1.0, 1e-6, 3000), (20.0, 1e-3, 7)])
def test_gaussian_noise_never_overspends_nor_wastes(epsilon, delta, uses):
    found = gaussian_multiplier(epsilon, delta, uses=uses)
    assert total_epsilon(times(GaussianEvent(noise_multiplier=found), uses), delta).epsilon <= epsilon
    less = times(GaussianEvent(noise_multiplier=found * (1 - 1e-9)), uses)
    assert total_epsilon(less, delta).epsilon > epsilon


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1e-3])
@pytest.mark.parametrize("uses", [1, 3, 1000, 10**9])
def test_mu_never_overspends_nor_wastes(epsilon, delta, uses):
    mu = mu_budget(epsilon, delta, uses=uses)
    assert total_epsilon(times(GDPEvent(mu=mu), uses), delta).epsilon <= epsilon
    assert total_epsilon(times(GDPEvent(mu=mu * (1 + 1e-6)), uses), delta).epsilon > epsilon


def test_rho_of_a_budget_fits_it():
    assert total_epsilon(ZCDPEvent(rho=rho_budget(1.0, 1e-6)), 1e-6).epsilon <= 1.0


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda: noise_multiplier(1.0, 0.0, 10, **POISSON), "delta > 0"),
        (lambda: noise_multiplier(1.0, 1e-6, 0, **POISSON), "steps must be >= 1"),
        (lambda: noise_multiplier(1.0, 1e-6, 10, **FIXED, neighbours="add_remove"), "No proved curve"),
        (lambda: noise_multiplier(0.0, 1e-6, 10, **POISSON), "epsilon must be > 0"),
        (lambda: range_per_use(1.0, uses=0), "uses must be >= 1"),
        (lambda: range_per_use(5e-324, uses=10), "too small"),
        (lambda: gaussian_multiplier(1.0, 0.0), "delta > 0"),
        (lambda: rho_budget(1.0, 0.0), "delta > 0"),
        (lambda: mu_budget(1.0, 0.0), "delta > 0: the loss of a mu-GDP mechanism has no largest value"),
        (lambda: mu_budget(1.0, 1e-6, uses=0), "uses must be >= 1"),
        (lambda: mu_budget(0.0, 1e-6), "epsilon must be > 0"),
    ],
)
def test_budgets_without_an_answer_are_refused(build, text):
    with pytest.raises(ArgumentError, match=text):
        build()
