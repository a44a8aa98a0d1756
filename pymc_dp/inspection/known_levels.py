"""Levels of discrete free variables that are known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.inspection.priors import Prior, constant_values
from pymc_dp.inspection.rows import Array

MOST_LEVELS = 1024
"""Of one variable: where a value is chosen, each of them is tried."""
WITHOUT = "is discrete without a known finite set of levels"


def static_levels(rv: Variable) -> int | None:
    """Return K for a variable with the levels 0..K-1, as far as the types of its parameters say so, else None."""
    op: Any = rv.owner.op
    if not isinstance(op, RandomVariable) or op.name not in ("bernoulli", "categorical", "markov_states"):
        return None
    if op.name == "bernoulli":
        return 2
    lengths = [item.type.shape[-1] for item in op.dist_params(rv.owner)[:2] if item.type.ndim]
    return next((length for length in lengths if length is not None), None)


def levels_of(prior: Prior) -> Array | None:
    """Levels of a discrete variable that are known beforehand, ascending; None where there are none or too many."""
    op: Any = prior.variable.owner.op
    if prior.distribution == "bernoulli":
        return np.arange(2)
    if prior.distribution == "categorical":
        length = prior.parameters[0].type.shape[-1]
        if length is None:
            values = constant_values(prior.parameters)
            length = None if values is None else values[0].shape[-1]
        return None if length is None or length > MOST_LEVELS else np.arange(length)
    if prior.distribution == "markov_states":
        length = static_levels(prior.variable)
        return None if length is None or length > MOST_LEVELS else np.arange(length)
    if prior.distribution in ("discrete_uniform", "binomial") and isinstance(op, RandomVariable):
        values = constant_values(prior.parameters)
        if values is None:
            return None
        low, high = (values[0], values[1]) if prior.distribution == "discrete_uniform" else (np.zeros(()), values[0])
        if np.unique(low).size == 1 and np.unique(high).size == 1 and high.max() - low.min() < MOST_LEVELS:
            return np.arange(int(low.min()), int(high.max()) + 1)
    return None


__all__ = ["MOST_LEVELS", "WITHOUT", "levels_of", "static_levels"]
