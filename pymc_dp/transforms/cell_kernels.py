"""Log density of noised sums of a normal value and of its square, cell by cell: compiled, see `noise_aware`."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from pymc_dp.families.quadrature import LOG_2PI, SMALL
from pymc_dp.transforms.cell_sizes import SIZE_NODES
from pymc_dp.transforms.jit import exponential, inlined, kernel, logarithm, part, sums
from pymc_dp.transforms.sum_kernels import laplace_pair, noise_logp, write_moments_within
from pymc_dp.transforms.sum_noises import dense_nodes

HALF = SIZE_NODES // 2
PUBLIC, RATE, LAPLACE, SEEN_NOISE, INTEGRATED = range(5)
"""Places in `sizes`."""
CENTRE, HALF_WIDTH, LOW, HIGH, SHIFT = range(5)
"""Places in `statistic`; the shift is that of the square, in half widths squared."""
SIZE, LEVEL, EXPONENT, ROOT, FIRST, SECOND, BY11, BY12, BY22 = range(9)
"""What is known of every size: the size, the logarithm of its weight, and terms of the density given it."""
MOST = 1e100
"""Of a variance of noise: larger ones have no density."""
_X, _LOG_W = dense_nodes(HALF)


@kernel
def normal_cells(value, mean, sd, variances, scales, bound, shown, sizes, statistic):  # type: ignore[no-untyped-def]
    """Return the log density of every cell, and its slopes in mean, standard deviation and variances of noise.

    Parameters
    ----------
    value : (n_cells, 2 or 3) array
        Noised sums, after the noised size where it is private; in units of the data.
    mean, sd : (n_cells,) arrays
    variances : (n_cells, 2) array
        Of normal noise of both sums, in squares of its scale; of no account where Laplace noise is integrated out.
    scales : (2 or 3,) array
        Of the noise.
    bound, shown : (n_cells,) arrays
        Public sizes or a bound on private ones; these as another table shows them, else empty.
    sizes : (5,) array
        Whether they are public, the rate of the prior of private ones, whether noise is Laplace, its scale in `shown`,
        and whether it is integrated out of the sums.
    statistic : (5,) array
        Centre, half width, bounds, and what is subtracted from squares.
    """
    total, gmean, gsd = np.empty(len(mean)), np.zeros(len(mean)), np.zeros(len(mean))
    gvariances = np.zeros((len(mean), 2))
    raw, inner, nodes, found = np.empty((5, 3)), np.empty(5), np.empty((9, 2 * HALF)), np.empty(9)
    first = 0 if sizes[PUBLIC] else 1
    width = statistic[HALF_WIDTH]
    x_scale, y_scale = scales[first] / width, scales[first + 1] / width**2
    level = 0.0 if first == 0 else _level(scales[0], sizes, len(shown) > 0)
    for c in range(len(mean)):
        total[c] = -np.inf
        least, largest = min(variances[c, 0], variances[c, 1]), max(variances[c, 0], variances[c, 1])
        if not (sd[c] > 0 and abs(mean[c]) < np.inf and least >= 0 and largest < MOST):
            continue
        _raw_moments((mean[c] - statistic[CENTRE]) / width, sd[c] / width, statistic, raw, inner)
        count = _write_sizes(c, value, scales, bound, shown, sizes, level, nodes)
        m1, m2 = raw[1, 0], raw[2, 0] - statistic[SHIFT]
        c11, c12, c22 = raw[2, 0] - m1 * m1, raw[3, 0] - m1 * raw[2, 0], raw[4, 0] - raw[2, 0] ** 2
        x, y, v11, v22 = value[c, first] / width, value[c, first + 1] / width**2, max(c11, 0.0), max(c22, 0.0)
        if sizes[INTEGRATED]:
            _write_laplace_terms(count, nodes, x, y, m1, m2, v11, c12, v22, x_scale, y_scale)
        else:
            noise1, noise2 = variances[c, 0] * x_scale**2 + SMALL, variances[c, 1] * y_scale**2 + SMALL
            _write_terms(count, nodes, x, y, m1, m2, v11, c12, v22, noise1, noise2)
        top = _weigh(count, nodes, found)
        total[c] = top + log(found[0]) - LOG_2PI
        for i in range(1, 9):
            found[i] /= found[0]
        g1, g2, g11, g12, g22 = found[1], found[2], found[3], found[4], found[5]
        g11, g22 = g11 if c11 > 0 else 0.0, g22 if c22 > 0 else 0.0
        by1 = g1 - 2 * m1 * g11 - raw[2, 0] * g12
        by2 = g2 + g11 - raw[1, 0] * g12 - 2 * raw[2, 0] * g22
        gmean[c] = (by1 * raw[1, 1] + by2 * raw[2, 1] + g12 * raw[3, 1] + g22 * raw[4, 1]) / width
        gsd[c] = (by1 * raw[1, 2] + by2 * raw[2, 2] + g12 * raw[3, 2] + g22 * raw[4, 2]) / width
        if not sizes[INTEGRATED]:
            gvariances[c, 0], gvariances[c, 1] = found[6] * x_scale**2, found[7] * y_scale**2
    return total, gmean, gsd, gvariances


@sums
def _write_terms(count, nodes, x, y, m1, m2, c11, c12, c22, noise1, noise2):  # type: ignore[no-untyped-def]
    """Write the density of both sums given every size, and the slopes of its logarithm in covariances.

    The determinant is a sum of terms none of which is negative, so that it is positive however alike the sums are.
    """
    alone, crossed, spare = max(c11 * c22 - c12 * c12, 0.0), c11 * noise2 + c22 * noise1, noise1 * noise2
    for j in range(count):
        n = nodes[SIZE, j]
        inverse = 1 / ((n * alone + crossed) * n + spare)
        i11, i12, i22 = (n * c22 + noise2) * inverse, -n * c12 * inverse, (n * c11 + noise1) * inverse
        left, right = x - n * m1, y - n * m2
        first, second = i11 * left + i12 * right, i12 * left + i22 * right
        nodes[EXPONENT, j] = nodes[LEVEL, j] - 0.5 * (left * first + right * second)
        nodes[ROOT, j], nodes[FIRST, j], nodes[SECOND, j] = sqrt(inverse), first, second
        nodes[BY11, j], nodes[BY22, j] = 0.5 * (first * first - i11), 0.5 * (second * second - i22)
        nodes[BY12, j] = first * second - i12


@part
def _write_laplace_terms(count, nodes, x, y, m1, m2, c11, c12, c22, x_scale, y_scale):  # type: ignore[no-untyped-def]
    """Write the same with Laplace noise."""
    for j in range(count):
        n = nodes[SIZE, j]
        variances = (n * c11 + SMALL, n * c12, n * c22 + SMALL)
        found = laplace_pair(x - n * m1, y - n * m2, *variances, x_scale, y_scale)
        nodes[EXPONENT, j], nodes[ROOT, j] = nodes[LEVEL, j] + found[0] + LOG_2PI, 1.0
        nodes[FIRST, j], nodes[SECOND, j] = -found[1], -found[2]
        nodes[BY11, j], nodes[BY12, j], nodes[BY22, j] = found[3], found[4], found[5]


@sums
def _weigh(count, nodes, found):  # type: ignore[no-untyped-def]
    """Write the sum of weights, and sums of weighted slopes in means and covariances of a row, and of the noise.

    Return the logarithm of the unit of weights.
    """
    top = nodes[EXPONENT, 0]
    for j in range(count):
        top = max(top, nodes[EXPONENT, j])
    total, g1, g2, g11, g12, g22, noise1, noise2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(count):
        weight = nodes[ROOT, j] * exponential(nodes[EXPONENT, j] - top)
        total += weight
        noise1, noise2 = noise1 + weight * nodes[BY11, j], noise2 + weight * nodes[BY22, j]
        weight *= nodes[SIZE, j]
        g1, g2 = g1 + weight * nodes[FIRST, j], g2 + weight * nodes[SECOND, j]
        g11, g12, g22 = g11 + weight * nodes[BY11, j], g12 + weight * nodes[BY12, j], g22 + weight * nodes[BY22, j]
    found[0], found[1], found[2], found[3], found[4], found[5] = total, g1, g2, g11, g12, g22
    found[6], found[7] = noise1, noise2
    return top


@inlined
def _write_sizes(c, value, scales, bound, shown, sizes, level, nodes):  # type: ignore[no-untyped-def]
    """Write sizes that the density is summed over and the logarithms of their weights; return how many there are."""
    if sizes[PUBLIC]:
        nodes[SIZE, 0], nodes[LEVEL, 0] = bound[c], 0.0
        return 1
    seen, most = value[c, 0], bound[c]
    reach = (18 if sizes[LAPLACE] else 8) * scales[0]
    middle = min(max(seen, 0.0), most)
    ends = (min(max(seen - reach, 0.0), most), middle, min(max(seen + reach, 0.0), most))
    if not len(shown):
        level += logarithm(1 + sizes[RATE] * most) - log(most)
    for side in range(2):
        width = max(ends[side + 1] - ends[side], 1e-12)
        at_side, start = level + log(width), side * HALF
        for i in range(HALF):
            nodes[SIZE, start + i], nodes[LEVEL, start + i] = ends[side] + width * _X[i], at_side + _LOG_W[i]
    _add_noise(nodes, seen, scales[0], sizes[LAPLACE])
    if len(shown):
        _add_noise(nodes, shown[c], sizes[SEEN_NOISE], sizes[LAPLACE])
    else:
        for j in range(2 * HALF):
            nodes[LEVEL, j] -= 2 * logarithm(1 + sizes[RATE] * nodes[SIZE, j])
    for j in range(2 * HALF):
        nodes[SIZE, j] = max(nodes[SIZE, j], 1e-3)
    return 2 * HALF


@inlined
def _level(scale, sizes, shown):  # type: ignore[no-untyped-def]
    """Logarithm of what weights of all sizes have alike, in all cells: of the noise."""
    noise = noise_logp(0.0, scale, sizes[LAPLACE])[0]
    if shown:
        return noise + noise_logp(0.0, sizes[SEEN_NOISE], sizes[LAPLACE])[0]
    return noise


@inlined
def _add_noise(nodes, seen, scale, laplace):  # type: ignore[no-untyped-def]
    """Add the log density of noise that shows sizes, less its largest value."""
    if laplace:
        for j in range(2 * HALF):
            nodes[LEVEL, j] -= abs(seen - nodes[SIZE, j]) / scale
    else:
        for j in range(2 * HALF):
            away = (seen - nodes[SIZE, j]) / scale
            nodes[LEVEL, j] -= 0.5 * away * away


@inlined
def _raw_moments(m, s, statistic, raw, inner):  # type: ignore[no-untyped-def]
    """Write E t^k of a clamped normal t, k = 0..4, and its slopes in mean and standard deviation."""
    width = statistic[HALF_WIDTH]
    low, high = (statistic[LOW] - statistic[CENTRE]) / width, (statistic[HIGH] - statistic[CENTRE]) / width
    below, above, at_low, at_high = write_moments_within(m, s, low, high, inner)
    raw[0, 0], raw[0, 1], raw[0, 2] = 1.0, 0.0, 0.0
    # The slope in s is s times the second derivative in m.
    last = 0.0
    for k in range(1, 5):
        raw[k, 1], raw[k, 2] = k * inner[k - 1], k * (at_low - at_high + s * (k - 1) * last)
        at_low, at_high, below, above = at_low * low, at_high * high, below * low, above * high
        last = inner[k - 1]
        raw[k, 0] = inner[k] + below + above


__all__ = ["normal_cells"]
