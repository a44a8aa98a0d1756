import math
from fractions import Fraction

import pytest

import pymc_dp as dp


def test_a_budget_covers_what_is_no_larger_in_both_numbers():
    budget = dp.Budget(1.0, 1e-6)
    assert budget.covers(budget)
    assert budget.covers(dp.Budget(0.0))
    assert not budget.covers(dp.Budget(1.0, 2e-6))
    assert not budget.covers(dp.Budget(math.nextafter(1.0, 2.0)))


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.3])
@pytest.mark.parametrize("weights", [(1, 1, 1), (0.1, 0.2, 0.7), (1e-9, 1.0), (5,), range(1, 30)], ids=repr)
def test_shares_never_sum_to_more_than_the_whole(epsilon, weights):
    parts = dp.Budget(epsilon, 1e-6).split(weights)
    for name in ("epsilon", "delta"):
        whole = Fraction(repr(getattr(dp.Budget(epsilon, 1e-6), name)))
        total = sum(Fraction(repr(getattr(part, name))) for part in parts)
        assert whole * (1 - Fraction(1, 10**14)) < total <= whole
    assert [part.epsilon for part in parts] == pytest.approx([epsilon * w / sum(weights) for w in weights], rel=1e-12)


@pytest.mark.parametrize("weights", [(), (0, 1), (-1, 2)], ids=repr)
def test_bad_weights_are_refused(weights):
    with pytest.raises(dp.errors.ArgumentError, match="weights"):
        dp.Budget(1.0).split(weights)


@pytest.mark.parametrize("arguments", [(-1.0,), (math.nan,), ("1",), (1.0, 1.0), (1.0, -1e-9), (True,)], ids=repr)
def test_bad_amounts_are_refused(arguments):
    with pytest.raises(dp.errors.ArgumentError):
        dp.Budget(*arguments)
