"""Model → new model with bounded parameters: priors truncated to intervals that are public."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
from pymc.distributions.distribution import SymbolicRandomVariable, support_point
from pymc.distributions.transforms import (
    CircularTransform,
    Interval,
    LogOddsTransform,
    LogTransform,
    _default_transform,
)
from pymc.distributions.truncated import TruncatedRV
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.extra_ops import broadcast_shape
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type_other import NoneTypeT

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.of_context import context_model
from pymc_dp.inspection.priors import BALL, of_numbers, same_transform
from pymc_dp.inspection.schema import dim_length
from pymc_dp.transforms.prior_model import replace_variables
from pymc_dp.transforms.restricted_priors import TruncatedDirichlet, ball_rule

Floats = npt.NDArray[np.float64]
REAL = (-math.inf, math.inf)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Bounds:
    """Bounds of one free variable, None where it is open."""

    name: str
    low: Floats | None
    high: Floats | None
    shape: tuple[int, ...]

    def inside(self, values: npt.ArrayLike) -> bool:
        """Whether all values lie strictly within the bounds."""
        held = np.asarray(values, dtype=float)
        return bool((self.low is None or (held > self.low).all()) and (self.high is None or (held < self.high).all()))

    @property
    def place(self) -> Floats:
        """A place within the bounds: their middle, or 1 away from the only one."""
        low = self.low if self.low is not None else self.high - 2.0 if self.high is not None else np.float64(-1.0)
        high = self.high if self.high is not None else low + 2.0
        return np.array(np.broadcast_to((low + high) / 2, self.shape))

    def __str__(self) -> str:
        return f"({_shown(self.low)}, {_shown(self.high)})"


def truncate(
    model: pm.Model | None = None,
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
    norms: Mapping[str, float] | None = None,
) -> pm.Model:
    """Return a copy of a model whose named parameters are truncated to public intervals, or to balls.

    Posterior samplers are private only where no row can change the log-likelihood without limit, which needs a bounded
    parameter space.

    Parameters
    ----------
    model : pymc.Model, optional
        Default: the model of the context. Not changed.
    bounds : mapping of name to (low, high)
        For each free variable to truncate: numbers, arrays that broadcast to its shape, or None for an open end. A
        Dirichlet takes lower bounds only: ``{"p": (0.01, None)}``. Bounds must be public: computing them from the rows
        breaks every guarantee.
    norms : mapping of name to float, optional
        Greatest Euclidean norm of a vector of coefficients, public: ``{"w": 1.0}``. Its prior must be normal, of mean 0
        and one standard deviation, both numbers. A linear predictor of a row x is then at most the norm times ``|x|``,
        where a box of the same half width allows √d times that. An intercept that is in no vector is left as it is.

    Returns
    -------
    pymc.Model
        Same variables, order, dims, coords, data, likelihoods and Potentials; the named priors are truncated and
        normalised, also where their parameters are random. Transforms are those of intervals, so that NUTS works.

    Raises
    ------
    ArgumentError
        For names that are no free variables, empty intervals, intervals that reach outside of the prior's support,
        priors for which there is no rule, and bounds in which the prior has no mass that PyMC can compute.

    Notes
    -----
    Uniform priors become narrower, normal ones ``TruncatedNormal``, Dirichlet ones `TruncatedDirichlet`, all others
    ``pm.Truncated``; a vector in a ball has a distribution and a transform of its own. The densities are right. Random
    draws of ``pm.Truncated`` invert the distribution function, so that prior predictive draws are wrong for bounds far
    in a tail; private samplers draw by `pymc_dp.kernel.truncated`. Arrays of data are shared with the original
    model, not copied.

    **Guarantee.** None: it transforms a model and reads no row. A truncated prior is another prior: bounds that exclude
    the truth bias the posterior.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 2.2, equation 15: the sensitivity of Bernoulli rows with p in
    [a, 1 - a] is log((1 - a) / a). Zhang, Rubinstein, Dimitrakakis (2016): linear regression, weights of bounded norm.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.Bernoulli("y", p, observed=[0, 1, 1])
    >>> truncate(model, {"p": (0.01, 0.99)}).free_RVs
    [p]
    """
    model = context_model(model)
    if bounds is None and norms is not None:
        bounds = {}
    if bounds is None or not (_validate.mapping("bounds", bounds) or norms):
        raise ArgumentError("bounds must map names to (low, high), got none. Write {'p': (0.01, 0.99)}.")
    replacements: dict[str, Callable[[Variable], Variable]] = {}
    initials: dict[str, Any] = {}
    for name, pair in bounds.items():
        rv = _free_variable(model, name)
        held = _within_support(rv, _read(model, rv, pair))
        rule = _rule(rv, held)
        truncated = _checked(rv, held, rule)
        _check_transform(model, rv)
        replacements[name] = rule
        initial = _initial_value(model, rv, held, truncated)
        if initial is not None:
            initials[name] = initial
    for name, radius in ({} if norms is None else _validate.mapping("norms", norms)).items():
        if name in bounds:
            raise ArgumentError(f"{name!r} is in bounds and in norms. Give one of them.")
        rv = _free_variable(model, name)
        _check_transform(model, rv)
        replacements[name] = ball_rule(model, rv, radius)
    return replace_variables(model, replacements, initials)


def _free_variable(model: pm.Model, name: object) -> Variable:
    names = [rv.name for rv in model.free_RVs]
    if name in names:
        return model.free_RVs[names.index(str(name))]
    if name in [rv.name for rv in model.observed_RVs]:
        raise ArgumentError(f"{name!r} is observed; bound its rows by dp.Domain(bounds={{{name!r}: (low, high)}}).")
    if name in model.named_vars:
        raise ArgumentError(f"{name!r} is computed from others. Truncate what it is computed from: {', '.join(names)}.")
    raise ArgumentError(
        f"bounds: {_validate.shown(name)} is no free variable of the model; these are "
        f"{', '.join(map(repr, names)) or 'none'}."
        f"{_validate.nearest(name, names)}"
    )


def _read(model: pm.Model, rv: Variable, pair: Any) -> _Bounds:
    name = rv.name
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ArgumentError(
            f"bounds of {name!r} must be a pair (low, high), got {_validate.shown(pair)}. None leaves an end open."
        )
    dims = model.named_vars_to_dims.get(name) or (None,) * rv.type.ndim
    shape = []
    for axis, (dim, length) in enumerate(zip(dims, rv.type.shape, strict=True)):
        if length is None:
            length = dim_length(model.dim_lengths[dim]) if dim is not None else int(rv.shape[axis].eval())
        shape.append(int(length))
    ends = [_end(name, end, tuple(shape)) for end in pair]
    held = _Bounds(name=name, low=ends[0], high=ends[1], shape=tuple(shape))
    if held.low is None and held.high is None:
        raise ArgumentError(f"bounds of {name!r} are both None. Give a number for one, or leave {name!r} out.")
    if held.low is not None and held.high is not None and not (held.low < held.high).all():
        raise ArgumentError(f"bounds of {name!r} must satisfy low < high, got {held}. Exchange or widen them.")
    return held


def _end(name: str, value: Any, shape: tuple[int, ...]) -> Floats | None:
    if value is None:
        return None
    try:
        held = np.asarray(value, dtype=np.float64)
        fits = np.broadcast_shapes(held.shape, shape) == shape
    except (OverflowError, TypeError, ValueError):
        fits = False
    if not fits or not np.isfinite(held).all():
        raise ArgumentError(
            f"bounds of {name!r} must be finite numbers that broadcast to its shape {shape}, got "
            f"{_validate.shown(value)}. Write None for an open end."
        )
    return held


def _within_support(rv: Variable, held: _Bounds) -> _Bounds:
    """Check that bounds do not leave the support, and close open ends where the support itself ends."""
    least, most = _support(rv)
    outside = (held.low is not None and (held.low < least).any()) or (
        held.high is not None and (held.high > most).any()
    )
    if outside:
        raise ArgumentError(
            f"bounds {held} of {held.name!r} reach outside the support ({_shown(least)}, {_shown(most)}) of its prior. "
            "Stay inside, or write None for the support's own end."
        )
    low = np.asarray(least, dtype=float) if held.low is None and np.isfinite(least).all() else held.low
    high = np.asarray(most, dtype=float) if held.high is None and np.isfinite(most).all() else held.high
    if low is not None and high is not None and not (low < high).all():
        raise ArgumentError(f"bounds {held} of {held.name!r} leave nothing of the support of its prior. Widen them.")
    return _Bounds(name=held.name, low=low, high=high, shape=held.shape)


def _support(rv: Variable) -> tuple[Any, Any]:
    """Ends of a prior's support, infinite where they are, or where they are not constants."""
    if rv.owner.op.ndim_supp > 0 or rv.type.dtype.startswith("int"):
        return REAL
    match _default_transform(rv.owner.op, rv):
        case LogTransform():
            return (0.0, math.inf)
        case LogOddsTransform():
            return (0.0, 1.0)
        case CircularTransform():
            return (-math.pi, math.pi)
        case Interval() as transform:
            low, high = transform.args_fn(*rv.owner.inputs)
            return (_number(low, -math.inf), _number(high, math.inf))
    return REAL


def _number(end: Any, otherwise: float) -> Any:
    if not isinstance(end, Variable):
        return otherwise if end is None else np.asarray(end, dtype=float)
    if not of_numbers(end):
        return otherwise
    try:
        return np.asarray(constant_fold([end])[0], dtype=float)
    except Exception:
        return otherwise


def _rule(rv: Variable, held: _Bounds) -> Callable[[Variable], Variable]:
    """Return the function that truncates a variable; refuse where there is none."""
    op, name = rv.owner.op, held.name
    kind = getattr(op, "name", None) or type(op).__name__
    if kind == "dirichlet":
        if held.high is not None:
            raise ArgumentError(
                f"{name!r} is a Dirichlet, which takes lower bounds only, got {held}. Write "
                f"({_shown(held.low)}, None): each upper bound is 1 less the other lower ones."
            )
        assert held.low is not None
        rule: Callable[[Variable], Variable] = partial(_dirichlet, lower=held.low)
    elif rv.type.dtype.startswith(("int", "uint", "bool")):
        raise ArgumentError(f"{name!r} is discrete; bounds are for continuous priors. Give it a prior on fewer values.")
    elif isinstance(op, TruncatedRV) or kind in ("truncated_normal", "truncated_dirichlet", BALL):
        raise ArgumentError(f"{name!r} is truncated already. Put the bounds {held} where the model defines it.")
    elif op.ndim_supp > 0:
        raise ArgumentError(
            f"there is no rule to truncate {name!r}, a multivariate prior ({kind}). Only Dirichlet has one; build "
            f"{name!r} from scalar priors."
        )
    elif kind in ("uniform", "flat", "half_flat", "halfflat"):
        ends = _support(rv)
        if kind == "uniform" and not np.isfinite(np.concatenate([np.ravel(end) for end in ends])).all():
            raise ArgumentError(f"{name!r} is a uniform whose ends are not constants. Bound its parameters instead.")
        if held.low is None or held.high is None:
            raise ArgumentError(f"{name!r} is flat, so it needs two finite bounds, got {held}. Give both.")
        rule = partial(_uniform, low=held.low, high=held.high)
    else:
        rule = partial(_truncated, low=held.low, high=held.high)
    return rule


def _dirichlet(rv: Variable, lower: Floats) -> Variable:
    (a,) = rv.owner.op.dist_params(rv.owner)
    size = _size(rv)
    return TruncatedDirichlet.dist(a, lower, **({} if size is None else {"size": size}))


def _uniform(rv: Variable, low: Floats, high: Floats) -> Variable:
    return pm.Uniform.dist(low, high, size=own_size(rv))


def _truncated(rv: Variable, low: Floats | None, high: Floats | None) -> Variable:
    size = own_size(rv)
    unnamed = rv.owner.op.make_node(*rv.owner.inputs).default_output()  # PyMC refuses those of the model in context
    with warnings.catch_warnings():  # some of PyMC's quantile functions look like graphs over random variables to it
        warnings.filterwarnings("ignore", message="RandomVariables .* were found in the derived graph")
        return pm.Truncated.dist(unnamed, lower=low, upper=high, **({} if size is None else {"size": size}))


def _size(rv: Variable) -> Variable | None:
    """Size that a random variable was given, None where its parameters tell it."""
    op = rv.owner.op
    size = op.size_param(rv.owner) if isinstance(op, RandomVariable) else None
    return None if size is None or isinstance(size.type, NoneTypeT) else size


def own_size(rv: Variable) -> Any:
    """Size that keeps the shape of a scalar-valued random variable without depending on the variable itself."""
    given = _size(rv)
    if given is not None or rv.type.ndim == 0:
        return given
    if None not in rv.type.shape:
        return rv.type.shape
    op: Any = rv.owner.op
    if not isinstance(op, RandomVariable):
        return None
    return broadcast_shape(*op.dist_params(rv.owner))


def _checked(rv: Variable, held: _Bounds, rule: Callable[[Variable], Variable]) -> Variable:
    """Return a truncated variable; refuse what PyMC cannot truncate, and bounds that hold no mass of floats."""
    try:
        new = rule(rv)
        value = new.type()
        density = pm.logp(new, value)
    except ArgumentError:
        raise
    except Exception as error:
        kind = getattr(rv.owner.op, "name", None) or type(rv.owner.op).__name__
        raise ArgumentError(
            f"PyMC cannot truncate the prior of {held.name!r} ({kind}): it knows no distribution function of it. Use "
            "another prior."
        ) from error
    if rv.owner.op.ndim_supp > 0 or _is_hierarchical(rv):
        return new
    point = held.place.astype(new.type.dtype)
    found = plain_function([value], density, few=True)(point)
    if not np.isfinite(found).all():
        raise ArgumentError(
            f"the prior of {held.name!r} has no mass in {held} that PyMC can compute: the bounds lie too far in its "
            "tail. Move the bounds, or choose a prior that fits them."
        )
    return new


def _is_hierarchical(rv: Variable) -> bool:
    """Whether a prior depends on other random variables."""
    kinds = (RandomVariable, SymbolicRandomVariable)
    return any(var.owner is not None and isinstance(var.owner.op, kinds) for var in ancestors(rv.owner.inputs))


def _check_transform(model: pm.Model, rv: Variable) -> None:
    """Refuse transforms set by hand: some of them, as `ordered`, restrict the prior too."""
    own, usual = model.rvs_to_transforms[rv], _default_transform(rv.owner.op, rv)
    if own is not None and not same_transform(own, usual):
        raise ArgumentError(
            f"{rv.name!r} has the transform {own.name!r}, set by hand, which truncation would replace. Take it out, or "
            "put bounds where the model defines the prior."
        )


def _initial_value(model: pm.Model, rv: Variable, held: _Bounds, truncated: Variable) -> Any:
    """Return an initial value for a truncated variable, None where the model's own, or PyMC's, lies within."""
    own = model.rvs_to_initial_values.get(rv)
    if isinstance(own, Variable | str):
        return None
    if own is not None:
        if not held.inside(own):
            raise ArgumentError(f"the initval of {held.name!r} is not within its bounds {held}. Leave it out.")
        return None
    if held.low is None or held.high is None:
        return None
    if _is_hierarchical(rv):
        # PyMC starts at its untruncated point or at half the width of the interval, which need not lie within.
        return None if held.inside((held.high - held.low) / 2) else held.place
    try:
        start = plain_function([], support_point(truncated))()
    except NotImplementedError:
        return held.place
    return None if held.inside(start) else held.place


def _shown(value: Any) -> str:
    if value is None:
        return "None"
    held = np.asarray(value)
    return f"{held.item():g}" if held.size == 1 else f"an array from {held.min():g} to {held.max():g}"
