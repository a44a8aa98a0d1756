import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pymc_dp as dp
from pymc_dp.accounting import PureFilter, ZCDPFilter

FILTERS = (PureFilter, ZCDPFilter)
every_filter = pytest.mark.parametrize("kind", FILTERS)


@every_filter
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    preset=st.floats(1e-6, 10),
    losses=st.lists(st.one_of(st.floats(0, 10), st.sampled_from([0.1, 1e-300, 0.0, math.inf])), max_size=40),
)
def test_the_sum_never_exceeds_the_preset(kind, preset, losses):
    run = kind(preset)
    made = Fraction(0)
    for loss in losses:
        fits = loss != math.inf and made + Fraction(repr(loss)) <= Fraction(repr(preset))
        assert run.may_spend(loss) == fits
        if fits:
            run.spend(loss)
            made += Fraction(repr(loss))
        else:
            with pytest.raises(dp.errors.BudgetExceeded, match="does not fit"):
                run.spend(loss)
        assert made <= Fraction(repr(run.preset))
        assert made <= Fraction(repr(run.spent)) <= Fraction(repr(preset))
        assert Fraction(repr(run.remaining)) <= Fraction(repr(preset)) - made
        assert run.may_spend(run.remaining)


@every_filter
def test_many_small_steps_are_all_counted(kind):
    # in float64 1 + 1e-17 is 1: a plain sum would never end
    run = kind(1.0)
    run.spend(1.0 - 2e-16)
    made = 0
    while run.may_spend(1e-17):
        run.spend(1e-17)
        made += 1
    assert made == (Fraction(1) - Fraction(repr(1.0 - 2e-16))) // Fraction(1, 10**17)


@every_filter
@pytest.mark.parametrize("loss", [-1e-9, math.nan, "0.1", True, -math.inf, None])
def test_a_step_that_is_no_loss_is_refused(kind, loss):
    run = kind(1.0)
    for act in (run.may_spend, run.spend):
        with pytest.raises(dp.errors.ArgumentError):
            act(loss)
    assert run.spent == 0
