import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.langevin.batches import AlphaPhase, Constant, Limits, PolynomialDecay, step_sizes

LIMITS = Limits(natural=1e-4, stable=1e-2)


def test_a_constant_is_the_largest_that_is_natural_and_stable_unless_given():
    assert set(Constant().sizes(5, LIMITS)) == {1e-4}
    assert set(Constant().sizes(5, Limits(natural=1.0, stable=0.5))) == {0.5}
    assert set(Constant(3.0).sizes(5, LIMITS)) == {3.0}


def test_decay_begins_at_the_stable_size_and_ends_at_the_natural_one():
    sizes = PolynomialDecay(power=1.0).sizes(1000, LIMITS)
    assert sizes[0] == LIMITS.stable and sizes[-1] == LIMITS.natural and (np.diff(sizes) <= 0).all()
    assert PolynomialDecay(first=1.0).sizes(3, LIMITS)[0] == LIMITS.stable
    np.testing.assert_allclose(PolynomialDecay(1e-3, 1e-9, 2.0, 0.5).sizes(3, LIMITS), 1e-3 / np.sqrt([1, 1.5, 2]))


def test_alpha_phase_is_natural_after_its_share_of_the_steps():
    """η_t σ² = v exactly in step α T, so that (papers' form) noise K η² equals η there."""
    sizes = AlphaPhase(0.25).sizes(4000, LIMITS)
    assert sizes[999] == pytest.approx(LIMITS.natural) and sizes[0] == LIMITS.stable
    assert (sizes[:999] > LIMITS.natural).all() and (sizes[1000:] < LIMITS.natural).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PolynomialDecay(power=0.0), r"power must lie in \(0, 1\]"),
        (lambda: PolynomialDecay(offset=-1.0), "offset must lie"),
        (lambda: PolynomialDecay(first=0.0), "first must lie"),
        (lambda: AlphaPhase(1.0), r"alpha must lie in \(0, 1\)"),
        (lambda: step_sizes("large"), "step_size must be a number > 0, dp.schedules.PolynomialDecay"),
        (lambda: step_sizes(True), "step_size must be"),
        (lambda: step_sizes(0.0), "step_size must lie"),
    ],
)
def test_wrong_arguments_are_explained(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
