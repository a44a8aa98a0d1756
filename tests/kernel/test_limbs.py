"""Digits of whole numbers: sums of products and distances are those of Python's own whole numbers, of any size."""

import numpy as np
import pytest

from pymc_dp.kernel import limbs
from pymc_dp.kernel.exact_sums import products
from pymc_dp.kernel.layout import LARGEST

HELD = 2**62


def digits(numbers, count):
    """Digits of (n, K) whole numbers of Python, each below 2^21 but the last, which has the sign."""
    places = [[[one >> limbs.DIGIT * k & limbs.LOW for one in row] for row in numbers] for k in range(count)]
    last = [[one >> limbs.DIGIT * count for one in row] for row in numbers]
    return [np.array(place, dtype=np.int64) for place in [*places, last]]


def whole(found):
    """Whole numbers of Python that digits stand for."""
    total = np.zeros(found[0].shape, dtype=object)
    for k, digit in enumerate(found):
        total = total + digit.astype(object) * 2 ** (limbs.DIGIT * k)
    return total.tolist()


def behind(numbers, possible, finer):
    top = max(one for one, can in zip(numbers, possible, strict=True) if can)
    far = [(one - top) >> finer for one in numbers]
    return [(-HELD if one < -(HELD // 2) else one) if can else 0 for one, can in zip(far, possible, strict=True)]


@pytest.mark.parametrize("finer", [0, 1, 20, 21, 22, 42, 45, 59, 60, 63])
def test_distances_to_the_largest_are_exact(finer):
    rng = np.random.default_rng(finer)
    for bits in (1, 10, 40, 61, 62, 63, 64, 84, 105, 126, 300, 900):
        for _ in range(30):
            middle = int(rng.integers(-(2**30), 2**30)) << max(bits - 30, 0)
            near = int(rng.choice([1, bits, min(bits, finer + 61)]))
            numbers = [middle + int.from_bytes(rng.bytes(120)) % 2**near * int(rng.choice([-1, 1])) for _ in range(5)]
            numbers[rng.integers(5)] = numbers[0]
            possible = rng.random(5) < rng.choice([0.5, 1.0])
            possible[rng.integers(5)] = True
            numbers = [
                n if can else n + (2**bits << int(rng.integers(9))) for n, can in zip(numbers, possible, strict=True)
            ]
            count = max(one.bit_length() for one in numbers) // limbs.DIGIT + 1
            found = limbs.behind_largest(digits([numbers], count), possible[None], finer)
            assert found.tolist() == [behind(numbers, possible, finer)]


@pytest.mark.parametrize("finer", [0, 7, 21, 42, 50])
@pytest.mark.parametrize("top", [0, -1, 2**200, -(2**200), 2**63 - 1])
def test_distances_at_which_numbers_are_held_are_no_exception(finer, top):
    far = [
        0,
        1,
        2,
        2**20,
        2**21,
        2**42,
        2**53 + 1,
        *(2**61 + k for k in (-1024, -1, 0)),
        2**62 + 1,
        2**63,
        2**64,
        2**80,
    ]
    far += [2**k for k in (83, 84, 105, 126, 199, 400)]
    numbers = [top - (one << finer) + more for one in far for more in (0, -1, 1) if one or more <= 0]
    found = limbs.behind_largest(digits([numbers], 30), np.ones((1, len(numbers)), dtype=bool), finer)
    for one, expected in zip(found[0].tolist(), behind(numbers, [True] * len(numbers), finer), strict=True):
        assert one == expected or {one, expected} <= set(range(-(2**61) - 1, -(2**61) + 1024)) | {-HELD}


@pytest.mark.parametrize("scale", [1.0, 2.0**30, 2.0**53, 2.0**110, 2.0**899])
def test_sums_of_products_are_exact_for_each_element(scale):
    rng = np.random.default_rng(int(np.log2(scale)))
    for _ in range(40):
        size, K, n = (int(one) for one in rng.integers(1, 12, 3))
        owners = rng.integers(-1, n, size)
        sums = [int(one) for one in rng.choice([2**62, -(2**62), 2**63 - 1, -(2**63), 0, -1, 12345], size)]
        exponents = np.rint(
            rng.choice([-1.0, 0.0, 1.0, 1 - 2.0**-53, 0.3], (K, size)) * scale * rng.random((K, size)) ** 4
        )
        expected = [
            [sum(int(e) * s for e, s, o in zip(one, sums, owners, strict=True) if o == own) for one in exponents]
            for own in range(n)
        ]
        found = products(exponents, sums, owners, n)
        assert whole(found) == expected == whole(limbs.carried(found))
        assert np.array_equal(whole(limbs.digits_of(exponents)), [[int(one) for one in row] for row in exponents])
        np.testing.assert_allclose(
            limbs.as_floats(found, 100), (np.array(expected, dtype=object) / 2**100).astype(float), rtol=1e-15
        )


def test_as_many_sums_of_the_largest_size_as_a_layout_may_have_stay_within_64_bits():
    size = 2**20
    for sign in (1.0, -1.0):
        exponents = np.full((1, size), np.nextafter(LARGEST, 0) * sign)
        found = whole(products(exponents, [-(2**63)] * size, np.zeros(size, dtype=np.int64), 1))
        assert found == [[-size * int(exponents[0, 0]) * 2**63]]
    digit = np.full(size, -(2**21)) * 1.0
    assert whole(products(digit[None], [-(2**63)] * size, np.zeros(size, dtype=np.int64), 1)) == [[2**84 * size]]


def test_floats_below_0_lose_their_last_bits_alone():
    numbers = [[sign * number for sign in (1, -1) for number in (0, 1, 3, 2**48, 2**60 + 1, 5 * 2**90, 7 * 2**500)]]
    found = limbs.as_floats(digits(numbers, 40), 48)
    assert found.tolist() == [[number / 2**48 for number in numbers[0]]]
