"""Compiled functions that several threads may call at once, on rows of their own."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.inspection.rows import Array
from pymc_dp.step_methods.langevin.compiled import without_python
from pymc_dp.step_methods.row_functions.chunks import compiled_rows


class Function:
    """A function of arrays of the dtypes of its inputs; what it does not need it is not given.

    Parameters
    ----------
    inputs, outputs : sequence of Variable
    mode : str
        Of PyTensor. What Numba compiles runs without Python's lock, and threads side by side; all else one at a time.

    Attributes
    ----------
    places : frozenset of int
        Inputs that are needed, and the first one.
    nodes : sequence of Apply
        What is computed.
    """

    def __init__(self, inputs: Sequence[Variable], outputs: Sequence[Variable], mode: str) -> None:
        reach = set(ancestors(outputs))
        self._order = [place for place, var in enumerate(inputs) if var in reach or place == 0]
        self._dtypes = [np.dtype(inputs[place].type.dtype) for place in self._order]
        with without_python():
            made = compiled_rows([inputs[place] for place in self._order], list(outputs), _mode(mode))
        self.places = frozenset(self._order)
        self.nodes = made.maker.fgraph.toposort()
        self._call, self._lock = getattr(made.vm, "jit_fn", None), Lock()
        self._whole = made

    def __call__(self, *arrays: Array) -> list[Array]:
        """Return new arrays."""
        given = [
            np.ascontiguousarray(arrays[place], dtype=dtype)
            for place, dtype in zip(self._order, self._dtypes, strict=True)
        ]
        if self._call is not None:
            return list(self._call(*given))
        with self._lock:  # it keeps its arguments and results in one place
            return list(self._whole(*given))


def _mode(name: str) -> Mode:
    found = get_mode(name)
    if name != "NUMBA":
        return found
    from pytensor.link.numba.dispatch.basic import numba_njit
    from pytensor.link.numba.linker import NumbaLinker

    class Unlocked(NumbaLinker):
        """Compiles what releases Python's lock."""

        def jit_compile(self, fn_and_cache: Any) -> Any:
            function, key = fn_and_cache
            return numba_njit(function.py_func, final_function=True, nogil=True, cache=key is not None)

    return Mode(linker=Unlocked(), optimizer=found.provided_optimizer)


__all__ = ["Function"]
