"""Randomness that is a release: one of K by whole weights, whole numbers, noise. All of it from secure bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.errors import ArgumentError
from pymc_dp.kernel.noise import NOISES, mechanism
from pymc_dp.kernel.randomness import insecure, secure_generator, secure_keys

Array = npt.NDArray[Any]

SHIFT = 48
"""Exponents are whole multiples of 2^-48, without rounding."""
FLOOR = 30
"""The largest weight is about 2^m and the least 2^(m - 30), where 2^m K stays below 2^62."""
FLOAT = 2.0**-40
"""Bound of the relative error of exp in float64 on [-64, 0]: a thousand times what libraries state. It is that of
choices; a soft maximum needs `sums.FLOAT`."""
MOST_CANDIDATES = 2**23
LEAST = -1e250
"""Log weights below the largest are held here: times 2^48, and in yet finer units, it is a float."""


def decimals(digits: int) -> Context:
    """Return decimal arithmetic that the caller's own context does not change, and in which nothing is trapped."""
    return Context(digits, ROUND_HALF_EVEN, MIN_EMIN, MAX_EMAX, capitals=1, clamp=0, flags=[], traps=[])


DECIMALS = decimals(40)
"""A context of its own: that of the caller may trap, or round otherwise."""
BIT = 62
"""Bits to which the chance of an accept bit is known."""


def slack(candidates: int) -> Fraction:
    """Return what whole weights add to the range of a choice: a bound of 2 ln κ, κ = max(C / (C-1), (1+ρ) / (1-ρ)).

    ln(C / (C - 1)) <= 1 / (C - 1), and ln((1 + ρ) / (1 - ρ)) <= 2.1 ρ for ρ = 2^-40.
    """
    return 2 * max(Fraction(1, 2 ** (_bits(candidates) - FLOOR) - 1), Fraction(21, 10 * 2**40))


def _bits(candidates: int) -> int:
    if not 1 <= candidates <= MOST_CANDIDATES:
        raise ArgumentError(f"A choice is among 1 to {MOST_CANDIDATES} candidates, got {candidates}.")
    return 61 - (int(candidates) - 1).bit_length()


def log_weights(public: Any, shape: tuple[int, ...]) -> Array:
    """Return public log weights of a choice, broadcast to `shape`: numbers, or -inf for what is excluded."""
    try:
        found = np.array(np.broadcast_to(0.0 if public is None else public, shape), dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"public must be numbers of shape {shape}.") from None
    if np.isnan(found).any() or (found == np.inf).any() or not (found > -np.inf).any(axis=-1).all():
        raise ArgumentError("public must be log weights: numbers or -inf, not all of them -inf.")
    return found


def whole_weights(scores: Array, span: int, eta: float, public: Array) -> Array:
    """Return whole weights w_k ∝ exp(eta scores_k / span + public_k), up to a factor κ, whatever the scores.

    Parameters
    ----------
    scores : (K,) int64
    span : int
    eta : float
    public : (K,) array
        As `log_weights` returns it.

    Notes
    -----
    w = C + floor(2^m e^t (1 + δ)), t <= 0 the distance of an exponent to the largest, |δ| <= `FLOAT`, C = 2^(m - 30);
    w = 0 where `public` is -inf. Exponents are exact whole numbers: the rate is rounded down, so that they move by eta
    at most where scores move by a vector of range `span`.

    **Guarantee.** If the scores of two tables differ by a vector of range `span` at most, the logarithms of the ratios
    of w / Σw lie in an interval of length eta + `slack`. With e_k = log x_k/x'_k in [-a, c], a + c <= eta, w_k/w'_k is
    at most (C + x(1+ρ)) / (C - 1 + x'(1-ρ)) <= e^c κ, since a mediant lies below the larger fraction; likewise >=
    e^-a / κ. So both ends move by ln κ, and dividing by the two sums moves the interval as a whole.
    """
    rate = math.floor(Fraction(eta) * 2**SHIFT / span)
    fixed = fixed_exponents(public)
    exact = [int(score) * rate + b for score, b in zip(scores, fixed, strict=True)]
    return weights_of(exact, public > -np.inf)


def fixed_exponents(public: Array) -> list[int]:
    """Return public log weights, less the largest, in whole multiples of 2^-48; 0 for what is excluded."""
    return [int(value) for value in fixed_floats(public)]


def fixed_floats(public: Array) -> Array:
    """Return the same as floats, of each row by itself."""
    logs = np.where(public > -np.inf, public - public.max(axis=-1, keepdims=True), 0.0)
    return np.asarray(np.rint(np.maximum(logs, LEAST) * 2.0**SHIFT))


def weights_of(exponents: Sequence[int], possible: Array, finer: int = 0) -> Array:
    """Return whole weights ∝ exp(2^-(48 + finer) exponents), 0 for what is not possible; see `whole_weights`.

    Parameters
    ----------
    exponents : sequence of int
        Of any size: what is public may cancel what rows add up to.
    possible : (K,) array of bool
    finer : int
        By so many bits they are finer than multiples of 2^-48; distances to the largest are rounded down to these,
        which is less than 2^-40 of a weight too.
    """
    top = max(value for value, can in zip(exponents, possible, strict=True) if can)
    held = [min(max((value - top) >> finer, -(2**62)), 0) for value in exponents]  # what is excluded may lie far above
    return weights_behind(np.array(held, dtype=np.int64), possible)


def weights_of_rows(exponents: Array, possible: Array, finer: int = 0) -> Array:
    """Return what `weights_of` does of each row of (n, K) exponents, int64 numbers below 2^62."""
    top = np.where(possible, exponents, -(2**62)).max(axis=-1, keepdims=True)
    return weights_behind((exponents - top) >> finer, possible)


def weights_behind(behind: Array, possible: Array) -> Array:
    """Return C + floor(2^m e^(2^-48 behind)), and 0 for what is not possible."""
    bits = _bits(behind.shape[-1])
    near = np.exp(np.minimum(behind, 0) * 2.0**-SHIFT)
    whole = np.floor(np.minimum(near, 1.0) * 2.0**bits).astype(np.int64) + 2 ** (bits - FLOOR)
    return np.where(possible, whole, 0)


def one_of(weights: Array) -> Array:
    """Draw an index of each row of (n, K) weights, with probability exactly w_k / Σ w."""
    ends = np.cumsum(weights, axis=-1)
    return (ends <= below(ends[:, -1])[:, None]).sum(axis=1)


def below(limits: Array) -> Array:
    """Return a uniform whole number below each of some limits from 1 to 2^62, by rejection."""
    found, left = np.zeros(len(limits), dtype=np.int64), np.arange(len(limits))
    mask = limits - 1
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> shift
    replacement = insecure()
    fixed = replacement is not None and replacement.rng is None  # keys are the same ones each time
    while left.size:
        drawn = secure_keys(left.size).view(np.int64) & mask[left]
        if fixed:
            drawn %= limits[left]
        good = drawn < limits[left]
        found[left[good]] = drawn[good]
        left = left[~good]
    return found


def chance(exponent: int) -> int:
    """Return floor(2^62 min(1, e^t)), t = `exponent` 2^-48; exp has 40 digits, whatever context the caller has.

    Below -44 it is 0. Nothing is trapped: what raised for one sum would tell it.
    """
    held = max(min(exponent, 0), -(44 << SHIFT))
    power = DECIMALS.exp(DECIMALS.divide(Decimal(held), Decimal(2**SHIFT)))
    return int(DECIMALS.multiply(power, Decimal(2**BIT)))


def accepted(exponent: int) -> bool:
    """Draw a bit with probability `chance` / 2^62."""
    return int(below(np.array([2**BIT]))[0]) < chance(exponent)


def check_noise(kind: str, scale: float | Array) -> None:
    """Refuse noise that cannot be drawn, before it is paid for."""
    for each in np.unique(scale) if insecure() is None else ():
        mechanism(NOISES[kind], float(each))


def noised(whole: Array, kind: str, scale: float | Array) -> Array:
    """Add discrete Laplace or Gaussian noise to whole numbers: exact sampling, by OpenDP. One scale, or one each."""
    wide, found = np.broadcast_to(scale, whole.shape), np.array(whole)
    for each in np.unique(wide):
        found[wide == each] = NOISES[kind].add(found[wide == each], float(each))
    return found


def float_generator(stream: int | None = None) -> np.random.Generator:
    """Return a secure generator of floats, for draws whose arithmetic is float64; see `secure_generator`."""
    return secure_generator(stream)
