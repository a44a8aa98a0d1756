"""How compiled models evaluate noised counts; imported when the first of them is made.

The kernel is compiled once and called by its address, as PyTensor calls functions of SciPy: were it a part of every
compiled model, each would take seconds longer to compile.
"""

from __future__ import annotations

from typing import Any

import numba
from pytensor.link.numba.cache import _call_cached_ptr
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key

from pymc_dp.transforms.count_kernels import noised_count
from pymc_dp.transforms.noised_count import NoisedCount
from pymc_dp.transforms.source_hash import source_hash

SIGNATURE = numba.types.UniTuple(numba.types.float64, 4)(*[numba.types.float64] * NoisedCount.nin)
TYPE = numba.types.FunctionType(SIGNATURE)
NAME = "pymc_dp.noised_count"


@numba.cfunc(SIGNATURE, cache=True)
def kernel(x, eta, n, noise, scale, log_zero):  # type: ignore[no-untyped-def]
    """Return what `noised_count` returns."""
    return noised_count(x, eta, n, noise, scale, log_zero)


def address() -> int:
    """Return where the kernel lies in this process."""
    return int(kernel.address)


@numba_njit
def find_kernel():  # type: ignore[no-untyped-def]
    """Ask for the address, once for each process and compiled model."""
    with numba.objmode(found="intp"):
        found = address()
    return found


@numba_njit
def noised(x, eta, n, noise, scale, log_zero):  # type: ignore[no-untyped-def]
    """Call the kernel."""
    function = _call_cached_ptr(find_kernel, TYPE, NAME)
    return function(x, eta, n, noise, scale, log_zero)


@register_funcify_and_cache_key(NoisedCount)
def compiled(op: NoisedCount, node: Any, **_: Any) -> tuple[Any, str | None]:
    """Return a function that calls the kernel, and what it may be cached by."""
    return noised, source_hash(noised)


__all__ = ["compiled"]
