"""Interval rules of the gamma and error functions and of modified Bessel functions.

SciPy's errors were measured against mpmath with 40 digits (tests/sensitivity/test_interval_special.py); what is allowed
here is ten times as much or more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.scalar.math as ops
from pymc.distributions.dist_math import I0e, I1e

from pymc_dp._special import special
from pymc_dp.intervals.elementary import ONE, POSITIVE, exp, square
from pymc_dp.intervals.interval import (
    NAN,
    Interval,
    Rule,
    add,
    constant,
    flag,
    interval,
    multiply,
    settled,
    slope,
    unknown,
)
from pymc_dp.intervals.logic import absolute, select
from pymc_dp.intervals.monotone import Shape, Unary, by_output, smooth

ERROR = 4e-14
"""Relative error allowed to most functions (measured: below 1e-15)."""
TAIL_ERROR = 2e-12
"""For functions computed through exp(x^2), whose rounding grows with x^2 (measured: below 1e-13)."""
UNDERFLOW = 1e-307
"""Added to those: SciPy's results below the least normal number are 0."""
GAMMA_MINIMUM = 1.4616321449683623
"""Where the gamma function is least on the positive half-line."""
I1E_MAXIMUM = 1.5451272579925421
"""Where exp(-x) I_1(x) is greatest."""
I2E_MAXIMUM = 4.561487437559761
"""Where exp(-x) I_2(x) is greatest."""
MINUS_HALF = Interval.point(-0.5)
HALF = Interval.point(0.5)
ROOT_TWO_PI = math.sqrt(2 * math.pi)


def _positive(function: Callable[[Any], Any], **shape: Any) -> Shape:
    """Of a function on the positive half-line; nothing is stated about negative arguments."""
    return Shape(function=function, domain=POSITIVE, continues=True, relative=ERROR, **shape)


def _two_signs(value: Unary) -> Unary:
    """The value of a function that has infinite limits of both signs at 0."""

    def flagged(x: Interval) -> Interval:
        result = value(x)
        return interval(result.low, result.high, result.flags | flag(x.low <= 0, NAN))

    return flagged


def _gamma_slope(x: Any) -> Any:
    value = special.gamma(x) * special.psi(x)
    return np.where(np.isnan(value), np.inf, value)


gammaln = _positive(special.gammaln, turn=GAMMA_MINIMUM, absolute=1e-14)
gamma = _positive(special.gamma, turn=GAMMA_MINIMUM)
psi = _positive(special.psi)
trigamma = _positive(lambda x: special.zeta(2.0, x), falling=True, range=POSITIVE)
tetragamma = _positive(lambda x: -2 * special.zeta(3.0, x), range=(-math.inf, 0.0))


def _polygamma(order: Interval, x: Interval) -> Interval:
    """(-1)^(n+1) n! zeta(n + 1, x): of one sign and monotone for a certain whole order n > 0."""
    n = order.low
    known = (n == order.high) & (n >= 1) & (n == np.rint(n)) & (n <= 100)
    size = _positive(lambda end: special.gamma(n + 1) * special.zeta(n + 1, end), falling=True, range=POSITIVE)(x)
    result = select(np.mod(n, 2) == 1, size, -size)
    result = interval(result.low, result.high, result.flags | flag(x.low <= 0, NAN))
    return select(known, result, unknown(result.shape))


def _polygamma_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    order, x = inputs
    certain = np.broadcast_to(order.low == order.high, output.shape)
    in_order = select(certain, constant(0.0, output.shape), unknown(output.shape))
    return in_order, slope(_polygamma(add(order, ONE), x), output.shape)


GAMMA_FAMILY: dict[type, Rule] = {
    ops.GammaLn: smooth(gammaln, psi),
    ops.Gamma: smooth(_two_signs(gamma), _positive(_gamma_slope)),
    ops.Psi: smooth(_two_signs(psi), trigamma),
    ops.TriGamma: smooth(_two_signs(trigamma), tetragamma),
    ops.PolyGamma: Rule(_polygamma, _polygamma_partials),
}
"""Rules of the gamma function, its logarithm and the derivatives of that."""


def _times(factor: float, shape: Unary) -> Unary:
    """A constant multiple."""
    point = Interval.point(factor)
    return lambda x: multiply(point, shape(x))


def _erfcx_slope(x: Any) -> Any:
    value = 2 * (x * special.erfcx(x)) - 2 / math.sqrt(math.pi)
    return np.where(np.isnan(value), 0.0, value)


def _mills(x: Any) -> Any:
    """Inverse Mills ratio: density over distribution function of the standard normal, the slope of log_ndtr."""
    return math.sqrt(2 / math.pi) / special.erfcx(-x / math.sqrt(2))


def _mills_ratio(z: Any) -> Any:
    return math.sqrt(math.pi / 2) * special.erfcx(-z / math.sqrt(2))


def bell(x: Interval) -> Interval:
    """exp(-x^2)."""
    return exp(-square(x))


def _inverse_bell(x: Interval) -> Interval:
    return exp(square(x))


erf = Shape(function=special.erf, range=(-1.0, 1.0), relative=ERROR, exact=(0.0, 0.0))
erfc = Shape(
    function=special.erfc, falling=True, range=(0.0, 2.0), relative=TAIL_ERROR, absolute=UNDERFLOW, exact=(0.0, 1.0)
)
erfcx = Shape(function=special.erfcx, falling=True, range=POSITIVE, relative=TAIL_ERROR, absolute=1e-322)
erfinv = Shape(function=special.erfinv, domain=(-1.0, 1.0), relative=ERROR, exact=(0.0, 0.0))
erfcinv = Shape(function=special.erfcinv, falling=True, domain=(0.0, 2.0), relative=ERROR, exact=(1.0, 0.0))
log_ndtr = Shape(function=special.log_ndtr, range=(-math.inf, 0.0), relative=2 * TAIL_ERROR, absolute=UNDERFLOW)
ndtri_exp = Shape(function=special.ndtri_exp, domain=(-math.inf, 0.0), relative=1e-13, absolute=1e-13)

LOG_NDTR = smooth(
    log_ndtr, Shape(function=_mills, falling=True, range=POSITIVE, relative=TAIL_ERROR, absolute=UNDERFLOW)
)

ERROR_FUNCTIONS: dict[type, Rule] = {
    ops.Erf: smooth(erf, _times(2 / math.sqrt(math.pi), bell)),
    ops.Erfc: smooth(erfc, _times(-2 / math.sqrt(math.pi), bell)),
    ops.Erfcx: smooth(
        erfcx, Shape(function=_erfcx_slope, range=(-math.inf, 0.0), relative=2 * TAIL_ERROR, absolute=1e-14)
    ),
    ops.Erfinv: by_output(erfinv, _times(math.sqrt(math.pi) / 2, _inverse_bell)),
    ops.Erfcinv: by_output(erfcinv, _times(-math.sqrt(math.pi) / 2, _inverse_bell)),
    ops.NdtriExp: by_output(ndtri_exp, Shape(function=_mills_ratio, range=POSITIVE, relative=TAIL_ERROR)),
}
"""Rules of the error function, its relatives and inverses."""


def _even(value: Unary) -> Unary:
    return lambda x: value(absolute(x))


def _odd(value: Unary) -> Unary:
    """An odd function from its values at x >= 0, where it is not negative; 0 at 0."""

    def extended(x: Interval) -> Interval:
        above = value(interval(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0), x.flags))
        below = -value(interval(np.maximum(-x.high, 0.0), np.maximum(-x.low, 0.0), x.flags))
        both = settled(below.low, above.high, above.flags)
        return select(x.low >= 0, above, select(x.high <= 0, below, both))

    return extended


def _i0e_slope(x: Interval) -> Interval:
    """Slope of exp(-|x|) I_0(x), which has a kink at 0."""
    right = _I0E_RIGHT(absolute(x))
    kink = interval(np.full(x.shape, -1.0), np.full(x.shape, 1.0), right.flags)
    return select(x.low >= 0, right, select(x.high <= 0, -right, kink))


def _i1e_slope(x: Interval) -> Interval:
    """exp(-x) ((I_0 + I_2) / 2 - I_1) at |x|."""
    size = absolute(x)
    return add(multiply(HALF, add(i0e(size), _I2E(size))), -_I1E(size))


def _bell_curve(function: Callable[[Any], Any], turn: float) -> Shape:
    return Shape(function=function, falling=True, turn=turn, range=(0.0, 1.0), relative=ERROR)


i0e = Shape(function=special.i0e, falling=True, range=(0.0, 1.0), relative=ERROR, exact=(0.0, 1.0))
_I0E_RIGHT = Shape(function=lambda x: special.i1e(x) - special.i0e(x), range=(-1.0, 0.0), absolute=1e-14)
_I1E = _bell_curve(special.i1e, I1E_MAXIMUM)
_I2E = _bell_curve(lambda x: special.ive(2, x), I2E_MAXIMUM)

i0 = Shape(function=special.i0, turn=0.0, range=(1.0, math.inf), relative=ERROR)
i1 = Shape(function=special.i1, relative=ERROR, exact=(0.0, 0.0))

BESSEL: dict[type, Rule] = {
    ops.I0: smooth(i0, i1),
    ops.I1: smooth(
        i1,
        Shape(
            function=lambda x: (special.i0(x) + special.iv(2, x)) / 2,
            turn=0.0,
            range=(0.5, math.inf),
            relative=ERROR,
        ),
    ),
    I0e: smooth(_even(i0e), _i0e_slope),
    I1e: smooth(_odd(_I1E), _i1e_slope),
}
"""Rules of modified Bessel functions of orders 0 and 1; those scaled by exp(-|x|) are PyMC's own."""
