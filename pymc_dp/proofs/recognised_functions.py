"""Functions that PyMC writes as compositions, recognised so that each has one tight rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.scalar.basic import Add, Exp, Log, Log1p, Mul, Neg, Pow, Reciprocal, Sqr, Sub, TrueDiv
from pytensor.scalar.math import BetaInc

from pymc_dp.intervals import rules
from pymc_dp.intervals.expression import Expression, Tape, constant, elementwise, moved, rebuilt, reduced
from pymc_dp.intervals.interval import NAN, Interval, Rule, unknown
from pymc_dp.intervals.narrow_types import SINGLE_NAME
from pymc_dp.proofs import log_differences
from pymc_dp.proofs.meeting_points import hull, unmoved

NEAR = 1e-14
HALF_ROOT = math.sqrt(0.5)


STEPS = {"Sign", "Floor", "Ceil", "Trunc", "LT", "LE", "GT", "GE", "EQ", "NEQ", "AND", "OR", "Invert", "IsNan", "IsInf"}


def settled(given: Expression) -> Expression:
    """Return what is constant by steps as a constant where it takes no step within the ranges of its symbols."""
    if given.name not in STEPS or not given.symbols:
        return given
    low, high = hull(given)
    return constant(low) if low.size and (low == high).all() and np.isfinite(low).all() else given


def number(expression: Expression) -> float | None:
    """Return the number that an expression without symbols is, in exact arithmetic.

    None where it has symbols, or several entries, even equal ones. PyMC writes constants as the root of 2 in single
    precision: what is recognised by them is the function that is meant, and `proofs.SLACK` has room for the difference.
    """
    if expression.symbols:
        return None
    meant = _meant(expression)
    found = Tape([meant]).values(np.zeros((1, 0)), np.zeros((1, 0)))[meant]
    if found.low.size != 1:
        return None
    low, high = float(found.low.item()), float(found.high.item())
    return (low + high) / 2 if high - low <= NEAR * max(1.0, abs(low)) else None


def _meant(expression: Expression) -> Expression:
    """Return an expression without its roundings to single precision."""
    if expression.name == SINGLE_NAME:
        return _meant(expression.inputs[0])
    return rebuilt(expression, [_meant(item) for item in expression.inputs])


def _scaled(expression: Expression) -> tuple[Expression, float]:
    """Split off constant factors: expression = factor times base."""
    factor = 1.0
    while expression.kind == "elementwise":
        inputs = expression.inputs
        if expression.name == "Neg":
            factor, expression = -factor, inputs[0]
        elif expression.name == "TrueDiv" and (value := number(inputs[1])):
            factor, expression = factor / value, inputs[0]
        elif expression.name == "Mul" and len(inputs) == 2:
            values = [number(item) for item in inputs]
            known = next((place for place, value in enumerate(values) if value is not None), None)
            if known is None:
                break
            factor, expression = factor * float(values[known] or 0.0), inputs[1 - known]
        else:
            break
    return expression, factor


def _times(base: Expression, factor: float) -> Expression:
    if abs(factor - 1) < NEAR:
        return base
    if abs(factor + 1) < NEAR:
        return elementwise("Neg", rules.RULES[Neg], [base])
    return elementwise("Mul", rules.RULES[Mul], [constant(np.asarray(factor)), base])


def log_sigmoid(x: Expression) -> Expression:
    """Return log(1 / (1 + exp(-x)))."""
    return elementwise("LogSigmoid", rules.LOG_SIGMOID, [x])


def log_ndtr(x: Expression) -> Expression:
    """Return the logarithm of the standard normal's distribution function."""
    return elementwise("LogNdtr", rules.LOG_NDTR, [x])


def recognised(kind: type, inputs: Sequence[Expression]) -> Expression | None:
    """Return a better expression of an elementwise operation, if there is one."""
    lifted = _lifted(kind, inputs)
    if lifted is not None:
        return lifted
    if issubclass(kind, Log):
        return _log(inputs[0])
    if issubclass(kind, Log1p):
        return _log_of_rest(*_scaled(inputs[0]))
    if issubclass(kind, Mul) and len(inputs) == 2:
        return _product(*inputs)
    if issubclass(kind, Pow):
        return _power(inputs[0], number(inputs[1]))
    if issubclass(kind, Sub):
        return _log_ndtr_by_erfcx(*inputs)
    if issubclass(kind, Add):
        return log_differences.log_erfcx_difference(inputs)
    if issubclass(kind, BetaInc):
        return _beta_of_one(*inputs)
    return None


def _beta_of_one(a: Expression, b: Expression, x: Expression) -> Expression | None:
    """Distribution function of a beta variable whose second shape is 1: x^a."""
    low, high = hull(x)
    if number(b) != 1 or not (low.min(initial=0) >= 0 and high.max(initial=1) <= 1 and hull(a)[0].min() > 0):
        return None
    log = recognised(Log, [x]) or elementwise("Log", rules.RULES[Log], [x])
    return elementwise("Exp", rules.RULES[Exp], [elementwise("Mul", rules.RULES[Mul], [a, log])])


def _product(first: Expression, second: Expression) -> Expression | None:
    if first is second:
        return elementwise("Sqr", rules.RULES[Sqr], [first])
    for one, other in ((first, second), (second, first)):
        if one.name == "Pow" and other.name == "Sqr" and number(one.inputs[1]) == -2:
            ratio = elementwise("TrueDiv", rules.RULES[TrueDiv], [other.inputs[0], one.inputs[0]])
            return elementwise("Sqr", rules.RULES[Sqr], [ratio])
    if _is_one(first):
        return second
    return first if _is_one(second) else None


def _is_one(expression: Expression) -> bool:
    return expression.constant is not None and expression.constant.shape == () and expression.constant == 1


def _power(base: Expression, exponent: float | None) -> Expression | None:
    if exponent == 2:
        return elementwise("Sqr", rules.RULES[Sqr], [base])
    return elementwise("Reciprocal", rules.RULES[Reciprocal], [base]) if exponent == -1 else None


def _lifted(kind: type, inputs: Sequence[Expression]) -> Expression | None:
    """Move a change of shape outside of a function of arrays that all had it, and constants: to see underneath."""
    shells = [item for item in inputs if item.symbols]
    if not shells or any(item.kind != "moved" or len(item.inputs) != 1 for item in shells):
        return None
    move = shells[0].move
    inner = [item.inputs[0] if item.symbols else plain(item) for item in inputs]
    ready = [item for item in inner if item is not None]
    if move is None or any(item.move is not move for item in shells) or len(ready) < len(inner):
        return None
    found = recognised(kind, ready) or settled(elementwise(kind.__name__, rules.RULES[_known(kind)], ready))
    return moved(shells[0].name, move, [found])


def plain(expression: Expression) -> Expression | None:
    """Return a number without axes; None where it is computed, so that its rounding is not forgotten."""
    if expression.kind == "constant" and expression.constant is not None:
        values = np.asarray(expression.constant)
        return constant(values.reshape(())) if values.size == 1 else None
    if expression.kind == "moved" and len(expression.inputs) == 1 and number(expression) is not None:
        return plain(expression.inputs[0])
    if expression.kind == "elementwise":
        inner = [plain(item) for item in expression.inputs]
        if any(item is None for item in inner) or expression.rule is None:
            return None
        return elementwise(expression.name, expression.rule, [item for item in inner if item is not None])
    return None


def _known(kind: type) -> type:
    return next(one for one in kind.__mro__ if one in rules.RULES)


def _log(given: Expression) -> Expression | None:
    if given.kind == "elementwise":
        if given.name == "Sigmoid":
            return log_sigmoid(given.inputs[0])
        if given.name == "Exp":
            return given.inputs[0]
        split = log_differences.log_of_share(given) or _log_of_product(given)
        if split is not None:
            return split
        if given.name == "Sub" and number(given.inputs[0]) == 1:
            return _log_of_rest(*_negated(given.inputs[1]))
        if given.name == "Sub":
            return log_differences.log_of_difference(given)
        base, factor = _scaled(given)
        if base.name == "Erfc" and abs(factor - 0.5) < NEAR:
            inner, scale = _scaled(base.inputs[0])
            return log_ndtr(_times(inner, -scale / HALF_ROOT))
        if given.name == "Add" and len(given.inputs) == 2 and number(given.inputs[0]) == 1:
            return _log_of_rest(*_scaled(given.inputs[1]))
    if given.kind == "moved" and given.move is not None and len(given.inputs) > 1:
        found = [recognised(Log, [item]) for item in given.inputs]
        if any(found):
            each = [
                one or elementwise("Log", rules.RULES[Log], [item])
                for one, item in zip(found, given.inputs, strict=True)
            ]
            return moved(given.name, given.move, each)
    if given.kind == "reduced" and given.name == "Softmax":
        return normalised("LogSoftmax", given.axes, given.inputs[0])
    return None


def _log_of_product(given: Expression) -> Expression | None:
    """Split the logarithm of a product, a quotient, a power or a root of positive factors into a sum."""
    if given.name not in ("Mul", "TrueDiv", "Reciprocal", "Sqrt", "Sqr") or not given.symbols:
        return None
    ends = [hull(item) for item in given.inputs]
    if not all(low.min(initial=1) > 0 and np.isfinite(high).all() for low, high in ends):
        return None
    logs = [recognised(Log, [item]) or elementwise("Log", rules.RULES[Log], [item]) for item in given.inputs]
    match given.name:
        case "Mul":
            return elementwise("Add", rules.RULES[Add], logs)
        case "TrueDiv":
            return elementwise("Sub", rules.RULES[Sub], logs)
        case "Reciprocal":
            return elementwise("Neg", rules.RULES[Neg], logs)
    factor = constant(np.asarray(0.5 if given.name == "Sqrt" else 2.0))
    return elementwise("Mul", rules.RULES[Mul], [factor, *logs])


def _negated(given: Expression) -> tuple[Expression, float]:
    base, factor = _scaled(given)
    return base, -factor


def _log_of_rest(base: Expression, factor: float) -> Expression | None:
    """log(1 + factor * base)."""
    if base.name == "Exp" and abs(factor - 1) < NEAR:
        return elementwise("Softplus", rules.SOFTPLUS, [base.inputs[0]])
    if base.name == "Exp" and abs(factor + 1) < NEAR:
        return elementwise("Log1mexp", rules.LOG1MEXP, [base.inputs[0]])
    if base.name == "Sigmoid" and abs(factor + 1) < NEAR:
        return log_sigmoid(elementwise("Neg", rules.RULES[Neg], [base.inputs[0]]))
    if base.name == "Erfc" and abs(factor + 0.5) < NEAR:
        inner, scale = _scaled(base.inputs[0])
        return log_ndtr(_times(inner, scale / HALF_ROOT))
    if base.name == "Erf" and abs(factor) == 1:  # log 2 + log Φ(± √2 u), finite where 1 ± erf(u) is rounded to 0
        inner, scale = _scaled(base.inputs[0])
        two = elementwise("Log", rules.RULES[Log], [constant(np.asarray(2.0))])
        return elementwise("Add", rules.RULES[Add], [two, log_ndtr(_times(inner, factor * scale / HALF_ROOT))])
    return None


def _log_ndtr_by_erfcx(first: Expression, second: Expression) -> Expression | None:
    """log(erfcx(u) / 2) - w^2 / 2 with u = ∓ w / √2: the same function as log Φ(± w), wherever it is used."""
    square, half = _scaled(second)
    if square.name != "Sqr" or abs(half - 0.5) > NEAR or first.name != "Log":
        return None
    scaled, factor = _scaled(first.inputs[0])
    if scaled.name != "Erfcx" or abs(factor - 0.5) > NEAR:
        return None
    inner, scale = _scaled(scaled.inputs[0])
    base, size = _scaled(square.inputs[0])
    if inner is not base or abs(abs(scale) - abs(size) * HALF_ROOT) > NEAR:
        return None
    return log_ndtr(_times(inner, -scale / HALF_ROOT))


def bounded(condition: Expression, fallback: Expression, clipped: Expression) -> Expression | None:
    """Recognise ``clip(x, low, high)`` with a number in place of NaN: whatever x is, the result is within the ends."""
    if condition.name != "IsNan" or clipped.name != "Clip" or condition.inputs[0] is not clipped.inputs[0]:
        return None
    numbers = [number(item) for item in (fallback, *clipped.inputs[1:])]
    if any(value is None or not math.isfinite(value) for value in numbers):
        return None
    missing, low, high = (float(value or 0.0) for value in numbers)
    assert clipped.rule is not None
    own = clipped.rule
    ends = [constant(np.asarray(end)) for end in (low, high)]

    def value(x: Interval, least: Interval, most: Interval) -> Interval:
        lost = (x.flags & NAN) > 0
        first = np.where(lost, min(low, missing), np.clip(x.low, low, high))
        last = np.where(lost, max(high, missing), np.clip(x.high, low, high))
        return Interval(first, last, np.zeros_like(x.flags))

    def partials(inputs: tuple[Interval, ...], out: Interval) -> tuple[Interval, ...]:
        lost = (inputs[0].flags & NAN) > 0
        none = unknown(out.shape)
        return tuple(
            Interval(*(np.where(lost, bad, good) for bad, good in zip(_parts(none), _parts(one), strict=True)))
            for one in (item.broadcast_to(out.shape) for item in own.partials(inputs, out))
        )

    return elementwise("Bounded", Rule(value, partials), [clipped.inputs[0], *ends])


def _parts(interval: Interval) -> tuple[Any, Any, Any]:
    return interval.low, interval.high, interval.flags


def same_branches(first: Expression, second: Expression) -> bool:
    """Whether two branches of a switch are one function, written in two ways for the sake of rounding."""
    if first is second:
        return True
    one, two = unmoved(first), unmoved(second)
    if one.name == two.name == "LogErfWindow":
        return log_differences.alike(first, second)
    if one.name != two.name or one.name not in ("LogNdtr", "LogSigmoid"):
        return False
    (base, factor), (other, size) = _scaled(one.inputs[0]), _scaled(two.inputs[0])
    return log_differences.alike(first, second) or (first is one and second is two and base is other and factor == size)


def normalised(name: str, axes: tuple[int, ...], given: Expression) -> Expression:
    """Return softmax, its logarithm, or log sum exp, over axes."""
    places = tuple(axis + 1 for axis in axes)
    value, slopes = _NORMALISED[name]
    return reduced(name, lambda x: value(x, places), lambda x, out, slope: slopes(x, slope, places), given, axes)


def _mean_slope(x: Interval, slope: Interval, places: tuple[int, ...]) -> Interval:
    """Enclose a mean of slopes with softmax weights: also between the least and the largest of them."""
    wide = slope.broadcast_to((max(slope.shape[0], x.shape[0]), *x.shape[1:]))
    mean = rules.total(rules.softmax(x, places) * wide, places)
    return Interval(
        np.maximum(mean.low, wide.low.min(axis=places)), np.minimum(mean.high, wide.high.max(axis=places)), mean.flags
    )


def _kept(interval: Interval, places: tuple[int, ...]) -> Interval:
    return Interval(*(np.expand_dims(item, places) for item in (interval.low, interval.high, interval.flags)))


def _deviation(x: Interval, slope: Interval, places: tuple[int, ...]) -> Interval:
    wide = slope.broadcast_to((max(slope.shape[0], x.shape[0]), *x.shape[1:]))
    return wide - _kept(_mean_slope(x, slope, places), places)


_NORMALISED: dict[str, tuple[Any, Any]] = {
    "LogSumExp": (rules.logsumexp, _mean_slope),
    "LogSoftmax": (rules.log_softmax, _deviation),
    "Softmax": (
        rules.softmax,
        lambda x, slope, places: rules.softmax(x, places) * _deviation(x, slope, places),
    ),
}

__all__ = [
    "bounded",
    "log_ndtr",
    "log_sigmoid",
    "normalised",
    "number",
    "plain",
    "recognised",
    "same_branches",
    "settled",
]
