"""How compiled models evaluate `ReleasedLogp`; imported when the first of them is made.

A kernel is called by a name that stands for its address: as a part of the functions that call it, LLVM would optimise
it again in each of them, which takes longer than to compile it once. The name contains a hash of all that the kernel
does. PyTensor keeps on disk what calls the name, and asks for `compiled`, which says where the kernel lies in this
process, before it loads such a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from types import CodeType
from typing import Any

import numpy as np
from llvmlite.binding import add_symbol
from numba import types
from numba.core.cgutils import get_or_insert_function, if_unlikely, unpack_tuple
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.extending import intrinsic
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key

from pymc_dp.transforms.released_logp import ReleasedLogp

NAME = "released_logp"
_NAMED: dict[str, Any] = {}
"""Compiled kernels by their names: what calls a name has no reference to the kernel."""


@register_funcify_and_cache_key(ReleasedLogp)
def compiled(op: ReleasedLogp, node: Any, **_: Any) -> tuple[Any, str]:
    """Return a function that calls the kernel, and what it may be cached by."""
    ndims, source = [item.type.ndim for item in node.inputs], _caller(node)
    key = f"pymc_dp.{type(op).__name__} {sha256(f'{source} {ndims} {program(op.function)}'.encode()).hexdigest()}"
    kernel = by_name(op.function, [types.Array(types.float64, n, "C") if n else types.float64 for n in ndims], key)
    function = compile_numba_function_src(source, NAME, {"kernel": kernel, "np": np, "__name__": __name__})
    return numba_njit(function), key


def _caller(node: Any) -> str:
    """Program of a function that hands the kernel numbers and contiguous arrays, and returns arrays."""
    names = [f"x{i}" for i in range(len(node.inputs))]
    given = [
        f"np.ascontiguousarray({name})" if item.type.ndim else f"{name}.item()"
        for name, item in zip(names, node.inputs, strict=True)
    ]
    found = [f"f{i}" for i in range(len(node.outputs))]
    arrays = [name if item.type.ndim else f"np.asarray({name})" for name, item in zip(found, node.outputs, strict=True)]
    return (
        f"def {NAME}({', '.join(names)}):\n"
        f"    {', '.join(found)}, = kernel(({', '.join(given)},))\n"
        f"    return {', '.join(arrays)},\n"
    )


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


def program(kernel: Callable[..., Any]) -> str:
    """Return a hash of what a compiled function does: of its code and options, and of all that it calls or reads."""
    digest = sha256()
    for part in _parts(kernel, set()):
        digest.update(part)
    return digest.hexdigest()


def _parts(kernel: Any, seen: set[int]) -> Iterator[bytes]:
    if id(kernel) in seen:
        return
    seen.add(id(kernel))
    function = kernel.py_func if isinstance(kernel, Dispatcher) else getattr(kernel, "__wrapped__", kernel)
    if isinstance(kernel, Dispatcher):
        yield repr(sorted(kernel.targetoptions.items())).encode()
    for code in _codes(function.__code__):
        yield code.co_code
        yield repr([item for item in code.co_consts if not isinstance(item, CodeType)]).encode()
        yield repr((code.co_names, code.co_varnames)).encode()
        for name in code.co_names:
            yield from _read(function.__globals__.get(name), seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield from _codes(item)


def _read(item: Any, seen: set[int]) -> Iterator[bytes]:
    """What a name of the program stands for: another compiled function or an intrinsic, or a number, text or array."""
    if isinstance(item, Dispatcher | _Intrinsic):
        yield from _parts(item, seen)
    elif isinstance(item, np.ndarray):
        yield repr((item.dtype, item.shape)).encode() + item.tobytes()
    elif isinstance(item, float | int | str | tuple):
        yield repr(item).encode()


__all__ = ["compiled", "program"]
