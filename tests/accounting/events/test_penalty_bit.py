"""The accept bit of the penalty method: brute force over places and noises, and what its bound rests on."""

import mpmath
import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.accounting import PenaltyBitEvent, penalty_ratio, rdp, total_epsilon
from pymc_dp.kernel.accounting.events import penalty_bit
from tests.accounting.oracle import times

ORDERS = (1.1, 2.0, 16.0, 256.0)
RATIOS = (1e-5, 1e-3, 0.03, 0.4, 2.0)


def renyi(one, other, order):
    """Divergences of bits given by the logarithms of both probabilities; near 1 by its second difference."""
    return np.logaddexp(order * one[0] + (1 - order) * other[0], order * one[1] + (1 - order) * other[1]) / (order - 1)


@pytest.mark.parametrize("s", [0.5, 3.0, 10.0])
def test_both_logarithms_are_exact_far_out(s):
    with mpmath.workdps(150):
        for place in (-30.0, -9.0, -0.5, 3.0, 9.0, 18.0):
            x, sd = mpmath.mpf(place), mpmath.mpf(s)
            accept = mpmath.ncdf(x - sd / 2) + mpmath.exp(sd * x) * mpmath.ncdf(-x - sd / 2)
            found = [float(part[0]) for part in penalty_bit.log_accept(np.array([place]), s)]
            exact = [float(mpmath.log(accept)), float(mpmath.log(1 - accept))]
            np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-15)


@pytest.mark.few(11)
@pytest.mark.parametrize("most", [0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("ratio", RATIOS)
def test_no_place_and_no_smaller_noise_exceeds_the_bound(ratio, most):
    claimed = {order: rdp.leaf_divergence(PenaltyBitEvent(ratio=ratio, most_noise=most), order) for order in ORDERS}
    worst = dict.fromkeys(ORDERS, 0.0)
    for s in (most, 0.8 * most, 0.2 * most, 0.01 * most):
        places = np.linspace(-40 / s - s, s / 2 + 24, 40001)
        here = np.stack(penalty_bit.log_accept(places, s))
        for share in (1.0, 0.7) if ratio > 1e-4 else (1.0,):
            there = np.stack(penalty_bit.log_accept(places + share * ratio, s))
            for order in ORDERS:
                found = max(renyi(here, there, order).max(), renyi(there, here, order).max())
                worst[order] = max(worst[order], float(found))
    for order in ORDERS:
        # rounding of divergences of about 1e-10 that are differences of numbers of size 1
        assert worst[order] <= claimed[order] + 1e-15 * order
        searched = order * ratio <= penalty_bit.MOST_TILT
        slack = 1.04 if searched and claimed[order] < 0.999 * order * ratio**2 / 2 else np.inf
        assert claimed[order] <= slack * worst[order] + 1e-15 * order
        assert claimed[order] <= order * ratio**2 / 2 * (1 + 1e-9)


@pytest.mark.parametrize("uses", [1, 100, 5000])
def test_ratio_fits_its_budget_and_buys_more_than_the_noised_ratios_would(uses):
    ratio = penalty_ratio(1.0, 1e-6, uses=uses, most_noise=3.0)
    event = PenaltyBitEvent(ratio=ratio, most_noise=3.0)
    assert total_epsilon(times(event, uses), 1e-6).epsilon <= 1.0
    more = PenaltyBitEvent(ratio=ratio * 1.01, most_noise=3.0)
    assert min(rdp.epsilon_at(times(more, uses), 1e-6), 9.0) > 1.0 or uses == 1


def test_no_delta_is_refused():
    with pytest.raises(dp.errors.ArgumentError, match="delta > 0"):
        penalty_ratio(1.0, 0.0, uses=10, most_noise=3.0)
    with pytest.raises(dp.errors.ArgumentError, match="most_noise"):
        PenaltyBitEvent(ratio=1.0, most_noise=0.1)
