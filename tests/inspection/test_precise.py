"""A number that nobody would choose is asked about; one that people write is not."""

import math

import numpy as np
import pytest

from pymc_dp.inspection.assumptions import looks_computed

WRITTEN = [
    *(0.5, 1 / 3, 2.5, 1e-3, 0.05, 0.01, 100, 1000.0, -12.345, 6366, 1e-300, 1e300, 0.0, math.inf, math.nan, 5e-324),
    *(math.pi, 2 * math.pi / 12, math.sqrt(2), 1 / math.sqrt(2 * math.pi), math.sqrt(1000), 0.1**2.5, math.exp(-1)),
    *(math.log(40_000), math.log(2) / 2, math.log(0.3 / 0.7), math.log(2 * math.pi) / 2, math.log2(3), math.log10(2)),
    *(2 / 7, 1 / 365, 13 / 128, 2.0**20, 2.0**-20, 0.9**6, 0.9**9, math.pi / math.sqrt(3)),
    *(3.14159, 1.41421, 2.718281828, 1.959964, 1.6448536, 0.693147),
]
COMPUTED = [-0.0736625, 173.2841, 0.123456, 1_234_567.0, 3.14259, 6366.25, 1.959965, 0.7182818]


@pytest.mark.parametrize("number", WRITTEN)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_that_people_write_are_not_asked_about(number, dtype):
    if dtype is np.float64 or 1e-30 < abs(number) < 1e30:
        assert not looks_computed(np.array(number, dtype=dtype))


@pytest.mark.parametrize("number", COMPUTED)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_precise_numbers_are_asked_about_alone_and_in_arrays(number, dtype):
    assert looks_computed(np.array(number, dtype=dtype))
    assert looks_computed(np.array([[0.0, 1.0], [number, 2.0]], dtype=dtype))
