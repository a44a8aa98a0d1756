"""Densities of noised normal sums, and their slopes: compiled; formulas are in `gaussian_sums` and `laplace_sums`.

Moments of a normal number within bounds: compiled, and a part of kernels.
"""

from __future__ import annotations

from math import erfc, exp, log, pi, sqrt

import numpy as np

from pymc_dp.families.normal import FLAT, NODES
from pymc_dp.families.quadrature import LOG_2PI, SMALL
from pymc_dp.transforms.jit import inlined, part
from pymc_dp.transforms.sum_noises import MOMENT_NODES, dense_nodes

ROOT_2, ROOT_PI = sqrt(2.0), sqrt(pi)
_PANEL, _LOG_WEIGHT = dense_nodes()


_NEAR_TOP = (3.16112374387056560, 113.864154151050156, 377.485237685302021, 3209.37758913846947, 0.185777706184603153)
_NEAR_BELOW = (23.6012909523441209, 244.024637934444173, 1282.61652607737228, 2844.23683343917062)
_MIDDLE_TOP = (
    *(0.564188496988670089, 8.88314979438837594, 66.1191906371416295, 298.635138197400131, 881.952221241769090),
    *(1712.04761263407058, 2051.07837782607147, 1230.33935479799725, 2.15311535474403846e-8),
)
_MIDDLE_BELOW = (
    *(15.7449261107098347, 117.693950891312499, 537.181101862009858, 1621.38957456669019),
    *(3290.79923573345963, 4362.61909014324716, 3439.36767414372164, 1230.33935480374942),
)
_FAR_TOP = (
    *(0.305326634961232344, 0.360344899949804439, 0.125781726111229246),
    *(0.0160837851487422766, 6.58749161529837803e-4, 0.0163153871373020978),
)
_FAR_BELOW = (
    2.56852019228982242,
    1.87295284992346725,
    0.527905102951428412,
    0.0605183413124413191,
    0.00233520497626869185,
)


@part
def noise_logp(distance, scale, laplace):  # type: ignore[no-untyped-def]
    """Log density of noise, and its slope."""
    if laplace:
        return -abs(distance) / scale - log(2 * scale), -np.sign(distance) / scale
    return -0.5 * (distance / scale) ** 2 - log(scale) - 0.5 * LOG_2PI, -distance / scale**2


@part
def factor_and_solve(matrix, x):  # type: ignore[no-untyped-def]
    """Replace the lower triangle of a matrix by its Cholesky factor L, and x by the solution y of ``L y = x``."""
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


@part
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


@part
def scaled_erfc(x):  # type: ignore[no-untyped-def]
    """``exp(x²) erfc(x)`` for x >= 0, by rational functions (Cody 1969, Math. Comp. 23(107))."""
    square = x * x
    if x <= 0.46875:
        top, below = _NEAR_TOP[4] * square, square
        for i in range(3):
            top, below = (top + _NEAR_TOP[i]) * square, (below + _NEAR_BELOW[i]) * square
        return exp(square) * (1 - x * (top + _NEAR_TOP[3]) / (below + _NEAR_BELOW[3]))
    if x <= 4:
        top, below = _MIDDLE_TOP[8] * x, x
        for i in range(7):
            top, below = (top + _MIDDLE_TOP[i]) * x, (below + _MIDDLE_BELOW[i]) * x
        return (top + _MIDDLE_TOP[7]) / (below + _MIDDLE_BELOW[7])
    inverse = 1 / square
    top, below = _FAR_TOP[5] * inverse, inverse
    for i in range(4):
        top, below = (top + _FAR_TOP[i]) * inverse, (below + _FAR_BELOW[i]) * inverse
    return (1 / ROOT_PI - inverse * (top + _FAR_TOP[4]) / (below + _FAR_BELOW[4])) / x


@part
def normal_laplace(z, v, scale):  # type: ignore[no-untyped-def]
    """Log density of N(0, v) + Laplace(scale) at z, and its slopes in z and in v.

    With w = |z| / √v and k = √v / scale the noise has two pieces, ``e^{-w²/2} W(p) / 2`` and the same of q, where W is
    the scaled complementary error function, p = (k - w) / √2 and q = (k + w) / √2. For negative p, the first is
    ``e^{k²/2 - k w}`` less the same of -p. Their sum F has ``F'' = F / scale² - 2 φ(w) / (scale √v)``, and in v half
    that slope.
    """
    s = sqrt(v)
    w, k = abs(z) / s, s / scale
    p, far = (k - w) / ROOT_2, 0.5 * scaled_erfc((k + w) / ROOT_2)
    if p >= 0:
        near = 0.5 * scaled_erfc(p)
        total, level, falling = near + far, -0.5 * w * w, 1.0
    else:
        falling = exp(-p * p)
        far *= falling
        near = 1 - 0.5 * falling * scaled_erfc(-p)
        total, level = near + far, 0.5 * k * k - k * w
    slope = (far - near) / (total * scale)
    bend = 0.5 * (1 - 2 * falling * scale / (total * s * ROOT_2 * ROOT_PI)) / (scale * scale)
    return level + log(total) - log(2 * scale), slope if z >= 0 else -slope, bend


@part
def laplace_pair(x, y, v11, v12, v22, scale, other):  # type: ignore[no-untyped-def]
    """Log density of a normal pair with mean 0 and Laplace noise; its slopes in the values and in the covariances."""
    s, slope = sqrt(v11), v12 / v11
    spare = v22 - v12 * slope
    tight = not spare > SMALL * (1 + v22)
    rest = SMALL * (1 + v22) if tight else spare
    level = slope == 0
    crossing = 0.0 if level else x - y / slope
    # Slopes in x, y, s, slope, rest; `terms` are the panels.
    terms, slopes = np.empty(4), np.zeros((4, 5))
    for side in range(2):
        sign = 1.0 - 2.0 * side
        a = sign * x / s - s / scale
        low, falling = max(a - sqrt(40.0), 0.0), min(a, 0.0)
        root = sqrt(falling * falling + 40.0)
        high = max(a, 0.0) + 40.0 / (root - falling)
        dlow = 1.0 if a > sqrt(40.0) else 0.0
        dhigh = 1.0 if a > 0 else -40.0 / (root - falling) ** 2 * (falling / root - 1)
        at = sign * crossing / s
        kink = min(max(at, low), high)
        for half in range(2):
            start, end = (low, kink) if half == 0 else (kink, high)
            place = 2 * side + half
            terms[place], gstart, gend, ga = _panel(
                x, y, s, slope, rest, sign, a, start, end, low, high, other, slopes[place]
            )
            glow, ghigh, gkink = (gstart[0], 0.0, gend[0]) if half == 0 else (0.0, gend[0], gstart[0])
            glow, ghigh = glow + gstart[1] + gend[1], ghigh + gstart[2] + gend[2]
            if at <= low:
                glow, gkink = glow + gkink, 0.0
            elif at >= high:
                ghigh, gkink = ghigh + gkink, 0.0
            ga += glow * dlow + ghigh * dhigh
            found = slopes[place]
            found[0] += ga * sign / s
            found[2] -= ga * (sign * x / (s * s) + 1 / scale)
            if gkink != 0.0 and not level:
                found[0] += gkink * sign / s
                found[1] -= gkink * sign / (s * slope)
                found[3] += gkink * sign * y / (s * slope * slope)
                found[2] -= gkink * at / s
    top = max(max(terms[0], terms[1]), max(terms[2], terms[3]))
    total, gx, gy, gs, gslope, grest = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(4):
        weight = exp(terms[i] - top)
        total += weight
        gx, gy, gs = gx + weight * slopes[i, 0], gy + weight * slopes[i, 1], gs + weight * slopes[i, 2]
        gslope, grest = gslope + weight * slopes[i, 3], grest + weight * slopes[i, 4]
    gx, gy, gs, gslope, grest = gx / total, gy / total, gs / total, gslope / total, grest / total
    logp = top + log(total) - x * x / (2 * v11) - 0.5 * LOG_2PI - log(2 * scale)
    g12, g22 = gslope / v11, SMALL * grest if tight else grest
    g11 = gs / (2 * s) - gslope * slope / v11 + x * x / (2 * v11 * v11)
    if not tight:
        g12 -= 2 * slope * grest
        g11 += slope * slope * grest
    return logp, gx - x / v11, gy, g11, g12, g22


@part
def _panel(x, y, s, slope, rest, sign, a, start, end, low, high, other, slopes):  # type: ignore[no-untyped-def]
    """Logarithm of the integral over one panel; slopes in its start and end, each beside those by low and high, in a.

    Write the slopes in x, y, s, slope and rest at a given panel.
    """
    width, least = end - start, 1e-9 * (high - low)
    thin = not width > least
    if thin:
        width = least
    top, total = -np.inf, 0.0
    ga, gstart, gwidth = 0.0, 0.0, 0.0
    for j in range(5):
        slopes[j] = 0.0
    for i in range(1 if thin else MOMENT_NODES):  # a thin panel weighs next to nothing: one node is exact
        at = 0.5 if thin else _PANEL[i]
        d = start + width * at
        first = x - sign * s * d
        logp, turn, bend = normal_laplace(y - slope * first, rest, other)
        logp += a * d - 0.5 * d * d + (0.0 if thin else _LOG_WEIGHT[i])
        if logp > top:  # weights are in units of the largest so far
            shrink = exp(top - logp)
            top = logp
            total, ga, gstart, gwidth = total * shrink, ga * shrink, gstart * shrink, gwidth * shrink
            for j in range(5):
                slopes[j] *= shrink
        weight = exp(logp - top)
        along = weight * (a - d + turn * slope * sign * s)
        total += weight
        ga += weight * d
        gstart += along
        gwidth += along * at
        slopes[0] -= weight * turn * slope
        slopes[1] += weight * turn
        slopes[2] += weight * turn * slope * sign * d
        slopes[3] -= weight * turn * first
        slopes[4] += weight * bend
    for j in range(5):
        slopes[j] /= total
    ga, gstart, gwidth = ga / total, gstart / total, gwidth / total + 1 / width
    if thin:
        return top + log(total) + log(width), (gstart, -1e-9 * gwidth, 1e-9 * gwidth), (0.0, 0.0, 0.0), ga
    return top + log(total) + log(width), (gstart - gwidth, 0.0, 0.0), (gwidth, 0.0, 0.0), ga


ROOT_2PI = sqrt(2 * np.pi)
_X, _W = np.polynomial.legendre.leggauss(NODES)


@inlined
def standard_density(z):  # type: ignore[no-untyped-def]
    """Density of N(0, 1)."""
    return exp(-0.5 * z * z) / ROOT_2PI


@inlined
def write_moments_within(m, s, low, high, inner):  # type: ignore[no-untyped-def]
    """Write E t^k 1(low < t < high) for t ~ N(m, s), k = 0..4.

    Return the probabilities below and above, and the standard densities at both bounds.
    """
    a, b = (low - m) / s, (high - m) / s
    below, above = 0.5 * erfc(-a / ROOT_2), 0.5 * erfc(b / ROOT_2)
    at_a, at_b = standard_density(a), standard_density(b)
    if s < FLAT:
        # By parts: E t^k is m E t^(k-1) + (k - 1) s² E t^(k-2), and what the bounds add.
        inner[0] = 1 - below - above
        first, second = s * at_a, s * at_b
        inner[1] = m * inner[0] + first - second
        for k in range(2, 5):
            first, second = first * low, second * high
            inner[k] = m * inner[k - 1] + (k - 1) * s * s * inner[k - 2] + first - second
        return below, above, at_a, at_b
    for k in range(5):
        inner[k] = 0.0
    for i in range(NODES):
        t = low + (high - low) * 0.5 * (_X[i] + 1)
        weight = (high - low) * 0.5 * _W[i] * standard_density((t - m) / s) / s
        for k in range(5):
            inner[k] += weight
            weight *= t
    return below, above, at_a, at_b


__all__ = [
    "factor_and_solve",
    "laplace_pair",
    "noise_logp",
    "normal_laplace",
    "scaled_erfc",
    "slopes_of_normal",
    "standard_density",
    "write_moments_within",
]
