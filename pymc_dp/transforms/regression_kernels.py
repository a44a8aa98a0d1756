"""Log density of a released regression, and its slopes: compiled, see `regression` for the formulas.

Both kernels take, and return the log density and its slopes in `a` to `mixing`:

* value, scales : released sums and the scales of their noise;
* a, w, sd : intercepts, slopes and dispersion, in natural units;
* shares : of cells in the rows, where sizes are private;
* z : unknown numbers of private predictors in their coordinates; empty where `means` and `within` are known;
* mixing : variances of Laplace noise on the sums with the response, else empty;
* centre, root : coordinates of the unknown numbers;
* sizes, means, within : what is known of the predictors of each cell, the first alone where they are private;
* alone, places : where sums of predictors, and with the response, lie in the release;
* units : centres of the predictors, their half widths, and centre and half width of a normal response;
* form : whether slopes are apart; whether there is a constant, a square, and Laplace noise.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numba
import numpy as np

from pymc_dp.families.normal_sums import LOG_2PI, SMALL
from pymc_dp.transforms.covariate_kernels import (
    add_covariance_slopes,
    covariance_roots,
    numbers_at,
    slopes_at,
    squared,
)
from pymc_dp.transforms.row_kernels import (
    JOINT,
    JOINT_SLOPE,
    MEAN,
    SLOPE,
    SQUARE,
    SQUARE_VARIANCE,
    STRETCH,
    TILT,
    VARIANCE,
    link_rows,
    normal_rows,
)

SUPPORTED = 1e6
"""Coefficients beyond have no density: they would overflow."""
APART, CONSTANT, SQUARED, LAPLACE = range(4)
"""Places in `form`."""


def _jit(function: Any) -> Any:
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


@_jit
def normal_regression(
    value, scales, a, w, sd, shares, z, mixing, centre, root, sizes, means, within, alone, places, units, form
):  # type: ignore[no-untyped-def]
    """Of a normal response, clamped to its bounds."""
    ga, gw, gshares, gz, gmixing = _zeros(a, w, shares, z, mixing)
    if not (_within(a) and _within(w) and 0 < sd < SUPPORTED):
        return -np.inf, ga, gw, 0.0, gshares, gz, gmixing
    half = units[-1]
    known, numbers = _predictors(a, shares, z, centre, root, sizes, means, within, form)
    linear = _linear(a, w, known, units, form)
    rows = normal_rows(linear[0], linear[1], sd / half)
    total, gsd = _density(
        value.ravel(), scales.ravel(), mixing, known, linear, rows, alone, places, form,
        sizes, numbers, root, units, ga, gw, gshares, gz, gmixing,
    )  # fmt: skip
    return total, ga, gw, gsd / half, gshares, gz, gmixing


@_jit
def link_regression(
    value, scales, a, w, sd, shares, z, mixing, centre, root, sizes, means, within, alone, places, units, form, response
):  # type: ignore[no-untyped-def]
    """Of a Bernoulli or a clamped Poisson response, which `response` describes (see `link_rows`)."""
    ga, gw, gshares, gz, gmixing = _zeros(a, w, shares, z, mixing)
    if not (_within(a) and _within(w)):
        return -np.inf, ga, gw, 0.0, gshares, gz, gmixing
    known, numbers = _predictors(a, shares, z, centre, root, sizes, means, within, form)
    linear = _linear(a, w, known, units, form)
    rows = link_rows(linear[0], linear[1], response)
    total, _ = _density(
        value.ravel(), scales.ravel(), mixing, known, linear, rows, alone, places, form,
        sizes, numbers, root, units, ga, gw, gshares, gz, gmixing,
    )  # fmt: skip
    return total, ga, gw, 0.0, gshares, gz, gmixing


@_jit
def _zeros(a, w, shares, z, mixing):  # type: ignore[no-untyped-def]
    return np.zeros(a.shape), np.zeros(w.shape), np.zeros(shares.shape), np.zeros(z.shape), np.zeros(mixing.shape)


@_jit
def _within(x):  # type: ignore[no-untyped-def]
    flat = x.ravel()
    for i in range(len(flat)):
        if not abs(flat[i]) < SUPPORTED:
            return False
    return True


@_jit
def _predictors(a, shares, z, centre, root, sizes, means, within, form):  # type: ignore[no-untyped-def]
    """Size, means and covariance of the predictors of every cell; and what the unknown numbers are."""
    n_cells, d = a.size, means.shape[1]
    numbers = numbers_at(z, centre, root)
    n = np.empty(n_cells)
    for c in range(n_cells):
        n[c] = sizes[0] * shares[c] if len(shares) else sizes[c]
    if len(z) == 0:
        return (n, means, within), numbers
    first = n_cells if form[CONSTANT] else 0
    found = np.zeros((n_cells, d))
    for c in range(first):
        for j in range(d):
            found[c, j] = numbers[c * d + j]
    blocks = n_cells if form[APART] else 1
    return (n, found, squared(covariance_roots(numbers, first * d, blocks, d)[0])), numbers


@_jit
def _linear(a, w, known, units, form):  # type: ignore[no-untyped-def]
    """Mean and variance of linear predictors, covariance of predictors with them, and slopes, of scaled numbers."""
    _, means, within = known
    n_cells, d = means.shape
    flat, starts, half = w.ravel(), a.ravel(), units[2 * d + 1]
    eta, spread = np.empty(n_cells), np.zeros(n_cells)
    along, slopes = np.zeros((n_cells, d)), np.empty((n_cells, d))
    for c in range(n_cells):
        offset, block = c * d if form[APART] else 0, c if len(within) > 1 else 0
        eta[c] = starts[c] - units[2 * d]
        for j in range(d):
            eta[c] += flat[offset + j] * units[j]
            slopes[c, j] = flat[offset + j] * units[d + j] / half
        eta[c] /= half
        for j in range(d):
            eta[c] += means[c, j] * slopes[c, j]
            for k in range(d):
                along[c, j] += within[block, j, k] * slopes[c, k]
            spread[c] += along[c, j] * slopes[c, j]
    return eta, spread, along, slopes


@_jit
def _density(
    value, scales, mixing, known, linear, rows, alone, places, form,
    sizes, numbers, root, units, ga, gw, gshares, gz, gmixing,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """Return the log density and its slope in the scaled dispersion; write the others."""
    n, means, within = known
    n_cells, d = means.shape
    gn, gm, gv, gs = np.zeros(n_cells), np.zeros((n_cells, d)), np.zeros(within.shape), np.zeros((n_cells, d))
    geta, gsd = np.zeros(n_cells), 0.0
    total = 0.0
    if len(gz):
        total += _alone(value, scales, alone, known, form, len(gshares) > 0, gn, gm, gv)
    per_block = 1 if form[APART] else n_cells
    for block in range(len(places)):
        cells = (block * per_block, (block + 1) * per_block)
        mean, factor = _sums(places.shape[1], cells, known, linear, rows, form)
        total += _normal(value, scales, mixing, places, block, mean, factor, form, gmixing)
        for c in range(cells[0], cells[1]):
            gsd += _cell_slopes(c, mean, factor, known, linear, rows, form, cells, gn, gm, gv, gs, geta)
    _natural(geta, gs, units, form, ga, gw)
    if len(gshares):
        for c in range(n_cells):
            gshares[c] = gn[c] * sizes[0]
    if len(gz):
        _unknown(numbers, root, form, gm, gv, gz)
    return total, gsd


@_jit
def _alone(value, scales, alone, known, form, sized, gn, gm, gv):  # type: ignore[no-untyped-def]
    """Log density of sums of predictors, which differ from their release by noise alone; add its slopes."""
    n, means, within = known
    n_cells, d = means.shape
    at, total = 0, 0.0
    if sized:
        for c in range(n_cells):
            logp, slope = _noise(value[int(alone[at])] - n[c], scales[int(alone[at])], form[LAPLACE])
            total, at = total + logp, at + 1
            gn[c] -= slope
    if form[CONSTANT]:
        for c in range(n_cells):
            for j in range(d):
                logp, slope = _noise(
                    value[int(alone[at])] - n[c] * means[c, j], scales[int(alone[at])], form[LAPLACE]
                )
                total, at = total + logp, at + 1
                gn[c] -= slope * means[c, j]
                gm[c, j] -= slope * n[c]
    blocks, per_block = (n_cells, 1) if form[APART] else (1, n_cells)
    for block in range(blocks):
        for i in range(d):
            for j in range(i, d):
                expected, first = 0.0, block * per_block
                for c in range(first, first + per_block):
                    expected += n[c] * (within[block, i, j] + means[c, i] * means[c, j])
                logp, slope = _noise(value[int(alone[at])] - expected, scales[int(alone[at])], form[LAPLACE])
                total, at = total + logp, at + 1
                for c in range(first, first + per_block):
                    gn[c] -= slope * (within[block, i, j] + means[c, i] * means[c, j])
                    gv[block, i, j] -= slope * n[c]
                    gm[c, i] -= slope * n[c] * means[c, j]
                    gm[c, j] -= slope * n[c] * means[c, i]
    return total


@_jit
def _noise(distance, scale, laplace):  # type: ignore[no-untyped-def]
    """Log density of noise, and its slope."""
    if laplace:
        return -abs(distance) / scale - log(2 * scale), -np.sign(distance) / scale
    return -0.5 * (distance / scale) ** 2 - log(scale) - 0.5 * LOG_2PI, -distance / scale**2


@_jit
def _place(e, c, cells, d, form):  # type: ignore[no-untyped-def]
    """Where the sum of u (e = 0), of t_e u or of u² (e = d + 1) lies among those of a block; -1 where it is none."""
    first = (cells[1] - cells[0] if not form[APART] else 1) if form[CONSTANT] else 0
    if e == 0:
        return -1 if not form[CONSTANT] else (0 if form[APART] else c)
    if e == d + 1 and not form[SQUARED]:
        return -1
    return first + e - 1


@_jit
def _entry(e, f, c, means, within, along, b, row):  # type: ignore[no-untyped-def]
    """Covariance over rows of a cell of two numbers, e <= f, numbered as in `_place`."""
    d = len(b)
    if f == d + 1:
        if e == d + 1:
            return row[SQUARE_VARIANCE, 0]
        if e == 0:
            return row[JOINT, 0]
        return row[JOINT, 0] * means[c, e - 1] + row[JOINT_SLOPE, 0] * along[c, e - 1]
    if e == 0:
        if f == 0:
            return row[VARIANCE, 0]
        return row[VARIANCE, 0] * means[c, f - 1] + row[TILT, 0] * b[f - 1]
    i, j = e - 1, f - 1
    block = c if len(within) > 1 else 0
    found = row[VARIANCE, 0] * (within[block, i, j] + means[c, i] * means[c, j])
    found += row[TILT, 0] * (means[c, i] * b[j] + b[i] * means[c, j])
    return found + row[STRETCH, 0] * b[i] * b[j]


@_jit
def _slant(along, spread):  # type: ignore[no-untyped-def]
    """b, covariance of predictors with the linear predictor in its standard deviations."""
    found, root = np.empty(len(along)), sqrt(spread + 1e-8)
    for j in range(len(along)):
        found[j] = along[j] / root
    return found


@_jit
def _mean(e, c, means, along, row):  # type: ignore[no-untyped-def]
    if e == 0:
        return row[MEAN, 0]
    if e == means.shape[1] + 1:
        return row[SQUARE, 0]
    return means[c, e - 1] * row[MEAN, 0] + along[c, e - 1] * row[SLOPE, 0]


@_jit
def _sums(k, cells, known, linear, rows, form):  # type: ignore[no-untyped-def]
    """Mean and covariance of the sums of a block."""
    n, means, within = known
    _, spread, along, _ = linear
    d = means.shape[1]
    mean, covariance = np.zeros(k), np.zeros((k, k))
    for c in range(cells[0], cells[1]):
        b = _slant(along[c], spread[c])
        for f in range(d + 2):
            y = _place(f, c, cells, d, form)
            if y < 0:
                continue
            mean[y] += n[c] * _mean(f, c, means, along, rows[c])
            for e in range(f + 1):
                x = _place(e, c, cells, d, form)
                if x >= 0:
                    covariance[y, x] += n[c] * _entry(e, f, c, means, within, along, b, rows[c])
    return mean, covariance


@_jit
def _normal(value, scales, mixing, places, block, mean, covariance, form, gmixing):  # type: ignore[no-untyped-def]
    """Log density of the sums of a block; replace mean and covariance by the slopes in them."""
    k, total = len(mean), 0.0
    flat, gflat = mixing.ravel(), gmixing.ravel()
    for i in range(k):
        at = int(places[block, i])
        mean[i] = value[at] - mean[i]
        noise = scales[at] ** 2
        if len(flat):
            noise *= 2 * flat[block * k + i]
        covariance[i, i] += noise + SMALL
    factor_and_solve(covariance, mean)
    for i in range(k):
        total -= log(covariance[i, i]) + 0.5 * mean[i] * mean[i] + 0.5 * LOG_2PI
    slopes_of_normal(covariance, mean)
    if len(flat):
        for i in range(k):
            gflat[block * k + i] = 2 * scales[int(places[block, i])] ** 2 * covariance[i, i]
    return total


@_jit
def factor_and_solve(matrix, x):  # type: ignore[no-untyped-def]
    """Replace the lower triangle of a matrix by its Cholesky factor L, and x by the solution of L y = x."""
    k = len(x)
    for j in range(k):
        for m in range(j):
            matrix[j, j] -= matrix[j, m] * matrix[j, m]
            x[j] -= matrix[j, m] * x[m]
        matrix[j, j] = sqrt(matrix[j, j])
        x[j] /= matrix[j, j]
        for i in range(j + 1, k):
            for m in range(j):
                matrix[i, j] -= matrix[i, m] * matrix[j, m]
            matrix[i, j] /= matrix[j, j]


@_jit
def slopes_of_normal(factor, x):  # type: ignore[no-untyped-def]
    """Replace L and L⁻¹ z by the slopes of the normal log density at z in its covariance V, and by V⁻¹ z."""
    k = len(x)
    inverse = np.zeros((k, k))
    for j in range(k):
        inverse[j, j] = 1 / factor[j, j]
        for i in range(j + 1, k):
            for m in range(j, i):
                inverse[i, j] -= factor[i, m] * inverse[m, j]
            inverse[i, j] /= factor[i, i]
    for j in range(k):
        x[j] *= inverse[j, j]
        for i in range(j + 1, k):
            x[j] += inverse[i, j] * x[i]
    for i in range(k):
        for j in range(i + 1):
            found = x[i] * x[j]
            for m in range(i, k):
                found -= inverse[m, i] * inverse[m, j]
            factor[i, j] = factor[j, i] = 0.5 * found


@_jit
def _cell_slopes(c, gmean, gcov, known, linear, rows, form, cells, gn, gm, gv, gs, geta):  # type: ignore[no-untyped-def]
    """Add the slopes in the moments of a cell, in its intercept and its slopes; return that in the dispersion."""
    n, means, within = known
    _, spread, along, slopes = linear
    row, size, d = rows[c], n[c], means.shape[1]
    b, block = _slant(along[c], spread[c]), c if len(within) > 1 else 0
    g1, g2 = _gathered(c, gmean, gcov, d, form, cells)
    for f in range(d + 2):
        gn[c] += g1[f] * _mean(f, c, means, along, row)
        for e in range(f + 1):
            gn[c] += (1 if e == f else 2) * g2[e, f] * _entry(e, f, c, means, within, along, b, row)
    grow = np.zeros(len(row))
    ga, gb = np.zeros(d), np.zeros(d)
    grow[MEAN], grow[SQUARE], grow[SQUARE_VARIANCE] = g1[0], g1[d + 1], g2[d + 1, d + 1]
    grow[VARIANCE], grow[JOINT] = g2[0, 0], 2 * g2[0, d + 1]
    for j in range(d):
        m, last, cross = means[c, j], g2[j + 1, d + 1], g2[0, j + 1]
        with_m, with_b = 0.0, 0.0
        for i in range(d):
            with_m += g2[i + 1, j + 1] * means[c, i]
            with_b += g2[i + 1, j + 1] * b[i]
            grow[VARIANCE] += g2[i + 1, j + 1] * within[block, i, j]
            gv[block, i, j] += size * row[VARIANCE, 0] * g2[i + 1, j + 1]
        grow[MEAN] += g1[j + 1] * m
        grow[SLOPE] += g1[j + 1] * along[c, j]
        grow[VARIANCE] += 2 * cross * m + with_m * m
        grow[TILT] += 2 * cross * b[j] + 2 * with_m * b[j]
        grow[STRETCH] += with_b * b[j]
        grow[JOINT] += 2 * last * m
        grow[JOINT_SLOPE] += 2 * last * along[c, j]
        turn = g1[j + 1] * row[MEAN, 0] + 2 * row[VARIANCE, 0] * (cross + with_m)
        gm[c, j] += size * (turn + 2 * row[TILT, 0] * with_b + 2 * row[JOINT, 0] * last)
        ga[j] = g1[j + 1] * row[SLOPE, 0] + 2 * row[JOINT_SLOPE, 0] * last
        gb[j] = 2 * row[TILT, 0] * (cross + with_m) + 2 * row[STRETCH, 0] * with_b
    turn, gspread, gsd = 0.0, 0.0, 0.0
    for i in range(len(row)):
        turn, gspread, gsd = turn + grow[i] * row[i, 1], gspread + grow[i] * row[i, 2], gsd + grow[i] * row[i, 3]
    for j in range(d):
        ga[j] += gb[j] / sqrt(spread[c] + 1e-8)
        gspread -= 0.5 * gb[j] * b[j] / (spread[c] + 1e-8)
    geta[c] += size * turn
    for j in range(d):
        ga[j] += gspread * slopes[c, j]
        gm[c, j] += size * turn * slopes[c, j]
        gs[c, j] += size * (turn * means[c, j] + gspread * along[c, j])
    for j in range(d):
        for k in range(d):
            gv[block, j, k] += size * ga[j] * slopes[c, k]
            gs[c, k] += size * ga[j] * within[block, j, k]
    return size * gsd


@_jit
def _gathered(c, gmean, gcov, d, form, cells):  # type: ignore[no-untyped-def]
    """Slopes in mean and covariance of the sums of one cell; 0 for those that are not released."""
    g1, g2 = np.zeros(d + 2), np.zeros((d + 2, d + 2))
    for f in range(d + 2):
        y = _place(f, c, cells, d, form)
        if y < 0:
            continue
        g1[f] = gmean[y]
        for e in range(d + 2):
            x = _place(e, c, cells, d, form)
            if x >= 0:
                g2[e, f] = gcov[x, y]
    return g1, g2


@_jit
def _natural(geta, gs, units, form, ga, gw):  # type: ignore[no-untyped-def]
    """Write slopes in natural coefficients, given those in scaled ones."""
    n_cells, d = gs.shape
    half, starts, flat = units[2 * d + 1], ga.ravel(), gw.ravel()
    for c in range(n_cells):
        offset = c * d if form[APART] else 0
        starts[c] = geta[c] / half
        for j in range(d):
            flat[offset + j] += (geta[c] * units[j] + gs[c, j] * units[d + j]) / half


@_jit
def _unknown(numbers, root, form, gm, gv, gz):  # type: ignore[no-untyped-def]
    """Write slopes in the unknown numbers."""
    n_cells, d = gm.shape
    slopes, first = np.zeros(len(numbers)), n_cells if form[CONSTANT] else 0
    for c in range(first):
        for j in range(d):
            slopes[c * d + j] = gm[c, j]
    factors, before, partial = covariance_roots(numbers, first * d, len(gv), d)
    add_covariance_slopes(slopes, first * d, factors, before, partial, gv)
    found = slopes_at(slopes, root)
    for i in range(len(gz)):
        gz[i] = found[i]


__all__ = ["factor_and_solve", "link_regression", "normal_regression", "slopes_of_normal"]
