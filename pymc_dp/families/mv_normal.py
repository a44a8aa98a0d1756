"""Multivariate normal rows: sums of the clamped entries, and of their products where covariances are unknown."""

from __future__ import annotations

from functools import cache
from itertools import product as every
from typing import override

import numpy as np
import pytensor.tensor as pt
import scipy  # its parts are imported when first used
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem, needs_bounds
from pymc_dp.families.family import BoundedFeatures, RowStatistic, Tensors, VectorFamily
from pymc_dp.families.feature_family import representable
from pymc_dp.families.features import SumStatistic, feature, product
from pymc_dp.families.normal import clamped_moments
from pymc_dp.inspection.findings import Observed
from pymc_dp.inspection.rows import Array

REACH = 7.0
"""Standard deviations within which one entry is integrated, given which another has a closed form."""
NODES = 32
POINTS = 256
"""Points of a lattice, times all signs of their entries, on which covariances of sums are averaged."""
MOST = 6
"""Entries whose products can be released: there are 27 sums then."""


class MvNormal(VectorFamily):
    """``pm.MvNormal`` on rows whose entries are clamped to public bounds, one range for all of them.

    Mean unknown: sums of the entries. Covariance unknown: sums of all products of two entries about the middle of the
    bounds, too (at most 6 entries). Moments are those of clamped rows: means of entries and squares have closed forms,
    those of products are integrated over one entry. Covariances that involve products, fourth moments, are averages
    over fixed points: exact where nothing is clamped, else right to about two percent.
    """

    distribution = "multivariate_normal"
    event_ndims = (1, 2)

    @override
    def statistic(self, observed: Observed, *, sizes_known: bool) -> RowStatistic | Problem:
        size = observed.static_shapes[0][-1] or observed.static_shapes[1][-1]
        if observed.bounds is None:
            return Problem(
                where=observed.name,
                what="entries of an MvNormal row have no bounds, so one row could move the sums by any amount",
                remedy=needs_bounds(observed.name, of="a public range of all entries") + ".",
            )
        if size is None:
            return Problem(
                where=observed.name,
                what="the number of entries of its rows is not known before sampling",
                remedy="Give the mean dims= or a constant shape.",
            )
        low, high = map(float, observed.bounds)
        if observed.free[1] and size > MOST:
            return Problem(
                where=observed.name,
                what=f"an unknown covariance of {size} entries needs {size * (size + 3) // 2} sums",
                remedy=f"Observe {MOST} entries at most, or write likelihoods of fewer entries each.",
            )
        entries = tuple(feature("identity", low, high, column=i) for i in range(size))
        names = tuple(f"x{i}" for i in range(size))
        if not observed.free[1]:
            return representable(observed, BoundedFeatures(low=low, high=high, features=entries, names=names))
        # Half widths as the pass over the rows has them: products are then of the same numbers as the entries.
        halves = [(high - low) / 2] * size
        products = tuple(product(i, j, halves) for i in range(size) for j in range(i, size))
        chosen = (*entries, *products)
        found = BoundedFeatures(low=low, high=high, features=chosen, pairing="products", names=names)
        return representable(observed, found)

    @override
    def supported(self, parameters: Tensors) -> TensorVariable:
        """Finite means and a positive definite covariance."""
        mean, covariance = parameters
        finite = pt.all(pt.lt(pt.abs(mean), np.inf), axis=-1)
        return finite & pt.all(pt.diagonal(_root(covariance), axis1=-2, axis2=-1) > 0, axis=-1)

    @override
    def moments(self, parameters: Tensors, statistic: SumStatistic) -> tuple[TensorVariable, TensorVariable]:
        assert isinstance(statistic, BoundedFeatures)
        half = (statistic.high - statistic.low) / 2
        middle = statistic.low + half
        mean, covariance = (parameters[0] - middle) / half, parameters[1] / half**2
        first, second = _moments(mean, covariance, statistic.width)
        d, (rows, columns) = statistic.width, np.triu_indices(statistic.width)
        if statistic.pairing != "products":
            place = np.zeros((d, d), dtype=int)
            place[rows, columns] = place[columns, rows] = np.arange(len(rows))
            return first + middle / half, second[:, place] - first[:, :, None] * first[:, None, :]
        points, weights = _points(d)
        t = pt.clip(mean[:, None, :] + pt.matmul(pt.constant(points)[None], _root(covariance).mT), -1, 1)
        units = np.concatenate([np.ones(d), np.where(rows == columns, 2.0, 1.0)])
        found = pt.concatenate([t, t[:, :, rows] * t[:, :, columns]], axis=-1) * units
        spread = found - (weights[:, None] * found).sum(axis=1, keepdims=True)
        middles = np.concatenate([np.full(d, middle / half), np.zeros(len(rows))])
        means = pt.concatenate([first, second], axis=-1) * units + middles
        return means, pt.matmul((weights[:, None] * spread).mT, spread)

    @override
    def plugin_logp(
        self, parameters: Tensors, statistic: RowStatistic, sums: TensorVariable, sizes: TensorVariable
    ) -> TensorVariable:
        """``-n log det Σ / 2 - tr(Σ⁻¹ S) / 2``, S the sums of products about the mean."""
        assert isinstance(statistic, BoundedFeatures)
        d, (rows, columns) = statistic.width, np.triu_indices(statistic.width)
        middle = statistic.low + (statistic.high - statistic.low) / 2
        mean, root = parameters[0] - middle, _root(parameters[1])
        first, n = sums[:, :d] - sizes[:, None] * middle, sizes[:, None, None]
        place = np.zeros((d, d), dtype=int)
        place[rows, columns] = place[columns, rows] = np.arange(len(rows))
        second = sums[:, d:][:, place] if statistic.pairing == "products" else 0.0
        cross = first[:, :, None] * mean[:, None, :]
        about = second - cross - cross.mT + n * mean[:, :, None] * mean[:, None, :]
        solved = pt.linalg.solve_triangular(root, pt.linalg.solve_triangular(root, about, lower=True).mT, lower=True)
        log_root = pt.log(pt.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
        return -sizes * log_root - 0.5 * pt.diagonal(solved, axis1=-2, axis2=-1).sum(axis=-1)


def _root(covariance: TensorVariable) -> TensorVariable:
    """Lower Cholesky factor; not a number where there is none."""
    return pt.linalg.cholesky(covariance, lower=True)


def _moments(mean: TensorVariable, covariance: TensorVariable, d: int) -> tuple[TensorVariable, TensorVariable]:
    """E t_i of entries clamped to [-1, 1], (n, d), and E t_i t_j for i <= j, (n, d (d + 1) / 2)."""
    sd = pt.sqrt(pt.diagonal(covariance, axis1=-2, axis2=-1))
    mean, sd = pt.broadcast_arrays(mean, sd)
    raw = clamped_moments(mean, sd, -1.0, 1.0)
    rows, columns = np.triu_indices(d)
    if d == 1:
        return raw[1], raw[2]
    apart = np.flatnonzero(rows != columns)
    i, j = rows[apart], columns[apart]
    mixed = _mixed(mean[:, i], mean[:, j], covariance[:, i, i], covariance[:, i, j], covariance[:, j, j])
    return raw[1], pt.set_subtensor(raw[2][:, rows][:, apart], mixed)


def _mixed(
    m1: TensorVariable, m2: TensorVariable, v11: TensorVariable, v12: TensorVariable, v22: TensorVariable
) -> TensorVariable:
    """E t1 t2 of a normal pair clamped to [-1, 1]: over the first entry, whose bounds part the integral in three."""
    sd, slope = pt.sqrt(v11), v12 / pt.sqrt(v11)
    rest = pt.sqrt(pt.maximum(v22 - slope**2, 1e-12 * v22))
    bounds = pt.clip((np.array([-1.0, 1.0]) - m1[..., None]) / sd[..., None], -REACH, REACH)
    first, last = (pt.full_like(m1, end)[..., None] for end in (-REACH, REACH))
    edges = pt.concatenate([first, bounds, last], axis=-1)
    x, w = np.polynomial.legendre.leggauss(NODES)
    width = (edges[..., 1:] - edges[..., :-1])[..., None] * 0.5
    z = edges[..., :-1, None] + width * (x + 1)
    m1, m2, sd, slope, rest = (item[..., None, None] for item in (m1, m2, sd, slope, rest))
    one, other = pt.clip(m1 + sd * z, -1, 1), _clamped_mean(m2 + slope * z, rest)
    return (width * w * _density(z) * one * other).sum(axis=(-2, -1))


def _clamped_mean(mean: TensorVariable, sd: TensorVariable) -> TensorVariable:
    """Mean of a normal value clamped to [-1, 1]."""
    a, b = (-1 - mean) / sd, (1 - mean) / sd
    below, above = 0.5 * pt.erfc(-a / np.sqrt(2)), 0.5 * pt.erfc(b / np.sqrt(2))
    return mean * (1 - below - above) + sd * (_density(a) - _density(b)) - below + above


def _density(z: TensorVariable) -> TensorVariable:
    return pt.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


@cache
def _points(d: int) -> tuple[Array, Array]:
    """Standard normal points and their weights: the signs of all entries, on a lattice of absolute values.

    Weights >= 0, as even as can be, give the points the moments of a normal vector up to the fourth, so that what is
    not clamped has its exact covariances.
    """
    root = 2.0
    for _ in range(60):  # the root of x^(d + 1) = x + 1, for a lattice without short vectors
        root = (1 + root) ** (1 / (d + 1))
    uniform = (0.5 + np.outer(np.arange(1, POINTS + 1), root ** -np.arange(1.0, d + 1))) % 1
    sizes, signs = scipy.special.ndtri(0.5 + uniform / 2), np.array(list(every((1, -1), repeat=d)))
    i, j = np.triu_indices(d)
    moments = np.concatenate([np.ones((1, POINTS)), sizes.T**2, (sizes[:, i] * sizes[:, j]).T ** 2])
    wanted = np.concatenate([np.ones(1 + d), np.where(i == j, 3.0, 1.0)])
    even, exact = np.eye(POINTS) * POINTS, 1e4
    weights, _ = scipy.optimize.nnls(
        np.concatenate([exact * moments, even]), np.concatenate([exact * wanted, np.ones(POINTS)])
    )
    return (sizes[:, None] * signs).reshape(-1, d), np.repeat(weights / len(signs), len(signs))


__all__ = ["MvNormal"]
