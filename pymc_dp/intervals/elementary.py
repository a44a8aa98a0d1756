"""Interval rules of arithmetic, roots, exponentials, logarithms and hyperbolic functions.

Interval rules of powers and of their logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytensor.scalar.basic as ops
import pytensor.scalar.math as special_ops

from pymc_dp.intervals.interval import (
    INFINITE,
    NAN,
    STEP,
    Interval,
    Rule,
    add,
    attains,
    constant,
    contains_zero,
    divide,
    down,
    flag,
    interval,
    multiply,
    settled,
    slope,
    unknown,
    up,
)
from pymc_dp.intervals.logic import absolute, select
from pymc_dp.intervals.monotone import LIBM, Shape, Unary, by_output, smooth

Partials = tuple[Interval, ...]

ONE = Interval.point(1.0)
TWO = Interval.point(2.0)
POSITIVE = (0.0, math.inf)


def square(x: Interval) -> Interval:
    """The square, to one rounding."""
    size = absolute(x)
    low, high = size.low * size.low, size.high * size.high
    below = np.maximum(down(low), 0.0)
    above = up(high) if high.all() else np.where(size.high == 0, 0.0, up(high))
    if (x.flags & INFINITE).any():
        below = np.where(np.isinf(size.low), low, below)
    return settled(below, above, x.flags)


def _reciprocal(x: Interval) -> Interval:
    return divide(ONE, x)


def _slopes(*values: float) -> Callable[[Partials, Interval], Partials]:
    return lambda inputs, output: tuple(constant(value, output.shape) for value in values)


def _sum_partials(inputs: Partials, output: Interval) -> Partials:
    return (constant(1.0, output.shape),) * len(inputs)


def _product_partials(inputs: Partials, output: Interval) -> Partials:
    factors = tuple(map(slope, inputs))
    others = (factors[:position] + factors[position + 1 :] for position in range(len(factors)))
    return tuple(slope(reduce(multiply, other) if other else ONE, output.shape) for other in others)


def _quotient_partials(inputs: Partials, output: Interval) -> Partials:
    x, y = map(slope, inputs)
    return slope(divide(ONE, y), output.shape), slope(divide(-x, square(y)), output.shape)


def _second(x: Interval, y: Interval) -> Interval:
    return y.broadcast_to(np.broadcast_shapes(x.shape, y.shape))


def _log1mexp(x: Any) -> Any:
    return np.where(x > -math.log(2), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _logistic(x: Any) -> Any:
    return np.exp(np.minimum(x, 0.0)) / (1 + np.exp(-np.abs(x)))


def _bell(x: Any) -> Any:
    """Slope of the logistic function."""
    tail = np.exp(-np.abs(x))
    return tail / ((1 + tail) * (1 + tail))


def _log_share(x: Any) -> Any:
    """log(1 + x / √(1 + x²)); below 0 as -log(1 + x²) - log(1 + |x| / √(1 + x²))."""
    size = np.hypot(1.0, x)
    part = np.where(np.isinf(x), 1.0, np.abs(x) / size)
    squared = np.where(np.abs(x) < 1, np.log1p(x * x), 2 * np.log(size))
    return np.where(x < 0, -squared - np.log1p(part), np.log1p(part))


def _log_share_slope(x: Any) -> Any:
    """(√(1 + x²) - x) / (1 + x²)."""
    size = np.hypot(1.0, x)
    part = np.where(np.isinf(x), 1.0, np.abs(x) / size)
    return np.where(x < 0, (1 + part) / size, 1 / size / size / (size + np.maximum(x, 0.0)))


log = Shape(function=np.log, domain=POSITIVE, exact=(1.0, 0.0))
log1p = Shape(function=np.log1p, domain=(-1.0, math.inf), exact=(0.0, 0.0))
log1p_slope = Shape(function=lambda x: 1 / (1 + x), falling=True, range=POSITIVE, domain=(-1.0, math.inf))
exp = Shape(function=np.exp, range=POSITIVE, exact=(0.0, 1.0))
sqrt = Shape(function=np.sqrt, range=POSITIVE, domain=POSITIVE, relative=STEP, exact=(0.0, 0.0))
sigmoid = Shape(function=_logistic, range=(0.0, 1.0))
softplus = Shape(function=_softplus, range=POSITIVE)
log_sigmoid = Shape(function=lambda x: -_softplus(-x), range=(-math.inf, 0.0))
log1mexp = Shape(function=_log1mexp, falling=True, range=(-math.inf, 0.0), domain=(-math.inf, 0.0))
sinh = Shape(function=np.sinh, exact=(0.0, 0.0))
cosh = Shape(function=np.cosh, turn=0.0, range=(1.0, math.inf))
x_log_x = Shape(function=lambda x: np.where(x == 0, 0.0, x * np.log(x)), turn=math.exp(-1), domain=POSITIVE)


def inverse(scale: float = 1.0) -> Shape:
    """Slope of a logarithm."""
    return Shape(function=lambda x: (1 / scale) / x, falling=True, range=POSITIVE, domain=POSITIVE)


def _peak(function: Callable[[Any], Any], height: float) -> Shape:
    """A positive slope that is greatest at 0."""
    return Shape(function=function, falling=True, turn=0.0, range=(0.0, height))


SOFTPLUS = smooth(softplus, sigmoid)
LOG_SIGMOID = smooth(log_sigmoid, Shape(function=lambda x: _logistic(-x), falling=True, range=(0.0, 1.0)))
LOG1MEXP = smooth(
    log1mexp,
    Shape(
        function=lambda x: -1 / np.abs(np.expm1(-x)),
        falling=True,
        range=(-math.inf, 0.0),
        domain=(-math.inf, 0.0),
    ),
)
LOG_SHARE = smooth(
    Shape(function=_log_share, range=(-math.inf, math.log(2) * (1 + STEP)), exact=(0.0, 0.0)),
    Shape(function=_log_share_slope, falling=True, turn=-1 / math.sqrt(3), range=(0.0, 1.3)),
)
XLOGX = smooth(x_log_x, lambda x: add(log(x), ONE))

ARITHMETIC: dict[type, Rule] = {
    ops.Add: Rule(lambda *terms: reduce(add, terms), _sum_partials),
    ops.Sub: Rule(lambda x, y: add(x, -y), _slopes(1.0, -1.0)),
    ops.Mul: Rule(lambda *factors: reduce(multiply, factors), _product_partials),
    ops.TrueDiv: Rule(divide, _quotient_partials),
    ops.Neg: Rule(lambda x: -x, _slopes(-1.0)),
    ops.Reciprocal: smooth(_reciprocal, lambda x: -_reciprocal(square(x))),
    ops.Sqr: smooth(square, lambda x: multiply(TWO, x)),
    ops.Identity: Rule(lambda x: x, _slopes(1.0)),
    # To float64; what other types lose is in TO_INTEGER and TO_BOOLEAN.
    ops.Cast: Rule(lambda x: x, _slopes(1.0)),
    ops.Second: Rule(_second, _slopes(0.0, 1.0)),
}
"""Rules of the four operations and of what only hands a value on."""

ELEMENTARY: dict[type, Rule] = {
    ops.Sqrt: smooth(sqrt, Shape(function=lambda x: 0.5 / np.sqrt(x), falling=True, range=POSITIVE, domain=POSITIVE)),
    ops.Log: smooth(log, inverse()),
    ops.Log2: smooth(Shape(function=np.log2, domain=POSITIVE, exact=(1.0, 0.0)), inverse(math.log(2))),
    ops.Log10: smooth(Shape(function=np.log10, domain=POSITIVE, exact=(1.0, 0.0)), inverse(math.log(10))),
    ops.Log1p: smooth(log1p, log1p_slope),
    ops.Exp: by_output(exp, lambda value: value),
    ops.Exp2: by_output(
        Shape(function=np.exp2, range=POSITIVE, exact=(0.0, 1.0)), lambda value: multiply(value, log(TWO))
    ),
    ops.Expm1: smooth(Shape(function=np.expm1, range=(-1.0, math.inf), exact=(0.0, 0.0)), exp),
    special_ops.Sigmoid: smooth(sigmoid, _peak(_bell, 0.25)),
    special_ops.Softplus: SOFTPLUS,
    special_ops.Log1mexp: LOG1MEXP,
    ops.Sinh: smooth(sinh, cosh),
    ops.Cosh: smooth(cosh, sinh),
    ops.Tanh: smooth(
        Shape(function=np.tanh, range=(-1.0, 1.0), exact=(0.0, 0.0)), _peak(lambda x: 1 / np.cosh(x) ** 2, 1.0)
    ),
    ops.ArcSinh: smooth(Shape(function=np.arcsinh, exact=(0.0, 0.0)), _peak(lambda x: 1 / np.hypot(1.0, x), 1.0)),
    ops.ArcCosh: smooth(
        Shape(function=np.arccosh, range=POSITIVE, domain=(1.0, math.inf), exact=(1.0, 0.0)),
        Shape(
            function=lambda x: 1 / (np.sqrt(x - 1) * np.sqrt(x + 1)),
            falling=True,
            range=POSITIVE,
            domain=(1.0, math.inf),
        ),
    ),
    ops.ArcTanh: smooth(
        Shape(function=np.arctanh, domain=(-1.0, 1.0), exact=(0.0, 0.0)),
        Shape(function=lambda x: 1 / ((1 - x) * (1 + x)), turn=0.0, range=(1.0, math.inf), domain=(-1.0, 1.0)),
    ),
}
"""Rules of roots, exponentials, logarithms and hyperbolic functions."""


def _power(base: Interval, exponent: Interval) -> Interval:
    """The power; of a negative base it is a number only for whole exponents."""
    if _is_two(exponent):
        return square(base).broadcast_to(np.broadcast_shapes(base.shape, exponent.shape))
    negative = base.low < 0
    if not negative.any():
        return _positive(base, exponent)
    return select(negative, _signed(base, exponent), _positive(absolute(base), exponent))


def _is_two(exponent: Interval) -> bool:
    return bool(np.all((exponent.low == 2) & (exponent.high == 2)))


def _positive(base: Interval, exponent: Interval) -> Interval:
    """Of a base >= 0: monotone in each argument, so that the corners of the box decide."""
    corners = [_corner(x + 0.0, y) for x in _ends(base) for y in _ends(exponent)]
    low = reduce(np.minimum, (corner[0] for corner in corners))
    high = reduce(np.maximum, (corner[1] for corner in corners))
    pole = (base.low == 0) & (exponent.low < 0)
    flags = base.flags | exponent.flags | flag(pole, INFINITE)
    if pole.any():
        flags = flags | flag(pole & _maybe_odd(exponent), NAN)
    return settled(low, high, flags)


def _ends(x: Interval) -> tuple[Any, ...]:
    return (x.low,) if x.low is x.high else (x.low, x.high)


def _corner(x: Any, y: Any) -> tuple[Any, Any]:
    """Lower and upper end of x^y at one point, without rounding where the value is known to be 0, 1 or infinite."""
    value = np.power(x, y)
    low, high = np.maximum(down(value, LIBM), 0.0), up(value, LIBM)
    limit = (x == 0) | np.isinf(x) | np.isinf(y)
    exact = ((value == 0) | np.isinf(value)) & limit | (value == 1) & ((x == 1) | (y == 0))
    return (np.where(exact, value, low), np.where(exact, value, high)) if exact.any() else (low, high)


def _maybe_odd(exponent: Interval) -> Any:
    """Where an exponent may be an odd number: there the sign of a base 0 matters."""
    return (exponent.low != exponent.high) | (np.mod(exponent.low, 2) == 1)


def _signed(base: Interval, exponent: Interval) -> Interval:
    """Of a base that may be negative."""
    size = _positive(absolute(base), exponent)
    whole = (exponent.low == exponent.high) & (exponent.low == np.rint(exponent.low))
    odd = whole & (np.mod(exponent.low, 2) == 1)
    both = interval(-size.high, size.high, size.flags | flag(~whole, NAN))
    result = select(whole & ~odd, size, both)
    return select(odd, _odd(base, exponent, size), result) if np.any(odd) else result


def _odd(base: Interval, exponent: Interval, size: Interval) -> Interval:
    """Of a base that may be negative to an odd exponent: increasing if that is positive, else with a pole at 0."""
    (least, most), (least_high, most_high) = (_corner(np.abs(end), exponent.low) for end in (base.low, base.high))
    low = np.where(base.low < 0, -most, least)
    high = np.where(base.high < 0, -least_high, most_high)
    rising = settled(low, high, size.flags)
    pole = contains_zero(base)
    falling = interval(np.where(pole, -np.inf, -size.high), np.where(pole, np.inf, -size.low), size.flags)
    return select(exponent.low > 0, rising, falling)


def _power_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    base, exponent = map(slope, inputs)
    if _is_two(exponent):
        return multiply(TWO, base).broadcast_to(output.shape), constant(0.0, output.shape)
    flat = (exponent.low == 0) & (exponent.high == 0)
    in_base = slope(multiply(exponent, slope(_power(base, add(exponent, -ONE)))))
    in_exponent = _exponent_slope(base, exponent)
    # A certain exponent does not move, so any slope is right.
    certain = exponent.low == exponent.high
    zero = constant(0.0, output.shape)
    outside = select(certain, zero, unknown(output.shape))
    return select(flat, zero, in_base), select(base.low < 0, outside, in_exponent)


def _exponent_slope(base: Interval, exponent: Interval) -> Interval:
    """Range of x^y log x for x >= 0: it increases in y, and has one turning point x = exp(-1/y)."""
    start, stop = np.maximum(base.low, 0.0), np.maximum(base.high, 0.0)
    least, most = exponent.low, exponent.high
    low = np.minimum(_power_log(start, least), _power_log(stop, least))
    high = np.maximum(_power_log(start, most), _power_log(stop, most))
    if (least > 0).any():
        valley = _power_log(np.clip(np.exp(-1 / least), start, stop), least)
        low = np.where(least > 0, np.minimum(low, valley), low)
    if (most < 0).any():
        peak = _power_log(np.clip(np.exp(-1 / most), start, stop), most)
        high = np.where(most < 0, np.maximum(high, peak), high)
    return interval(down(low, LIBM), up(high, LIBM), (base.flags | exponent.flags) & NAN)


def _power_log(x: Any, y: Any) -> Any:
    value = np.log(x) * np.power(x, y)
    return np.where(np.isnan(value), 0.0, value)


def _log_power(x: Interval, exponent: Interval) -> Interval:
    """Exponent * log(x), but at x = 0: 0 for exponent 0, else -inf."""
    logarithm = log(x)
    result = multiply(exponent, slope(logarithm))
    zero = (x.low <= 0) & ((exponent.low != 0) | (exponent.high != 0))
    lost = flag(attains(logarithm, np.inf) | (exponent.flags & INFINITE != 0), NAN + INFINITE)
    flags = result.flags | flag(zero, INFINITE) | lost
    return interval(np.where(zero, -np.inf, result.low), result.high, flags)


def _log_power_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    x, exponent = map(slope, inputs)
    above = slope(interval(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0), x.flags))
    rising = slope(inverse()(above))
    jumps = (x.low <= 0) & (exponent.low < 0) | (x.low < 0)
    in_x = select(jumps, unknown(output.shape), slope(multiply(exponent, rising), output.shape))
    return in_x, slope(log(above), output.shape)


def _x_log(logarithm: Unary) -> Callable[[Interval, Interval], Interval]:
    """X times a logarithm, but 0 where x = 0."""

    def value(x: Interval, y: Interval) -> Interval:
        found = logarithm(y)
        result = multiply(x, slope(found))
        attained = (found.flags & INFINITE != 0) & ((x.low != 0) | (x.high != 0))
        return settled(result.low, result.high, result.flags | flag(attained, INFINITE))

    return value


def _x_log_rule(logarithm: Unary, derivative: Unary) -> Rule:
    def partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
        x, y = map(slope, inputs)
        return slope(logarithm(y), output.shape), slope(multiply(x, slope(derivative(y))), output.shape)

    return Rule(_x_log(logarithm), partials)


xlogy, xlog1py = _x_log(log), _x_log(log1p)
XLOGY, XLOG1PY = _x_log_rule(log, inverse()), _x_log_rule(log1p, log1p_slope)
POWER = Rule(_power, _power_partials)
LOG_POWER = Rule(_log_power, _log_power_partials)
"""exponent * log(x) of (x, exponent) as PyMC writes it: at x = 0 it is 0 for exponent 0, else -inf."""
