"""How JAX evaluates `ReleasedLogp` and `NoisedCount`: it calls the compiled kernels, and takes slopes from them.

Imported where a graph is prepared for JAX. The numbers are those that PyTensor's own backends have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pytensor.link.jax.dispatch import jax_funcify

from pymc_dp.transforms.noised_count import NoisedCount
from pymc_dp.transforms.released_logp import ReleasedLogp

type Arrays = Sequence[Any]


@jax_funcify.register(ReleasedLogp)
def released(op: ReleasedLogp, **_: Any) -> Callable[..., Any]:
    """Return log density and slopes as a function of JAX."""

    def kernel(*inputs: Any) -> tuple[Any, ...]:
        given = [np.ascontiguousarray(item) if np.ndim(item) else float(item) for item in inputs]
        return tuple(np.asarray(item, dtype=np.float64) for item in op.function(*given))

    def call(*inputs: Any) -> Any:
        first = inputs[op.slopes[0]].shape[:1] if op.by_cells else ()
        shapes = [first, *(inputs[place].shape for place in op.slopes)]
        return _called(kernel, shapes, inputs, vmap_method="sequential")

    def slopes(inputs: Arrays, found: Arrays, cotangents: Arrays) -> dict[int, Any]:
        first = cotangents[0]
        return {
            place: first.reshape(first.shape + (1,) * (slope.ndim - first.ndim)) * slope
            if first.ndim
            else first * slope
            for place, slope in zip(op.slopes, found[1:], strict=True)
        }

    return _differentiable(str(op), call, slopes, {*op.slopes}, differentiable=1)


@jax_funcify.register(NoisedCount)
def noised_count(op: NoisedCount, **_: Any) -> Callable[..., Any]:
    """Return log probability and cumulants of arrays of counts as a function of JAX."""

    def kernel(*inputs: Any) -> tuple[Any, ...]:
        rows = zip(*(np.ravel(item).tolist() for item in inputs), strict=True)
        found = np.array([op.function(*row) for row in rows], dtype=np.float64).reshape(-1, op.nout)
        return tuple(column.reshape(np.shape(inputs[0])) for column in found.T)

    def call(*inputs: Any) -> Any:
        return _called(kernel, [inputs[0].shape] * op.nout, inputs, vmap_method="broadcast_all")

    def slopes(inputs: Arrays, found: Arrays, cotangents: Arrays) -> dict[int, Any]:
        _, eta, n, *_ = inputs
        _, mean, variance, third = found
        expected = jnp.where(n < 0, jnp.exp(eta), n * jax.nn.sigmoid(eta))
        return {1: cotangents[0] * (mean - expected) + cotangents[1] * variance + cotangents[2] * third}

    made = _differentiable(op.name, call, slopes, {1}, differentiable=3)
    return lambda *inputs: made(*jnp.broadcast_arrays(*(jnp.asarray(item, jnp.float64) for item in inputs)))


def _called(kernel: Callable[..., Any], shapes: Arrays, inputs: Arrays, *, vmap_method: str) -> Any:
    outputs = tuple(jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes)
    return jax.pure_callback(kernel, outputs, *inputs, vmap_method=vmap_method)


def _differentiable(
    name: str, call: Callable[..., Any], slopes: Callable[..., dict[int, Any]], by: set[int], *, differentiable: int
) -> Callable[..., Any]:
    """Give a function its derivatives by the inputs at `by`, of its first outputs; others are errors, and not zero."""
    function = jax.custom_vjp(call)

    def forward(*inputs: Any) -> Any:
        if wrong := [place for place, item in enumerate(inputs) if item.perturbed and place not in by]:
            raise NotImplementedError(f"{name} has no derivative in its inputs {wrong}.")
        given = [item.value for item in inputs]
        found = call(*given)
        return found, (given, found)

    def backward(kept: Any, cotangents: Arrays) -> tuple[Any, ...]:
        zero = [isinstance(item, jax.custom_derivatives.SymbolicZero) for item in cotangents]
        if not all(zero[differentiable:]):
            raise NotImplementedError(f"{name} has no derivatives of its slopes in JAX.")
        given, found = kept
        full = [
            jnp.zeros(item.shape, item.dtype) if none else item for item, none in zip(cotangents, zero, strict=True)
        ]
        pulled = slopes(given, found, full)
        return tuple(pulled.get(place, jnp.zeros_like(item)) for place, item in enumerate(given))

    function.defvjp(forward, backward, symbolic_zeros=True)
    return lambda *inputs: function(*(jnp.asarray(item, jnp.float64) for item in inputs))


__all__ = ["noised_count", "released"]
