"""How compiled models evaluate `ReleasedLogp` and `NoisedCount`; imported when the first of them is made.

A kernel is called by a name that stands for its address: as a part of the functions that call it, LLVM would optimise
it again in each of them, which takes longer than to compile it once. The name contains a hash of all that the kernel
does. PyTensor keeps on disk what calls the name, and asks for `compiled`, which says where the kernel lies in this
process, before it loads such a function.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from uuid import uuid4

import numpy as np
from llvmlite.binding import add_symbol
from numba import types
from numba.core.cgutils import get_or_insert_function, if_unlikely, unpack_tuple
from numba.extending import intrinsic
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key

from pymc_dp.transforms.noised_count import NoisedCount
from pymc_dp.transforms.released_logp import ReleasedLogp
from pymc_dp.transforms.source_hash import source_hash

NAME = "released_logp"
_NAMED: dict[str, Any] = {}
"""Compiled kernels by their names: what calls a name has no reference to the kernel."""


@register_funcify_and_cache_key(NoisedCount)
@register_funcify_and_cache_key(ReleasedLogp)
def compiled(op: ReleasedLogp | NoisedCount, node: Any, **_: Any) -> tuple[Any, str | None]:
    """Return a function that calls the kernel, and what it may be cached by."""
    elementwise = isinstance(op, NoisedCount)
    ndims = [0 if elementwise else item.type.ndim for item in node.inputs]
    names = [f"x{i}" for i in range(len(ndims))]
    numbers = ", ".join(f"float({name})" for name in names)
    body = f"return kernel(({numbers},))" if elementwise else _of_arrays(node, names)
    source = f"def {NAME}({', '.join(names)}):\n    {body}\n"
    known = source_hash(op.function)
    name = sha256(f"{source} {ndims} {known or uuid4()}".encode()).hexdigest()
    key = f"pymc_dp.{type(op).__name__} {name}"
    kernel = by_name(op.function, [types.Array(types.float64, n, "C") if n else types.float64 for n in ndims], key)
    function = compile_numba_function_src(source, NAME, {"kernel": kernel, "np": np, "__name__": __name__})
    return numba_njit(function), None if known is None else key


def _of_arrays(node: Any, names: list[str]) -> str:
    """Program that hands the kernel numbers and contiguous arrays, and returns arrays."""
    given = [
        f"np.ascontiguousarray({name})" if item.type.ndim else f"{name}.item()"
        for name, item in zip(names, node.inputs, strict=True)
    ]
    found = [f"f{i}" for i in range(len(node.outputs))]
    arrays = [name if item.type.ndim else f"np.asarray({name})" for name, item in zip(found, node.outputs, strict=True)]
    return f"{', '.join(found)}, = kernel(({', '.join(given)},))\n    return {', '.join(arrays)},"


def by_name(kernel: Any, arguments: list[Any], name: str) -> Any:
    """Compile a kernel, give its address a name, and return what calls it by the name, with a tuple of arguments."""
    kernel.compile(tuple(arguments))
    made = _NAMED[name] = kernel.overloads[tuple(arguments)]
    returned = made.signature.return_type
    add_symbol(name, made.library.get_pointer_to_function(made.fndesc.llvm_func_name))

    @intrinsic
    def call(_: Any, given: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            convention = context.call_conv
            function_type = convention.get_function_type(returned, arguments)
            function = get_or_insert_function(builder.module, function_type, name)
            status, found = convention.call_function(
                builder, function, returned, arguments, unpack_tuple(builder, values[0])
            )
            with if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return found

        return returned(given), generate

    return call


__all__ = ["compiled"]
