"""Whole numbers of any size as arrays of digits of 21 bits: sums of products of public and private whole numbers.

A number is the sum of digit k times 2^(21 k); digits are int64, and of any sign until they are carried. How many there
are depends on what is public alone.
"""

from __future__ import annotations

import numpy as np

from pymc_dp.kernel.payer import Array

DIGIT = 21
LOW = 2**DIGIT - 1
CARRIED = 3
"""Digits that carries of 63 bits reach beyond the last one."""
FLOOR = 2.0**61
"""What lies farther below the largest is held at -2^62."""


def digits_of(held: Array) -> list[Array]:
    """Return whole numbers, held as floats: all digits but the last are not negative."""
    found = []
    while (np.abs(held) >= 2.0**DIGIT).any():
        higher = np.floor(held * 2.0**-DIGIT)
        found.append((held - higher * 2.0**DIGIT).astype(np.int64))
        held = higher
    return [*found, held.astype(np.int64)]


def digits_of_sums(sums: Array) -> list[Array]:
    """Return int64 numbers as three digits."""
    return [sums & LOW, sums >> DIGIT & LOW, sums >> 2 * DIGIT]


def added(parts: list[tuple[int, Array]]) -> list[Array]:
    """Return the sum of arrays, each of which is of digits of one place."""
    found = [np.zeros(parts[0][1].shape, dtype=np.int64) for _ in range(1 + max(place for place, _ in parts))]
    for place, digit in parts:
        found[place] = found[place] + digit
    return found


def carried(digits: list[Array]) -> list[Array]:
    """Return the same numbers: all digits within [0, 2^21), but the last, which has the sign."""
    found, carry = [], np.zeros_like(digits[0])
    for digit in digits:
        total = digit + carry
        found.append(total & LOW)
        carry = total >> DIGIT
    for _ in range(CARRIED):
        found.append(carry & LOW)
        carry = carry >> DIGIT
    return [*found, carry]


def behind_largest(digits: list[Array], possible: Array, finer: int) -> Array:
    """Return by how much numbers lie below the largest possible one along the last axis: floor(2^-finer distance).

    A number more than 2^61 below is held at -2^62. A number that is not possible is held at 0. No result is above 0.
    """
    digits, left = carried(digits), possible
    for digit in reversed(digits):
        best = np.where(left, digit, -(2**62)).max(axis=-1, keepdims=True)
        left = left & (digit == best)
    first = left.argmax(axis=-1)[..., None]
    far = [np.take_along_axis(digit, first, axis=-1) - digit for digit in digits]
    place, part = divmod(finer, DIGIT)
    far += [np.zeros_like(far[0])] * (place + 1 - len(far))
    for k, more in enumerate([LOW] * place + [2**part - 1]):  # 2^finer - 1, so that distances are rounded up
        far[k] = far[k] + more
    far = carried(far)
    found, size = np.zeros_like(far[0]), np.zeros(far[0].shape)
    for k, digit in enumerate(far[place:]):  # of what is possible no digit is negative, so that nothing cancels
        size += digit * 2.0 ** min(DIGIT * k - part, 900)
        found += digit >> part if k == 0 else digit << min(DIGIT * k - part, 62)
    return np.where(possible, np.where(size > FLOOR, -(2**62), -found), 0)


def as_floats(digits: list[Array], bits: int) -> Array:
    """Return numbers over 2^bits as floats; their last bits are rounded."""
    digits = carried(digits)
    below = digits[-1] < 0
    sizes = carried([np.where(below, -digit, digit) for digit in digits])  # no digit is negative: nothing cancels
    total = np.zeros(below.shape)
    for k, digit in enumerate(sizes):
        total += digit * 2.0 ** min(DIGIT * k - bits, 1000)
    return np.where(below, -total, total)
