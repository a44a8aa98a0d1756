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
"""Below minus this a number is held at -2^62."""


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

    At least -2^62, and 0 at most; whatever numbers that are not possible are, they are held at 0.
    """
    digits, left = carried(digits), possible
    for digit in reversed(digits):
        best = np.where(left, digit, -(2**62)).max(axis=-1, keepdims=True)
        left = left & (digit == best)
    first = left.argmax(axis=-1)[..., None]
    less = carried([digit - np.take_along_axis(digit, first, axis=-1) for digit in digits])
    whole, part = divmod(finer, DIGIT)
    whole = min(whole, len(less) - 1)
    near = sum(digit.astype(np.float64) * 2.0 ** min(DIGIT * k - finer, 900) for k, digit in enumerate(less))
    found = less[whole] >> part
    for k, digit in enumerate(less[whole + 1 :], 1):
        if DIGIT * k - part < 63:
            found = found + (digit << (DIGIT * k - part))  # wraps: of what is near, the sum is right
    return np.where(possible, np.where(near < -FLOOR, -(2**62), np.minimum(found, 0)), 0)


def as_floats(digits: list[Array], unit: float) -> Array:
    """Return numbers over a unit as floats; their last bits are rounded."""
    return np.asarray(sum(digit * (2.0 ** (DIGIT * k) / unit) for k, digit in enumerate(carried(digits))))
