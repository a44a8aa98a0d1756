"""Moments of a clamped response over the rows of a cell, with slopes: compiled, see `responses` for the formulas.

For every cell there are ten numbers times four: the fields of `RowMoments` in their order, each with its slopes in the
mean m of the linear predictor, in its variance v, and in the dispersion.
"""

from __future__ import annotations

from math import erfc, exp, lgamma, log, sqrt

import numpy as np

from pymc_dp.transforms.jit import part
from pymc_dp.transforms.regression_logp import FAR, FLOOR, NODES, hermite
from pymc_dp.transforms.sum_kernels import ROOT_2, standard_density, write_moments_within

FIELDS = 9
MEAN, SLOPE, VARIANCE, TILT, STRETCH, SQUARE, SQUARE_VARIANCE, JOINT, JOINT_SLOPE = range(FIELDS)
SIGMOID, EXP, PROBIT, CLOGLOG = 0.0, 1.0, 2.0, 3.0
"""Numbers of links."""
_Z, _V = hermite(NODES)


@part
def _plus(x, y, factor):  # type: ignore[no-untyped-def]
    """``x + factor * y`` of two numbers with slopes."""
    return (x[0] + factor * y[0], x[1] + factor * y[1], x[2] + factor * y[2], x[3] + factor * y[3])


@part
def _times(x, y):  # type: ignore[no-untyped-def]
    """Product of two numbers with slopes."""
    return (
        x[0] * y[0],
        x[0] * y[1] + x[1] * y[0],
        x[0] * y[2] + x[2] * y[0],
        x[0] * y[3] + x[3] * y[0],
    )


@part
def normal_rows(eta, spread, sd):  # type: ignore[no-untyped-def]
    """Return the moments of every cell for a normal response: (n_cells, 9, 4) array."""
    rows = np.zeros((len(eta), FIELDS, 4))
    inner = np.empty(5)
    for c in range(len(eta)):
        _normal_row(rows[c], eta[c], spread[c], sd, inner)
    return rows


@part
def _normal_row(row, m, spread, sd, inner):  # type: ignore[no-untyped-def]
    q = spread + sd * sd + 1e-12
    s, twice = sqrt(q), 2 * sd
    below, above, at_low, at_high = write_moments_within(m, s, -1.0, 1.0, inner)
    a, b = (-1 - m) / s, (1 - m) / s
    at_low, at_high = at_low / s, at_high / s
    turn = 0.5 * at_low * (a * a - 1) / q
    low = (at_low, at_low * a / s, turn, twice * turn)
    turn = 0.5 * at_high * (b * b - 1) / q
    high = (at_high, at_high * b / s, turn, twice * turn)
    v = (spread, 0.0, 1.0, 0.0)
    # Derivatives by m, of which those by the variance q are half the next.
    p0 = low[0] - high[0]
    p1 = inner[0] - high[0] - low[0]
    p2, p3 = 2 * inner[1] - high[0] + low[0], 3 * inner[2] - high[0] - low[0]
    pp0 = low[1] - high[1]
    pp1 = p0 - high[1] - low[1]
    pp2 = 2 * p1 - high[1] + low[1]
    inside0 = (inner[0], p0, 0.5 * pp0, sd * pp0)
    inside1 = (inner[1], p1, 0.5 * pp1, sd * pp1)
    inside2 = (inner[2], p2, 0.5 * pp2, sd * pp2)
    raw1 = (inner[1] - below + above, inner[0], 0.5 * p0, sd * p0)
    raw2 = (inner[2] + below + above, 2 * inner[1], p1, twice * p1)
    raw3 = (inner[3] - below + above, 3 * inner[2], 1.5 * p2, 3 * sd * p2)
    raw4 = (inner[4] + below + above, 4 * inner[3], 2 * p3, 4 * sd * p3)
    slope, slope2 = inside0, _plus(inside1, inside1, 1.0)
    curve, half = _plus(low, high, -1.0), _plus(_plus(inside0, low, -1.0), high, -1.0)
    curve2 = _plus(half, half, 1.0)
    curve_v, curve2_v = _times(curve, v), _times(curve2, v)
    variance = _plus(raw2, _times(raw1, raw1), -1.0)
    variance = _plus(variance, _times(_times(slope, slope), v), -1.0)
    variance = _plus(variance, _times(curve_v, curve_v), -0.5)
    if not variance[0] > FLOOR:
        variance = (FLOOR, 0.0, 0.0, 0.0)
    joint = _plus(raw3, _times(raw1, raw2), -1.0)
    joint = _plus(joint, _times(_times(slope, slope2), v), -1.0)
    joint = _plus(joint, _times(curve_v, curve2_v), -0.5)
    joint_slope = _plus(_plus(inside2, inside2, 2.0), _times(raw2, slope), -1.0)
    joint_slope = _plus(joint_slope, _times(raw1, slope2), -1.0)
    crossed = _plus(_times(slope, curve2), _times(slope2, curve), 1.0)
    joint_slope = _plus(joint_slope, _times(v, crossed), -1.0)
    square_variance = _plus(raw4, _times(raw2, raw2), -1.0)
    square_variance = _plus(square_variance, _times(_times(slope2, slope2), v), -1.0)
    square_variance = _plus(square_variance, _times(curve2_v, curve2_v), -0.5)
    least = _plus(_times(joint, joint), _times(v, _times(joint_slope, joint_slope)), 1.0)
    ratio = least[0] / variance[0]
    if not square_variance[0] > ratio * (1 + 1e-9) + FLOOR * FLOOR:
        more = (1 + 1e-9) / variance[0]
        moved = _plus(least, variance, -ratio)
        square_variance = (ratio * (1 + 1e-9) + FLOOR * FLOOR, more * moved[1], more * moved[2], more * moved[3])
    for i in range(4):
        row[MEAN, i], row[SLOPE, i], row[VARIANCE, i] = raw1[i], slope[i], variance[i]
        row[SQUARE, i], row[SQUARE_VARIANCE, i] = raw2[i], square_variance[i]
        row[JOINT, i], row[JOINT_SLOPE, i] = joint[i], joint_slope[i]


@part
def _link(link, eta):  # type: ignore[no-untyped-def]
    """Probability or rate, and its slope."""
    if link == SIGMOID:
        p = 1 / (1 + exp(-eta))
        return p, p * (1 - p)
    if link == EXP:
        return exp(eta), exp(eta)
    if link == PROBIT:
        return 0.5 * erfc(-eta / ROOT_2), standard_density(eta)
    rate = exp(eta)
    return 1 - exp(-rate), rate * exp(-rate)


@part
def _bernoulli(link, centre, half, eta):  # type: ignore[no-untyped-def]
    """Mean and variance of a scaled Bernoulli response, and their slopes in the linear predictor."""
    p, slope = _link(link, eta)
    if p < 0 or p > 1:
        p, slope = min(max(p, 0.0), 1.0), 0.0
    return (p - centre) / half, slope / half, p * (1 - p) / half**2, slope * (1 - 2 * p) / half**2


@part
def _poisson(link, centre, half, eta):  # type: ignore[no-untyped-def]
    """Mean and variance of a clamped and scaled Poisson response, and their slopes in the linear predictor."""
    most = centre + half
    rate, slope = _link(link, eta)
    if rate < 1e-12 or rate > 20 * most + 200:
        rate, slope = min(max(rate, 1e-12), 20 * most + 200), 0.0
    level, mean, dmean, square, dsquare = log(rate), 0.0, 0.0, 0.0, 0.0
    for y in range(round(most)):
        chance, away = exp(y * level - rate - lgamma(y + 1.0)), y - most
        turn = chance * (y / rate - 1) * slope
        mean, dmean = mean + chance * away, dmean + turn * away
        square, dsquare = square + chance * away * away, dsquare + turn * away * away
    variance, dvariance = square - mean * mean, dsquare - 2 * mean * dmean
    if not variance > 0:
        variance, dvariance = 0.0, 0.0
    return (mean + most - centre) / half, dmean / half, variance / half**2, dvariance / half**2


@part
def link_rows(eta, spread, response):  # type: ignore[no-untyped-def]
    """Return the moments of every cell: (n_cells, 9, 4) array.

    `response` is 1 for a Poisson one and 0 for a Bernoulli one, the number of its link, its centre and half width.
    """
    rows = np.zeros((len(eta), FIELDS, 4))
    nodes = np.empty((NODES, 5))
    for c in range(len(eta)):
        s = sqrt(spread[c] + FLOOR)
        _at_nodes(nodes, eta[c], s, response)
        _link_row(rows[c], nodes, s)
    return rows


@part
def _at_nodes(nodes, m, s, response):  # type: ignore[no-untyped-def]
    """Write mean and variance of the response, with slopes, and whether the node counts as it is."""
    for i in range(NODES):
        x = m + s * _Z[i]
        inside = abs(x) <= FAR
        x = min(max(x, -FAR), FAR)
        if response[0] == 0:
            found = _bernoulli(response[1], response[2], response[3], x)
        else:
            found = _poisson(response[1], response[2], response[3], x)
        for j in range(4):
            nodes[i, j] = found[j] if j % 2 == 0 or inside else 0.0


@part
def _link_row(row, nodes, s):  # type: ignore[no-untyped-def]
    level, line, curve = np.zeros(3), np.zeros(3), np.zeros(3)
    for i in range(NODES):
        z, weight = _Z[i], _V[i]
        for j in range(3):
            term = weight * _moved(nodes[i, 0], nodes[i, 1], z, s, j)
            level[j] += term
            line[j] += term * z
            curve[j] += term * (z * z - 1)
    for i in range(NODES):
        z, weight = _Z[i], _V[i]
        left = nodes[i, 0] - level[0] - line[0] * z - 0.5 * curve[0] * (z * z - 1)
        for j in range(3):
            rest = nodes[i, 2] + left * left
            if j > 0:
                turn = _moved(0.0, nodes[i, 1], z, s, j) - level[j] - line[j] * z - 0.5 * curve[j] * (z * z - 1)
                rest = _moved(0.0, nodes[i, 3], z, s, j) + 2 * left * turn
            row[VARIANCE, j] += weight * rest
            row[TILT, j] += weight * rest * z
            row[STRETCH, j] += weight * rest * (z * z - 1)
    if not row[VARIANCE, 0] > FLOOR:
        row[VARIANCE, 0], row[VARIANCE, 1], row[VARIANCE, 2] = FLOOR, 0.0, 0.0
    for j in range(3):
        row[MEAN, j], row[SLOPE, j] = level[j], line[j] / s
    row[SLOPE, 2] -= line[0] / (2 * s**3)
    row[SQUARE_VARIANCE, 0] = 1.0


@part
def _moved(value, slope, z, s, j):  # type: ignore[no-untyped-def]
    """A number at a node, or its slope in the mean or in the variance of the linear predictor."""
    if j == 0:
        return value
    return slope if j == 1 else slope * z / (2 * s)


__all__ = ["CLOGLOG", "EXP", "PROBIT", "SIGMOID", "link_rows", "normal_rows"]
