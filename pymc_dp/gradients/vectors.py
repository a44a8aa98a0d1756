"""Entries of a continuous response that depend on each other, as functions of independent probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.inspection.integrated import at_points, is_integrated


def vectors_at(rv: Variable, levels: Variable) -> Variable:
    """Return the values of rows at probabilities: each of the latter uniform, these are distributed as the variable.

    Parameters
    ----------
    rv : Variable
        With one axis of rows, and one of the entries of a row.
    levels : (n_rows, entries) tensor

    Returns
    -------
    (n_rows, entries) tensor, or (n_rows, n_points, entries) where latents were integrated out: at each of their points.

    Raises
    ------
    NotImplementedError
        For other distributions than those of `TOGETHER`, and latents given which entries have no known quantiles.
    """
    if is_integrated(rv):
        given, _, *latents = rv.owner.inputs
        return at_points(given, levels, latents, of=_quantiles).dimshuffle(1, 0, 2)
    name, op = str(getattr(rv.owner.op, "name", None)), rv.owner.op
    if name not in TOGETHER:
        raise NotImplementedError
    return TOGETHER[name](levels, *op.dist_params(rv.owner))


def _quantiles(rv: Variable, levels: Variable) -> Variable:
    found: Variable = pm.icdf(rv, levels, warn_rvs=False)
    return found


def _normal(levels: Variable, mean: Variable, covariance: Variable) -> Variable:
    if covariance.type.ndim > 2 and not all(covariance.type.broadcastable[:-2]):
        raise NotImplementedError  # of one covariance per row
    covariance = covariance[(0,) * (covariance.type.ndim - 2)]
    plain = pm.icdf(pm.Normal.dist(0.0, 1.0), levels)
    return mean + plain @ pt.linalg.cholesky(covariance).T


def _dirichlet(levels: Variable, concentrations: Variable) -> Variable:
    parts = pm.icdf(pm.Gamma.dist(alpha=concentrations, beta=1.0), levels, warn_rvs=False)
    return parts / parts.sum(axis=-1, keepdims=True)


TOGETHER: Mapping[str, Callable[..., Variable]] = {"multivariate_normal": _normal, "dirichlet": _dirichlet}
"""What independent normal or gamma variables make of each, by the names of distributions."""

__all__ = ["TOGETHER", "vectors_at"]
