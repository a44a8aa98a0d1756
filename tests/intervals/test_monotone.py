"""What rules do at infinities that are attained."""

import math

import numpy as np
import pytensor.scalar.basic as basic
import pytest

from pymc_dp.intervals import rules
from pymc_dp.intervals.rules import INFINITE, NAN, RULES, Interval

INF, HALF_PI = math.inf, math.pi / 2
NAMED = {op.__name__: rule for op, rule in RULES.items()}

LIMITS = {
    "Exp": (0, INF), "Exp2": (0, INF), "Expm1": (-1, INF), "Log": (None, INF), "Log1p": (None, INF),
    "Sqrt": (None, INF), "Sigmoid": (0, 1), "Softplus": (0, INF), "Log1mexp": (0, None), "LOG_SIGMOID": (-INF, 0),
    "LOG_NDTR": (-INF, 0), "Sinh": (-INF, INF), "Cosh": (INF, INF), "Tanh": (-1, 1), "ArcTan": (-HALF_PI, HALF_PI),
    "ArcSinh": (-INF, INF), "Erf": (-1, 1), "Erfc": (2, 0), "Erfcx": (INF, 0), "I0e": (0, 0), "I1e": (0, 0),
    "Sqr": (INF, INF), "Abs": (INF, INF), "Sign": (-1, 1), "Neg": (INF, -INF), "Reciprocal": (0, 0),
    "Cos": (None, None), "Sin": (None, None), "IsInf": (1, 1), "Floor": (-INF, INF),
    "GammaLn": (None, INF), "TO_BOOLEAN": (1, 1), "TO_INTEGER": (None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("sign", [-1, 1])
def test_attained_infinities_give_the_limit(name, sign):
    rule = NAMED.get(name) or getattr(rules, name)
    limit = LIMITS[name][(sign + 1) // 2]
    half_line = Interval.of(-INF, -1.0, INFINITE) if sign < 0 else Interval.of(1.0, INF, INFINITE)
    for x in (half_line, Interval.point(sign * INF)):
        found = rule.value(x)
        if limit is None:
            assert found.flags & NAN
            continue
        assert found.low <= limit <= found.high
        assert not found.flags & NAN
        assert bool(found.flags & INFINITE) == math.isinf(limit)
    if limit is not None and limit == round(limit, 0):
        assert found.low == found.high == limit


@pytest.mark.parametrize("x", [Interval.point(INF), Interval.point(-INF), Interval.of(1.0, INF)])
def test_an_infinity_may_be_no_number_in_floats(x):
    """They overflow there, and a difference of two that did is no number: neither answer is sure."""
    found = RULES[basic.IsNan].value(x)
    assert (found.low, found.high) == (0, 1) and not found.flags


BINARY_LIMITS = [
    (basic.Add, (INF, 1.0)),
    (basic.Mul, (INF, -2.0)),
    (basic.TrueDiv, (3.0, INF)),
    (basic.Pow, (INF, 2.0)),
    (basic.Pow, (INF, -1.0)),
    (basic.Pow, (0.5, INF)),
    (basic.Pow, (0.5, -INF)),
    (basic.Pow, (-INF, 3.0)),
    (basic.Pow, (-INF, 2.0)),
    (basic.Pow, (INF, 0.0)),
    (basic.Maximum, (INF, 1.0)),
    (basic.Minimum, (-INF, 1.0)),
    (basic.GE, (INF, INF)),
    (basic.LT, (-INF, INF)),
    (basic.EQ, (INF, INF)),
    (basic.EQ, (INF, -INF)),
]


@pytest.mark.parametrize(("op", "args"), BINARY_LIMITS)
def test_operations_on_infinities_follow_pytensor(op, args):
    found = RULES[op].value(*map(Interval.point, args))
    value = float(scalar_op(op).impl(*map(np.float64, args)))
    assert found.low <= value <= found.high
    assert bool(found.flags & INFINITE) == math.isinf(value)
    assert found.high == value or op is basic.Pow


def scalar_op(op):
    names = {"EQ": "eq", "GE": "ge", "LT": "lt", "TrueDiv": "true_div", "Maximum": "maximum", "Minimum": "minimum"}
    return getattr(basic, names.get(op.__name__, op.__name__.lower()))
