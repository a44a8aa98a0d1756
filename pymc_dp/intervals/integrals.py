"""Interval rules of incomplete gamma and beta functions, their inverses, Owen's T and Bessel functions of any order.

All are monotone in each argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytensor.scalar.math as ops

from pymc_dp._special import special
from pymc_dp.intervals.elementary import ONE, exp, inverse, sqrt, square, xlog1py, xlogy
from pymc_dp.intervals.interval import (
    INFINITE,
    NAN,
    Interval,
    Rule,
    add,
    divide,
    down,
    flag,
    interval,
    may_be_infinite,
    multiply,
    settled,
    slope,
    unknown,
    up,
)
from pymc_dp.intervals.logic import absolute, select
from pymc_dp.intervals.special import bell, erf, gammaln

LARGEST_PARAMETER = 1e5
"""Up to which SciPy's incomplete functions were checked; beyond, only their range is used."""
LARGEST_ORDER = 100.0
BESSEL_ERROR = 1e-12
"""Relative error allowed to Bessel functions up to that order (measured: below 1e-13)."""
ROOT_HALF = sqrt(Interval.point(0.5))
Inputs = tuple[Interval, ...]


def tail_slack(value: Any, rate: float = 5e-14) -> Any:
    """Relative error of probabilities, which are exponentials of sums: it grows with their logarithms."""
    return 1e-12 + rate * np.abs(np.log(np.maximum(value, 1e-320)))


def _corner(inputs: Inputs, signs: tuple[int, ...], side: int) -> list[Any]:
    """The corner of the box where a monotone function is least (side = -1) or greatest (side = 1)."""
    return [x.high if sign * side > 0 else x.low for x, sign in zip(inputs, signs, strict=True)]


def _flags(inputs: Inputs, top: float) -> Any:
    """Undefined are parameters that are not positive or infinite, and a last argument outside [0, top]."""
    *parameters, x = inputs
    lost = reduce(np.logical_or, [(item.low <= 0) | may_be_infinite(item) for item in parameters])
    flags = reduce(np.bitwise_or, [item.flags for item in inputs]) & NAN
    return flags | flag(lost | (x.low < 0) | (x.high > top), NAN)


def _probability(function: Callable[..., Any], signs: tuple[int, ...]) -> Callable[..., Interval]:
    """Value of a distribution function whose last argument is its variable and whose others are positive."""
    top = 1.0 if len(signs) == 3 else math.inf

    def end(inputs: Inputs, side: int) -> Any:
        *parameters, x = _corner(inputs, signs, side)
        parameters = [np.where((item > 0) & (item <= LARGEST_PARAMETER), item, np.nan) for item in parameters]
        return function(*parameters, np.minimum(np.maximum(x, 0.0), top))

    def value(*inputs: Interval) -> Interval:
        low, high = end(inputs, -1), end(inputs, 1)
        low = np.fmax(low * (1 - tail_slack(low)) - 1e-300, 0.0)
        high = np.fmin(high * (1 + tail_slack(high)) + 1e-300, 1.0)
        return interval(low, high, _flags(inputs, top))

    return value


def _gamma_density(k: Interval, x: Interval) -> Interval:
    """x^(k-1) exp(-x) / Gamma(k)."""
    return exp(add(add(xlogy(add(k, -ONE), x), -x), -gammaln(k)))


def _beta_density(a: Interval, b: Interval, x: Interval) -> Interval:
    """x^(a-1) (1-x)^(b-1) / B(a, b)."""
    powers = add(xlogy(add(a, -ONE), x), xlog1py(add(b, -ONE), -x))
    return exp(add(powers, add(gammaln(add(a, b)), -add(gammaln(a), gammaln(b)))))


def _one_sided(sign: int, output: Interval) -> Interval:
    """A slope of which only the sign is known."""
    low, high = (0.0, np.inf) if sign > 0 else (-np.inf, 0.0)
    return interval(np.full(output.shape, low), np.full(output.shape, high), output.flags & NAN)


def _distribution(function: Callable[..., Any], signs: tuple[int, ...], density: Callable[..., Interval]) -> Rule:
    """Rule of a distribution function, or of its complement where it falls in its variable."""

    def partials(inputs: Inputs, output: Interval) -> Inputs:
        slopes = slope(density(*map(slope, inputs)), output.shape)
        return *(_one_sided(sign, output) for sign in signs[:-1]), slopes if signs[-1] > 0 else -slopes

    return Rule(_probability(function, signs), partials)


def _quantile(
    function: Callable[..., Any],
    forward: Callable[..., Any],
    signs: tuple[int, ...],
    density: Callable[..., Interval],
    top: float,
) -> Rule:
    """Rule of an inverse of a distribution function; each end is proved by the function it inverts."""

    def end(inputs: Inputs, side: int) -> Any:
        *parameters, probability = _corner(inputs, signs, side)
        parameters = [np.where((item > 0) & (item <= LARGEST_PARAMETER), item, np.nan) for item in parameters]
        guess = function(*parameters, np.minimum(np.maximum(probability, 0.0), 1.0))
        proved = np.full(np.shape(guess), 0.0 if side < 0 else top)
        for step in (1e-2, 1e-6, 1e-11):
            trial = np.minimum(guess * (1 + side * step), top)
            reached = forward(*parameters, trial)
            error = reached * tail_slack(reached) + 1e-300
            beyond = (reached - error >= probability) if side * signs[-1] > 0 else (reached + error <= probability)
            proved = np.where(beyond, trial, proved)
        return proved

    def value(*inputs: Interval) -> Interval:
        edge = (inputs[-1].low <= 0) | (inputs[-1].high >= 1)
        return settled(end(inputs, -1), end(inputs, 1), _flags(inputs, 1.0) | flag(edge, INFINITE))

    def partials(inputs: Inputs, output: Interval) -> Inputs:
        steepness = slope(inverse()(slope(density(*map(slope, inputs[:-1]), slope(output)))), output.shape)
        return *(_one_sided(sign, output) for sign in signs[:-1]), steepness if signs[-1] > 0 else -steepness

    return Rule(value, partials)


def _owens_t(h: Interval, a: Interval) -> Interval:
    """Owen's T: even in h and falling in |h| for a > 0, odd and rising in a."""
    size = absolute(h)
    low = special.owens_t(np.where(a.low >= 0, size.high, size.low), a.low)
    high = special.owens_t(np.where(a.high >= 0, size.low, size.high), a.high)
    low = np.fmax(low - _owens_error(low), -0.25)
    high = np.fmin(high + _owens_error(high), 0.25)
    return interval(low, high, (h.flags | a.flags) & NAN)


def _owens_error(value: Any) -> Any:
    return np.abs(value) * tail_slack(np.abs(value), rate=2e-13) + 1e-300


def _owens_partials(inputs: Inputs, output: Interval) -> Inputs:
    h, a = map(slope, inputs)
    scaled = multiply(h, ROOT_HALF)
    in_h = multiply(multiply(bell(scaled), erf(multiply(a, scaled))), Interval.point(-1 / math.sqrt(8 * math.pi)))
    stretch = add(square(a), ONE)
    in_a = divide(exp(-multiply(stretch, square(scaled))), multiply(Interval.point(2 * math.pi), stretch))
    return slope(in_h, output.shape), slope(in_a, output.shape)


def _ive(order: Interval, x: Interval) -> Interval:
    """exp(-x) I_v(x): I_v rises in x and falls in v >= 0; little is stated about negative arguments."""
    wide = np.exp(x.high - x.low)
    low = np.fmax(down(special.ive(_order(order.high), x.low) / wide, BESSEL_ERROR, 1e-300), 0.0)
    high = np.fmin(up(special.ive(_order(order.low), x.high) * wide, BESSEL_ERROR, 1e-300), 1.0)
    lost = flag(may_be_infinite(order) | may_be_infinite(x), NAN)
    result = interval(low, high, (order.flags | x.flags) & NAN | lost)
    return select((order.low >= 0) & (x.low >= 0), result, unknown(result.shape))


def _ive_partials(inputs: Inputs, output: Interval) -> Inputs:
    order, x = map(slope, inputs)
    factor = add(slope(divide(order, x)), -ONE)
    return _one_sided(-1, output), slope(add(_ive(add(order, ONE), x), multiply(factor, slope(output))), output.shape)


def _kve(order: Interval, x: Interval) -> Interval:
    """exp(x) K_v(x): falls in x > 0, rises in |v|."""
    size = absolute(order)
    low = np.fmax(down(special.kve(_order(size.low), np.maximum(x.high, 0.0)), BESSEL_ERROR), 0.0)
    high = np.fmin(up(special.kve(_order(size.high), np.maximum(x.low, 0.0)), BESSEL_ERROR), np.inf)
    lost = (x.low < 0) | may_be_infinite(order) | may_be_infinite(x)
    flags = (order.flags | x.flags) & NAN | flag(lost, NAN) | flag(x.low <= 0, INFINITE)
    return settled(low, high, flags)


def _kve_partials(inputs: Inputs, output: Interval) -> Inputs:
    order, x = map(slope, inputs)
    beside = add(slope(_kve(add(order, ONE), x)), slope(_kve(add(order, -ONE), x)))
    in_x = slope(add(slope(output), multiply(Interval.point(-0.5), beside)), output.shape)
    in_x = interval(in_x.low, np.minimum(in_x.high, 0.0), in_x.flags)
    rising, falling = _one_sided(1, output), _one_sided(-1, output)
    return select(order.low >= 0, rising, select(order.high <= 0, falling, rising.hull(falling))), in_x


def _order(order: Any) -> Any:
    return np.where(order <= LARGEST_ORDER, order, np.nan)


INTEGRALS: dict[type, Rule] = {
    ops.GammaInc: _distribution(special.gammainc, (-1, 1), _gamma_density),
    ops.GammaIncC: _distribution(special.gammaincc, (1, -1), _gamma_density),
    ops.BetaInc: _distribution(special.betainc, (-1, 1, 1), _beta_density),
    ops.GammaIncInv: _quantile(special.gammaincinv, special.gammainc, (1, 1), _gamma_density, math.inf),
    ops.GammaIncCInv: _quantile(special.gammainccinv, special.gammaincc, (1, -1), _gamma_density, math.inf),
    ops.BetaIncInv: _quantile(special.betaincinv, special.betainc, (1, -1, 1), _beta_density, 1.0),
    ops.Owens_t: Rule(_owens_t, _owens_partials),
    ops.Ive: Rule(_ive, _ive_partials),
    ops.Kve: Rule(_kve, _kve_partials),
}
"""Rules of distribution functions of the gamma and beta families, of Owen's T and of scaled Bessel functions."""
