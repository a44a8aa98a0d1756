"""A normal prior of a vector that is restricted to a ball, so that linear predictors have bounds."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import Continuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import _default_transform
from pymc.logprob.transforms import Transform
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.priors import BALL, of_numbers, priors_of

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
        from pymc_dp.draws.ball_kernels import fill_ball

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
