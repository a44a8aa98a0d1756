"""A mode in which NumPy evaluates a graph as it is: for functions that are called a few dozen times.

Most of a compilation is spent on rewriting a graph; what is called a few times is sooner evaluated node by node.
"""

from __future__ import annotations

from typing import Any

from pytensor.compile import optdb
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.rewriting.basic import node_rewriter, out2in
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.scalar.basic import Add, Mul
from pytensor.tensor.elemwise import Elemwise

MOST = 16
"""Operands of one operation; NumPy takes 32."""


@node_rewriter([Elemwise])
def _in_parts(fgraph: Any, node: Apply) -> list[Variable] | None:
    """Add up, or multiply, many terms in several steps."""
    inputs = list(node.inputs)
    if not isinstance(node.op.scalar_op, Add | Mul) or len(inputs) <= MOST:
        return None
    parts = [inputs[start : start + MOST] for start in range(0, len(inputs), MOST)]
    return [node.op(*(part[0] if len(part) == 1 else node.op(*part) for part in parts))]


optdb.register("pymc_dp_operations_in_parts", out2in(_in_parts), "pymc_dp_interpreted", position=48)
INTERPRETED = Mode(linker="py", optimizer=RewriteDatabaseQuery(include=["merge", "pymc_dp_interpreted"]))

__all__ = ["INTERPRETED"]
