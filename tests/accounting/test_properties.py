"""Laws of totals, whatever is composed."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_dp.accounting import (
    BoundedRangeEvent,
    ComposedEvent,
    GaussianEvent,
    GDPEvent,
    ZCDPEvent,
    total_epsilon,
)
from tests.accounting.oracle import gaussian, laplace, poisson, pure, times, without_replacement

LOSS = st.floats(-8, 1.5).map(lambda log: 10**log)
NOISE = st.floats(-0.5, 4).map(lambda log: 10**log)
PLAIN = st.one_of(
    st.builds(pure, LOSS),
    st.builds(
        lambda scale, shifts: laplace(scale, *shifts), NOISE, st.lists(st.integers(1, 9), min_size=1, max_size=3)
    ),
    st.builds(
        lambda scale, shifts: gaussian(scale, *shifts), NOISE, st.lists(st.integers(1, 9), min_size=1, max_size=3)
    ),
    st.builds(lambda rho: ZCDPEvent(rho=rho), LOSS),
    st.builds(lambda eta: BoundedRangeEvent(eta=eta), LOSS),
    st.builds(lambda noise: GaussianEvent(noise_multiplier=noise), NOISE),
    st.builds(lambda mu: GDPEvent(mu=mu), LOSS),
)
BATCHES = st.one_of(
    st.builds(poisson, NOISE, st.floats(1e-4, 1.0)),
    st.builds(lambda noise, rows: without_replacement(noise, 5, rows), NOISE, st.integers(5, 1000)),
)
LEAVES = st.one_of(PLAIN, PLAIN, BATCHES)
EVENTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: ComposedEvent(events=tuple(parts))),
        st.builds(times, inner, st.integers(1, 1000)),
    ),
    max_leaves=4,
)
GRID = 1 + 2e-3  # of losses, which may differ between events; below it, a total may move with it
few = settings(max_examples=20, deadline=None, derandomize=True)


@few
@given(EVENTS, EVENTS, st.sampled_from([1e-9, 1e-5]))
def test_more_costs_more_and_never_more_than_the_sum(event, other, delta):
    alone, more = (total_epsilon(each, delta).epsilon for each in (event, other))
    both = total_epsilon(ComposedEvent(events=(event, other)), 2 * delta).epsilon
    assert both <= (alone + more) * 1.05 + 1e-9
    assert alone <= total_epsilon(ComposedEvent(events=(event, other)), delta).epsilon * GRID + 1e-9


@few
@given(EVENTS, st.integers(2, 5))
def test_counts_equal_loops_and_grow(event, count):
    loop = total_epsilon(ComposedEvent(events=(event,) * count), 1e-6)
    assert total_epsilon(times(event, count), 1e-6) == loop
    assert loop.epsilon * GRID + 1e-9 >= total_epsilon(times(event, count - 1), 1e-6).epsilon
