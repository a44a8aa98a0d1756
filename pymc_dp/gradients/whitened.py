"""Priors as they are, in coordinates in which what was released leaves their variables about independent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, override

import numpy as np
from pymc import Model
from pymc.distributions.distribution import SymbolicRandomVariable, _support_point
from pymc.distributions.transforms import Transform, _default_transform
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable
from scipy.linalg import eigh

from pymc_dp.gradients.interface import Interface, Part
from pymc_dp.gradients.levels import MOST_FULL
from pymc_dp.gradients.private_model import Quadratic, product
from pymc_dp.gradients.walk import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms._graph import replace_variables
from pymc_dp.transforms.observed import held

OWN = 4
"""Inputs that a whitened variable has beside those of its distribution: centre, axes, their inverse, log volume."""


class WhitenedRV(SymbolicRandomVariable):
    """A random variable as it is, whose value variable is in other coordinates.

    Its last inputs say in which; nothing but the value variable is computed from them. They are inputs so that another
    release of a model compiles nothing.

    Attributes
    ----------
    usual : Op
        The distribution.
    transform : Transform or None
        The one that goes before the change of coordinates.
    """

    usual: Any
    transform: Transform | None

    @classmethod
    def of(cls, rv: Any, transform: Transform | None, centre: Array, axes: Array) -> Variable:
        """Return a random variable with the distribution of another, whose value is centre + axes z."""
        numbers = (centre, axes, np.linalg.inv(axes), np.linalg.slogdet(axes)[1])
        inputs = [*rv.owner.inputs, *map(held, numbers)]
        inner = [one.type() for one in inputs]
        node = rv.owner.clone_with_new_inputs(inner[:-OWN])
        op = cls(inner, node.outputs, extended_signature=_signature(rv.owner.op))
        op.usual, op.transform = rv.owner.op, transform
        op._print_name = getattr(op.usual, "_print_name", op._print_name)
        return op.make_node(*inputs).outputs[rv.owner.outputs.index(rv)]

    @override
    def dist_params(self, node: Any) -> tuple[Variable, ...]:
        return tuple(super().dist_params(node)[:-OWN])


def _signature(op: Any) -> str:
    """Return the signature of a distribution's variables with the further inputs of a whitened one."""
    if isinstance(op, RandomVariable):
        left, right = op.signature.split("->")
        left, right = f"[rng],[size],{left}", f"[rng],{right}"
    else:
        left, right = op.extended_signature.split("->")
    return f"{left.rstrip(',')},(axis),(axis,axis),(axis,axis),()->{right}"


@_logprob.register(WhitenedRV)
def _logp(op: WhitenedRV, values: Any, *inputs: Variable, **kwargs: Any) -> Any:
    return _logprob(op.usual, values, *inputs[:-OWN], **kwargs)


@_support_point.register(WhitenedRV)
def _start(op: WhitenedRV, rv: Variable, *inputs: Variable) -> Any:
    return _support_point(op.usual, rv, *inputs[:-OWN])


class Whitened(Transform):
    """From a variable, on its unconstrained scale if it has one, to coordinates z: the value is centre + axes z.

    Parameters
    ----------
    usual : Transform or None
    """

    name = "whitened"

    def __init__(self, usual: Transform | None) -> None:
        self.usual = usual

    def forward(self, value: Any, *inputs: Any) -> Any:
        """Return coordinates."""
        *own, centre, _, inverse, _ = inputs
        if self.usual is not None:
            value = self.usual.forward(value, *own)
        return product(inverse, value.ravel() - centre).reshape(value.shape)

    def backward(self, value: Any, *inputs: Any) -> Any:
        """Return the variable."""
        found = self._unconstrained(value, *inputs)
        return found if self.usual is None else self.usual.backward(found, *inputs[:-OWN])

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        """Return one number for all of the variable."""
        volume = inputs[-1]
        if self.usual is None:
            return volume
        return volume + self.usual.log_jac_det(self._unconstrained(value, *inputs), *inputs[:-OWN]).sum()

    @staticmethod
    def _unconstrained(value: Any, *inputs: Any) -> Any:
        centre, axes = inputs[-OWN : -OWN + 2]
        found = centre + product(axes, value.ravel())
        return found if value.type.ndim == 1 else found.reshape(value.shape)


@_default_transform.register(WhitenedRV)
def _coordinates(op: WhitenedRV, rv: Variable) -> Whitened:
    return Whitened(op.transform)


def whitened(private: Model, interface: Interface, quadratic: Quadratic, prior: Prior) -> Model:
    """Return a private model in coordinates in which its variables have about a standard normal distribution.

    Parameters
    ----------
    private : pymc.Model
        With what was released; not changed.
    interface : Interface
        Of the model that it was made of.
    quadratic : Quadratic
        That was released.
    prior : Prior
        Mean and precision of the interface parameters under the priors, about.

    Returns
    -------
    pymc.Model
        With the same variables, priors, dims, initial points and names; value variables of those that meet the rows
        themselves have other names.

    Notes
    -----
    A diagonal metric, with which samplers start, cannot follow what was released: on Adult's 30 columns correlations
    of the posterior have condition number 1000, and NUTS took 32 steps for a draw where 7 do. In these coordinates any
    sampler begins with a metric that fits. Nothing else changes: they are public, and only as good as normal priors
    would be.

    For a variable of which the posterior would have the covariance S, and the prior has precision P, axes A solve
    P A = S⁻¹ A Λ with Aᵀ S⁻¹ A = 1. So the posterior is uncorrelated too where the prior is narrower or wider by a
    factor, as that of ``pm.Normal("b", 0, tau)``.
    """
    mean, covariance = quadratic.posterior(prior.mean, prior.precision)
    outer = np.linalg.inv(prior.precision)
    changed = {}
    for part in _turned(private, interface):
        here = slice(part.start, part.start + part.size)
        own, wide = covariance[here, here], outer[here, here]
        _, axes = eigh(np.linalg.inv(wide), np.linalg.inv(own))
        transform = private.rvs_to_transforms[private[part.name]]
        changed[part.name] = partial(WhitenedRV.of, transform=transform, centre=mean[here], axes=axes)
    return replace_variables(private, changed) if changed else private


def _turned(private: Model, interface: Interface) -> Iterator[Part]:
    """Yield arrays that meet rows themselves, where all of a curvature is released and the density is known."""
    if interface.size > MOST_FULL:
        return
    for part in interface.parts:
        op = private[part.name].owner.op if part.free else None
        known = isinstance(op, RandomVariable) or (op is not None and op.signature and not op.inline_logprob)
        if known and part.size > 1:
            yield part


__all__ = ["Whitened", "WhitenedRV", "whitened"]
