"""Logarithms of differences: the probability that a normal or a logistic variable lies between two ends.

PyMC codes it as the logarithm of a difference that interval arithmetic can only see to be positive on small boxes. As a
function of one end and of the width, which is positive, it is bounded wherever the width is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pytensor.scalar.basic import Add, Exp, Log, Mul, Neg, Sqr, Sqrt, Sub, TrueDiv
from pytensor.scalar.math import Erfcx

from pymc_dp._special import special
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals import rules
from pymc_dp.intervals.chain_rule import ArrayMap
from pymc_dp.intervals.elementary import ONE, POWER, exp
from pymc_dp.intervals.expression import Expression, constant, elementwise, moved
from pymc_dp.intervals.interval import INFINITE, NAN, Interval, Rule, add, down, flag, multiply, quiet, up
from pymc_dp.proofs.meeting_points import hull

TAIL_ERROR = 4e-12
"""Relative error allowed to scaled complementary error functions and their products with exponentials."""
SCALE = Interval.point(2 / math.sqrt(math.pi)).hull(Interval.point(np.nextafter(2 / math.sqrt(math.pi), 2)))


def log_erf_window(y: Array, w: Array) -> tuple[Array, Array]:
    """Enclose log(erf(y + w) - erf(y)) at points with w > 0.

    Both ends are on one side of 0 after a reflection, or on two: a difference of tails, or of error functions.
    """
    first = np.where(2 * y + w < 0, -(y + w), y)  # erf(-y) - erf(-(y + w)) is the same
    last = first + w
    scale = np.where(first > 0, first, 0.0)
    tails = special.erfcx(scale), np.exp(-w * (2 * scale + w)) * special.erfcx(scale + w)
    both = special.erf(last), special.erf(first)
    difference = np.where(first > 0, tails[0] - tails[1], both[0] - both[1])
    error = TAIL_ERROR * np.where(first > 0, tails[0] + tails[1], np.abs(both[0]) + np.abs(both[1])) + 1e-300
    # first and last are rounded too, which moves the difference by less than their slopes times that.
    error = error + 1e-15 * (1 + np.abs(last)) * np.where(first > 0, 2.0 * (1 + scale), 2.0)
    low, high = np.log(np.maximum(difference - error, 0.0)), np.log(np.minimum(difference + error, 2.0))
    square = np.where(first > 0, scale * scale, 0.0)
    slack = 1e-15 * (1 + last * last)
    return down(low, 4e-15) - square - slack, up(high, 4e-15) - square + slack


def _window(y: Interval, w: Interval) -> Interval:
    """It rises with the width, and with y up to the place where the window is centred, then falls."""
    narrow, wide = np.maximum(w.low, 0.0), np.maximum(w.high, 0.0)
    far = np.where(np.abs(y.low + narrow / 2) > np.abs(y.high + narrow / 2), y.low, y.high)
    low, _ = log_erf_window(far, narrow)
    _, high = log_erf_window(np.clip(-wide / 2, y.low, y.high), wide)
    flags = y.flags | w.flags
    open_ = w.low <= 0
    low = np.where(open_ | ~(low <= high), -np.inf, low)
    return Interval(low, np.where(np.isnan(high), np.inf, high), flags | flag(open_, INFINITE) | flag(w.low < 0, NAN))


def _window_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    """Slopes, which both fall in y and in w: minus twice the mean within the window, and the density at its end."""
    y, w = inputs
    least, most = _slopes(y.high, np.maximum(w.high, 0.0)), _slopes(y.low, np.maximum(w.low, 0.0))
    shape, lost = output.shape, (w.low <= 0) | ((output.flags & NAN) > 0)
    found = []
    for floor, one, two in zip((-np.inf, 0.0), least, most, strict=True):
        low = np.where(lost | np.isnan(one.low), floor, one.low)
        high = np.where(lost | np.isnan(two.high), np.inf, two.high)
        flags = flag(((y.flags | w.flags) & NAN) > 0, NAN) | flag(w.low < 0, NAN)
        found.append(Interval(*(np.broadcast_to(part, shape) for part in (low, np.maximum(low, high), flags))))
    return tuple(found)


def _slopes(y: Array, w: Array) -> tuple[Interval, Interval]:
    """Enclose the slopes in y and in w at points."""
    low, high = log_erf_window(y, w)
    value = Interval(np.fmin(low, high), np.fmax(low, high), np.zeros(np.shape(low), dtype=np.uint8))
    ends = [_density(_point(y), value), _density(_sum(y, w), value)]
    return add(ends[1], -ends[0]), ends[1]


def _density(at: Interval, value: Interval) -> Interval:
    """2 / √π exp(-t² - value)."""
    square = multiply(at, at)
    return multiply(SCALE, exp(add(-square, -value)))


def _point(value: Array) -> Interval:
    return Interval(value, value, np.zeros(np.shape(value), dtype=np.uint8))


def _sum(y: Array, w: Array) -> Interval:
    return add(_point(y), _point(w))


LOG_ERF_WINDOW = Rule(quiet(_window), quiet(_window_partials))
"""log(erf(y + w) - erf(y)) of y and w > 0."""


def log_of_share(given: Expression) -> Expression | None:
    """Recognise log(1 ± t / √(c + t²)) for c > 0: one function of ± t / √c."""
    if given.name not in ("Add", "Sub") or len(given.inputs) != 2 or _exact(given.inputs[0]) != 1:
        return None
    ratio = given.inputs[1]
    if ratio.name != "TrueDiv" or ratio.inputs[1].name != "Sqrt" or ratio.inputs[1].inputs[0].name != "Add":
        return None
    t, total = ratio.inputs[0], ratio.inputs[1].inputs[0]
    c, square = total.inputs
    if square.name != "Sqr" or not alike(square.inputs[0], t) or not hull(c)[0].min() > 0:
        return None
    scaled = _made(TrueDiv, t, _made(Sqrt, c))
    return elementwise("LogShare", rules.LOG_SHARE, [scaled if given.name == "Add" else _negative(scaled)])


def _made(kind: type, *inputs: Expression) -> Expression:
    return elementwise(kind.__name__, rules.RULES[kind], inputs)


def log_of_difference(given: Expression) -> Expression | None:
    """Return log(f(b) - f(a)) in terms of a width: for logistic and error functions, and for powers of one base."""
    if given.name != "Sub":
        return None
    first, second = given.inputs
    ends = [argument_of(item, "Sigmoid") for item in (first, second)]
    if ends[0] is not None and ends[1] is not None:
        return _between_logistic(ends[1], ends[0])
    ends = [argument_of(item, "Erf") for item in (first, second)]
    if ends[0] is not None and ends[1] is not None:
        return _erf_window(ends[0], ends[1])
    return _between_powers(first, second)


def _between_logistic(low: Expression, high: Expression) -> Expression:
    """log(σ(b) - σ(a)) = log σ(b) + log σ(-a) + log(1 - exp(a - b))."""
    parts = [
        elementwise("LogSigmoid", rules.LOG_SIGMOID, [high]),
        elementwise("LogSigmoid", rules.LOG_SIGMOID, [elementwise("Neg", rules.RULES[Neg], [low])]),
        elementwise("Log1mexp", rules.LOG1MEXP, [elementwise("Sub", rules.RULES[Sub], [low, high])]),
    ]
    return elementwise("Add", rules.RULES[Add], parts)


def _between_powers(first: Expression, second: Expression) -> Expression | None:
    """log(c^u - c^v) = u log c + log(1 - exp((v - u) log c)) for c > 0."""
    if first.name != "Pow" or second.name != "Pow":
        return None
    (base, low), (other, high) = first.inputs, second.inputs
    if not alike(base, other) or not (ends := hull(base))[0].min() > 0 or not np.isfinite(ends[1]).all():
        return None
    log = elementwise("Log", rules.RULES[Log], [base])
    width = power_step(high, low) or elementwise("Sub", rules.RULES[Sub], [high, low])
    return elementwise(
        "Add",
        rules.RULES[Add],
        [
            elementwise("Mul", rules.RULES[Mul], [low, log]),
            elementwise("Log1mexp", rules.LOG1MEXP, [elementwise("Mul", rules.RULES[Mul], [width, log])]),
        ],
    )


def _step(x: Interval, shift: Interval, exponent: Interval) -> Interval:
    """(x + shift)^p - x^p for x >= 0, shift > 0, p > 0: by itself, and as the shift times a slope in between."""
    above = add(x, shift)
    plain = add(POWER.value(above, exponent), -POWER.value(x, exponent))
    slope = multiply(exponent, POWER.value(x.hull(above), add(exponent, -ONE)))
    other = multiply(shift, slope).broadcast_to(plain.shape)
    usable = ((plain.flags | other.flags) == 0) & (x.low >= 0) & (shift.low > 0)
    low = np.where(usable, np.fmax(plain.low, other.low), plain.low)
    high = np.where(usable, np.fmin(plain.high, other.high), plain.high)
    return Interval(np.fmin(low, high), np.fmax(low, high), plain.flags)


def _step_partials(inputs: tuple[Interval, ...], output: Interval) -> tuple[Interval, ...]:
    x, shift, exponent = inputs
    above = add(x, shift)
    first = POWER.partials((above, exponent), POWER.value(above, exponent))
    second = POWER.partials((x, exponent), POWER.value(x, exponent))
    return add(first[0], -second[0]), first[0], add(first[1], -second[1])


POWER_STEP = Rule(quiet(_step), quiet(_step_partials))
"""(x + shift)^p - x^p of x, shift and p."""


def power_step(first: Expression, second: Expression) -> Expression | None:
    """Recognise (x + shift)^p - x^p, with a number for the shift."""
    if first.name != "Pow" or second.name != "Pow" or not alike(first.inputs[1], second.inputs[1]):
        return None
    above, moves = _unmoved(first.inputs[0], ())
    if above.name != "Add" or len(above.inputs) != 2:
        return None
    shifts = [_exact(item) for item in above.inputs]
    if (shifts[0] is None) == (shifts[1] is None):
        return None
    rest, shift = (above.inputs[0], shifts[1]) if shifts[0] is None else (above.inputs[1], shifts[0])
    if not alike(rest, second.inputs[0], (moves, ())):
        return None
    return elementwise("PowerStep", POWER_STEP, [second.inputs[0], constant(np.asarray(shift)), second.inputs[1]])


def _exact(expression: Expression) -> float | None:
    """Return a number that is known without rounding."""
    if expression.symbols:
        return None
    low, high = hull(expression)
    return float(low.item()) if low.size == 1 and low == high else None


def _erf_window(x: Expression, y: Expression) -> Expression:
    """log(erf(x) - erf(y)) as a function of y and of x - y."""
    return elementwise("LogErfWindow", LOG_ERF_WINDOW, [y, _made(Sub, x, y)])


def log_erfcx_difference(given: Sequence[Expression]) -> Expression | None:
    """Recognise a sum that is log(erf(x) - erf(y)), as PyMC codes it in two other ways for the sake of rounding.

    Where y > 0 it is -y^2 + log(erfcx(y) - exp(y^2 - x^2) erfcx(x)), where x < 0 the same of -x and -y.
    """
    log = argument_of(given[1], "Log") if len(given) == 2 else None
    product = log.inputs[1] if log is not None and log.name == "Sub" else None
    if log is None or product is None or product.name != "Mul" or len(product.inputs) != 2:
        return None
    first, second = (argument_of(item, "Erfcx") for item in (log.inputs[0], product.inputs[1]))
    if first is None or second is None:
        return None
    whole = _made(Add, *given)
    if alike(whole, _tail(first, second, first, second)):
        return _erf_window(second, first)
    if first.name == second.name == "Neg":
        (x,), (y,) = first.inputs, second.inputs
        return _erf_window(x, y) if alike(whole, _tail(x, y, first, second)) else None
    return None


def _tail(near: Expression, far: Expression, first: Expression, second: Expression) -> Expression:
    """-near^2 + log(erfcx(first) - exp(near^2 - far^2) erfcx(second)), as PyMC writes it."""
    squares = _made(Sqr, near), _made(Sqr, far)
    ratio = _made(Exp, _made(Sub, *squares))
    log = _made(Log, _made(Sub, _made(Erfcx, first), _made(Mul, ratio, _made(Erfcx, second))))
    return _made(Add, _made(Neg, squares[0]), log)


def _negative(given: Expression) -> Expression:
    return elementwise("Neg", rules.RULES[Neg], [given])


def argument_of(given: Expression, name: str) -> Expression | None:
    """Return x, moved as `given` is, where `given` consists of entries of a function of x; None for anything else."""
    if given.kind == "elementwise" and given.name == name:
        return given.inputs[0]
    if given.kind != "moved" or len(given.inputs) != 1 or given.move is None:
        return None
    inner = argument_of(given.inputs[0], name)
    return None if inner is None else moved(given.name, given.move, [inner])


Moves = tuple[ArrayMap | None, ...]


def alike(first: Expression, second: Expression, moves: tuple[Moves, Moves] = ((), ())) -> bool:
    """Whether two expressions are built alike from the same leaves, moved in the same way at whatever stage."""
    (first, one), (second, two) = (_unmoved(item, before) for item, before in zip((first, second), moves, strict=True))
    if first is second:
        return one == two
    if not first.symbols and not second.symbols:
        return all(np.array_equal(*ends) for ends in zip(hull(first), hull(second), strict=True))
    if first.kind != "elementwise" or (first.kind, first.name) != (second.kind, second.name):
        return False
    pairs = zip(first.inputs, second.inputs, strict=False)
    return len(first.inputs) == len(second.inputs) and all(alike(*pair, (one, two)) for pair in pairs)


def _unmoved(given: Expression, before: Moves) -> tuple[Expression, Moves]:
    while given.kind == "moved" and len(given.inputs) == 1 and given.symbols:
        given, before = given.inputs[0], (*before, given.move)
    return given, before


__all__ = ["LOG_ERF_WINDOW", "alike", "argument_of", "log_erf_window", "log_erfcx_difference", "log_of_difference"]
