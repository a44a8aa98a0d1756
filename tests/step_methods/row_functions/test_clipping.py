"""Public numbers of clipping: how large whole numbers may get, and what is left for rounding."""

import math
from fractions import Fraction

import pytest

from pymc_dp.step_methods.row_functions.limits import clip_to

NORMS = [1e-250, 0.7, 1.0, math.nextafter(2.0, 0), 3.0, 1e6, 1e250]
LARGEST = 2**32
"""Of the number of rows that may be declared."""


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1, 2, 7, 200])
@pytest.mark.parametrize("n_rows", [1, 1000, 10**7, LARGEST])
@pytest.mark.parametrize("products", [False, True])
def test_what_is_allowed_is_within_the_norm_with_all_that_is_rounded(norm, size, n_rows, products):
    clip = clip_to(norm, size=size, n_rows=n_rows, products=products)
    unit, room = Fraction(clip.unit), Fraction(1, 2**53)
    assert math.frexp(clip.unit)[0] == 0.5 and clip.inverse * clip.unit == 1
    true = Fraction(clip.most) / (1 - room) ** (size + 1)  # the largest sum of squares that floats may add up to `most`
    whole = Fraction(norm) ** 2
    assert true * unit**2 <= whole
    assert math.isqrt(math.floor(true)) * n_rows <= 2**53, "sums are exact"
    if products:
        pair = unit**2 / Fraction(clip.products)
        error = Fraction(size, 2) * (1 + Fraction(1, 2**20)) * pair
        assert true * unit**2 + error <= whole
        batch, rounded = max(n_rows, 2), 16 * size * room * whole
        moved = 4 * true * unit**2 / batch + 2 * error / (batch - 1) + 2 * rounded
        assert n_rows == 1 or moved <= 4 * whole / batch
        assert math.floor(true * Fraction(clip.products)) * n_rows <= 2**53
    assert 0.99 * norm < clip.bound < norm


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_rows_that_are_shortened_pass_once_they_are_rounded(size):
    clip = clip_to(1.3, size=size, n_rows=10**7)
    assert (clip.bound * (1 + 1e-10) / clip.unit + math.sqrt(size) / 2) ** 2 < clip.most


def test_next_to_nothing_is_lost():
    clip = clip_to(1.3, size=100, n_rows=10**6)
    assert clip.bound > 1.3 * (1 - 2e-8) and clip.unit < 1.3 * 2e-9
