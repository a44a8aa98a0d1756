"""How kernels are compiled, those of `ReleasedLogp` above all, and the parts of which they are made.

Exponential and logarithm as plain arithmetic: loops over them become vector instructions, those over libm do not.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic


def kernel(function: Any) -> Any:
    """Compile a function that Python calls too; kept on disk, with all its parts."""
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def inlined_kernel(function: Any) -> Any:
    """Compile a function that Python calls too, and into its callers as well, see `inlined`."""
    return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, forceinline=True)(function)


def part(function: Any) -> Any:
    """Compile a function that only kernels call: without the wrappers by which Python would."""
    return numba.njit(**_ALONE)(function)


def inlined(function: Any) -> Any:
    """Compile a part into its caller: a call counts the references to its arrays, which takes as long as ten logs."""
    return numba.njit(forceinline=True, **_ALONE)(function)


def arithmetic(function: Any) -> Any:
    """Compile a part whose products and sums may be rounded once, which is faster and more accurate."""
    return numba.njit(fastmath={"contract"}, **_ALONE)(function)


def sums(function: Any) -> Any:
    """Compile the same where loops may add up in any order, and so become vector instructions. Nothing may be NaN."""
    return numba.njit(forceinline=True, fastmath={"reassoc", "contract", "nsz", "nnan"}, **_ALONE)(function)


_ALONE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}


LOG_2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
"""In two parts, of which multiples of the first by whole numbers are exact."""
LOG2_E = 1.4426950408889634
ROUNDER = 6755399441055744.0
"""1.5 * 2^52: added to a number below 2^51, it leaves the nearest whole number in the last bits."""
LOWEST = -700.0
"""The exponential of a lower number is that of this one."""
_E = tuple(1 / factorial(i) for i in range(14))
_ATANH = tuple(2 / (2 * i + 1) for i in range(11))
_ROOT_HALF = 0x3FE6A09E667F3BCD
"""Bits of √½."""


@intrinsic
def _bits(context: Any, number: Any) -> Any:
    """Bits of a float64 as an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _float(context: Any, number: Any) -> Any:
    """Float64 of the bits of an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@arithmetic
def exponential(x):  # type: ignore[no-untyped-def]
    """``exp(x)`` for x <= 700, to a rounding or two."""
    x = max(x, LOWEST)
    shifted = x * LOG2_E + ROUNDER
    k = shifted - ROUNDER
    r = x - k * LOG_2[0] - k * LOG_2[1]
    found = _E[13] * r + _E[12]
    found = ((found * r + _E[11]) * r + _E[10]) * r + _E[9]
    found = ((found * r + _E[8]) * r + _E[7]) * r + _E[6]
    found = ((found * r + _E[5]) * r + _E[4]) * r + _E[3]
    found = ((found * r + _E[2]) * r + 1.0) * r + 1.0
    return found * _float((_bits(shifted) + 1023) << 52)


@arithmetic
def logarithm(x):  # type: ignore[no-untyped-def]
    """``log(x)`` of a positive number above 1e-300, to a rounding or two of the larger one of it and 1.

    With x = 2^k m and m within √½ and √2, it is ``k log 2 + 2 atanh((m - 1) / (m + 1))``.
    """
    shifted = _bits(x) - _ROOT_HALF
    k = shifted >> 52
    m = _float(_bits(x) - (k << 52))
    t = (m - 1) / (m + 1)
    square = t * t
    found = _ATANH[10] * square + _ATANH[9]
    found = ((found * square + _ATANH[8]) * square + _ATANH[7]) * square + _ATANH[6]
    found = ((found * square + _ATANH[5]) * square + _ATANH[4]) * square + _ATANH[3]
    found = ((found * square + _ATANH[2]) * square + _ATANH[1]) * square + _ATANH[0]
    whole = _float(k + _bits(ROUNDER)) - ROUNDER
    return whole * LOG_2[0] + (whole * LOG_2[1] + found * t)


__all__ = ["arithmetic", "exponential", "inlined", "inlined_kernel", "kernel", "logarithm", "part", "sums"]
