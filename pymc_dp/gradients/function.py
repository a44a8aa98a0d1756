"""Compiled functions of rows that several threads may call at once, on rows of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.gradients.compiled_rows import compiled_rows, without_python
from pymc_dp.inspection.rows import Array


class Function:
    """A function of arrays of the dtypes of its inputs; what it does not need it is not given.

    Parameters
    ----------
    inputs, outputs : sequence of Variable
    mode : str
        Of PyTensor. What Numba compiles runs without Python's lock, and threads side by side; all else one at a time.
    later : bool
        Whether it is compiled when it is first called, because most releases do without it.

    Attributes
    ----------
    places : frozenset of int
        Inputs that are needed, and the first one.
    """

    def __init__(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], mode: str, *, later: bool = False
    ) -> None:
        reach = set(ancestors(outputs))
        self._order = [place for place, var in enumerate(inputs) if var in reach or place == 0]
        self._dtypes = [np.dtype(inputs[place].type.dtype) for place in self._order]
        self._graphs, self._mode = ([inputs[place] for place in self._order], list(outputs)), mode
        self.places = frozenset(self._order)
        self._lock = Lock()
        if not later:
            _ = self._whole

    @cached_property
    def _whole(self) -> Any:
        with without_python():
            return compiled_rows(*self._graphs, _mode(self._mode))

    @property
    def nodes(self) -> list[Any]:
        """What is computed."""
        return list(self._whole.maker.fgraph.toposort())

    def __call__(self, *arrays: Array) -> list[Array]:
        """Return new arrays."""
        given = [
            np.ascontiguousarray(arrays[place], dtype=dtype)
            for place, dtype in zip(self._order, self._dtypes, strict=True)
        ]
        compiled = getattr(self._whole.vm, "jit_fn", None)
        if compiled is not None:
            return list(compiled(*given))
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
