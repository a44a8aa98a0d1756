"""Distributions whose row is a vector: which of them are known, and how their axes are laid out."""

from __future__ import annotations

from typing import Any

from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.inspection.stated import statement_of

VECTORS = {"multinomial": (0, 1), "dirichlet": (1,), "multivariate_normal": (1, 2)}
"""Axes of each of their parameters for one row."""


def entries_of(rv: Variable) -> int:
    """Return the number of axes of one row of a plain distribution: 1 where a row is a vector, else 0."""
    op: Any = rv.owner.op
    if statement_of(rv) is not None:
        return 1
    return int(isinstance(op, RandomVariable) and VECTORS.get(op.name or "") == tuple(op.ndims_params))


__all__ = ["VECTORS", "entries_of"]
