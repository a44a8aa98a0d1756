import math

import mpmath
import pytest

from pymc_dp.accounting import ComposedEvent, ZCDPEvent
from pymc_dp.accounting import pure as accountant
from tests.accounting.contract import AccountantContract
from tests.accounting.oracle import gaussian, laplace, pure, times


class TestPure(AccountantContract):
    def epsilon_at(self, event, delta):
        return accountant.epsilon_at(event, delta)

    def delta_at(self, event, epsilon):
        return accountant.delta_at(event, epsilon)


@pytest.mark.parametrize("count", [3, 7, 10, 1000])
def test_sums_of_decimals_are_exact(count):
    assert accountant.pure_epsilon(times(pure(0.1), count)) == count / 10


def test_losses_add():
    assert accountant.pure_epsilon(ComposedEvent(events=(pure(0.1), pure(0.2), laplace(10.0, 4)))) == 0.7


@pytest.mark.parametrize("other", [ZCDPEvent(rho=1e-9), gaussian(1e9, 1)], ids=repr)
def test_concentrated_noise_has_no_pure_loss(other):
    event = ComposedEvent(events=(pure(0.1), other))
    assert accountant.pure_epsilon(event) == math.inf
    assert accountant.delta_at(event, 100.0) == 1.0


@pytest.mark.parametrize("loss", [0.1, 0.3, 1 / 3, 5.0])
@pytest.mark.parametrize("digits", [1, 2, 1000])
def test_delta_is_rounded_up_to_the_last_digits_of_the_loss(loss, digits):
    epsilon = loss - digits * math.ulp(loss)
    with mpmath.workdps(60):
        high, low = mpmath.mpf(repr(loss)), mpmath.mpf(repr(epsilon))
        exact = (mpmath.e**high - mpmath.e**low) / (1 + mpmath.e**high)
        assert exact <= accountant.delta_at(pure(loss), epsilon) <= exact * (1 + mpmath.mpf(10) ** -12)


def test_one_pure_event_has_the_delta_of_randomised_response():
    high, low = math.e / (1 + math.e), 1 / (1 + math.e)
    assert accountant.delta_at(pure(1.0), 0.4) == pytest.approx(high - math.exp(0.4) * low, rel=1e-12)
