"""A Dirichlet prior that keeps every component away from 0, so that no likelihood on it is unbounded."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.multivariate import SimplexContinuous
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import _default_transform, simplex
from pymc.logprob.transforms import Transform
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dp import _validate
from pymc_dp.draws.truncated import truncated_dirichlet
from pymc_dp.errors import ArgumentError


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
    left out. Random draws are exact, see `pymc_dp.draws.truncated.truncated_dirichlet`; drawing components in
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
