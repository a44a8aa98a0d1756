"""How compiled models draw tables: by NumPy, of which PyTensor warns that it is slow. A table is drawn seldom.

Imported when the first private model is made. Everything else is compiled as PyTensor does, warnings included.
"""

from __future__ import annotations

import warnings
from typing import Any

from pymc.distributions.custom import CustomDistRV
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key, register_funcify_and_cache_key
from pytensor.tensor.random.op import RandomVariableWithCoreShape

_usual = numba_funcify_and_cache_key.dispatch(RandomVariableWithCoreShape)


@register_funcify_and_cache_key(RandomVariableWithCoreShape)
def compiled(op: Any, node: Any = None, **given: Any) -> Any:
    """Return what PyTensor does."""
    (drawn,) = op.fgraph.apply_nodes
    with warnings.catch_warnings():
        if _is_ours(drawn.op):
            warnings.filterwarnings("ignore", message="Numba will use object mode", category=UserWarning)
        return _usual(op, node=node, **given)


def _is_ours(op: object) -> bool:
    """Whether a distribution is one of the package."""
    drawn_by = getattr(op, "_random_fn", None) if isinstance(op, CustomDistRV) else None
    return str(getattr(drawn_by, "__module__", "")).startswith("pymc_dp.")


__all__ = ["compiled"]
