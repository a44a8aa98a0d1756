"""How kernels are compiled, those of `ReleasedLogp` above all, and the parts of which they are made."""

from __future__ import annotations

from typing import Any

import numba


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

__all__ = ["arithmetic", "inlined", "inlined_kernel", "kernel", "part", "sums"]
