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

import numpy as np

from pymc_dp.families.quadrature import LOG_2PI, SMALL
from pymc_dp.transforms.jit import kernel, part
from pymc_dp.transforms.predictor_kernels import (
    APART,
    CONSTANT,
    LAPLACE,
    SQUARED,
    SUPPORTED,
    linear_predictors,
    predictors,
    supported,
    write_natural,
    write_unknown,
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
from pymc_dp.transforms.sum_kernels import factor_and_solve, noise_logp, slopes_of_normal


@kernel
def normal_regression(  # type: ignore[no-untyped-def]
    value, scales, a, w, sd, shares, z, mixing, centre, root, sizes, means, within, alone, places, units, form
):
    """Of a normal response, clamped to its bounds."""
    ga, gw, gshares, gz, gmixing = _zeros(a, w, shares, z, mixing)
    if not (supported(a) and supported(w) and 0 < sd < SUPPORTED):
        return -np.inf, ga, gw, 0.0, gshares, gz, gmixing
    half = units[-1]
    known, numbers = predictors(a, shares, z, centre, root, sizes, means, within, form)
    linear = linear_predictors(a, w, known, units, form)
    rows = normal_rows(linear[0], linear[1], sd / half)
    total, gsd = _density(
        value.ravel(), scales.ravel(), mixing, known, linear, rows, alone, places, form,
        sizes, numbers, root, units, ga, gw, gshares, gz, gmixing,
    )  # fmt: skip
    return total, ga, gw, gsd / half, gshares, gz, gmixing


@kernel
def link_regression(  # type: ignore[no-untyped-def]
    value, scales, a, w, sd, shares, z, mixing, centre, root, sizes, means, within, alone, places, units, form, response
):
    """Of a Bernoulli or a clamped Poisson response, which `response` describes (see `link_rows`)."""
    ga, gw, gshares, gz, gmixing = _zeros(a, w, shares, z, mixing)
    if not (supported(a) and supported(w)):
        return -np.inf, ga, gw, 0.0, gshares, gz, gmixing
    known, numbers = predictors(a, shares, z, centre, root, sizes, means, within, form)
    linear = linear_predictors(a, w, known, units, form)
    rows = link_rows(linear[0], linear[1], response)
    total, _ = _density(
        value.ravel(), scales.ravel(), mixing, known, linear, rows, alone, places, form,
        sizes, numbers, root, units, ga, gw, gshares, gz, gmixing,
    )  # fmt: skip
    return total, ga, gw, 0.0, gshares, gz, gmixing


@part
def _zeros(a, w, shares, z, mixing):  # type: ignore[no-untyped-def]
    return np.zeros(a.shape), np.zeros(w.shape), np.zeros(shares.shape), np.zeros(z.shape), np.zeros(mixing.shape)


@part
def _density(  # type: ignore[no-untyped-def]
    value, scales, mixing, known, linear, rows, alone, places, form,
    sizes, numbers, root, units, ga, gw, gshares, gz, gmixing,
):  # fmt: skip
    """Return the log density and its slope in the scaled dispersion; write the others."""
    _, means, within = known
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
    write_natural(geta, gs, units, form, ga, gw)
    if len(gshares):
        for c in range(n_cells):
            gshares[c] = gn[c] * sizes[0]
    if len(gz):
        write_unknown(numbers, root, form, gm, gv, gz)
    return total, gsd


@part
def _alone(value, scales, alone, known, form, sized, gn, gm, gv):  # type: ignore[no-untyped-def]
    """Log density of sums of predictors, which differ from their release by noise alone; add its slopes."""
    n, means, within = known
    n_cells, d = means.shape
    at, total = 0, 0.0
    if sized:
        for c in range(n_cells):
            logp, slope = noise_logp(value[int(alone[at])] - n[c], scales[int(alone[at])], form[LAPLACE])
            total, at = total + logp, at + 1
            gn[c] -= slope
    if form[CONSTANT]:
        for c in range(n_cells):
            for j in range(d):
                logp, slope = noise_logp(
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
                logp, slope = noise_logp(value[int(alone[at])] - expected, scales[int(alone[at])], form[LAPLACE])
                total, at = total + logp, at + 1
                for c in range(first, first + per_block):
                    gn[c] -= slope * (within[block, i, j] + means[c, i] * means[c, j])
                    gv[block, i, j] -= slope * n[c]
                    gm[c, i] -= slope * n[c] * means[c, j]
                    gm[c, j] -= slope * n[c] * means[c, i]
    return total


@part
def _place(e, c, cells, d, form):  # type: ignore[no-untyped-def]
    """Where the sum of u (e = 0), of t_e u or of u² (e = d + 1) lies among those of a block; -1 where it is none."""
    first = (cells[1] - cells[0] if not form[APART] else 1) if form[CONSTANT] else 0
    if e == 0:
        return -1 if not form[CONSTANT] else (0 if form[APART] else c)
    if e == d + 1 and not form[SQUARED]:
        return -1
    return first + e - 1


@part
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


@part
def _slant(along, spread):  # type: ignore[no-untyped-def]
    """b, covariance of predictors with the linear predictor in its standard deviations."""
    found, root = np.empty(len(along)), sqrt(spread + 1e-8)
    for j in range(len(along)):
        found[j] = along[j] / root
    return found


@part
def _mean(e, c, means, along, row):  # type: ignore[no-untyped-def]
    if e == 0:
        return row[MEAN, 0]
    if e == means.shape[1] + 1:
        return row[SQUARE, 0]
    return means[c, e - 1] * row[MEAN, 0] + along[c, e - 1] * row[SLOPE, 0]


@part
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


@part
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


@part
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


@part
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


__all__ = ["link_regression", "normal_regression"]
