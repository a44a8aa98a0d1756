import math

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
    ZCDPEvent,
    calibrated,
    gaussian_multiplier,
    leaves,
    mu_budget,
    noise_multiplier,
    pure_epsilon,
    range_per_use,
    rho_budget,
    total_epsilon,
)
from pymc_dp.accounting.target import with_noise_times
from pymc_dp.errors import ArgumentError
from tests.accounting.contract import EVENTS, UnknownEvent
from tests.accounting.oracle import laplace, poisson, pure, times, without_replacement

every_event = pytest.mark.parametrize("event", [*EVENTS, times(times(pure(0.1), 2), 3)], ids=repr)


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
