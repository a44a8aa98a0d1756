"""A log density of a release and its gradient as one operation: many small ones take minutes to compile.

A subclass names a compiled function, the kernel, in a module of its own that is imported at first use. The kernel
takes all inputs, numbers for scalars and contiguous arrays for others, and returns the log density and its gradient in
every input of `slopes`. It has loops and no array expressions, each of which numba compiles by itself.

* Everything that a release or its plan says is an input, never a constant of the graph or of the kernel: one compiled
  density serves all releases of a shape. What the operation does depends on ``__props__`` and shapes alone.
* What a compiled model is kept by contains a hash of the kernel and of all that it calls (`released_logp_numba`).
* `graph` is the same density by small operations. Second derivatives come from it, and tests compare with it.

A released table as an observed variable of the private model of the context.

What the density of a release needs to know of a kind of noise.

Densities of many cells of a released table as one operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Protocol, override

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.compile import optdb
from pytensor.gradient import DisconnectedType, grad, grad_not_implemented
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import TableRecord


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


class _FormsForJax(GraphRewriter):
    """Changes nothing: what JAX evaluates these operations by is imported where a graph is prepared for JAX."""

    @override
    def apply(self, fgraph: Any) -> None:
        import_module("pymc_dp.transforms.released_logp_jax")


optdb.register("pymc_dp_forms_for_jax", _FormsForJax(), "jax", position=0.05)


def _float64(item: Any) -> TensorVariable:
    found = pt.as_tensor(item)
    return found if found.type.dtype == "float64" else pt.cast(found, "float64")


def _per_cell(cotangent: TensorVariable, ndim: int) -> TensorVariable:
    """Let one number per cell multiply all that is about the cell."""
    return cotangent if cotangent.type.ndim == 0 else pt.shape_padright(cotangent, ndim - cotangent.type.ndim)


class Density(Protocol):
    """Distribution of a released table given some parameters."""

    @property
    def signature(self) -> str:
        """Gufunc signature."""

    def logp(self, *args: Any) -> Any:
        """Log density of the table and parameters."""

    def random(self, *args: Any, **kwargs: Any) -> Any:
        """Draw tables."""


def held(value: Array | float | TensorVariable, *, shape: tuple[int | None, ...] | None = None) -> TensorVariable:
    """Hold a release, or what follows from one: shared, so that a compiled density serves all releases of its shape.

    A constant would be part of the program, and PyMC would compile each private model anew. A tensor stays as it is.
    `shape` is what the program may know of that of the value: by default all of it.
    """
    if isinstance(value, TensorVariable):
        return value
    return pytensor.shared(np.asarray(value, dtype=np.float64, order="C"), shape=shape or np.shape(value))


def spread_out(parameters: Sequence[Array], ndims: Sequence[int], size: Any) -> tuple[tuple[int, ...], list[Array]]:
    """Return the shape of a batch of draws, and parameters spread out over it.

    Parameters
    ----------
    parameters : sequence of array
    ndims : sequence of int
        Numbers of the axes of each that are not of the batch.
    size : int, tuple of int or None
    """
    ends = [np.ndim(item) - ndim for item, ndim in zip(parameters, ndims, strict=True)]
    shapes = [np.shape(item) for item in parameters]
    outer = [shape[:end] for shape, end in zip(shapes, ends, strict=True)]
    batch = np.broadcast_shapes(() if size is None else tuple(np.atleast_1d(size)), *outer)
    full = [
        np.broadcast_to(item, (*batch, *shape[end:])) for item, shape, end in zip(parameters, shapes, ends, strict=True)
    ]
    return batch, full


def add_release(table: TableRecord, parameters: Sequence[Any], density: Density, value: Array) -> None:
    """Add the table of this value; `parameters` are those of the density."""
    pm.CustomDist(
        table.name,
        *parameters,
        logp=density.logp,
        random=density.random,
        signature=density.signature,
        dims=(table.cell_dim, table.column_dim),
        observed=held(value),
    )


Tensors = list[TensorVariable]


class SumNoise(ABC):
    """One kind of independent noise on sums, integrated against the distribution of the exact sum."""

    @abstractmethod
    def log_density(self, distance: TensorVariable, scale: TensorVariable) -> TensorVariable:
        """Log density of the noise alone."""

    @abstractmethod
    def reach(self, scale: TensorVariable) -> TensorVariable:
        """Distance beyond which the noise is of no account."""

    @abstractmethod
    def sums(
        self, value: Tensors, mean: Tensors, covariance: list[Tensors], scales: Tensors, n: TensorVariable
    ) -> TensorVariable:
        """Log density of noised sums over `n` rows whose statistics have this mean and covariance.

        Normal by the central limit theorem, with independent noise on every sum.
        """


def legendre(count: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes on [0, 1], and their weights."""
    x, w = np.polynomial.legendre.leggauss(count)
    return 0.5 * (x + 1), 0.5 * w


class NormalCells(ReleasedLogp):
    """Log density of noised sums of a normal value and of its square, one entry per cell.

    Inputs are the release, mean and standard deviation per cell, variances of noise, and what is public.
    """

    kernel = "pymc_dp.transforms.cell_kernels:normal_cells"
    slopes = (1, 2, 3)
    by_cells = True
    free: ClassVar[bool] = False
    """Whether the variances that make Laplace noise of normal noise are free variables; else it is integrated out."""

    @cached_property
    @override
    def structure(self) -> Hashable:
        sizes = self.density.sizes
        return sizes.public, sizes.seen is None, sizes.kind

    def of(
        self, value: TensorVariable, mean: TensorVariable, sd: TensorVariable, variances: TensorVariable | None = None
    ) -> TensorVariable:
        """Return the log density of a release, as ``ReleaseDensity.logp`` does."""
        count = len(self.density.sizes.bound)
        given = [item if item.type.shape == (count,) else pt.broadcast_to(item, (count,)) for item in (mean, sd)]
        if variances is None:
            return self.log_density(value, *given, held(np.ones((count, 2))), *self._known)
        free = FreeNormalCells(self.density)
        return free.log_density(value, *given, 2 * variances, *free._known)

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        found: TensorVariable = self.density.graph(*inputs[:3])
        return found

    @property
    def _known(self) -> list[TensorVariable]:
        density, sizes, statistic = self.density, self.density.sizes, self.density.statistic
        assert isinstance(statistic, BoundedMoments)
        shown = held(np.zeros(0)) if sizes.seen is None else sizes.shown
        laplace = sizes.kind == "laplace"
        described = [sizes.public, 0.0, laplace, sizes.noise, laplace and not self.free]
        shift = statistic.shifts[-1] / statistic.scales[-1]
        bounds = [statistic.centre, statistic.half_width, statistic.low, statistic.high, shift]
        known = pt.set_subtensor(held(np.array(described, dtype=float))[1], held(sizes.rate))
        return [held(item) for item in (density.scales, sizes.bound, shown, known, np.array(bounds))]


class FreeNormalCells(NormalCells):
    """The same with Laplace noise of free variances."""

    free = True

    @override
    def graph(self, *inputs: TensorVariable) -> TensorVariable:
        found: TensorVariable = self.density.graph(*inputs[:3], inputs[4], inputs[3] / 2)
        return found


__all__ = ["NormalCells", "ReleasedLogp", "SumNoise", "Tensors", "add_release", "held", "legendre", "spread_out"]
