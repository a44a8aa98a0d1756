"""Functions and draws without a compiler: for what is evaluated once or a few times.

Forms of logarithms that stay finite in floats where the formula that was written does not.

What is made of one inspection, such as a prior model, once for several that ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from threading import Lock
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc import Model
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import applys_between
from pytensor.link.vm import VMLinker
from pytensor.scalar.basic import Log, Log1p, Mul, Neg
from pytensor.scalar.math import Erf, Erfc, Sigmoid
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise

from pymc_dp.inspection.row_density import replaced
from pymc_dp.inspection.rows import Array

NEAR = 1e-6
"""Constants of PyMC are held in single precision."""
FAR = 1.0
"""Where log(erfc(u)) begins to be taken from erfcx."""


def stable_form(node: Apply, inputs: Sequence[Variable]) -> Variable | None:
    """Return a stable form of a logarithm of sigmoids and error functions, with new inputs; None where it is none."""
    if not isinstance(node.op, Elemwise):
        return None
    kind = node.op.scalar_op
    if isinstance(kind, Log):
        base, factor = _scaled(inputs[0])
        if factor > 0 and _is(base, Erfc):
            return _log_erfc(_inside(base)) + np.log(factor)
        return None
    if not isinstance(kind, Log1p):
        return None
    base, factor = _scaled(inputs[0])
    if _is(base, Sigmoid) and abs(factor + 1) < NEAR:
        return -pt.softplus(_inside(base))
    if _is(base, Erfc) and abs(factor + 0.5) < NEAR:
        return _log_erfc(-_inside(base)) - np.log(2.0)
    if _is(base, Erf) and abs(abs(factor) - 1) < NEAR:
        return _log_erfc(-np.sign(factor) * _inside(base))
    return None


def _scaled(var: Variable) -> tuple[Variable, float]:
    """Split off constant factors: var = factor times base."""
    factor = 1.0
    while var.owner is not None and isinstance(var.owner.op, Elemwise):
        if isinstance(var.owner.op.scalar_op, Neg):
            factor, var = -factor, var.owner.inputs[0]
            continue
        if not isinstance(var.owner.op.scalar_op, Mul):
            break
        numbers = [_number(item) for item in var.owner.inputs]
        others = [item for item, number in zip(var.owner.inputs, numbers, strict=True) if number is None]
        if len(others) != 1 or others[0].type.ndim != var.type.ndim:
            break
        factor *= float(np.prod([number for number in numbers if number is not None]))
        var = others[0]
    return var, factor


def _number(var: Variable) -> float | None:
    """Return the one number that a constant holds; None where it is none, or has several."""
    while var.owner is not None and isinstance(var.owner.op, DimShuffle):
        var = var.owner.inputs[0]
    return float(var.data.item()) if isinstance(var, Constant) and np.size(var.data) == 1 else None


def _is(var: Variable, kind: type) -> bool:
    return var.owner is not None and isinstance(var.owner.op, Elemwise) and isinstance(var.owner.op.scalar_op, kind)


def _inside(var: Variable) -> Variable:
    return var.owner.inputs[0]


def _log_erfc(u: Variable) -> Variable:
    """log(erfc(u)), which underflows where u > 26: there erfc(u) = erfcx(u) exp(-u^2)."""
    far = pt.maximum(u, FAR)
    return pt.switch(u > FAR, pt.log(pt.erfcx(far)) - far**2, pt.log(pt.erfc(pt.minimum(u, FAR))))


_kept: ContextVar[dict[tuple[Any, ...], tuple[Any, ...]] | None] = ContextVar("kept", default=None)


class _Untraced:
    """Graphs do not note where they were built, which takes a seventh of the time: nobody will see them.

    The flag is of the process: of several threads, the first sets it, and the last sets it back.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = pytensor.config.traceback__limit
                pytensor.config.traceback__limit = 0
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                pytensor.config.traceback__limit = self._before


_UNTRACED = _Untraced()


@contextmanager
def shared() -> Iterator[None]:
    """Make things of one model once for all that ask within this context; it must not be changed meanwhile."""
    token = _kept.set({})
    try:
        with _UNTRACED:
            yield
    finally:
        _kept.reset(token)


def kept_while_shared[**P, Found](made: Callable[P, Found]) -> Callable[P, Found]:
    """Let something be made once of the same things, the very same ones, within `shared`.

    What is given by keyword only counts by its value. Nobody may change what was made.
    """
    kinds = signature(made)

    @wraps(made)
    def once(*args: P.args, **kwargs: P.kwargs) -> Found:
        kept = _kept.get()
        if kept is None:
            return made(*args, **kwargs)
        bound = kinds.bind(*args, **kwargs)
        bound.apply_defaults()
        key = (made, *map(id, bound.args), *sorted(bound.kwargs.items()))
        if key not in kept:
            kept[key] = (made(*args, **kwargs), bound.args)  # what is held has an identity of its own
        found: Found = kept[key][0]
        return found

    return once


NUMPY: dict[str, Any] = {"mode": "FAST_COMPILE", "cxx": ""}
"""Settings of PyTensor under which NumPy evaluates: without a C compiler, which constants would be folded by too."""


AS_WRITTEN = Mode(
    VMLinker(use_cloop=False, c_thunks=False), RewriteDatabaseQuery(include=["minimum_compile", "py_only"])
)
"""Evaluates graphs as they are written. Rewriting one takes longer than the few values that are wanted of it."""


def plain_function(inputs: Sequence[Variable], outputs: Any, *, few: bool = False) -> Any:
    """Return a function that NumPy evaluates; inputs that it does not need are allowed.

    With `few`, and without inputs, the graph is not rewritten first: for a few values far from where floats overflow.
    """
    mode = AS_WRITTEN if (few or not inputs) and _evaluable(outputs) else None
    with pytensor.config.change_flags(**NUMPY):
        return pytensor.function(list(inputs), outputs, on_unused_input="ignore", mode=mode)


def _evaluable(outputs: Any) -> bool:
    """Whether NumPy can evaluate a graph as it is written: it knows no last axis of a number, which ``pm.CAR`` sums."""
    nodes = applys_between([], outputs if isinstance(outputs, list | tuple) else [outputs])
    return not any(isinstance(node.op, CAReduce) and node.op.axis and not node.inputs[0].type.ndim for node in nodes)


def plain_draw(variables: Any, seed: Any, draws: int = 1) -> Any:
    """Draw from variables by NumPy; more than one draw comes along a new first axis."""
    with pytensor.config.change_flags(**NUMPY):
        return pm.draw(variables, draws, random_seed=seed)


@kept_while_shared
def start_of(model: Model) -> dict[str, Array]:
    """Return the initial point of a model. PyMC compiles a function for each."""
    point: dict[str, Array] = model.initial_point()
    return point


def shapes_of(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the free variables of a model. PyMC would compile a function for what nearly all say."""
    found = {str(rv.name): rv.type.shape for rv in model.free_RVs}
    if any(None in shape for shape in found.values()):
        evaluated = model.eval_rv_shapes()
        found = {name: tuple(int(length) for length in evaluated[name]) for name in found}
    return found


def stable(graph: Variable | list[Variable]) -> Any:
    """Return a graph, or several, whose values stay finite where their formula in floats does not.

    log(1 - sigmoid(40)) is -inf in floats. A density that vanishes where it does not would tell apart rows that are
    alike. The rewrites are those that PyMC makes before it derives a density, after a first look for stable forms:
    log1p(-sigmoid(x)) is none any more once its sign has become a factor. Last come forms that PyTensor does not know.
    """
    with pytensor.config.change_flags(**NUMPY):
        first = rewrite_graph(graph, include=("stabilize",), clone=True)
        second = rewrite_graph(first, include=("canonicalize", "stabilize"), clone=False)
        if isinstance(second, list):
            return [replaced(one, stable_form) for one in second]
        return replaced(second, stable_form)


__all__ = [
    "AS_WRITTEN",
    "NUMPY",
    "kept_while_shared",
    "plain_draw",
    "plain_function",
    "shapes_of",
    "shared",
    "stable",
    "stable_form",
    "start_of",
]
