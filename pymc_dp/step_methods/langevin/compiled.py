"""Compiled gradients, kept for models that differ in rows alone: compiling takes longer than most chains."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pytensor.compile.io import In, Out
from pytensor.graph.basic import Variable, equal_computations

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.step_methods.langevin.gradients import RowGradients
from pymc_dp.step_methods.row_functions.chunks import compiled_rows

KEPT = 8
"""Models whose compiled gradients a process keeps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Compiled:
    """Functions, and the graphs that they were made of. There is no row in either: rows enter as arguments."""

    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    functions: tuple[Any, Any]

    def fits(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> bool:
        """Say whether other graphs compute the same: constants are compared by value, ops by their properties."""
        ours = [var.type for var in (*self.inputs, *self.outputs)]
        theirs = [var.type for var in (*inputs, *outputs)]
        return ours == theirs and equal_computations([*outputs], [*self.outputs], [*inputs], [*self.inputs])


_kept: deque[Compiled] = deque(maxlen=KEPT)


def compiled(gradients: RowGradients) -> tuple[Any, Any]:
    """Return compiled functions: (position, *rows) -> factors and vectors by turns; position -> (prior,).

    The same two for every model whose graphs are equal, so that loops which take them are compiled once as well.
    """
    inputs = (gradients.position, *gradients.rows)
    outputs = tuple(graph for block in gradients.blocks for graph in (block.factors, block.vectors))
    for known in tuple(_kept):
        if known.fits(inputs, (*outputs, gradients.prior)):
            return known.functions
    with without_python():
        rows = _made(inputs, outputs, borrow=True)
    made = rows, _made((gradients.position,), (gradients.prior,), borrow=False)
    _kept.append(Compiled(inputs=inputs, outputs=(*outputs, gradients.prior), functions=made))
    return made


def _made(inputs: tuple[Variable, ...], outputs: tuple[Variable, ...], *, borrow: bool) -> Any:
    function = compiled_rows(
        [In(var, borrow=True) for var in inputs],
        [Out(graph, borrow=borrow) for graph in outputs],
        mode="NUMBA",
        trust_input=True,
    )
    return function.vm.jit_fn


@contextmanager
def without_python() -> Iterator[None]:
    """Refuse to compile operations that would run as Python code: what they warn of or raise may depend on a row."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    slow = [str(item.message) for item in caught if "object mode" in str(item.message)]
    if slow:
        raise UnsupportedModelError(
            [
                Problem(
                    where="model",
                    what=f"the gradient of a row holds an operation without compiled code ({text.splitlines()[0]})",
                    remedy="Write the density with other operations.",
                )
                for text in slow
            ]
        )


__all__ = ["compiled", "without_python"]
