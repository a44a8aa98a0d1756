"""Moments of the features of a clamped row: Gauss-Legendre panels about where the likelihood has its mass.

Density of sums that are normal by the central limit theorem, by a Cholesky factor per cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.features import TRANSFORMS, BoundedFeatures, Feature

NODES = 12
REACHES = (1.0, 4.0, 14.0)
"""Panels end so many scales away from the centre, and at the bounds."""

Function = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A coordinate on which a likelihood is about as wide everywhere.

    Attributes
    ----------
    forward, backward : callable
        From a value and back.
    log_slope : callable
        Log derivative of `backward`, as a function of the value.
    """

    forward: Function
    backward: Function
    log_slope: Function


LINE = Scale(forward=lambda x: x, backward=lambda u: u, log_slope=lambda x: pt.zeros_like(x))
LOG = Scale(forward=pt.log, backward=pt.exp, log_slope=pt.log)
LOGIT = Scale(
    forward=lambda x: pt.log(x) - pt.log1p(-x), backward=pt.sigmoid, log_slope=lambda x: pt.log(x) + pt.log1p(-x)
)


@dataclass(frozen=True, kw_only=True)
class Mass:
    """Where a row's clamped value may be: between the bounds by a density, and at them.

    Attributes
    ----------
    values, weights : (n, n_nodes) tensors
        Nodes and their probabilities.
    below, above : (n,) tensors
        Probability of each bound.
    """

    values: TensorVariable
    weights: TensorVariable
    below: TensorVariable
    above: TensorVariable


def mass_of(
    logp: Function,
    low: float,
    high: float,
    *,
    centre: TensorVariable,
    scale: TensorVariable,
    below: TensorVariable,
    above: TensorVariable,
    on: Scale = LINE,
) -> Mass:
    """Lay nodes where a density has its mass.

    Parameters
    ----------
    logp : callable
        (n, n_nodes) values to log densities.
    low, high : float
        Bounds.
    centre, scale : (n,) tensors
        Of the density on the coordinate `on`: roughly is enough.
    below, above : (n,) tensors
        Probability that an unclamped value lies beyond each bound.
    on : Scale
    """
    values, inside = nodes_of(logp, low, high, centre=centre, scale=scale, on=on)
    total = pt.maximum(inside.sum(axis=-1) + below + above, 1e-300)
    return Mass(values=values, weights=inside / total[:, None], below=below / total, above=above / total)


def nodes_of(
    logp: Function, low: float, high: float, *, centre: TensorVariable, scale: TensorVariable, on: Scale = LINE
) -> tuple[TensorVariable, TensorVariable]:
    """Values between two bounds, and the probability that a density gives to each: (n, n_nodes) tensors.

    Parameters as in `mass_of`.
    """
    ends = [float(on.forward(pt.constant(edge)).eval()) for edge in (low, high)]
    first, last = (pt.full_like(centre, end)[:, None] for end in ends)
    inner = pt.clip(centre[:, None] + scale[:, None] * np.array(_EDGES), *ends)
    edges = pt.concatenate([first, inner, last], axis=-1)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    left, width = edges[:, :-1, None], (edges[:, 1:] - edges[:, :-1])[:, :, None]
    count = NODES * (len(_EDGES) + 1)
    places = (left + width * 0.5 * (nodes + 1)).reshape((-1, count))
    values = pt.clip(on.backward(places), low, high)
    density = pt.exp(logp(values) + on.log_slope(values))
    return values, density * (width * 0.5 * weights).reshape((-1, count))


_EDGES = [*(-reach for reach in reversed(REACHES)), 0.0, *REACHES]


def feature_moments(mass: Mass, statistic: BoundedFeatures) -> tuple[list[TensorVariable], list[list[TensorVariable]]]:
    """Mean vector and covariance matrix of the features of one clamped row, in units of ``statistic.scales``."""
    found = [
        [
            (mass.weights, _normalised(item, mass.values)),
            (mass.below[:, None], _normalised(item, pt.constant(np.float64(statistic.low)))),
            (mass.above[:, None], _normalised(item, pt.constant(np.float64(statistic.high)))),
        ]
        for item in statistic.features
    ]
    means = [sum((weight * t).sum(axis=-1) for weight, t in parts_of) for parts_of in found]
    centred = [
        [(weight, t - mean[:, None]) for weight, t in parts_of] for parts_of, mean in zip(found, means, strict=True)
    ]
    covariance: list[list[TensorVariable]] = [
        [
            sum((weight * t * s).sum(axis=-1) for (weight, t), (_, s) in zip(first, second, strict=True))
            for second in centred
        ]
        for first in centred
    ]
    shifts: Sequence[float] = [item.centre / item.half_width for item in statistic.features]
    return [mean + shift for mean, shift in zip(means, shifts, strict=True)], covariance


def _normalised(item: Feature, x: TensorVariable) -> TensorVariable:
    """Return a feature about its centre, in half widths."""
    return (TRANSFORMS[item.transform].of_tensor(x, item.argument) - item.centre) / item.half_width


LOG_2PI = float(np.log(2 * np.pi))
SMALL = 1e-10
"""Least variance of an exact sum."""


def normal_logp(z: TensorVariable, covariance: TensorVariable, variances: TensorVariable) -> TensorVariable:
    """Log density at `z` (..., n) of a normal vector with mean 0 and this covariance plus independent variances."""
    count = z.type.shape[-1]
    diagonal = (variances + SMALL)[..., None] * np.eye(count)
    root = pt.linalg.cholesky(covariance + diagonal, lower=True)
    solved = pt.linalg.solve_triangular(root, z, lower=True, b_ndim=1)
    log_root = pt.log(pt.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    return -0.5 * (solved**2).sum(axis=-1) - log_root - 0.5 * count * LOG_2PI


__all__ = [
    "LINE",
    "LOG",
    "LOGIT",
    "LOG_2PI",
    "SMALL",
    "Mass",
    "Scale",
    "feature_moments",
    "mass_of",
    "nodes_of",
    "normal_logp",
]
