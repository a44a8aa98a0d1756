"""Mean and covariance of a posterior on the unconstrained scale: by its mode and curvature, or by NUTS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm
from pymc.step_methods.hmc.quadpotential import QuadPotentialFull
from scipy import optimize

Array = np.ndarray
Gradient = Callable[[Array], tuple[float, Array]]
STEP = 1e-4
"""Of differences of gradients, in standard deviations of the prior, about."""
STEPS = 50


@dataclass(frozen=True)
class Posterior:
    """Mean and covariance of scalar parameters, by name."""

    names: list[str]
    mean: Array
    covariance: Array

    @property
    def sd(self) -> Array:
        """Standard deviations."""
        return np.sqrt(np.diag(self.covariance))


def scalars(model: pm.Model) -> list[str]:
    """Return the names of all scalar free parameters, by their value variables: ``b[age]``, ``sigma_log__``."""
    found = []
    shapes = model.eval_rv_shapes()
    for rv in model.free_RVs:
        name, shape = model.rvs_to_values[rv].name, shapes[rv.name]
        dims = model.named_vars_to_dims.get(rv.name)
        labels = [
            [str(one) for one in (model.coords.get(dims[axis]) if dims else None) or range(size)]
            for axis, size in enumerate(shape)
        ]
        for place in np.ndindex(*shape):
            inside = ", ".join(own[one] for own, one in zip(labels, place, strict=True))
            found.append(f"{name}[{inside}]" if inside else name)
    return found


def gradient(model: pm.Model, mode: str | None = None) -> tuple[Gradient, Array]:
    """Return the log density of a model with its gradient, and the point at which to begin; both flat."""
    held = model.logp_dlogp_function(ravel_inputs=True, mode=mode)
    held.set_extra_values({})
    point = model.initial_point(random_seed=0)
    start = np.concatenate([np.ravel(point[one.name]) for one in held._grad_vars])
    return held, start


def hessian(of: Gradient, at: Array, step: Array) -> Array:
    """Return the second derivatives by central differences of gradients."""
    columns = []
    for place, width in enumerate(step):
        shift = np.zeros_like(at)
        shift[place] = width
        columns.append((of(at + shift)[1] - of(at - shift)[1]) / (2 * width))
    found = np.array(columns)
    return (found + found.T) / 2


def laplace(of: Gradient, start: Array) -> tuple[Array, Array]:
    """Return the mode and the inverse of the negative Hessian there."""
    first = optimize.minimize(
        lambda x: tuple(-one for one in of(x)), start, jac=True, method="L-BFGS-B", options={"maxiter": 500}
    )
    at = first.x
    step = np.full(len(at), STEP)
    for _ in range(STEPS):
        slope = of(at)[1]
        covariance = np.linalg.inv(-hessian(of, at, step))
        variances = np.diag(covariance)
        if (variances <= 0).any():
            raise ArithmeticError("the log density is not concave where L-BFGS ended")
        step = np.maximum(1e-2 * np.sqrt(variances), 1e-7)
        move = covariance @ slope
        size = np.sqrt(max(slope @ move, 0))
        at = at + move * min(1, 2 / max(size, 1e-12))
        if size < 1e-4:
            return at, np.linalg.inv(-hessian(of, at, step))
    raise ArithmeticError(f"Newton's method did not converge in {STEPS} steps")


def by_mode(model: pm.Model) -> Posterior:
    """Return the normal posterior at the mode of a model with rows."""
    mean, covariance = laplace(*gradient(model))
    return Posterior(scalars(model), mean, covariance)


def by_nuts(model: pm.Model, draws: int = 1000, chains: int = 4, seed: int = 1) -> Posterior:
    """Return mean and covariance of draws, on the unconstrained scale; NUTS begins with the metric of the mode."""
    _, covariance = laplace(*gradient(model))
    with model:
        step = pm.NUTS(potential=QuadPotentialFull(covariance))
        trace = pm.sample(
            draws=draws,
            tune=500,
            chains=chains,
            cores=1,
            step=step,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return of_draws(model, trace)


def of_draws(model: pm.Model, trace) -> Posterior:
    """Return the moments of a trace of a model, or of a private model with the same free variables."""
    parts = []
    for rv in model.free_RVs:
        values = trace["posterior"][rv.name].values
        values = values.reshape(values.shape[0] * values.shape[1], -1)
        parts.append(_unconstrain(model, rv)(values) if model.rvs_to_transforms[rv] is not None else values)
    draws = np.concatenate(parts, axis=1)
    return Posterior(scalars(model), draws.mean(axis=0), np.cov(draws, rowvar=False))


def _unconstrain(model: pm.Model, rv) -> Callable[[Array], Array]:
    if model.rvs_to_transforms[rv].name != "log":
        raise NotImplementedError(f"{rv.name} has a transform that is neither none nor log.")
    return np.log


def of_private(private: pm.Model, model: pm.Model) -> Posterior:
    """Return the posterior of a private model in the parameters of the model that it was made of.

    It is normal where priors and release are. Value variables of a private model may have other coordinates, of which
    the unconstrained parameters are an affine function.
    """
    of, start = gradient(private, mode="FAST_COMPILE")
    at, inner = laplace(of, start)
    values = [private.rvs_to_values[rv] for rv in private.free_RVs]
    order = [one.name for one in of._grad_vars]
    found = private.replace_rvs_by_values([private[rv.name] for rv in model.free_RVs])
    logs = [
        np.log if transform is not None else np.asarray
        for transform in (model.rvs_to_transforms[rv] for rv in model.free_RVs)
    ]
    compiled = pm.pytensorf.compile(values, found, mode="FAST_COMPILE", on_unused_input="ignore")
    shapes = {name: value.shape for name, value in private.initial_point(random_seed=0).items()}

    def outer(flat: Array) -> Array:
        ends = np.cumsum([int(np.prod(shapes[name])) for name in order])[:-1]
        parts = dict(zip(order, np.split(flat, ends), strict=True))
        got = compiled(*[parts[one.name].reshape(shapes[one.name]) for one in values])
        return np.concatenate([np.ravel(log(one)) for log, one in zip(logs, got, strict=True)])

    middle = outer(at)
    sd = np.sqrt(np.diag(inner))
    slopes = np.column_stack(
        [(outer(at + sd * unit) - middle) / width for unit, width in zip(np.eye(len(at)), sd, strict=True)]
    )
    return Posterior(scalars(model), middle, slopes @ inner @ slopes.T)
