"""A log density of a release and its gradient as one operation: many small ones take minutes to compile.

A subclass names a compiled function, the kernel, in a module of its own that is imported at first use. The kernel
takes all inputs, numbers for scalars and contiguous arrays for others, and returns the log density and its gradient in
every input of `slopes`. It has loops and no array expressions, each of which numba compiles by itself.

* Everything that a release or its plan says is an input, never a constant of the graph or of the kernel: one compiled
  density serves all releases of a shape. What the operation does depends on ``__props__`` and shapes alone.
* What a compiled model is kept by contains a hash of the kernel and of all that it calls (`released_logp_numba`).
* `graph` is the same density by small operations. Second derivatives come from it, and tests compare with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from importlib import import_module
from typing import Any, ClassVar, override

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, grad, grad_not_implemented
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable


class ReleasedLogp(Op):
    """Log density of a release, and its gradients in the inputs at the places `slopes`.

    Parameters
    ----------
    density : optional
        Whose operation it is.

    Attributes
    ----------
    kernel : str
        ``module:function``.
    slopes : tuple of int
        Inputs that the kernel returns gradients in, in their order.
    by_cells : bool
        Whether there is one log density per entry of the first axis of the inputs in `slopes`; an entry then depends on
        its own row of these inputs alone. Else there is one number.
    """

    __props__ = ("structure",)
    kernel: ClassVar[str]
    slopes: tuple[int, ...]
    by_cells: ClassVar[bool] = False

    def __init__(self, density: Any = None) -> None:
        super().__init__()
        self.density = density
        import_module("pymc_dp.transforms.released_logp_numba")  # numba takes long to import

    @override
    def __reduce__(self) -> Any:
        return type(self), (self.density,)

    @property
    def structure(self) -> Hashable:
        """All that makes operations of this class different from one another."""
        return ()

    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        """Return the same log density by small operations."""
        raise NotImplementedError(f"{type(self).__name__} has no second derivatives.")

    def log_density(self, *inputs: Any) -> TensorVariable:
        """Return the log density of these inputs."""
        found: TensorVariable = self(*inputs, return_list=True)[0]
        return found

    @property
    def function(self) -> Callable[..., Any]:
        """The compiled kernel."""
        module, name = self.kernel.split(":")
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found

    @override
    def make_node(self, *inputs: Any) -> Apply:
        given = [_float64(item) for item in inputs]
        slopes = [given[place].type() for place in self.slopes]
        # Were types of outputs less precise than those of inputs, PyTensor would add operations that check shapes.
        shape = given[self.slopes[0]].type.shape[:1] if self.by_cells else ()
        return Apply(self, given, [TensorType("float64", shape=shape)(), *slopes])

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Sequence[list[Any]]) -> None:
        given = [float(item) if np.ndim(item) == 0 else np.ascontiguousarray(item) for item in inputs]
        for cell, found in zip(outputs, self.function(*given), strict=True):
            cell[0] = np.asarray(found)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return shapes of outputs from those of inputs."""
        first = tuple(shapes[self.slopes[0]][:1]) if self.by_cells else ()
        return [first, *(shapes[place] for place in self.slopes)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Say that every output depends on every input: a gradient in one beyond `slopes` is an error, and not zero."""
        return [[True] * len(node.outputs) for _ in node.inputs]

    @override
    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        found = {i: grad_not_implemented(self, i, item) for i, item in enumerate(inputs) if i not in self.slopes}
        first, *others = cotangents
        given = [None if isinstance(item.type, DisconnectedType) else item for item in others]
        second = self._second(inputs, given) if any(item is not None for item in given) else [None] * len(given)
        for place, slope, more in zip(self.slopes, outputs[1:], second, strict=True):
            terms = [] if isinstance(first.type, DisconnectedType) else [_per_cell(first, slope.type.ndim) * slope]
            found[place] = sum(terms[1:] if more is None else [*terms[1:], more], start=terms[0] if terms else 0.0)
        return [found[i] for i in range(len(inputs))]

    def _second(self, inputs: Sequence[Variable], cotangents: Sequence[Variable | None]) -> list[Variable]:
        """Pull back through the gradients: by the graph, over inputs of its own, since inputs may depend on others."""
        own = [item.type() for item in inputs]
        weights = [None if item is None else item.type() for item in cotangents]
        wrt = [own[place] for place in self.slopes]
        gradients = grad(self.graph(*own).sum(), wrt, disconnected_inputs="ignore")
        total = sum(
            (weight * slope).sum() for weight, slope in zip(weights, gradients, strict=True) if weight is not None
        )
        outputs = grad(total, wrt, disconnected_inputs="ignore")
        real = [item for item in cotangents if item is not None]
        given = dict(zip([*own, *(item for item in weights if item is not None)], [*inputs, *real], strict=True))
        return clone_replace(outputs, given)


def _float64(item: Any) -> TensorVariable:
    found = pt.as_tensor(item)
    return found if found.type.dtype == "float64" else pt.cast(found, "float64")


def _per_cell(cotangent: TensorVariable, ndim: int) -> TensorVariable:
    """Let one number per cell multiply all that is about the cell."""
    return cotangent if cotangent.type.ndim == 0 else pt.shape_padright(cotangent, ndim - cotangent.type.ndim)


__all__ = ["ReleasedLogp"]
