"""How kernels of `ReleasedLogp` are compiled, and the parts of which they are made."""

from __future__ import annotations

from typing import Any

import numba


def kernel(function: Any) -> Any:
    """Compile a function that Python calls too; kept on disk, with all its parts."""
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def part(function: Any) -> Any:
    """Compile a function that only kernels call: without the wrappers by which Python would."""
    return numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")(function)


__all__ = ["kernel", "part"]
