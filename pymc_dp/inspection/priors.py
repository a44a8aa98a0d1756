"""What the priors of a prior model look like: supports, constants of theirs, and which element feeds which cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.transforms import _default_transform
from pymc.distributions.truncated import TruncatedRV
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Cast, Second
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.inspection.interpreted import kept_while_shared, plain_function, shapes_of
from pymc_dp.inspection.rows import Array, array_leaves, reached, rebuild

SHAPED = (Alloc, Reshape, SpecifyShape, JoinDims, SplitDims)
"""Operations whose inputs beside the first say shapes only."""
SELECTING = (*SHAPED, DimShuffle, Subtensor, AdvancedSubtensor)
"""Operations that only move, repeat or choose entries of their first input."""
OWN_TRANSFORM = " under a transform of its own"
BALL = "normal_ball"
"""Name of a normal distribution of mean 0 and one sd, restricted to a ball."""
SUPPORTS: dict[str, tuple[float, float]] = {
    "beta": (0.0, 1.0),
    "gamma": (0.0, np.inf),
    "invgamma": (0.0, np.inf),
    "exponential": (0.0, np.inf),
    "halfnormal": (0.0, np.inf),
    "halfcauchy": (0.0, np.inf),
    "lognormal": (0.0, np.inf),
    "dirichlet": (0.0, 1.0),
    "normal": (-np.inf, np.inf),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """The prior of one free variable, as far as it is plain.

    Attributes
    ----------
    name : str
    variable : Variable
        In the prior model.
    shape : tuple of int
    distribution : str
        Name of the (untruncated) distribution: ``"beta"`` also for ``pm.Truncated(..., pm.Beta.dist(...))``.
    parameters : tuple of Variable
        Its parameters in PyTensor's order (the gamma's are shape and scale), bounds left out.
    constants : tuple of arrays or None
        Values of the parameters, broadcast to `shape`, where all are constants that fit it.
    low, high : arrays of `shape`
        Bounds of the support of every element; None where they depend on other free variables.
    radius : float or None
        Greatest Euclidean norm of all elements together, where the support is a ball.
    """

    name: str
    variable: Variable
    shape: tuple[int, ...]
    distribution: str
    parameters: tuple[Variable, ...]
    constants: tuple[Array, ...] | None
    low: Array | None
    high: Array | None
    radius: float | None = None

    @property
    def size(self) -> int:
        """Number of scalars."""
        return int(np.prod(self.shape))

    @property
    def bounded(self) -> bool:
        """Whether every element has two finite bounds."""
        return self.low is not None and self.high is not None and bool(np.isfinite([self.low, self.high]).all())


@kept_while_shared
def priors_of(prior_model: Model) -> tuple[Prior, ...]:
    """Describe the prior of every free variable of a prior model. Everything read here is public."""
    shapes = shapes_of(prior_model)
    return tuple(_prior(prior_model, rv, shapes[rv.name]) for rv in prior_model.free_RVs)


def _prior(prior_model: Model, rv: Variable, shape: tuple[int, ...]) -> Prior:
    op: Any = rv.owner.op
    parameters: tuple[Variable, ...]
    bounds: tuple[Variable, Variable] | None = None
    own, usual = prior_model.rvs_to_transforms[rv], _default_transform(op, rv)
    if own is not None and not same_transform(own, usual):
        # Some, as `ordered`, restrict the prior too.
        name, parameters = f"{getattr(op, 'name', None) or type(op).__name__}{OWN_TRANSFORM}", ()
    elif isinstance(op, TruncatedRV):
        name, inputs = op.base_rv_op.name, list(rv.owner.inputs)
        parameters = tuple(inputs[2:-2])
        bounds = (inputs[-2], inputs[-1])
        if name == "uniform":  # the ends of the base are bounds as well
            bounds = (pt.maximum(bounds[0], parameters[0]), pt.minimum(bounds[1], parameters[1]))
            parameters = ()
    elif isinstance(op, RandomVariable):
        name, parameters = op.name, tuple(op.dist_params(rv.owner))
        if name in ("truncated_normal", "uniform"):
            bounds = (parameters[-2], parameters[-1])
            parameters = parameters[:-2]
            name = "normal" if name == "truncated_normal" else "uniform"
        elif name == "truncated_dirichlet":
            name, bounds, parameters = "dirichlet", (parameters[1], pt.constant(1.0)), parameters[:1]
        elif name == BALL:
            bounds, parameters = (-parameters[1], parameters[1]), parameters[:1]
    else:
        name, parameters = type(op).__name__, ()
    others = [var for var in prior_model.free_RVs if var is not rv]
    ends = None if bounds is None else constant_values(bounds, others)
    low: Array | None = None
    high: Array | None = None
    if bounds is None or ends is not None:
        low, high = _support(name, shape, ends)
    plain = isinstance(op, RandomVariable | TruncatedRV) and not name.endswith(OWN_TRANSFORM)
    values = constant_values(parameters, others) if plain else None
    constants = None
    if values is not None and all(_fits(value.shape, shape) for value in values):
        constants = tuple(np.broadcast_to(value, shape).astype(np.float64) for value in values)
    return Prior(
        name=str(rv.name),
        variable=rv,
        shape=shape,
        distribution=name,
        parameters=parameters,
        constants=constants,
        low=low,
        high=high,
        radius=float(ends[1]) * math.sqrt(np.prod(shape[:-1])) if name == BALL and ends is not None else None,
    )


def _fits(shape: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    """Whether one shape broadcasts to another: that of a categorical variable's probabilities does not to its own."""
    return len(shape) <= len(wide) and all(a in (1, b) for a, b in zip(shape[::-1], wide[::-1], strict=False))


def same_transform(own: Any, usual: Any) -> bool:
    """Whether a transform is the one that PyMC would choose; an interval of other ends would restrict the prior."""
    if type(own) is not type(usual):
        return False
    ends = [getattr(getattr(item, "args_fn", None), "__qualname__", "") for item in (own, usual)]
    return ends[0] == ends[1]


def _support(name: str, shape: tuple[int, ...], bounds: Sequence[Array] | None) -> tuple[Array, Array]:
    natural = SUPPORTS.get(name, (-np.inf, np.inf))
    low, high = bounds if bounds is not None else natural
    low = np.broadcast_to(np.maximum(np.asarray(low, dtype=float), natural[0]), shape)
    high = np.broadcast_to(np.minimum(np.asarray(high, dtype=float), natural[1]), shape)
    if name == "dirichlet":
        high = np.minimum(high, low + (1 - low.sum(axis=-1, keepdims=True)).clip(0))
    return low, high


LOG_CONCAVE = ("normal", "uniform", "exponential", "laplace", "logistic", "halfnormal", "gumbel", BALL)
"""Distributions whose densities are log-concave, whatever their parameters."""


def log_concave(prior: Prior) -> bool:
    """Whether the density of a prior, with constant parameters, is log-concave on its (convex) support."""
    if prior.distribution == "uniform":
        return prior.bounded
    if prior.constants is None or prior.low is None or prior.high is None:  # ends that move make a normaliser of them
        return False
    if prior.distribution == "gamma":
        return bool((prior.constants[0] >= 1).all())
    if prior.distribution in ("beta", "dirichlet"):
        return bool(all((item >= 1).all() for item in prior.constants))
    return prior.distribution in LOG_CONCAVE


def constant_values(variables: Sequence[Variable], free: Sequence[Variable] = ()) -> list[Array] | None:
    """Evaluate public graphs that depend on no free variable; None where one does, or is itself random."""
    if not variables:
        return []
    if any(var in set(free) or _is_random(var) or _is_input(var) for var in reached(variables)):
        return None
    function = plain_function([], list(variables))
    return [np.asarray(value) for value in function()]


def _is_input(var: Variable) -> bool:
    return var.owner is None and not isinstance(var, Constant | SharedVariable)


def _is_random(var: Variable) -> bool:
    return var.owner is not None and isinstance(var.owner.op, RandomVariable | TruncatedRV)


def selection(parameter: Variable, prior: Prior, prior_model: Model) -> Array | None:
    """Which element of a free variable each entry of a parameter is; None where it is anything but a selection.

    Returns
    -------
    integer array of the parameter's shape, or None
        Places in the raveled free variable.
    """
    rv = prior.variable
    if not only_selects(parameter, rv):
        return None
    places = pt.constant(np.arange(prior.size, dtype=np.float64).reshape(prior.shape))
    (graph,), _ = rebuild([parameter], {rv: places})
    if any(var in set(prior_model.free_RVs) or _is_random(var) for var in reached([graph])):
        return None
    value = plain_function([], graph)()
    return np.rint(value).astype(np.int64)


def only_selects(parameter: Variable, rv: Variable) -> bool:
    """Whether values of `rv` reach `parameter` unchanged, and nothing else does."""
    while parameter is not rv:
        if parameter.owner is None:
            return False
        op, inputs = parameter.owner.op, parameter.owner.inputs
        if isinstance(op, SELECTING) or (
            isinstance(op, Elemwise) and isinstance(op.scalar_op, Cast) and parameter.type.dtype == "float64"
        ):
            carried = inputs[0]
        elif isinstance(op, Elemwise) and isinstance(op.scalar_op, Second):
            carried = inputs[1]
        else:
            return False
        others = [item for item in inputs if item is not carried and feeds_value(op)]
        if any(var is rv for var in ancestors(others)):
            return False
        parameter = carried
    return True


def of_numbers(parameter: Variable) -> bool:
    """Whether a parameter is made of scalar constants, or is an unnamed array of numbers: none computed from one.

    What is computed from an array may tell of rows. Evaluated, it is a number that no longer shows where it is from.
    """
    return all(
        isinstance(leaf, Constant) and not leaf.name and only_selects(parameter, leaf)
        for leaf in array_leaves([parameter])
    )


def feeds_value(op: Any) -> bool:
    """Whether inputs beside the first choose values; those that only say a shape may be read from the variable."""
    return not isinstance(op, (*SHAPED, Elemwise))


__all__ = [
    "Prior",
    "constant_values",
    "feeds_value",
    "log_concave",
    "of_numbers",
    "only_selects",
    "priors_of",
    "same_transform",
    "selection",
]
