"""Functions and draws without a compiler: for what is evaluated once or a few times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pymc as pm
import pytensor
from pymc import Model
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.link.vm import VMLinker

from pymc_dp.inspection.row_density import replaced
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.shared import kept_while_shared
from pymc_dp.inspection.stable_forms import stable_form

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
    mode = AS_WRITTEN if few or not inputs else None
    with pytensor.config.change_flags(**NUMPY):
        return pytensor.function(list(inputs), outputs, on_unused_input="ignore", mode=mode)


def plain_draw(variables: Any, seed: Any, draws: int = 1) -> Any:
    """Draw from variables by NumPy; more than one draw comes along a new first axis."""
    with pytensor.config.change_flags(**NUMPY):
        return pm.draw(variables, draws, random_seed=seed)


@kept_while_shared
def start_of(model: Model) -> dict[str, Array]:
    """Return the initial point of a model. PyMC compiles a function for each."""
    point: dict[str, Array] = model.initial_point()
    return point


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


__all__ = ["AS_WRITTEN", "NUMPY", "plain_draw", "plain_function", "stable", "start_of"]
