"""Dirichlet rows: sums of the logarithms of the clamped entries."""

from __future__ import annotations

from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.beta import Beta
from pymc_dp.families.family import BoundedFeatures, RowStatistic, Tensors, VectorFamily
from pymc_dp.families.features import feature
from pymc_dp.families.quadrature import LOGIT, feature_moments, mass_of
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array

EDGE = 1e-9
"""Entries nearer than this to 0 or 1 count as if they were this near."""
TINY = 1e-300


class Dirichlet(VectorFamily):
    """``pm.Dirichlet``: Σ log x of every entry, each clamped to the same public bounds, strictly within (0, 1).

    A row that is clamped need not sum to one, and one that is none need not either: each entry is bounded by itself.
    Means and variances are those of clamped beta entries, by quadrature; covariances those of pairs of clamped entries,
    the second of which is a beta share of what the first one leaves.
    """

    distribution = "dirichlet"
    event_ndims = (1,)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        size, inside = observed.static_shapes[0][-1], f"Domain(bounds={{{observed.name!r}: (low, high)}})"
        if observed.bounds is None:
            return Problem(
                where=observed.name,
                what="entries of a Dirichlet row have no public bounds, and logarithms near 0 move sums by any amount",
                remedy=f"Give one range for all entries, strictly within (0, 1): {inside}.",
            )
        low, high = map(float, observed.bounds)
        if not 0 < low < high < 1:
            return Problem(
                where=observed.name,
                what=f"bounds ({low:g}, {high:g}) reach beyond where entries of a Dirichlet row have finite statistics",
                remedy="Give bounds strictly within (0, 1); entries beyond are clamped to them.",
            )
        if size is None:
            return Problem(
                where=observed.name,
                what="the number of entries of its rows is not known before sampling",
                remedy="Give the concentrations dims= or a constant shape.",
            )
        chosen = tuple(feature("log", low, high, column=i) for i in range(size))
        return BoundedFeatures(low=low, high=high, features=chosen, names=tuple(f"x{i}" for i in range(size)))

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        """Concentrations > 0."""
        return pt.all(parameters[0] > 0, axis=-1) & pt.lt(parameters[0].sum(axis=-1), np.inf)

    @override
    def moments(self, parameters: Tensors, statistic: BoundedFeatures) -> tuple[TensorVariable, TensorVariable]:
        shape, size = parameters[0], statistic.width
        total = shape.sum(axis=-1, keepdims=True)
        low, high = statistic.low, statistic.high
        item = feature("log", low, high)
        one = BoundedFeatures(low=low, high=high, features=(item,))
        rest = pt.maximum(total - shape, TINY)
        ((mean,), ((variance,),)) = feature_moments(Beta().mass([shape.ravel(), rest.ravel()], low, high), one)
        mean, variance = mean.reshape(shape.shape), variance.reshape(shape.shape)
        centred = mean * item.half_width
        i, j = np.triu_indices(size, 1)
        mixed = _mixed(shape, total, centred, i, j, low, high) / item.half_width**2
        place = np.full((size, size), -1)
        place[i, j] = place[j, i] = np.arange(len(i))
        apart = pt.concatenate([mixed, pt.zeros_like(total)], axis=-1)[:, place]
        return mean, apart * (1 - np.eye(size)) + variance[:, :, None] * np.eye(size)

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``Σ (a_k - 1) Σ log x_k + n (log Γ(Σa) - Σ log Γ(a_k))``."""
        shape = parameters[0]
        constant = pt.gammaln(shape.sum(axis=-1)) - pt.gammaln(shape).sum(axis=-1)
        return ((shape - 1) * sums).sum(axis=-1) + sizes * constant


def _mixed(
    shape: TensorVariable, total: TensorVariable, mean: TensorVariable, i: Array, j: Array, low: float, high: float
) -> TensorVariable:
    """Covariances of clamped logarithms, (n, n_pairs): over x_i, and over the share of x_j in what x_i leaves."""
    edge, ends = min(EDGE, low / 2, (1 - high) / 2), np.log([low, high])
    first, others = shape[:, i], pt.maximum(total - shape[:, i], TINY)
    log_x, log_left, weights = _logs(first, others, edge)
    if shape.type.shape[-1] == 2:  # nothing but x_j is left
        log_share, shares = pt.zeros_like(first)[..., None], pt.ones_like(first)[..., None]
    else:
        log_share, _, shares = _logs(shape[:, j], pt.maximum(others - shape[:, j], TINY), edge)
    t = pt.clip(log_x, *ends) - mean[:, i][..., None]
    s = pt.clip(log_left[..., :, None] + log_share[..., None, :], *ends) - mean[:, j][..., None, None]
    return (weights * t * (shares[..., None, :] * s).sum(axis=-1)).sum(axis=-1)


def _logs(first: TensorVariable, second: TensorVariable, edge: float) -> tuple[TensorVariable, ...]:
    """Logarithms of beta values and of what they leave to 1 at nodes along a last axis, and their weights.

    Beyond the edge only one of the two powers of a beta density counts, and its integral is a power itself.
    """
    alpha, beta = first.ravel(), second.ravel()
    norm = pt.gammaln(alpha) + pt.gammaln(beta) - pt.gammaln(alpha + beta)
    centre, scale = Beta().window([alpha, beta])
    below, above = (pt.exp(item * np.log(edge) - pt.log(item) - norm) for item in (alpha, beta))
    mass = mass_of(
        lambda x: (alpha[:, None] - 1) * pt.log(x) + (beta[:, None] - 1) * pt.log1p(-x) - norm[:, None],
        edge, 1 - edge, centre=centre, scale=scale, below=below, above=above, on=LOGIT,
    )  # fmt: skip
    ends = pt.broadcast_to(np.array([edge, 1 - edge]), (alpha.shape[0], 2))
    x = pt.concatenate([mass.values, ends], axis=-1)
    weights = pt.concatenate([mass.weights, mass.below[:, None], mass.above[:, None]], axis=-1)
    found = (pt.log(x), pt.log1p(-x), weights)
    return tuple(item.reshape((*first.shape, x.type.shape[-1] or x.shape[-1])) for item in found)


__all__ = ["Dirichlet"]
