"""Dirichlet rows: sums of the logarithms of the clamped entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import override

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem
from pymc_dp.families.beta import Beta
from pymc_dp.families.family import BoundedFeatures, RowStatistic, Tensors, VectorFamily
from pymc_dp.families.feature_family import representable
from pymc_dp.families.features import SumStatistic, feature
from pymc_dp.families.quadrature import LOGIT, nodes_of
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
        found = BoundedFeatures(low=low, high=high, features=chosen, names=tuple(f"x{i}" for i in range(size)))
        return representable(observed, found)

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        """Concentrations > 0."""
        return pt.all(parameters[0] > 0, axis=-1) & pt.lt(parameters[0].sum(axis=-1), np.inf)

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> tuple[TensorVariable, TensorVariable]:
        assert isinstance(statistic, BoundedFeatures)
        shape, size = parameters[0], statistic.width
        total = shape.sum(axis=-1, keepdims=True)
        low, high = statistic.low, statistic.high
        half = feature("log", low, high).half_width
        mean, variance = _alone(shape, pt.maximum(total - shape, TINY), low, high)
        i, j = np.triu_indices(size, 1)
        mixed = _mixed(shape, total, mean, i, j, low, high) / half**2
        place = np.full((size, size), -1)
        place[i, j] = place[j, i] = np.arange(len(i))
        apart = pt.concatenate([mixed, pt.zeros_like(total)], axis=-1)[:, place]
        return mean / half, apart * (1 - np.eye(size)) + variance[:, :, None] / half**2 * np.eye(size)

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``Σ (a_k - 1) Σ log x_k + n (log Γ(Σa) - Σ log Γ(a_k))``."""
        shape = parameters[0]
        constant = pt.gammaln(shape.sum(axis=-1)) - pt.gammaln(shape).sum(axis=-1)
        return ((shape - 1) * sums).sum(axis=-1) + sizes * constant


def _alone(
    shape: TensorVariable, rest: TensorVariable, low: float, high: float
) -> tuple[TensorVariable, TensorVariable]:
    """Mean and variance of the clamped logarithm of every entry, which is beta: (n, n_entries) each."""
    beta, edge = _BetaValue(shape.ravel(), rest.ravel()), _edge(low, high)
    (_, left), (x, inside), (_, right) = beta.between(edge, low), beta.between(low, high), beta.between(high, 1 - edge)
    atoms = beta.beyond(edge)
    below, above = left.sum(axis=-1) + atoms[0], right.sum(axis=-1) + atoms[1]
    t = pt.concatenate([pt.log(x), pt.broadcast_to(np.log([low, high]), (x.shape[0], 2))], axis=-1)
    weights = pt.concatenate([inside, below[:, None], above[:, None]], axis=-1)
    weights = weights / pt.maximum(weights.sum(axis=-1, keepdims=True), TINY)
    mean = (weights * t).sum(axis=-1)
    variance = (weights * (t - mean[:, None]) ** 2).sum(axis=-1)
    return mean.reshape(shape.shape), variance.reshape(shape.shape)


def _mixed(
    shape: TensorVariable, total: TensorVariable, mean: TensorVariable, i: Array, j: Array, low: float, high: float
) -> TensorVariable:
    """Covariances of clamped logarithms, (n, n_pairs): over x_i, and over the share of x_j in what x_i leaves."""
    edge, ends = _edge(low, high), np.log([low, high])
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
    """Logarithms of beta values and of what they leave to 1 at nodes along a last axis, and their weights."""
    beta = _BetaValue(first.ravel(), second.ravel())
    inner, weights = beta.between(edge, 1 - edge)
    x = pt.concatenate([inner, pt.broadcast_to(np.array([edge, 1 - edge]), (inner.shape[0], 2))], axis=-1)
    weights = pt.concatenate([weights, *(item[:, None] for item in beta.beyond(edge))], axis=-1)
    weights = weights / pt.maximum(weights.sum(axis=-1, keepdims=True), TINY)
    found = (pt.log(x), pt.log1p(-x), weights)
    return tuple(item.reshape((*first.shape, x.type.shape[-1] or x.shape[-1])) for item in found)


@dataclass(frozen=True, eq=False)
class _BetaValue:
    """Beta values, (n,): where they have their mass. No incomplete beta function, whose derivatives take long."""

    first: TensorVariable
    second: TensorVariable

    @property
    def _log_norm(self) -> TensorVariable:
        return pt.gammaln(self.first) + pt.gammaln(self.second) - pt.gammaln(self.first + self.second)

    def between(self, low: float, high: float) -> tuple[TensorVariable, TensorVariable]:
        """Nodes between two values and their probabilities, (n, n_nodes) each."""
        first, second, norm = (item[:, None] for item in (self.first, self.second, self._log_norm))
        centre, scale = Beta().window([self.first, self.second])
        return nodes_of(
            lambda x: (first - 1) * pt.log(x) + (second - 1) * pt.log1p(-x) - norm,
            low, high, centre=centre, scale=scale, on=LOGIT,
        )  # fmt: skip

    def beyond(self, edge: float) -> tuple[TensorVariable, TensorVariable]:
        """Probabilities to be below the edge, or as near to 1: there one power counts, whose integral is a power."""
        powers = (self.first, self.second)
        below, above = (pt.exp(item * np.log(edge) - pt.log(item) - self._log_norm) for item in powers)
        return below, above


def _edge(low: float, high: float) -> float:
    return min(EDGE, low / 2, (1 - high) / 2)


__all__ = ["Dirichlet"]
