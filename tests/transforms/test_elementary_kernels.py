"""Exponentials and logarithms by plain arithmetic have the digits of libm."""

import numpy as np

from pymc_dp.transforms.jit import LOWEST, exponential, kernel, logarithm

ROUNDINGS = 3e-16


@kernel
def both(x, y, exponentials, logarithms):
    for i in range(len(x)):
        exponentials[i], logarithms[i] = exponential(x[i]), logarithm(y[i])


def evaluated(x, y):
    found = np.empty(len(x)), np.empty(len(y))
    both(x, y, *found)
    return found


def test_they_are_right_to_a_rounding_or_two(rng):
    x = np.concatenate([rng.uniform(LOWEST, 700, 5000), 1e-3 * rng.normal(size=5000), [0.0, -0.0, LOWEST]])
    y = np.concatenate([10 ** rng.uniform(-300, 300, 5000), 1 + 1e-3 * rng.normal(size=5000), [1.0, 2.0, np.sqrt(0.5)]])
    exponentials, logarithms = evaluated(x, y)
    np.testing.assert_allclose(exponentials, np.exp(x), rtol=ROUNDINGS)
    np.testing.assert_allclose(logarithms, np.log(y), rtol=ROUNDINGS, atol=ROUNDINGS)


def test_an_exponential_far_below_is_next_to_nothing():
    exponentials, _ = evaluated(np.array([-1e3, -1e300, -np.inf]), np.ones(3))
    assert ((exponentials > 0) & (exponentials < 1e-300)).all()
