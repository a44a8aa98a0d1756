"""Loops over functions that PyTensor compiled, kept on disk for the next process as PyTensor keeps these functions.

Numba caches no loop that takes a compiled function as an argument. A loop that closes over it can be cached under the
key of the function. PyTensor never looks at the source of the loop, so that a hash of it is a part of the key too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from inspect import signature
from typing import Any

from pytensor.configdefaults import config

from pymc_dp.transforms.source_hash import source_hash

KEPT = 64
"""Loops over functions that a process keeps."""


@lru_cache(maxsize=KEPT)
def closed_over(loop: Any, *functions: Any) -> Callable[..., Any]:
    """Return a compiled loop whose first arguments are these functions, as a function of the other arguments.

    Parameters
    ----------
    loop : callable
        A function that Numba compiles with ``inline="always"``, as is all to which it hands the functions on: Numba
        caches no code that holds the address of a function.
    functions : callable
        What PyTensor's linker compiled (``jit_fn``), or functions of the loop's own package that Numba compiles.

    Examples
    --------
    >>> import numba
    >>> square = numba.njit(lambda x: x * x)
    >>> closed_over(numba.njit(lambda function, x: function(x) + 1.0, inline="always"), square)(3.0)
    10.0
    """
    import numba  # takes longer to import than the rest of the package
    from pytensor.link.numba.cache import compile_numba_function_src

    given = list(signature(loop.py_func).parameters)[len(functions) :]
    bound = {f"function_{number}": function for number, function in enumerate(functions)}
    source = f"def closed({', '.join(given)}): return loop({', '.join([*bound, *given])})"
    key = cache_key(loop, *functions)
    environment = {"__name__": __name__, "loop": loop, **bound}  # loading from a cache asks for the name of a module
    made = compile_numba_function_src(source, "closed", environment, cache_key=key)
    return numba.njit(error_model="numpy", nogil=True, cache=key is not None)(made)


def cache_key(loop: Any, *functions: Any) -> str | None:
    """Return what tells this loop over these functions from every other; None where nothing does.

    It is made of the keys of PyTensor's functions, and of the sources of the loop and of all that it calls.
    """
    parts = [_key(function) for function in (loop, *functions)]
    if not config.numba__cache or None in parts:
        return None
    return f"{loop.py_func.__qualname__} {sha256(' '.join(map(str, parts)).encode()).hexdigest()}"


def _key(function: Any) -> str | None:
    from pytensor.link.numba.cache import CACHED_SRC_FUNCTIONS

    made: str | None = CACHED_SRC_FUNCTIONS.get(function.py_func)
    return made if made is not None else source_hash(function)


__all__ = ["cache_key", "closed_over"]
