"""Interval rules of the gamma and error functions, Bessel functions and incomplete integrals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytensor.scalar.math as ops
from scipy import special

from pymc_dp.sensitivity.interval_elementary import POSITIVE
from pymc_dp.sensitivity.interval_monotone import Shape, smooth
from pymc_dp.sensitivity.intervals import NAN, Interval, Rule, flag, interval

SPECIAL_ERROR = 4e-13
"""Relative error allowed to scipy.special, whose functions used here stay below 4e-14 (checked with mpmath)."""
GAMMA_MINIMUM = 1.4616321449683623
"""Where the gamma function is least on the positive half-line, the zero of psi."""
TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _positive(function: Any, **shape: Any) -> Shape:
    """Of a function on the positive half-line, with nothing said of negative arguments."""
    return Shape(function=function, domain=POSITIVE, continues=True, relative=SPECIAL_ERROR, **shape)


def _undefined_at_zero(value: Shape) -> Any:
    """The value where a function has limits of both signs at 0."""

    def flagged(x: Interval) -> Interval:
        result = value(x)
        return interval(result.low, result.high, result.flags | flag(x.low <= 0, NAN))

    return flagged


gammaln = _positive(special.gammaln, turn=GAMMA_MINIMUM, absolute=1e-14)
gamma = _positive(special.gamma, turn=GAMMA_MINIMUM)
psi = _positive(special.psi, absolute=1e-14)
trigamma = _positive(lambda x: special.zeta(2.0, x), falling=True, range=POSITIVE)
tetragamma = _positive(lambda x: -2 * special.zeta(3.0, x), range=(-math.inf, 0.0))
log_ndtr = Shape(function=special.log_ndtr, range=(-math.inf, 0.0), relative=4e-12)


def _gamma_slope(x: Any) -> Any:
    value = special.gamma(x) * special.psi(x)
    return np.where(np.isnan(value), np.inf, value)


def _mills(x: Any) -> Any:
    """Inverse Mills ratio: density over distribution of the standard normal, the slope of log_ndtr."""
    return math.sqrt(2 / math.pi) / special.erfcx(-x / math.sqrt(2))


LOG_NDTR = smooth(log_ndtr, Shape(function=_mills, falling=True, range=POSITIVE, relative=SPECIAL_ERROR))

GAMMA_FAMILY: dict[type, Rule] = {
    ops.GammaLn: smooth(gammaln, psi),
    ops.Gamma: smooth(_undefined_at_zero(gamma), _positive(_gamma_slope)),
    ops.Psi: smooth(_undefined_at_zero(psi), trigamma),
    ops.TriGamma: smooth(_undefined_at_zero(trigamma), tetragamma),
}
"""Rules of the gamma function, its logarithm and the derivatives of that."""
