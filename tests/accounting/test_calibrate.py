import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_dp.accounting import (
    BoundedRangeEvent,
    ComposedEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    GDPEvent,
    PureEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    calibrate,
    calibrated,
    gaussian_multiplier,
    leaves,
    mu_budget,
    noise_multiplier,
    pure_epsilon,
    range_per_use,
    rho_budget,
    total_epsilon,
    zcdp,
)
from pymc_dp.accounting.calibrate import with_noise_times
from pymc_dp.errors import ArgumentError
from tests.accounting.contract import EVENTS, UnknownEvent
from tests.accounting.oracle import laplace, poisson, pure, times, without_replacement

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


@pytest.mark.few(1)
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


def test_nearly_nothing_beside_another_event_is_found_and_nothing_is_refused():
    beside = PureEvent(epsilon=0.99)
    found = noise_multiplier(1.0, 1e-5, 50, **POISSON, beside=beside)
    event = SubsampledGaussianEvent(noise_multiplier=found, neighbours="replace", **POISSON)
    assert 0.999 < total_epsilon(ComposedEvent(events=(beside, times(event, 50))), 1e-5).epsilon <= 1.0
    with pytest.raises(ArgumentError, match="epsilon=1.0 leaves nothing"):
        noise_multiplier(1.0, 1e-5, 50, **POISSON, beside=PureEvent(epsilon=1.1))


def test_all_rows_under_replace_need_twice_the_noise_over_the_clip_norm():
    whole = {"sampling": "poisson", "sample_rate": 1.0}
    plain = gaussian_multiplier(1.0, 1e-6, uses=20)
    assert noise_multiplier(1.0, 1e-6, 20, **whole, neighbours="replace") == pytest.approx(2 * plain, rel=1e-3)
    assert noise_multiplier(1.0, 1e-6, 20, **whole, neighbours="add_remove") == pytest.approx(plain, rel=1e-3)


@pytest.mark.slow
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
        (lambda: mu_budget(1.0, 0.0), "delta > 0: the loss of a mu-GDP mechanism is unbounded"),
        (lambda: mu_budget(1.0, 1e-6, uses=0), "uses must be >= 1"),
        (lambda: mu_budget(0.0, 1e-6), "epsilon must be > 0"),
    ],
)
def test_budgets_without_an_answer_are_refused(build, text):
    with pytest.raises(ArgumentError, match=text):
        build()


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
        with pytest.raises(ArgumentError, match="Allow a delta > 0"):
            calibrated(event, 1.0, uses=3)
        return
    found = calibrated(event, 1.0, uses=3)
    assert 1.0 - 1e-12 < pure_epsilon(times(found, 3)) <= 1.0


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    st.sampled_from([pure(0.37), laplace(7.3, 3, 1), ZCDPEvent(rho=0.3), BoundedRangeEvent(eta=2.0), GDPEvent(mu=4.0)]),
    st.floats(1e-3, 30),
    st.sampled_from([1e-300, 1e-9, 0.5]),
    st.integers(1, 10**9),
)
def test_no_target_is_overspent(event, epsilon, delta, uses):
    found = calibrated(event, epsilon, delta, uses=uses)
    assert total_epsilon(times(found, uses), delta).epsilon <= epsilon


@pytest.mark.slow
def test_agrees_with_what_each_kind_has_of_its_own():
    budget, uses = (1.0, 1e-6), 50
    poisson_noise = noise_multiplier(*budget, uses, sampling="poisson", sample_rate=0.1, neighbours="replace")
    fixed = {"population": 100, "batch_size": 10}
    fixed_noise = noise_multiplier(*budget, uses, sampling="without_replacement", **fixed)
    for like, own in (
        (ZCDPEvent(rho=3.0), ZCDPEvent(rho=rho_budget(*budget) / uses)),
        (GDPEvent(mu=3.0), GDPEvent(mu=mu_budget(*budget, uses=uses))),
        (BoundedRangeEvent(eta=3.0), BoundedRangeEvent(eta=range_per_use(*budget, uses=uses))),
        (GaussianEvent(noise_multiplier=3.0), GaussianEvent(noise_multiplier=gaussian_multiplier(*budget, uses=uses))),
        (poisson(3.0, 0.1), poisson(poisson_noise, 0.1)),
        (without_replacement(3.0, 10, 100), without_replacement(fixed_noise, 10, 100)),
    ):
        found = calibrated(like, *budget, uses=uses).to_dict()
        for name, value in own.to_dict().items():
            assert found[name] == pytest.approx(value, rel=3e-4) if isinstance(value, float) else found[name] == value


def test_parts_keep_their_shares():
    event = ComposedEvent(events=(pure(0.2), laplace(5.0, 1, 1), ZCDPEvent(rho=0.04), GDPEvent(mu=0.1)))
    found = calibrated(event, 1.0, 1e-6)
    parts = {type(leaf): leaf for leaf in leaves(found)}
    (less, noise, rho, mu) = (parts[type(part)] for part in event.events)
    factor = 0.2 / less.epsilon
    assert noise.scale == pytest.approx(5.0 * factor) and noise.shifts == (1, 1)
    assert rho.rho == pytest.approx(0.04 / factor**2)
    assert mu.mu == pytest.approx(0.1 / factor)


@pytest.mark.parametrize("unit", [1, 10**9])
@pytest.mark.parametrize("known", [True, False], ids=["shifts", "l2 only"])
def test_blocks_of_discrete_gaussian_noise_keep_their_shares(unit, known):
    blocks = [(2.0, (1, 1)), (5.0, (3,)), (9.0, (4, 2, 1))]
    like = ComposedEvent(
        events=tuple(
            DiscreteGaussianEvent(
                scale=scale * unit,
                l2_squared=sum(shift**2 for shift in shifts) * unit**2,
                shifts=tuple(shift * unit for shift in shifts) if known else None,
            )
            for scale, shifts in blocks
        )
    )
    found = calibrated(like, 1.0, 1e-6)
    factors = [part.scale / before.scale for part, before in zip(found.events, like.events, strict=True)]
    assert factors == pytest.approx([factors[0]] * 3, rel=1e-14)
    assert total_epsilon(found, 1e-6).epsilon <= 1.0 < total_epsilon(with_noise_times(found, 1 - 3e-4), 1e-6).epsilon
    assert (total_epsilon(found, 1e-6).accountant == "zcdp") is not known


def test_discrete_laplace_noise_of_many_tables_needs_less_with_delta():
    table = DiscreteLaplaceEvent(scale=1.0, shifts=(1, 1))
    assert calibrated(table, 1.0, uses=200).scale == pytest.approx(400.0)
    assert calibrated(table, 1.0, 1e-5, uses=200).scale < 400.0 / 2.5


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
    with pytest.raises(ArgumentError, match=text):
        build()
