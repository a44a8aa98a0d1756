"""The triangular matrix of ``pm.LKJCholeskyCov``, without the arrays of indices by which PyMC fills it.

An array in a likelihood may hold rows. What these two arrays hold is known without them, from the layout of the vector
that they spread, so that they are replaced unread: by single assignments, which hold no array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.multivariate import _LKJCholeskyCovRV
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Alloc
from pytensor.tensor.subtensor import AdvancedIncSubtensor

from pymc_dp.inspection._rebuild import rebuild

_FOUND: WeakKeyDictionary[Variable, tuple[Variable, ...]] = WeakKeyDictionary()
"""By random variable: whoever asks twice is given the same graphs."""


def without_indices(rv: Variable, parameters: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return the parameters of a random variable, lower triangles filled entry by entry."""
    if rv not in _FOUND:
        _FOUND[rv] = filled(parameters)
    return _FOUND[rv]


def filled(outputs: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return graphs whose lower triangles are filled entry by entry; the same ones where there are none."""
    triangles = {var: _filled(var) for var in ancestors(list(outputs)) if _is_lower(var)}
    return tuple(rebuild(list(outputs), triangles)[0]) if triangles else tuple(outputs)


def _is_lower(var: Variable) -> bool:
    """Whether a matrix is made of zeros and the vector of a Cholesky factor, whatever the indices. Reads no array."""
    node: Any = var.owner
    if node is None or not isinstance(node.op, AdvancedIncSubtensor) or len(node.inputs) != 4:
        return False
    zeros, packed, *indices = node.inputs
    shape = zeros.type.shape
    square = len(shape) == 2 and shape[0] == shape[1] is not None
    if not square or not isinstance(zeros.owner and zeros.owner.op, Alloc) or not node.op.set_instead_of_inc:
        return False
    count = shape[0] * (shape[0] + 1) // 2
    lengths = [index.type.shape == (count,) and isinstance(index, Constant) for index in indices]
    return lengths == [True, True] and isinstance(packed.owner and packed.owner.op, _LKJCholeskyCovRV)


def _filled(var: Variable) -> Variable:
    node: Any = var.owner
    zeros, packed = node.inputs[:2]
    size = zeros.type.shape[0]
    filled = pt.zeros((size, size), dtype=var.type.dtype)
    for place, (i, j) in enumerate(zip(*np.tril_indices(size), strict=True)):
        filled = pt.set_subtensor(filled[int(i), int(j)], packed[place])
    filled.tag.lower_triangular = True
    return filled


__all__ = ["filled", "without_indices"]
