"""Which element of which free variable each entry of a parameter is: also where several are stacked or switched."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Switch
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.elemwise import Elemwise

from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import Prior, feeds_value, only_selects
from pymc_dp.inspection.rows import Array, reached


def selections(parameter: Variable, priors: Sequence[Prior], prior_model: Model) -> tuple[Array, Array] | None:
    """Say which element of which free variable each entry of a parameter is; None where one is anything else.

    Parameters
    ----------
    parameter : Variable
        A graph over the free variables of `prior_model`, free of rows.
    priors : sequence of Prior
    prior_model : pymc.Model

    Returns
    -------
    two integer arrays of the parameter's shape, or None
        Places among the priors, and in the raveled free variable.
    """
    own = {prior.variable: place for place, prior in enumerate(priors)}
    if not _selects(parameter, own):
        return None
    starts = np.cumsum([0, *(prior.size for prior in priors)])
    numbers = {
        prior.variable: pt.constant(start + np.arange(prior.size, dtype=np.float64).reshape(prior.shape))
        for prior, start in zip(priors, starts, strict=False)
    }
    (graph,), _ = rebuild([parameter], numbers)
    if set(prior_model.free_RVs) & set(reached([graph])):
        return None
    found = np.rint(plain_function([], graph)()).astype(np.int64)
    which = np.searchsorted(starts, found, side="right") - 1
    return which, found - starts[which]


def _selects(parameter: Variable, own: Collection[Variable]) -> bool:
    """Whether every entry of a parameter is an entry of one of some variables, unchanged."""
    if parameter in own:
        return True
    if parameter.owner is None:
        return False
    op, inputs = parameter.owner.op, parameter.owner.inputs
    if isinstance(op, MakeVector | Join):
        return parameter.type.dtype == "float64" and all(_selects(item, own) for item in inputs)
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, Switch):
        return not _meets(inputs[:1], own) and all(_selects(item, own) for item in inputs[1:])
    return any(_carries(parameter, item, own) for item in inputs if _meets([item], own))


def _carries(parameter: Variable, carried: Variable, own: Collection[Variable]) -> bool:
    """Whether one operation passes one of its inputs on, as if that were a free variable itself."""
    op, inputs = parameter.owner.op, parameter.owner.inputs
    others = [item for item in inputs if item is not carried]
    if feeds_value(op) and _meets(others, own):
        return False
    stand_in = carried.clone()
    alone = parameter.owner.clone_with_new_inputs([stand_in if item is carried else item for item in inputs])
    return only_selects(alone.outputs[parameter.index], stand_in) and _selects(carried, own)


def _meets(graphs: Sequence[Variable], own: Collection[Variable]) -> bool:
    return any(var in own for var in ancestors(graphs, blockers=list(own)))


__all__ = ["selections"]
