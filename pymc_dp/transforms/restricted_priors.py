"""Priors that are restricted: Dirichlet components that keep away from 0, and normal vectors within a ball.

A normal prior of a vector that is restricted to a ball, so that linear predictors have bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import Continuous
from pymc.distributions.multivariate import SimplexContinuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import _default_transform, simplex
from pymc.logprob.transforms import Transform
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.priors import BALL, of_numbers, priors_of
from pymc_dp.kernel.truncated import truncated_dirichlet


class TruncatedDirichletRV(RandomVariable):
    """Random variable with parameters (a, lower), read from a graph by ``op.dist_params(node)``."""

    name = "truncated_dirichlet"
    signature = "(a),(a)->(a)"
    dtype = "floatX"
    _print_name = ("TruncatedDirichlet", "\\operatorname{TruncatedDirichlet}")

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, a: Any, lower: Any, size: tuple[int, ...] | None) -> Any:
        """Draw exactly."""
        batch = np.broadcast_shapes(a.shape, lower.shape)[:-1] if size is None else tuple(size)
        shape = (*batch, a.shape[-1])
        return truncated_dirichlet(rng, np.broadcast_to(a, shape), np.broadcast_to(lower, shape))


class TruncatedSimplexTransform(Transform):
    """``p = lower + (1 - sum lower) q``, q on the simplex, from n_categories - 1 unbounded numbers."""

    name = "truncatedsimplex"  # PyMC reads the variable from what stands before the last underscore
    ndim_supp = 1

    def forward(self, value: Any, *inputs: Any) -> TensorVariable:
        """Map components to unbounded numbers."""
        *_, lower = inputs
        return simplex.forward((value - lower) / _slack(lower))

    def backward(self, value: Any, *inputs: Any) -> TensorVariable:
        """Map unbounded numbers to components."""
        *_, lower = inputs
        return lower + _slack(lower) * simplex.backward(value)

    def log_jac_det(self, value: Any, *inputs: Any) -> TensorVariable:
        """Return the log of the determinant of the Jacobian of `backward`."""
        *_, lower = inputs
        return simplex.log_jac_det(value) + value.shape[-1] * pt.log(_slack(lower)[..., 0])


class TruncatedDirichlet(SimplexContinuous):
    r"""Dirichlet distribution restricted to components that are not below given bounds.

    .. math:: f(p \mid a, l) \propto \prod_{i=1}^k p_i^{a_i - 1} \quad (p_i \ge l_i, \sum p_i = 1)

    ========  ==============================================================
    Support   :math:`p_i \ge l_i` with :math:`\sum p_i = 1`
    Mean      no closed form
    ========  ==============================================================

    Parameters
    ----------
    name : str
        Not for ``TruncatedDirichlet.dist``.
    a : (..., n_categories) array
        Concentrations, each > 0: constants.
    lower : float or array that broadcasts to a
        Least value of each component, >= 0, with a sum below 1: public constants.
    **kwargs
        As for every PyMC distribution: dims, shape, observed, initval...

    Raises
    ------
    ArgumentError
        For parameters outside their range, or that are not constants: the normalising constant, which has no
        closed form, would depend on them.

    Notes
    -----
    The log-density is the one of the untruncated Dirichlet within the bounds: the normalising constant, a number, is
    left out. Random draws are exact, see `pymc_dp.kernel.truncated.truncated_dirichlet`; drawing components in
    sequence is not.

    **Guarantee.** None: a prior. With p_i >= l the log-likelihood of a category is bounded by log(1 / l), which
    samplers from the posterior need.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 2.2.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     p = TruncatedDirichlet("p", np.ones(3), lower=0.05)
    >>> bool((pm.draw(p, random_seed=1) >= 0.05).all())
    True
    """

    rv_op = TruncatedDirichletRV()

    @classmethod
    def dist(cls, a: Any, lower: Any, **kwargs: Any) -> TensorVariable:
        """Return an unnamed truncated Dirichlet variable."""
        concentrations, least = _numbers("a", a), _numbers("lower", lower)
        if concentrations.ndim == 0:
            raise ArgumentError("a must have one entry per category on its last axis, got a single number.")
        if not (np.isfinite(concentrations) & (concentrations > 0)).all():
            raise ArgumentError(f"a must be finite and > 0, got {concentrations.tolist()}.")
        size = concentrations.shape[-1]
        if least.ndim and least.shape[-1] not in (1, size):
            raise ArgumentError(f"lower has {least.shape[-1]} entries for {size} categories. Give one for each.")
        least = np.broadcast_to(least, (*least.shape[:-1], size))
        if not (least >= 0).all() or not (least.sum(axis=-1) < 1 - 1e-9).all():
            raise ArgumentError(
                f"lower must be >= 0 with a sum below 1 over the {least.shape[-1]} categories, got {least.tolist()}. "
                f"Take less than {1 / least.shape[-1]:.3g} for each."
            )
        import_module("pymc_dp.transforms.draws_numba")  # how compiled models draw
        return super().dist([pt.as_tensor(concentrations), pt.as_tensor(np.array(least))], **kwargs)

    def support_point(rv, size, a, lower):  # type: ignore[no-untyped-def]
        """Return the mean of the Dirichlet moved into the support."""
        point = lower + _slack(lower) * a / a.sum(axis=-1, keepdims=True)
        if not rv_size_is_none(size):
            point = pt.full(pt.concatenate([size, [a.shape[-1]]]), point)
        return point

    def logp(value, a, lower):  # type: ignore[no-untyped-def]
        """Return the log-density up to a constant number."""
        inside = pt.all(pt.ge(value, lower), axis=-1)
        return pt.switch(inside, pm.logp(pm.Dirichlet.dist(a), value), -np.inf)


@_default_transform.register(TruncatedDirichlet)
def _truncated_simplex(op: Any, rv: Any) -> Transform:
    return TruncatedSimplexTransform()


def _slack(lower: Any) -> Any:
    return 1 - lower.sum(axis=-1, keepdims=True)


def _numbers(name: str, value: Any) -> npt.NDArray[np.float64]:
    if isinstance(value, Variable):
        try:
            [value] = constant_fold([value])
        except Exception:
            raise ArgumentError(
                f"{name} of a truncated Dirichlet must be constant: it is a random variable or pm.Data, and the "
                "normalising constant would depend on it. Fix it, or use an untruncated Dirichlet."
            ) from None
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be numbers, got {_validate.shown(value)}.") from None


INSIDE = 1 - 1e-12
"""Of the radius: where unbounded numbers lead to, so that no rounding takes them out of the ball."""


class NormalBallRV(RandomVariable):
    """Random variable with parameters (sigma, radius), read from a graph by ``op.dist_params(node)``."""

    name = "normal_ball"
    signature = "(d),()->(d)"
    dtype = "floatX"
    _print_name = ("NormalBall", "\\operatorname{NormalBall}")

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, sigma: Any, radius: Any, size: tuple[int, ...] | None) -> Any:
        """Draw exactly."""
        from pymc_dp.draws.kernels import fill_ball

        found = np.empty((*(size or ()), sigma.shape[-1]))
        for vector in found.reshape(-1, sigma.shape[-1]):
            fill_ball(rng, float(sigma.flat[0]), float(radius) * INSIDE**2, vector)
        return found


class BallTransform(Transform):
    """``w = R z / √(1 + |z|²)``, from unbounded numbers z."""

    name = "ball"
    ndim_supp = 1

    def forward(self, value: Any, *inputs: Any) -> TensorVariable:
        """Map vectors of the ball to unbounded ones."""
        unit = value / (inputs[-1] * INSIDE)
        return unit / pt.sqrt(1 - pt.sum(unit**2, axis=-1, keepdims=True))

    def backward(self, value: Any, *inputs: Any) -> TensorVariable:
        """Map unbounded vectors to those of the ball."""
        return inputs[-1] * INSIDE * value / pt.sqrt(1 + pt.sum(value**2, axis=-1, keepdims=True))

    def log_jac_det(self, value: Any, *inputs: Any) -> TensorVariable:
        """Return the log of the determinant of the Jacobian of `backward`: ``R^d (1 + |z|²)^(-d / 2 - 1)``."""
        count = value.shape[-1]
        return count * pt.log(inputs[-1] * INSIDE) - (count / 2 + 1) * pt.log1p(pt.sum(value**2, axis=-1))


class NormalBall(Continuous):
    r"""Independent normal distributions of mean 0 and one sd, restricted to a ball.

    .. math:: f(w \mid \sigma, R) \propto \exp(-\|w\|^2 / (2 \sigma^2)) \quad (\|w\| \le R)

    Parameters
    ----------
    name : str
        Not for ``NormalBall.dist``.
    sigma : (..., d) array
        Standard deviations, all the same number > 0; d at least 2.
    radius : float
        R > 0, public.
    **kwargs
        As for every PyMC distribution: dims, shape, initval...

    Raises
    ------
    ArgumentError

    Notes
    -----
    The log-density leaves out its normalising constant, a number. Random draws are exact.

    **Guarantee.** None: a prior. With ``|w| <= R`` a linear predictor of a row x is at most ``R |x|``, which posterior
    samplers need.

    References
    ----------
    Zhang, Rubinstein, Dimitrakakis (2016), section on Bayesian linear regression: weights of bounded norm.

    Examples
    --------
    >>> with pm.Model():
    ...     w = NormalBall("w", np.ones(3), 2.0)
    >>> bool(np.linalg.norm(pm.draw(w, random_seed=1)) <= 2.0)
    True
    """

    rv_op = NormalBallRV()

    @classmethod
    def dist(cls, sigma: Any, radius: Any, **kwargs: Any) -> TensorVariable:
        """Return an unnamed variable."""
        spread, most = np.array(sigma, dtype=np.float64), float(radius)
        if spread.ndim != 1 or len(spread) < 2 or not (np.isfinite(spread) & (spread > 0)).all() or np.ptp(spread):
            raise ArgumentError("sigma must be one number > 0 for each of 2 entries or more, all the same.")
        if not 0 < most < np.inf:
            raise ArgumentError(f"radius must be finite and > 0, got {most}.")
        import_module("pymc_dp.transforms.draws_numba")  # how compiled models draw
        filled = pt.full((len(spread),), np.float64(spread[0]))  # an array of numbers could hold rows
        return super().dist([filled, pt.as_tensor(np.float64(most))], **kwargs)

    def support_point(rv, size, sigma, radius):  # type: ignore[no-untyped-def]
        """Return the centre."""
        point = pt.zeros_like(sigma)
        return point if rv_size_is_none(size) else pt.full(pt.concatenate([size, [sigma.shape[-1]]]), point)

    def logp(value, sigma, radius):  # type: ignore[no-untyped-def]
        """Return the log-density up to a constant number."""
        inside = pt.le(pt.sum(value**2, axis=-1), radius**2)
        return pt.switch(inside, -pt.sum((value / sigma) ** 2, axis=-1) / 2, -np.inf)


def ball_rule(model: pm.Model, rv: Variable, radius: object) -> Callable[[Variable], Variable]:
    """Return the function that restricts a normal vector of a model to a ball; refuse where there is none."""
    name, most = str(rv.name), _validate.number(f"norms[{rv.name!r}]", radius)
    if not 0 < most < np.inf:
        raise ArgumentError(f"norms[{name!r}] must be finite and > 0, got {most}.")
    (prior,) = [prior for prior in priors_of(model) if prior.name == name]
    if prior.distribution == BALL:
        raise ArgumentError(f"{name!r} is restricted to a ball already. Give its norm where that is done first.")
    whole = prior.low is not None and not np.isfinite(prior.low).any() and prior.distribution == "normal"
    if not whole or prior.constants is None or len(prior.shape) != 1 or prior.size < 2:
        raise ArgumentError(
            f"{name!r} cannot be restricted to a ball: that is for a vector of two entries or more with a normal prior "
            "whose mean and sd are numbers. Give bounds of its entries instead."
        )
    if not all(of_numbers(parameter) for parameter in prior.parameters):
        raise ArgumentError(
            f"the prior of {name!r} is computed from arrays, which could hold rows; restricted to a ball it would "
            "keep a number computed from them. Give its mean and sd as numbers."
        )
    mean, spread = prior.constants
    if mean.any() or np.ptp(spread):
        raise ArgumentError(
            f"the prior of {name!r} must have mean 0 and one sd to be restricted to a ball about 0. Choose units of "
            "the covariates in which it has, or give bounds of its entries instead."
        )
    start = model.rvs_to_initial_values.get(rv)
    if start is not None and not isinstance(start, Variable | str) and not np.linalg.norm(start) < most:
        raise ArgumentError(f"the initval of {name!r} is not within its norm {most:g}. Leave it out.")
    return lambda _: NormalBall.dist(spread, most)


@_default_transform.register(NormalBall)
def _ball(op: Any, rv: Any) -> Transform:
    return BallTransform()


__all__ = ["NormalBall"]
