"""Interval rules of arithmetic, roots, exponentials, logarithms and hyperbolic functions."""

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
    STEP,
    Interval,
    Rule,
    add,
    constant,
    divide,
    down,
    multiply,
    settled,
    slope,
    up,
)
from pymc_dp.intervals.logic import absolute
from pymc_dp.intervals.monotone import Shape, by_output, smooth

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
