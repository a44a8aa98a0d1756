"""The private model: the model's own priors, and one normal that stands for its rows.

The prior that the path of noised gradients begins with: a normal one, of draws from that of the model.

Priors as they are, in coordinates in which what was released leaves their variables about independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.gradients.curvature import MOST_FULL
from pymc_dp.gradients.interface import Interface, Part
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.simulated import parameter_draws
from pymc_dp.gradients.walk import Found
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import TableRecord
from pymc_dp.transforms.prior_model import replace_variables
from pymc_dp.transforms.released_logp import add_release, held

WIDE = 64
"""Columns of a matrix above which a product with a vector is left to a library, which takes seconds to compile in."""
ROUNDS = 30
"""Of the search for a posterior that knows what is not known of its curvature."""
LEAST_VARIANCE = 0.05
"""Of the scores, as a share of their curvature: what simulated rows say below that is not used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Quadratic:
    """What is known of a log-likelihood: ``slope | η ~ N(curvature η / scale, covariance)``.

    Attributes
    ----------
    slope : (d,) array
    curvature, covariance : (d, d) array
    scale : (d,) array
        D: the walk went in coordinates η / D.
    """

    slope: Array
    curvature: Array
    covariance: Array
    scale: Array

    @classmethod
    def of(cls, found: Found, scale: Array, shares: Array | None = None) -> Quadratic:
        """Return what a walk has found.

        Parameters
        ----------
        found : Found
        scale : (d,) array
        shares : (d,) array, optional
            Variance of the clipped scores over their curvature, by parameter, from public made-up rows. None: 1, which
            it never exceeds, so that intervals are wider. Where rows are weighed, what was released of the scores
            stands for it.
        """
        factor = np.ones_like(scale) if shares is None else np.sqrt(np.clip(shares, LEAST_VARIANCE, 1.0))
        own = found.curvature * np.outer(factor, factor) if found.scores is None else found.scores
        return cls(slope=found.slope, curvature=found.curvature, covariance=own + found.noise, scale=scale)

    @property
    def table(self) -> Array:
        """Everything in one array, (d, 2 d + 2), for a trace and a file."""
        return np.column_stack([self.slope, self.scale, self.curvature, self.covariance])

    @classmethod
    def from_table(cls, table: Array) -> Quadratic:
        """Return what `table` was made of."""
        size = len(table)
        return cls(
            slope=table[:, 0], scale=table[:, 1], curvature=table[:, 2 : size + 2], covariance=table[:, size + 2 :]
        )

    def posterior(self, mean: Array, precision: Array) -> tuple[Array, Array]:
        """Return mean and covariance of the parameters under a normal prior.

        Parameters
        ----------
        mean : (d,) array
        precision : (d, d) array
        """
        bent = self.curvature / self.scale
        weight = np.linalg.solve(self.covariance, bent)
        covariance = np.linalg.inv(precision + bent.T @ weight)
        return covariance @ (precision @ mean + weight.T @ self.slope), covariance

    def around(self, centre: Array, precision: Array) -> Quadratic:
        """Return it times a normal distribution of η / D: what holds near a position is not relied on farther away.

        Parameters
        ----------
        centre : (d,) array
        precision : (d, d) array
            Positive definite.
        """
        weight = np.linalg.solve(self.covariance, self.curvature)
        known = self.curvature.T @ weight + precision
        known = (known + known.T) / 2
        slope = weight.T @ self.slope + precision @ centre
        return Quadratic(slope=slope, curvature=known, covariance=known, scale=self.scale)

    @property
    def root(self) -> Array:
        """Lower triangular Cholesky factor of the covariance."""
        return np.asarray(np.linalg.cholesky((self.covariance + self.covariance.T) / 2))


def unsure(found: Found, quadratic: Quadratic, prior: Prior) -> Quadratic:
    """Return a quadratic log-likelihood with what is not known of its curvature.

    Parameters
    ----------
    found : Found
    quadratic : Quadratic
        With straight scores.
    prior : Prior
        Of the path.

    Notes
    -----
    The released curvature is off by a symmetric matrix E of noise, of deviation s off its diagonal and √2 s on it. The
    slope is that at the mean position of the gradients, and is carried from there to η as if H were exact, which adds E
    (η̄ - η) to its error. With Δ the way to the posterior mean and K the posterior covariance, the covariance of that is
    s² ((‖Δ‖² + tr K) I + Δ Δᵀ + K), in the coordinates of the sum. Δ and K depend on that in turn: they are found by
    repetition, from the covariance of the prior on, so that where noise hides a curvature the prior is left.
    """
    if not found.deviation or not found.path:
        return quadratic
    back = np.eye(len(quadratic.scale)) if found.limits.basis is None else np.linalg.inv(found.limits.basis)
    scale = quadratic.scale
    middle = sum(weight * at for weight, at, _ in found.path)
    moments = prior.mean * scale, prior.precision / np.outer(scale, scale)
    wider, covariance = quadratic, np.linalg.inv(moments[1])
    mean = quadratic.posterior(*moments)[0]
    for _ in range(ROUNDS):
        away = back @ (mean / scale - middle)
        spread = back @ (covariance / np.outer(scale, scale)) @ back
        size = float(away @ away + np.trace(spread))
        extra = found.deviation**2 * (size * np.eye(len(scale)) + np.outer(away, away) + spread)
        wider = replace(quadratic, covariance=quadratic.covariance + found.limits.curvature(extra))
        mean, covariance = wider.posterior(*moments)
    return wider


def columns_of(labels: Sequence[str]) -> tuple[str, ...]:
    """Name the columns of `Quadratic.table`."""
    return ("slope", "scale", *(f"curvature {one}" for one in labels), *(f"covariance {one}" for one in labels))


class SlopeDensity:
    """Density of a released table given the parameters: normal in its first column, whose noise the others describe."""

    signature = "(d),(d,d),(d,d),(d,d),(),(d,k)->(d,k)"

    @staticmethod
    def logp(
        value: Variable,
        parameters: Variable,
        bent: Variable,
        white: Variable,
        root: Variable,
        constant: Variable,
        _: Variable,
    ) -> Variable:
        """Return the log density of the slope; `bent` is W H / D, `white` W: Wᵀ W is the inverse of the covariance."""
        residual = product(white, value[:, 0]) - product(bent, parameters)
        return constant - 0.5 * (residual**2).sum()

    @staticmethod
    def random(
        parameters: Array,
        bent: Array,
        white: Array,
        root: Array,
        constant: Array,
        table: Array,
        rng: np.random.Generator,
        size: Any = None,
    ) -> Array:
        """Draw slopes; what else is in the table stays as it is."""
        shape = () if size is None else tuple(np.atleast_1d(size).astype(int))
        mean = np.einsum("...ij,...jk,...k->...i", root, bent, parameters)
        noise = np.einsum("...ij,...j->...i", root, rng.normal(size=(*shape, root.shape[-1])))
        found = np.array(np.broadcast_to(table, (*shape, *table.shape[-2:])))
        found[..., 0] = mean + noise
        return found


def product(matrix: Any, vector: Any) -> Variable:
    """Multiply a matrix by a vector, written out where there are few columns."""
    width = matrix.type.shape[-1]
    return matrix @ vector if width is None or width > WIDE else (matrix * vector).sum(axis=-1)


def observe_gradients(model: Model, record: TableRecord, parameters: Variable, quadratic: Quadratic) -> None:
    """Make what was released the observed variable of a model that has the priors of the parameters.

    Parameters
    ----------
    model : pymc.Model
        With the coordinates of the table.
    record : TableRecord
    parameters : Variable
        (d,) graph over the free variables of `model`.
    quadratic : Quadratic

    Notes
    -----
    All numbers are held inputs of the density, none is a constant: another release of the same model compiles nothing.
    """
    root = quadratic.root
    white = np.linalg.inv(root)
    bent = white @ quadratic.curvature / quadratic.scale
    constant = np.log(np.diag(white)).sum() - len(white) / 2 * np.log(2 * np.pi)
    given = [parameters, *map(held, (bent, white, root, constant, quadratic.table))]
    with model:
        add_release(record, given, SlopeDensity(), quadratic.table)


SEED = 20_241_119
"""Of everything that is made up; public."""
PRIOR_DRAWS = 1000


def path_prior(interface: Interface) -> Prior:
    """Return mean and precision of draws, a little towards independence: they are fewer than their products."""
    draws = parameter_draws(interface, PRIOR_DRAWS, np.random.default_rng(SEED))
    with np.errstate(all="ignore"):
        covariance = np.atleast_2d(np.cov(draws, rowvar=False))
    own = np.diag(np.diag(covariance))
    weight = len(draws) / (len(draws) + draws.shape[1])
    precision = np.linalg.inv(weight * covariance + (1 - weight) * own)
    if not np.isfinite(precision).all():
        what = "draws of its priors are so large or small that their variances are no floats"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give priors that say more.")])
    return Prior(mean=draws.mean(axis=0), precision=precision)


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


def whitened(private: Model, interface: Interface, quadratics: Sequence[Quadratic], prior: Prior) -> Model:
    """Return a private model in coordinates in which its variables have about a standard normal distribution.

    Parameters
    ----------
    private : pymc.Model
        With what was released; not changed.
    interface : Interface
        Of the model that it was made of.
    quadratics : sequence of Quadratic
        That were released: one, or several of different rows.
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
    mean, precision = prior.mean, prior.precision
    for quadratic in quadratics:
        mean, covariance = quadratic.posterior(mean, precision)
        precision = np.linalg.inv(covariance)
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


__all__ = [
    "SEED",
    "Quadratic",
    "SlopeDensity",
    "Whitened",
    "WhitenedRV",
    "columns_of",
    "observe_gradients",
    "path_prior",
    "unsure",
    "whitened",
]
