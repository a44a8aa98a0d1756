"""Which element of a free variable a log-density belongs to that depends on it: elements that share none are free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import UnknownOperation
from pymc_dp.intervals.feeds import MANY, joined
from pymc_dp.proofs.parameter_boxes import Box, boxes_of
from pymc_dp.step_methods.gibbs.conjugacy import Dependents


def terms_of(prior: Prior, dependents: Dependents) -> list[Variable]:
    """Log-densities of a variable, of its children, and Potentials."""
    rvs = [prior.variable, *dependents.children]
    # A random variable stands in place of its own value: both become the symbol of the value.
    terms = [pm.logp(rv, rv, warn_rvs=False) for rv in rvs]
    return [*terms, *(item.sum() for item in dependents.potentials)]


def owners_of(
    prior: Prior, dependents: Dependents, free: Mapping[Variable, Box], shapes: Mapping[str, tuple[int, ...]]
) -> list[Array]:
    """Element of a variable that feeds each entry of its terms and of its tables.

    Parameters
    ----------
    prior : Prior
    dependents : Dependents
    free : mapping of Variable to Box
        Of every free variable.
    shapes : mapping of str to tuple of int
        Likewise, by name.
    """
    owners = [np.arange(prior.size).reshape(prior.shape)]
    owners += [_of_child(prior.name, child, free, shapes[str(child.name)]) for child in dependents.children]
    owners += [np.full((), MANY) for _ in dependents.potentials]
    for _, boxes in dependents.tables:
        parts = [box.owner(prior.name).reshape(len(box.low), -1) for box in boxes]
        owners.append(joined(np.concatenate(parts, axis=1), 1))
    return owners


def _of_child(name: str, child: Variable, free: Mapping[Variable, Box], shape: tuple[int, ...]) -> Array:
    op: Any = child.owner.op
    if isinstance(op, TruncatedRV) and op.ndim_supp == 0:
        parameters = list(child.owner.inputs[2:])
    elif isinstance(op, RandomVariable) and op.ndim_supp == 0:
        parameters = list(op.dist_params(child.owner))
    else:
        return np.full(shape[: pm.logp(child, child, warn_rvs=False).type.ndim], MANY)
    try:
        boxes = boxes_of(parameters, free)
    except UnknownOperation:
        return np.full(shape, MANY)
    return joined(np.stack([np.broadcast_to(box.owner(name), shape) for box in boxes]), 0)


__all__ = ["owners_of", "terms_of"]
