"""Log density of noised sums of a normal value and of its square, cell by cell: compiled, see `noise_aware`."""

from __future__ import annotations

from math import erfc, exp, log, log1p

import numpy as np

from pymc_dp.families.normal_sums import SMALL
from pymc_dp.transforms.jit import kernel, part
from pymc_dp.transforms.noise_aware import SIZE_NODES
from pymc_dp.transforms.normal_moment_kernels import ROOT_2, standard_density, write_moments_within
from pymc_dp.transforms.sum_kernels import laplace_pair, noise_logp, normal_pair

HALF = SIZE_NODES // 2
PUBLIC, PARTS, LAPLACE, SEEN_NOISE = range(4)
"""Places in `sizes`."""
CENTRE, HALF_WIDTH, LOW, HIGH, SHIFT = range(5)
"""Places in `statistic`; the shift is that of the square, in half widths squared."""
_X, _W = np.polynomial.legendre.leggauss(HALF)
_X, _LOG_W = 0.5 * (_X + 1), np.log(0.5 * _W)


@kernel
def normal_cells(value, mean, sd, scales, bound, shown, sizes, statistic):  # type: ignore[no-untyped-def]
    """Return the log density of every cell, and its slopes in mean and standard deviation.

    Parameters
    ----------
    value : (n_cells, 2 or 3) array
        Noised sums, after the noised size where it is private; in units of the data.
    mean, sd : (n_cells,) arrays
    scales : (2 or 3,) array
        Of the noise.
    bound, shown : (n_cells,) arrays
        Public sizes or a bound on private ones; these as another table shows them, else empty.
    sizes : (4,) array
        Whether they are public, the number of parts of the bound, whether noise is Laplace, its scale in `shown`.
    statistic : (5,) array
        Centre, half width, bounds, and what is subtracted from squares.
    """
    total, gmean, gsd = np.empty(len(mean)), np.zeros(len(mean)), np.zeros(len(mean))
    raw, nodes = np.empty((5, 3)), np.empty((2, 2 * HALF))
    first = 0 if sizes[PUBLIC] else 1
    width = statistic[HALF_WIDTH]
    for c in range(len(mean)):
        total[c] = -np.inf
        if not (sd[c] > 0 and abs(mean[c]) < np.inf):
            continue
        _raw_moments((mean[c] - statistic[CENTRE]) / width, sd[c] / width, statistic, raw)
        count = _sizes(c, value, scales, bound, shown, sizes, nodes)
        found = _over_sizes(value[c], scales, first, raw, width, statistic[SHIFT], sizes[LAPLACE], nodes, count)
        total[c], gmean[c], gsd[c] = found[0], found[1] / width, found[2] / width
    return total, gmean, gsd


@part
def _over_sizes(value, scales, first, raw, width, shift, laplace, nodes, count):  # type: ignore[no-untyped-def]
    """Log density of a cell, summed over sizes, and its slopes in the moments' two arguments."""
    m1, m2 = raw[1, 0], raw[2, 0] - shift
    c11, c12, c22 = raw[2, 0] - m1 * m1, raw[3, 0] - raw[1, 0] * raw[2, 0], raw[4, 0] - raw[2, 0] ** 2
    k11, k22 = c11 > 0, c22 > 0
    c11, c22 = max(c11, 0.0), max(c22, 0.0)
    x, y = value[first] / width, value[first + 1] / width**2
    sx, sy = scales[first] / width, scales[first + 1] / width**2
    top, total, g1, g2, g11, g12, g22 = -np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(count):
        n = nodes[0, j] if first == 0 else max(nodes[0, j], 1e-3)
        v11, v12, v22 = n * c11 + SMALL, n * c12, n * c22 + SMALL
        if laplace:
            found = laplace_pair(x - n * m1, y - n * m2, v11, v12, v22, sx, sy)
        else:
            found = normal_pair(x - n * m1, y - n * m2, v11 + sx * sx, v12, v22 + sy * sy)
        logp = found[0] + nodes[1, j]
        if logp > top:  # weights are in units of the largest so far
            shrink = exp(top - logp)
            top, total, g1, g2 = logp, total * shrink, g1 * shrink, g2 * shrink
            g11, g12, g22 = g11 * shrink, g12 * shrink, g22 * shrink
        weight = exp(logp - top)
        total += weight
        weight *= n
        g1, g2 = g1 - weight * found[1], g2 - weight * found[2]
        g11, g12, g22 = g11 + weight * found[3], g12 + weight * found[4], g22 + weight * found[5]
    g11, g22 = g11 if k11 else 0.0, g22 if k22 else 0.0
    by1 = g1 - 2 * m1 * g11 - raw[2, 0] * g12
    by2 = g2 + g11 - raw[1, 0] * g12 - 2 * raw[2, 0] * g22
    gmean = (by1 * raw[1, 1] + by2 * raw[2, 1] + g12 * raw[3, 1] + g22 * raw[4, 1]) / total
    gsd = (by1 * raw[1, 2] + by2 * raw[2, 2] + g12 * raw[3, 2] + g22 * raw[4, 2]) / total
    return top + log(total), gmean, gsd


@part
def _sizes(c, value, scales, bound, shown, sizes, nodes):  # type: ignore[no-untyped-def]
    """Write sizes that the density is summed over and the logarithms of their weights; return how many there are."""
    if sizes[PUBLIC]:
        nodes[0, 0], nodes[1, 0] = bound[c], 0.0
        return 1
    seen, most = value[c, 0], bound[c]
    reach = (18 if sizes[LAPLACE] else 8) * scales[0]
    middle = min(max(seen, 0.0), most)
    ends = (min(max(seen - reach, 0.0), most), middle, min(max(seen + reach, 0.0), most))
    parts = max(sizes[PARTS], 2.0)
    # Logarithms that all nodes share: of the prior, and of the noise.
    flat, at_zero = log(parts - 1) - log(most), noise_logp(0.0, scales[0], sizes[LAPLACE])[0]
    for side in range(2):
        start, width = ends[side], max(ends[side + 1] - ends[side], 1e-12)
        level = log(width) + at_zero
        for i in range(HALF):
            n, place = start + width * _X[i], side * HALF + i
            if len(shown):
                prior, _ = noise_logp(n - shown[c], sizes[SEEN_NOISE], sizes[LAPLACE])
            else:
                prior = flat + ((parts - 2) * log1p(-(1 - 1e-9) * n / most) if parts > 2 else 0.0)
            away = abs(seen - n) / scales[0]
            noise = -away if sizes[LAPLACE] else -0.5 * away * away
            nodes[0, place], nodes[1, place] = n, prior + noise + level + _LOG_W[i]
    return 2 * HALF


@part
def _raw_moments(m, s, statistic, raw):  # type: ignore[no-untyped-def]
    """Write E t^k of a clamped normal t, k = 0..4, and its slopes in mean and standard deviation."""
    width = statistic[HALF_WIDTH]
    low, high = (statistic[LOW] - statistic[CENTRE]) / width, (statistic[HIGH] - statistic[CENTRE]) / width
    inner = np.empty(5)
    write_moments_within(m, s, low, high, inner)
    below, above = 0.5 * erfc((m - low) / s / ROOT_2), 0.5 * erfc((high - m) / s / ROOT_2)
    at_low, at_high = standard_density((low - m) / s), standard_density((high - m) / s)
    raw[0, 0], raw[0, 1], raw[0, 2] = 1.0, 0.0, 0.0
    for k in range(1, 5):
        raw[k, 0] = inner[k] + low**k * below + high**k * above
        raw[k, 1] = k * inner[k - 1]
        # The slope in s is s times the second derivative in m.
        bend = low ** (k - 1) * at_low - high ** (k - 1) * at_high
        raw[k, 2] = k * (bend + (s * (k - 1) * inner[k - 2] if k > 1 else 0.0))


__all__ = ["normal_cells"]
