"""Compiled draws of the squared length of a normal vector in a ball; imported at first use."""

from __future__ import annotations

import math

import numba


@numba.njit(cache=True, error_model="numpy")
def squared_length(rng, degrees, most):  # type: ignore[no-untyped-def]
    """Draw from the chi-squared distribution of `degrees` >= 1, given that it is at most `most` > 0.

    By rejection, with no fewer than a few percent accepted in hundreds of dimensions: from ``most U^(2 / degrees)``,
    uniform in a ball, where the ball is small; from the whole distribution where its mode lies within; else from the
    tangent of the log density at the end, which the density rises towards.
    """
    shape = degrees / 2 - 1
    if most <= 2.0:
        while True:
            found = most * rng.random() ** (2.0 / degrees)
            if rng.random() <= math.exp(-found / 2):
                return found
    if 2 * shape <= most:
        while True:
            found = 2.0 * rng.standard_gamma(degrees / 2)
            if found <= most:
                return found
    rate = shape / most - 0.5
    while True:
        below = most * rng.random()
        if rate * most > 1e-12:
            below = -math.log1p(below / most * math.expm1(-rate * most)) / rate
        found = most - below
        if found > 0 and rng.random() <= math.exp(shape * math.log(found / most) - (found - most) / 2 + rate * below):
            return found


@numba.njit(cache=True, error_model="numpy")
def fill_ball(rng, sigma, radius, out):  # type: ignore[no-untyped-def]
    """Fill a vector with a draw of independent normals of mean 0 and one sd, given that it lies in a ball."""
    total = 0.0
    for place in range(out.size):
        out[place] = rng.standard_normal()
        total += out[place] * out[place]
    length = sigma * math.sqrt(squared_length(rng, float(out.size), (radius / sigma) ** 2) / total)
    for place in range(out.size):
        out[place] *= length


__all__ = ["fill_ball", "squared_length"]
