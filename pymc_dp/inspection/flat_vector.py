"""All free variables of a model as parts of one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable


def parts_of(flat: Variable, variables: Sequence[Variable], shapes: Sequence[tuple[int, ...]]) -> dict[Variable, Any]:
    """Return variables, of known shapes, as parts of one vector, one after the other."""
    vector: Any = flat
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)]).tolist()
    places = zip(variables, shapes, ends[:-1], ends[1:], strict=True)
    return {var: vector[start:end].reshape(shape).astype(var.type.dtype) for var, shape, start, end in places}


__all__ = ["parts_of"]
